package activities

import (
	"context"
	"time"
)

// Tasks serves delegations to agents that have long-running tasks. The engine sends the task, records its id and
// polls it; nothing waits in memory meanwhile. After a crash the engine continues with the recorded task instead of sending
// a second one. An agent that asks for input makes the run wait for an answer.
//
// Failures are *Failure. An agent's rejection and a failed task are failures as in Execute.
type Tasks interface {
	// Send hands the task over. Should the engine crash before it has recorded the answer, it sends the task again with
	// the same idempotency key.
	Send(ctx context.Context, req Request) (Task, error)
	// Poll asks for the state of a task. Several processes may poll one task at once. A transient error (a failure marked
	// RetrySensible, or any error that is not a *Failure) does not end the attempt: the engine polls
	// again, with growing pauses, until some 10 polls in a row have failed. Every other failure ends the attempt.
	Poll(ctx context.Context, req Request, task TaskRef) (Task, error)
	// Answer sends the answer to an agent that asked for input. The request's IdempotencyKey names the answer.
	Answer(ctx context.Context, req Request, task TaskRef, answer map[string]any) (Task, error)
	// Cancel asks the agent to end a task whose result is not needed any more. The engine logs an error and continues.
	Cancel(ctx context.Context, req Request, task TaskRef) error
}

// TaskRef is a task that an agent accepted.
type TaskRef struct {
	// ID is the task's id at the agent, ContextID the id of its conversation; "" if it has no conversation.
	ID, ContextID string
	// Polls counts the polls since the task last changed. Waited is the time since the agent took the task, or the answer
	// to its last question.
	Polls  int
	Waited time.Duration
	// Asks is set if the agent was waiting for an answer at the last poll.
	Asks bool
}

// TaskState is the state of a task.
type TaskState int

const (
	// TaskWorking means that the agent works on it.
	TaskWorking TaskState = iota
	// TaskAsks means that the agent waits for an answer to Task.Prompt.
	TaskAsks
	// TaskCompleted means that Task.Output is the result.
	TaskCompleted
)

// Task is the state of a task at its agent.
type Task struct {
	State TaskState
	// ID and ContextID name the task; see TaskRef. Polls need not repeat them.
	ID, ContextID string
	// Prompt is the agent's question, for a person (TaskAsks).
	Prompt string
	// Output and Usage are as in Result (TaskCompleted).
	Output any
	Usage  map[string]any
	// PollAfter is the time until the next poll; 0 leaves it to the engine.
	PollAfter time.Duration
	// Status is the state in the agent's words, for errors and heartbeats.
	Status string
}
