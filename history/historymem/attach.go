package historymem

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"github.com/workflows-engine/workflows-engine/history"
)

var _ history.Attacher = (*Store)(nil)

// Attach adds what another store has of runs; see history.Attacher.
func (s *Store) Attach(ctx context.Context, a history.Attachments) (added history.Attached, err error) {
	if err := s.enter(ctx); err != nil {
		return added, err
	}
	defer s.mu.Unlock()
	for _, l := range a.Links {
		known := slices.ContainsFunc(s.links, func(o history.Link) bool { return o.To == l.To })
		if known || s.runs[l.From] == nil || s.runs[l.To] == nil {
			continue
		}
		l.Again, l.Phase, l.At = false, "", milli(l.At)
		s.links = append(s.links, l)
		added.Links++
	}
	for _, d := range a.Deliveries {
		if s.runs[d.ExecutionID] == nil || s.delivery(d.ID) != nil {
			continue
		}
		d.Body, d.Tries = bytes.Clone(d.Body), slices.Clone(d.Tries)
		s.numbered++
		s.deliveries = append(s.deliveries, &delivery{Delivery: d, number: s.numbered})
		added.Deliveries++
	}
	for name, key := range a.Keys {
		if s.keys[name] == nil {
			s.keys[name] = bytes.Clone(key)
			added.Keys++
		}
	}
	return added, nil
}

// Keys returns all keys; see history.Attacher.
func (s *Store) Keys(ctx context.Context) (keys map[string][]byte, err error) {
	err = s.do(ctx, func() {
		keys = maps.Clone(s.keys)
		for name, key := range keys {
			keys[name] = bytes.Clone(key)
		}
	})
	return keys, err
}
