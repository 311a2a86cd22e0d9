package temporal

import (
	"context"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
)

// SideStore keeps beside Temporal the values that are too large or too many for event histories. All workers and engines of a namespace share
// one.
type SideStore interface {
	// PutBlob stores a value under its SHA-256 in hex. GetBlob returns it.
	PutBlob(ctx context.Context, hash string, value []byte) error
	GetBlob(ctx context.Context, hash string) ([]byte, error)
	// AppendJournal appends entries to the journal of an attempt, whose number of entries must be count before. Otherwise another worker has
	// written, and the error is HISTORY_CONFLICT. Journal returns the entries.
	AppendJournal(ctx context.Context, attempt string, count int, entries [][]byte) error
	Journal(ctx context.Context, attempt string) ([][]byte, error)
	Close() error
}

// Archive keeps the records that a run leaves behind when it continues as new.
type Archive interface {
	// Archive stores records of a run, which follow those stored before. Records that are stored already are ignored.
	Archive(ctx context.Context, executionID string, d history.StoredDefinition, records []history.Record) error
	// Archived returns the stored records of a run from a seq on; at most limit of them, unless that is 0.
	Archived(ctx context.Context, executionID string, from int64, limit int) ([]history.Record, error)
}

// load reads what an earlier worker has recorded of the attempt.
func (r *attemptRuns) load(ctx context.Context, effect machine.Effect) error { return nil }

// complete adds the journal to the result of an attempt.
func (r *attemptRuns) complete(in machine.Input) machine.Input { return in }

func (r *attemptRuns) Recorded(context.Context, string, *work.Attempt, int64, int) ([]activities.Step, error) {
	return nil, errNoJournal
}

func (r *attemptRuns) Record(string, *work.Attempt, machine.StepsRecorded) error { return errNoJournal }
