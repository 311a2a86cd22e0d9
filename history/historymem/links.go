package historymem

import (
	"cmp"
	"context"
	"slices"

	"github.com/workflows-engine/workflows-engine/history"
)

// Links returns the links of a run, from its origin and to the runs that began with its past; see history.Store.
func (s *Store) Links(ctx context.Context, executionID string) ([]history.Link, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	return s.linksOf(executionID), nil
}

func (s *Store) linksOf(executionID string) []history.Link {
	var out []history.Link
	for _, l := range s.links {
		if l.From != executionID && l.To != executionID {
			continue
		}
		if x := s.runs[l.To]; x != nil {
			l.Phase = x.execution().Phase
		}
		out = append(out, l)
	}
	slices.SortStableFunc(out, func(a, b history.Link) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.To, b.To)) })
	return out
}

// retriesOf returns the links of all retries of the work of a run.
func (s *Store) retriesOf(executionID string) []history.Link {
	related, _ := history.Retries(executionID, func(id string) ([]history.Link, error) { return s.linksOf(id), nil })
	return related
}

// link stores the link of a batch. It refuses a second retry of the same work, unless Link.Again is set.
func (s *Store) link(b *history.Batch) error {
	if b.Link == nil {
		return nil
	}
	l := *b.Link
	if l.Kind == history.Retried && !l.Again {
		if err := l.AlreadyRetried(s.retriesOf(l.From), s.handled[l.From].Retry); err != nil {
			return err
		}
	}
	l.To, l.Again, l.Phase, l.At = b.ExecutionID, false, "", milli(l.At)
	s.links = append(s.links, l)
	return nil
}
