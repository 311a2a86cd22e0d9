package history

import (
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// MaxIDBytes is the length of the longest id that a run may have. Stores keep ids as keys of tables.
const MaxIDBytes = 2048

// Check refuses a batch that breaks the contract of Store.Append, with INTERNAL_ERROR: it is the caller's mistake, and
// writing it would leave a history that cannot be read. A batch that begins a run under an id that no run may have is
// refused with VALIDATION_ERROR; a run that has such an id goes on.
func (b *Batch) Check() error {
	fault := func(format string, args ...any) error {
		return problem.New(problem.Internal, "append: "+format, args...).WithPlace(problem.Place{ExecutionID: b.ExecutionID})
	}
	switch {
	case b.ExecutionID == "":
		return fault("the execution id is empty")
	case b.ExpectedSeq == 0 && (len(b.ExecutionID) > MaxIDBytes || !utf8.ValidString(b.ExecutionID)):
		return problem.New(problem.ValidationError, "invalid execution id %q: expected UTF-8 of at most %d bytes", b.ExecutionID, MaxIDBytes).
			WithHint("Use a shorter id in UTF-8. The id of a subworkflow contains those of its parent and of its node.")
	case b.ExpectedSeq < 0:
		return fault("the expected seq %d is negative", b.ExpectedSeq)
	case len(b.Records) == 0 && (!b.SetTimers || b.ExpectedSeq == 0 || b.Owner != "" || b.Definition != nil):
		return fault("the batch has no records")
	case b.Disown && b.Owner == "":
		return fault("a batch that disowns the run names no owner")
	case b.Execution.ID != b.ExecutionID:
		return fault("the projection belongs to run %q", b.Execution.ID)
	case b.Execution.Seq != b.ExpectedSeq+int64(len(b.Records)):
		return fault("expected a projection at seq %d, found one at %d", b.ExpectedSeq+int64(len(b.Records)), b.Execution.Seq)
	}
	if b.Definition != nil {
		if err := b.Definition.Check(); err != nil {
			return err
		}
	}
	for i := range b.Timers {
		if key := b.Timers[i].Key; !utf8.ValidString(key) {
			return fault("the key %q of timer %d is not UTF-8", key, i)
		}
	}
	for i := range b.Records {
		r := &b.Records[i]
		switch {
		case r.Name.Kind() == "" || r.Name.Kind() != r.Kind:
			return fault("record %d has name %q and kind %q", i, r.Name, r.Kind)
		case r.CreatedAt.IsZero():
			return fault("record %d (%s) has no time", i, r.Name)
		}
	}
	return nil
}

// Check refuses a definition without the hash that keys it, with INTERNAL_ERROR.
func (d *StoredDefinition) Check() error {
	if d.Hash == "" {
		return problem.New(problem.Internal, "the definition %q has no hash", d.Name)
	}
	return nil
}

// Conflict is the error of an append whose expected seq is not the run's last one.
func (b *Batch) Conflict() error {
	return problem.New(problem.HistoryConflict, "run %q has no last record %d: another writer appended first",
		b.ExecutionID, b.ExpectedSeq).
		WithPlace(problem.Place{ExecutionID: b.ExecutionID}).
		WithHint("Read the run again and decide anew.")
}

// LeaseHeld is the error of an append by a process that does not own the run while another one does.
func (b *Batch) LeaseHeld() error {
	return problem.New(problem.LeaseHeld, "another process owns run %q", b.ExecutionID).
		WithPlace(problem.Place{ExecutionID: b.ExecutionID}).
		WithHint("Append without an owner, and leave what the records request to the run's owner.")
}

// NotFound is the error of a run that has no records.
func NotFound(executionID string) error {
	return problem.New(problem.ExecutionNotFound, "no run has the id %q", executionID).
		WithPlace(problem.Place{ExecutionID: executionID}).
		WithHint("Check the id; workflow_list shows the runs.")
}
