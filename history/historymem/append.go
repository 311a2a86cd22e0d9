package historymem

import (
	"bytes"
	"context"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// Append adds a batch to one run's history; see history.Store.
func (s *Store) Append(ctx context.Context, b history.Batch) error {
	if err := b.Check(); err != nil {
		return err
	}
	text := b.Execution.AppendText(nil)
	execution, err := history.ParseExecution(b.ExecutionID, text)
	if err != nil {
		return err
	}
	rows := make([]row, len(b.Records))
	for i := range b.Records {
		r := &b.Records[i]
		rows[i] = row{kind: r.Kind, name: r.Name, payload: r.AppendPayload(nil, b.ExecutionID), at: milli(r.CreatedAt)}
	}
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	x := s.runs[b.ExecutionID]
	var now time.Time
	if len(rows) > 0 {
		now = rows[len(rows)-1].at
	}
	switch {
	case x == nil && b.ExpectedSeq != 0, x != nil && int64(len(x.rows)) != b.ExpectedSeq:
		return b.Conflict()
	case b.Lease.Owner != "" && s.leasedToOther(b.ExecutionID, b.Lease.Owner, now):
		return b.LeaseHeld()
	case b.Owner != "" && x != nil && s.ownedElsewhere(x, b.Owner):
		return b.LeaseHeld()
	case x == nil:
		x = &run{}
		s.runs[b.ExecutionID] = x
	}
	x.rows = append(x.rows, rows...)
	for i := range rows {
		x.bytes += int64(len(rows[i].payload))
	}
	if b.Bytes != nil {
		*b.Bytes = x.bytes
	}
	x.execution, x.text = execution, text
	x.keep(&b)
	s.keepOwner(x, &b)
	s.changed(b.ExecutionID, execution.Seq)
	if b.Definition != nil {
		s.putDefinition(*b.Definition)
	}
	switch {
	case b.ReleaseLease:
		s.release(b.ExecutionID, b.Lease.Owner)
	case b.Lease.Owner != "":
		s.acquire(b.ExecutionID, b.Lease, now)
	}
	return nil
}

// keep stores the batch's position and timers.
func (x *run) keep(b *history.Batch) {
	if b.Execution.Phase.Terminal() {
		x.position, x.positionSeq, x.timers = nil, 0, nil
		return
	}
	if b.Position != nil {
		x.position, x.positionSeq = bytes.Clone(b.Position), b.Execution.Seq
	}
	if b.SetTimers {
		x.timers = nil
		for _, t := range b.Timers {
			x.timers = append(x.timers, history.Timer{ExecutionID: b.ExecutionID, Key: t.Key, Due: time.UnixMilli(history.CeilMillis(t.Due)).UTC()})
		}
	}
}

// milli gives the time as a file would keep it.
func milli(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// AcquireLease makes owner the driver of a run; see history.Store.
func (s *Store) AcquireLease(ctx context.Context, executionID, owner string, now, expires time.Time) (bool, error) {
	if err := s.enter(ctx); err != nil {
		return false, err
	}
	defer s.mu.Unlock()
	return s.acquire(executionID, history.Lease{Owner: owner, Expires: expires}, milli(now)), nil
}

func (s *Store) acquire(executionID string, l history.Lease, now time.Time) bool {
	if s.leasedToOther(executionID, l.Owner, now) {
		return false
	}
	s.leases[executionID] = history.Lease{Owner: l.Owner, Expires: milli(l.Expires)}
	return true
}

func (s *Store) leasedToOther(executionID, owner string, now time.Time) bool {
	held, ok := s.leases[executionID]
	return ok && held.Owner != owner && held.Expires.After(now)
}

// Lease gives the lease of a run; see history.Store.
func (s *Store) Lease(ctx context.Context, executionID string) (history.Lease, error) {
	if err := s.enter(ctx); err != nil {
		return history.Lease{}, err
	}
	defer s.mu.Unlock()
	return s.leases[executionID], nil
}

// ReleaseLease gives a lease back; see history.Store.
func (s *Store) ReleaseLease(ctx context.Context, executionID, owner string) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	s.release(executionID, owner)
	return nil
}

func (s *Store) release(executionID, owner string) {
	if s.leases[executionID].Owner == owner {
		delete(s.leases, executionID)
	}
}

// PutDefinition stores a definition; see history.Store.
func (s *Store) PutDefinition(ctx context.Context, d history.StoredDefinition) error {
	if err := d.Check(); err != nil {
		return err
	}
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	s.putDefinition(d)
	return nil
}

func (s *Store) putDefinition(d history.StoredDefinition) {
	if _, err := s.definition(func(k *history.StoredDefinition) bool { return k.Hash == d.Hash }); err != nil {
		d.Text = bytes.Clone(d.Text)
		s.definitions = append(s.definitions, d)
	}
}

// definition gives the one stored last that a condition holds for.
func (s *Store) definition(is func(d *history.StoredDefinition) bool) (history.StoredDefinition, error) {
	for i := len(s.definitions) - 1; i >= 0; i-- {
		if d := s.definitions[i]; is(&d) {
			d.Text = bytes.Clone(d.Text)
			return d, nil
		}
	}
	return history.StoredDefinition{}, problem.New(problem.DefinitionNotFound, "the definition is not stored")
}
