package historymem

import (
	"bytes"
	"cmp"
	"context"
	"iter"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// Read returns records of a run; see history.Store.
func (s *Store) Read(ctx context.Context, executionID string, fromSeq int64, limit int) ([]history.Record, error) {
	var rows []row
	err := s.do(ctx, func() {
		if x := s.runs[executionID]; x != nil {
			rows = x.rows // existing rows never change
		}
	})
	first := max(fromSeq, 1)
	if err != nil || first > int64(len(rows)) {
		return nil, err
	}
	rows = rows[first-1:]
	if limit > 0 {
		rows = rows[:min(limit, len(rows))]
	}
	out := make([]history.Record, len(rows))
	for i, r := range rows {
		p, err := history.DecodePayload(r.name, r.payload)
		if err != nil {
			return nil, err
		}
		out[i] = history.Record{
			Seq: first + int64(i), Kind: r.kind, Name: r.name, Payload: p, CreatedAt: r.at, Raw: bytes.Clone(r.payload), Foreign: r.foreign,
		}
	}
	return out, nil
}

// Execution returns a run's projection; see history.Store.
func (s *Store) Execution(ctx context.Context, executionID string) (history.Execution, error) {
	if err := s.enter(ctx); err != nil {
		return history.Execution{}, err
	}
	x := s.runs[executionID]
	if x == nil {
		s.mu.Unlock()
		return history.Execution{}, history.NotFound(executionID)
	}
	text, bytes := x.text, x.bytes
	s.mu.Unlock()
	e, err := history.ParseExecution(executionID, text)
	e.Bytes = bytes
	return e, err
}

// Position returns the newest stored machine position of a run; see history.Store.
func (s *Store) Position(ctx context.Context, executionID string) (seq int64, data []byte, err error) {
	err = s.do(ctx, func() {
		if x := s.runs[executionID]; x != nil {
			seq, data = x.positionSeq, bytes.Clone(x.position)
		}
	})
	return seq, data, err
}

// List returns a page of runs; see history.Store.
func (s *Store) List(ctx context.Context, q history.ListQuery) (history.ListPage, error) {
	size, err := q.PageSize()
	if err != nil {
		return history.ListPage{}, err
	}
	after, behind, err := q.Position()
	if err != nil {
		return history.ListPage{}, err
	}
	type found struct {
		at   history.Cursor
		text []byte
		size int64
	}
	var runs []found
	if err := s.enter(ctx); err != nil {
		return history.ListPage{}, err
	}
	for x := range s.matching(&q) {
		if at := q.CursorOf(x.execution()); !behind || after.Compare(at) < 0 {
			runs = append(runs, found{at, x.text, x.bytes})
		}
	}
	s.mu.Unlock()
	slices.SortFunc(runs, func(a, b found) int { return a.at.Compare(b.at) })
	var page history.ListPage
	if len(runs) > size {
		runs = runs[:size]
		page.NextCursor = runs[size-1].at.String()
	}
	for _, r := range runs {
		e, err := history.ParseExecution(r.at.ExecutionID, r.text)
		e.Bytes = r.size
		if err != nil {
			return history.ListPage{}, err
		}
		page.Executions = append(page.Executions, e)
	}
	return page, nil
}

// matching iterates over the runs that a query selects. The store must be locked.
func (s *Store) matching(q *history.ListQuery) iter.Seq[*run] {
	return func(yield func(*run) bool) {
		for _, x := range s.runs {
			if q.Matches(x.execution()) && !(q.Unhandled && s.isHandled(x.id)) && !(q.Ready && !s.ready[x]) && !yield(x) {
				return
			}
		}
	}
}

// Count returns how many runs a query selects; see history.Store.
func (s *Store) Count(ctx context.Context, q history.ListQuery, most int) (n int, err error) {
	if err := history.CheckCount(most); err != nil {
		return 0, err
	}
	err = s.do(ctx, func() {
		for range s.matching(&q) {
			if n == most {
				return
			}
			n++
		}
	})
	return n, err
}

// Tree returns the resources used by the runs of a tree; see history.Store.
func (s *Store) Tree(ctx context.Context, executionID string) (u history.TreeUse, err error) {
	err = s.do(ctx, func() {
		for id, x := range s.runs {
			if id == executionID || history.Descends(id, executionID) {
				e := *x.execution()
				e.Bytes = x.bytes
				u.Add(&e, 1)
			}
		}
	})
	return u, err
}

// Definition returns a stored definition by its hash; see history.Store.
func (s *Store) Definition(ctx context.Context, hash string) (history.StoredDefinition, error) {
	return s.definition(ctx, func(d *history.StoredDefinition) bool { return d.Hash == hash })
}

// DefinitionByName returns the definition stored last under a name; see history.Store.
func (s *Store) DefinitionByName(ctx context.Context, name, version string) (history.StoredDefinition, error) {
	return s.definition(ctx, func(d *history.StoredDefinition) bool {
		return d.Name == name && (version == "" || d.Version == version)
	})
}

// Definitions returns a page of the stored definitions; see history.Store.
func (s *Store) Definitions(ctx context.Context, cursor string, limit int) (page history.DefinitionPage, err error) {
	size, err := history.PageSize(limit)
	if err != nil {
		return page, err
	}
	before := int64(math.MaxInt64)
	if cursor != "" {
		if before, err = strconv.ParseInt(cursor, 10, 64); err != nil {
			return page, history.InvalidCursor(cursor)
		}
	}
	err = s.do(ctx, func() {
		last := before
		for _, d := range slices.Backward(s.definitions) {
			if d.number >= before {
				continue
			}
			if len(page.Definitions) == size {
				page.NextCursor = strconv.FormatInt(last, 10)
				return
			}
			last = d.number
			page.Definitions = append(page.Definitions, history.DefinitionEntry{Hash: d.Hash, Name: d.Name, Version: d.Version, StoredAt: d.at})
		}
	})
	return page, err
}

// definition returns the newest definition that satisfies a condition.
func (s *Store) definition(ctx context.Context, is func(d *history.StoredDefinition) bool) (history.StoredDefinition, error) {
	if err := s.enter(ctx); err != nil {
		return history.StoredDefinition{}, err
	}
	defer s.mu.Unlock()
	for _, d := range slices.Backward(s.definitions) {
		if d := d.StoredDefinition; is(&d) {
			d.Text, d.Signatures = bytes.Clone(d.Text), history.AddSignatures(nil, d.Signatures)
			return d, nil
		}
	}
	return history.StoredDefinition{}, problem.New(problem.DefinitionNotFound, "the definition is not stored")
}

// DueTimers returns timers due at or before now; see history.Store.
func (s *Store) DueTimers(ctx context.Context, now time.Time, limit int) ([]history.Timer, error) {
	timers, err := s.timers(ctx)
	if err != nil {
		return nil, err
	}
	due, _ := slices.BinarySearchFunc(timers, now, func(t history.Timer, now time.Time) int {
		if t.Due.After(now) {
			return 1
		}
		return -1
	})
	if limit > 0 {
		due = min(due, limit)
	}
	return timers[:due:due], nil
}

// timers returns all timers, earliest first.
func (s *Store) timers(ctx context.Context) ([]history.Timer, error) {
	var out []history.Timer
	err := s.do(ctx, func() {
		for _, x := range s.runs {
			out = append(out, x.timers...)
		}
	})
	slices.SortFunc(out, func(a, b history.Timer) int {
		return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.ExecutionID, b.ExecutionID), cmp.Compare(a.Key, b.Key))
	})
	return out, err
}
