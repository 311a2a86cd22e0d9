package historymem

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

var _ history.Importer = (*Store)(nil)

// Append adds a batch to one run's history; see history.Store.
func (s *Store) Append(ctx context.Context, b history.Batch) error {
	if err := b.Check(); err != nil {
		return err
	}
	id := b.ExecutionID
	a := additionOf(&b, func(dst []byte, r *history.Record) []byte { return r.AppendPayload(dst, id) })
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	x := s.runs[b.ExecutionID]
	switch {
	case x == nil && b.ExpectedSeq != 0, x != nil && int64(len(x.rows)) != b.ExpectedSeq:
		return b.Conflict()
	case b.Owner != "" && x != nil && s.ownedElsewhere(x, b.Owner):
		return b.LeaseHeld()
	}
	if err := s.link(&b); err != nil {
		return err
	}
	x = s.add(&b, a)
	s.handleRetried(&b)
	s.keepOwner(x, &b)
	s.addDeliveries(&b)
	if b.Bytes != nil {
		*b.Bytes = x.bytes
	}
	for d := range b.Definitions() {
		s.putDefinition(*d)
	}
	return nil
}

// Import adds whole runs; see history.Importer.
func (s *Store) Import(ctx context.Context, in history.Import) error {
	batches, err := in.Batches()
	if err != nil {
		return err
	}
	additions := make([]addition, len(batches))
	for i := range batches {
		additions[i] = additionOf(&batches[i], func(dst []byte, r *history.Record) []byte { return append(dst, r.Raw...) })
	}
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	for i := range batches {
		if id := batches[i].ExecutionID; s.runs[id] != nil {
			return problem.New(problem.DuplicateExecutionID, "run %q exists already", id).WithPlace(problem.Place{ExecutionID: id})
		}
	}
	for i := range batches {
		s.add(&batches[i], additions[i])
		if h := in.Runs[i].Handled; h != nil {
			s.handled[h.ExecutionID] = *h
		}
	}
	for _, d := range in.Definitions {
		s.putDefinition(d)
	}
	return nil
}

// addition holds the rows that a batch adds to its run. It is built before the store is locked.
type addition struct {
	rows []row
	text []byte
}

// usualText is the initial buffer size, in bytes, for the text of a record or projection. Most fit.
const usualText = 1024

// additionOf copies the data that a store keeps of a batch; payload appends the text of a record.
func additionOf(b *history.Batch, payload func(dst []byte, r *history.Record) []byte) addition {
	buf := make([]byte, 0, usualText)
	buf = b.Execution.AppendText(buf)
	a := addition{text: bytes.Clone(buf), rows: make([]row, len(b.Records))}
	for i := range b.Records {
		r := &b.Records[i]
		buf = payload(buf[:0], r)
		a.rows[i] = row{kind: r.Kind, name: r.Name, payload: bytes.Clone(buf), at: milli(r.CreatedAt), foreign: r.Foreign}
	}
	return a
}

// add adds records to a run and stores the position and timers of the batch. It creates a missing run.
func (s *Store) add(b *history.Batch, a addition) *run {
	x := s.runs[b.ExecutionID]
	if x == nil {
		s.begun++
		x = &run{id: b.ExecutionID, number: s.begun}
		s.runs[b.ExecutionID] = x
	}
	x.rows, x.parsed, x.text = append(x.rows, a.rows...), nil, a.text
	for i := range a.rows {
		x.bytes += int64(len(a.rows[i].payload))
	}
	ends := b.Execution.Phase.Terminal()
	switch {
	case ends:
		x.position, x.positionSeq = nil, 0
	case b.Position != nil:
		x.position, x.positionSeq = bytes.Clone(b.Position), b.Execution.Seq
	}
	if ends || b.SetTimers {
		x.timers = nil
	}
	if b.SetTimers && !ends {
		for _, t := range b.Timers {
			x.timers = append(x.timers, history.Timer{ExecutionID: b.ExecutionID, Key: t.Key, Due: time.UnixMilli(history.CeilMillis(t.Due)).UTC()})
		}
	}
	s.changed(b.ExecutionID, b.Execution.Seq)
	return x
}

// milli returns the time in UTC, in whole milliseconds, the precision of a file.
func milli(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// PutDefinition stores a definition; see history.Store.
func (s *Store) PutDefinition(ctx context.Context, d history.StoredDefinition) error {
	if err := d.Check(); err != nil {
		return err
	}
	return s.do(ctx, func() { s.putDefinition(d) })
}

func (s *Store) putDefinition(d history.StoredDefinition) {
	i := slices.IndexFunc(s.definitions, func(k stored) bool { return k.Hash == d.Hash })
	if i < 0 {
		i = len(s.definitions)
		s.defined++
		kept := stored{d, s.defined, milli(s.clock.Now())}
		kept.Text, kept.Signatures = bytes.Clone(d.Text), nil
		s.definitions = append(s.definitions, kept)
	}
	s.definitions[i].Signatures = history.AddSignatures(s.definitions[i].Signatures, d.Signatures)
}
