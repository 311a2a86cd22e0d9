package delegate

import (
	"context"
	"time"
)

// Tasks is implemented by executors whose agents work on tasks of their own. The engine then hands the task over,
// records its id, and looks at it from time to time; nothing waits in memory meanwhile. After a crash the engine goes on
// with the recorded task instead of sending a second one. An agent that asks something makes the run pause until
// somebody answers.
//
// Failures are *activities.Failure. An agent's refusal and a task that has failed are failures like those of Delegate.
type Tasks interface {
	Executor
	// HasTask reports whether the request is served in this way; Delegate serves the others. It must not block.
	HasTask(req Request) bool
	// Send hands the task over. Should the engine crash before it has recorded the answer, it sends the task again with
	// the same idempotency key.
	Send(ctx context.Context, req Request) (Task, error)
	// Poll looks how a task stands. Several processes may poll one task at once. An error that may pass (a failure marked
	// activities.RetrySensible, or any error that is no *activities.Failure) is not the end: the engine asks again, with
	// growing pauses, and gives up after some 10 failures in a row. Every other failure ends the attempt.
	Poll(ctx context.Context, req Request, task TaskRef) (Task, error)
	// Answer gives an agent that asks what it was told. The request's IdempotencyKey names the answer.
	Answer(ctx context.Context, req Request, task TaskRef, answer map[string]any) (Task, error)
	// Cancel tells the agent that nobody waits for the task any more. The engine logs an error and goes on.
	Cancel(ctx context.Context, req Request, task TaskRef) error
}

// TaskRef is a task that an agent has taken.
type TaskRef struct {
	// ID is the task's id at the agent, ContextID the conversation it belongs to, "" if there is none.
	ID, ContextID string
	// Polls counts the polls since the task last changed. Waited is the time since the agent took the task, or the answer
	// to its last question.
	Polls  int
	Waited time.Duration
	// Asks says that the agent was last seen waiting for an answer.
	Asks bool
}

// TaskState says how a task stands.
type TaskState int

const (
	// TaskWorking means that the agent is at it.
	TaskWorking TaskState = iota
	// TaskAsks means that the agent waits for an answer to Task.Prompt.
	TaskAsks
	// TaskCompleted means that Task.Output is the result.
	TaskCompleted
)

// Task is how a task stands at its agent.
type Task struct {
	State TaskState
	// ID and ContextID name the task; see TaskRef. Polls need not repeat them.
	ID, ContextID string
	// Prompt is what the agent asks, in words for a person (TaskAsks).
	Prompt string
	// Output and Usage are those of Result (TaskCompleted).
	Output any
	Usage  map[string]any
	// PollAfter is when the task should be looked at again; 0 leaves it to the engine.
	PollAfter time.Duration

	status string // in the agent's words
}
