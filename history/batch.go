package history

import (
	"bytes"
	"iter"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// MaxIDBytes is the maximum length of a new run's id. Stores use ids as table keys.
const MaxIDBytes = 2048

// Check returns INTERNAL_ERROR if the batch violates the contract of Store.Append: the caller has a bug, and the history would be unreadable.
// It returns VALIDATION_ERROR for a new run with an invalid id. An existing run with such an id continues.
func (b *Batch) Check() error {
	fault := func(format string, args ...any) error {
		return problem.New(problem.Internal, "append: "+format, args...).WithPlace(problem.Place{ExecutionID: b.ExecutionID})
	}
	switch {
	case b.ExecutionID == "":
		return fault("the execution id is empty")
	case b.ExpectedSeq == 0 && (len(b.ExecutionID) > MaxIDBytes || !utf8.ValidString(b.ExecutionID)):
		return problem.New(problem.ValidationError, "invalid execution id %q: expected UTF-8 of at most %d bytes", b.ExecutionID, MaxIDBytes).
			WithHint("Use a shorter id in UTF-8. The id of a subworkflow contains the ids of its parent and of its node.")
	case b.ExpectedSeq < 0:
		return fault("the expected seq %d is negative", b.ExpectedSeq)
	case len(b.Records) == 0 && (!b.SetTimers || b.ExpectedSeq == 0 || b.Owner != "" || b.Definition != nil || b.Subworkflows != nil):
		return fault("the batch has no records")
	case b.Link != nil && (b.ExpectedSeq != 0 || b.Link.From == "" || b.Link.Kind != Forked && b.Link.Kind != Retried || b.Link.At.IsZero()):
		return fault("the link is not one of a run that begins")
	case b.Disown && b.Owner == "":
		return fault("a batch that disowns the run names no owner")
	case b.Ready != nil && b.Owner != "" && !b.Disown:
		return fault("a ready run has no owner, and the batch names %q", b.Owner)
	case b.Execution.ID != b.ExecutionID:
		return fault("the projection belongs to run %q", b.Execution.ID)
	case b.Execution.Seq != b.ExpectedSeq+int64(len(b.Records)):
		return fault("expected a projection at seq %d, found one at %d", b.ExpectedSeq+int64(len(b.Records)), b.Execution.Seq)
	}
	if err := b.checkDeliveries(); err != nil {
		return fault("%v", err)
	}
	if b.Ready != nil {
		if err := b.Ready.Check(); err != nil {
			return err
		}
	}
	for d := range b.Definitions() {
		if err := d.Check(); err != nil {
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

// Check returns INTERNAL_ERROR if the definition lacks its hash, which is its key, or has an invalid signature.
func (d *StoredDefinition) Check() error {
	if d.Hash == "" {
		return problem.New(problem.Internal, "the definition %q has no hash", d.Name)
	}
	for _, block := range d.Signatures {
		if len(block) == 0 || bytes.IndexByte(block, '\n') >= 0 {
			return problem.New(problem.Internal, "the definition %q has a signature that is empty or has more than one line", d.Name)
		}
	}
	return nil
}

// Conflict returns the error of an append whose ExpectedSeq differs from the seq of the run's last record.
func (b *Batch) Conflict() error {
	return problem.New(problem.HistoryConflict, "run %q has no last record %d: another writer appended first",
		b.ExecutionID, b.ExpectedSeq).
		WithPlace(problem.Place{ExecutionID: b.ExecutionID}).
		WithHint("Read the run again and repeat the decision.")
}

// LeaseHeld returns the error of an append by an owner while another process owns the run.
func (b *Batch) LeaseHeld() error {
	return problem.New(problem.LeaseHeld, "another process owns run %q", b.ExecutionID).
		WithPlace(problem.Place{ExecutionID: b.ExecutionID}).
		WithHint("Append without an owner, and leave the requested work to the run's owner.")
}

// NotFound returns the error for a run without records.
func NotFound(executionID string) error {
	return problem.New(problem.ExecutionNotFound, "no run has the id %q", executionID).
		WithPlace(problem.Place{ExecutionID: executionID}).
		WithHint("Check the id; Runner.List shows the runs.")
}

// Definitions returns the definitions that the batch stores.
func (b *Batch) Definitions() iter.Seq[*StoredDefinition] {
	return func(yield func(*StoredDefinition) bool) {
		if b.Definition != nil && !yield(b.Definition) {
			return
		}
		for i := range b.Subworkflows {
			if !yield(&b.Subworkflows[i]) {
				return
			}
		}
	}
}
