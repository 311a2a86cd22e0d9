package activities

import (
	"context"
	"time"
)

// Work performs an attempt of a long activity from where its journal ends, so that the attempt continues after a crash: the
// engine records its steps, and hands them to the process that performs the attempt next. Errors, contexts and panics follow the rules of
// Executor.Execute.
//
//	func (c *Crawler) Capabilities(activities.Node) activities.Capabilities {
//		return activities.Capabilities{Work: c.work}
//	}
//
//	func (c *Crawler) work(ctx context.Context, req activities.Request, j activities.Journal) (activities.End, error) {
//		done, err := j.Steps(ctx)
//		…
//		for _, page := range pages[len(done):] {
//			found, err := c.fetch(ctx, page)
//			…
//			err = j.Record(ctx, activities.Step{Key: page, Kind: "fetched", Body: found})
//			…
//		}
//		return activities.End{Result: &activities.Result{Output: total}}, nil
//	}
//
// The rules: record the result of each effect before the next effect starts. An effect whose step is not recorded may have happened
// (Journal.Begun) and is made again, so give it a key that lets the other side detect a repetition: Request.IdempotencyKey with the
// step's key. A new attempt (retry) begins with an empty journal. The node's timeout counts from its request, rests and waits for answers
// included, also after a take-over.
type Work func(ctx context.Context, req Request, j Journal) (End, error)

// RecordedAttempt is an attempt with recorded steps, for a check of its journal (graph.Options.CheckSteps).
type RecordedAttempt struct {
	// Steps are those so far, oldest first; the body of an answer has it as "payload".
	Steps []Step
	// Completed is set if the attempt has completed, with Output.
	Completed bool
	Output    any
}

// Journal holds the recorded steps of one attempt. Its methods are safe for concurrent use.
type Journal interface {
	// Steps returns the recorded steps, the oldest first, answers of persons among them. Large journals take time to read.
	Steps(ctx context.Context) ([]Step, error)
	// Step returns step n, counted from 1, without reading the others. The error is JOURNAL_INVALID if it does not exist.
	Step(ctx context.Context, n int) (Step, error)
	// Record records steps, in order and in one durable commit: once it has returned their effects may begin. Calls that come while a
	// commit is under way share the next one. After an error nothing more can be recorded, and Work must return: the cause of the
	// context if the attempt is not this process's any more, RECORD_LIMIT_EXCEEDED and the like if the run is full, JOURNAL_INVALID for
	// a step that is not one, the store's otherwise: then the attempt has no outcome, and continues where it was once the store is back.
	Record(ctx context.Context, steps ...Step) error
	// Begun reports whether an earlier call of Work may have begun effects that follow from the recorded steps, without having recorded
	// their outcome: its process died or was stopped. It is false for the first call, after an answer or a rest, and in a fork.
	Begun() bool
}

// Earlier is implemented by the engine's journals. An executor that continues after a failed attempt, instead of starting from the beginning,
// records the steps of that attempt that it needs as its own.
type Earlier interface {
	// Before returns the newest attempt of the same visit that has recorded steps and has failed before this one started; ok is false if
	// the attempt does not exist.
	Before(ctx context.Context) (e EarlierAttempt, ok bool, err error)
}

// Roomed is implemented by the engine's journals. A run that has reached its limit of bytes fails: an executor that could record much asks before.
type Roomed interface {
	// Room returns how many bytes the run may still take in the store.
	Room(ctx context.Context) (int64, error)
}

// EarlierAttempt is an attempt that has failed.
type EarlierAttempt struct {
	// Attempt identifies it within its run, as in "node#1.2".
	Attempt string
	Steps   []Step
	// Code and Message describe the newest failure of the visit.
	Code, Message string
}

// Step is one journal entry of an attempt.
type Step struct {
	// Key identifies the step for the executor. The engine does not use it.
	Key string
	// Kind is the kind of event. "question", "answer", "rest" and "woken" are the engine's.
	Kind string
	// Body describes the event: plain JSON, of at most MaxStepBytes. An answer is in "payload"; with "expired" it is the default. The
	// names "key", "kind", "n", "totals", "schema", "otherwise" and "expires" are the engine's.
	Body map[string]any
	// Totals are sums as of this step, such as tokens. The run's answer shows the newest ones while it waits.
	Totals map[string]any
	// At is when the step was recorded. Record ignores it.
	At time.Time
}

// StepPiece is the kind of steps that hold pieces of something large. Journal.Steps gives them without their bodies, Journal.Step with it: a
// journal is read without texts that may not be needed. Their text is in PieceMember.
const StepPiece = "piece"

// PieceMember is the field of a piece with its text. Where fields are masked by name (history.Redaction) it is masked as a whole: it cannot be
// known which fields its text has.
const PieceMember = "pieceText"

// MaxStepBytes bounds a step, as canonical JSON.
const MaxStepBytes = 2 << 20

// End is the end of a call of Work. Its steps are recorded in one commit with the outcome, question or rest. With a Result the attempt has succeeded. With a
// Question it rests until a person has answered, with Until until a time: then nothing waits in memory, no process owns the run, and Work
// is called again, here or in another process, with the step "woken" at the end of the journal, behind the "answer" to a question.
// Exactly one of the three is set.
type End struct {
	Steps    []Step
	Result   *Result
	Question *Question
	// Until is the time to continue. A rest takes two commits; a pause of seconds is better spent in Work.
	Until time.Time
}

// Question is an executor's question to a person.
type Question struct {
	// Key is the key of the steps "question" and "answer". Within an attempt each question has its own.
	Key string
	// Prompt is shown, at most 4,000 characters of it.
	Prompt string
	// Body is shown beside it.
	Body map[string]any
	// Schema is the JSON Schema of the answer; nil or {} takes any object that is not empty.
	Schema map[string]any
	// Expires is when Otherwise counts as the answer; zero for never.
	Expires   time.Time
	Otherwise map[string]any
}
