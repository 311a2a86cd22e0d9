package history

import (
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// LinkKind says how a run has come from another one.
type LinkKind string

// The kinds of links.
const (
	Forked  LinkKind = "fork"
	Retried LinkKind = "retry"
)

// Link says that a run, To, has begun with the past of another one, From, up to a record.
type Link struct {
	From, To string
	Kind     LinkKind
	Seq      int64
	// Actor is who began it, as text; "" if that is not known.
	Actor string
	At    time.Time
	// Again lets a batch begin a retry beside others. It is not stored.
	Again bool
	// Phase is that of To; "" if it has been deleted. A batch does not set it.
	Phase Phase
}

// AlreadyRetried is the error of a retry of a run of which another one is open or has completed.
func (l *Link) AlreadyRetried(id string) error {
	return problem.New(problem.AlreadyRetried, "run %q has been retried as %q, which is open or has completed", l.From, id).
		WithPlace(problem.Place{ExecutionID: l.From}).
		WithHint("Look at run %q. Nothing was written; another retry beside it has to be asked for.", id)
}

// CompletesFork reports whether a run that has begun with the past of another one completes with the batch.
func (b *Batch) CompletesFork() bool {
	return len(b.Records) > 0 && b.Execution.Phase == PhaseCompleted && b.Execution.ForkedFrom.ExecutionID != ""
}

// Live reports whether a retry in a phase keeps others from being begun.
func (l *Link) Live() bool {
	return l.Kind == Retried && l.Phase != "" && l.Phase != PhaseFailed && l.Phase != PhaseCancelled
}
