package historymem

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
)

var (
	_ history.Queue  = (*Store)(nil)
	_ history.Roster = (*Store)(nil)
)

// place is the place of a run among the ready runs.
type place struct {
	history.Ready
	turn  int64
	since time.Time
}

// ahead orders ready runs as they are claimed.
func ahead(a, b *run) int {
	return cmp.Or(cmp.Compare(b.place.Priority, a.place.Priority), cmp.Compare(a.place.turn, b.place.turn), cmp.Compare(a.number, b.number))
}

// longest orders ready runs by the time since which they have been ready.
func longest(a, b *run) int {
	return cmp.Or(a.place.since.Compare(b.place.since), cmp.Compare(a.number, b.number))
}

// makeReady makes an open run without an owner ready. A ready run moves only if its lane or priority changes.
func (s *Store) makeReady(x *run, r *history.Ready) {
	since := milli(s.clock.Now())
	if s.ready[x] {
		if x.place.Lane == r.Lane && x.place.Priority == r.Priority {
			return
		}
		since = x.place.since
		delete(s.ready, x)
	}
	var last, first int64
	waits := false
	for other := range s.ready {
		p := &other.place
		if p.Tenant == r.Tenant {
			last = max(last, p.turn+1)
		}
		if p.Lane == r.Lane && p.Priority == r.Priority && (!waits || p.turn < first) {
			first, waits = p.turn, true
		}
	}
	x.place = place{*r, max(last, first), since}
	s.ready[x] = true
	for wake := range s.wakes {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
}

// ClaimReady makes a process the owner of ready runs; see history.Queue.
func (s *Store) ClaimReady(ctx context.Context, c history.ReadyClaim) ([]string, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	lanes, err := s.Lanes(ctx)
	if err != nil {
		return nil, err
	}
	room := map[history.Lane]int{}
	for i := range lanes {
		room[lanes[i].Lane] = c.In(lanes[i].Lane)
	}
	var claimed []string
	var found []history.ReadyRun
	err = s.do(ctx, func() {
		runs := slices.SortedFunc(maps.Keys(s.ready), ahead)
		runs = slices.DeleteFunc(runs, func(x *run) bool { return room[x.place.Lane] == 0 })
		if c.Oldest && len(runs) > 0 {
			oldest := slices.MinFunc(runs, longest)
			runs = slices.DeleteFunc(runs, func(x *run) bool { return x == oldest })
			runs = slices.Insert(runs, 0, oldest)
		}
		for _, x := range runs {
			lane := x.place.Lane
			if len(claimed) == c.Limit {
				break
			}
			if room[lane] > 0 {
				room[lane]--
				s.give(x, c.Process)
				claimed = append(claimed, x.id)
				if e, unreadable := history.ParseExecution(x.id, x.text); unreadable == nil {
					e.Bytes = x.bytes
					found = append(found, history.ReadyRun{Execution: e, PositionSeq: x.positionSeq, Position: bytes.Clone(x.position)})
				}
			}
		}
	})
	if c.Found != nil {
		for _, r := range found {
			c.Found(r)
		}
	}
	return claimed, err
}

// Offer makes runs ready that a process owns; see history.Queue.
func (s *Store) Offer(ctx context.Context, process string, runs ...history.Offer) error {
	for i := range runs {
		if err := runs[i].Ready.Check(); err != nil {
			return err
		}
	}
	return s.do(ctx, func() {
		for i := range runs {
			if x := s.runs[runs[i].ExecutionID]; x != nil && x.owner == process && process != "" {
				x.owner, x.disowned = "", milli(s.clock.Leases())
				s.makeReady(x, &runs[i].Ready)
			}
		}
	})
}

// Lanes returns the lanes with ready runs; see history.Queue.
func (s *Store) Lanes(ctx context.Context) (lanes []history.LaneUse, err error) {
	err = s.do(ctx, func() {
		uses := map[history.Lane]history.LaneUse{}
		for x := range s.ready {
			use, found := uses[x.place.Lane]
			if !found || x.place.since.Before(use.Since) {
				use.Since = x.place.since
			}
			uses[x.place.Lane] = history.LaneUse{Lane: x.place.Lane, Runs: min(use.Runs+1, history.MaxCounted), Since: use.Since}
		}
		lanes = slices.SortedFunc(maps.Values(uses), func(a, b history.LaneUse) int { return cmp.Compare(a.String(), b.String()) })
	})
	return lanes, err
}

// Place returns the place of a ready run; see history.Queue.
func (s *Store) Place(ctx context.Context, executionID string) (p history.Place, ok bool, err error) {
	err = s.do(ctx, func() {
		x := s.runs[executionID]
		if ok = s.ready[x]; !ok {
			return
		}
		p = history.Place{Ready: x.place.Ready, Since: x.place.since}
		for other := range s.ready {
			if other.place.Lane == p.Lane && ahead(other, x) < 0 {
				p.Ahead = min(p.Ahead+1, history.MaxCounted)
			}
		}
	})
	return p, ok, err
}

// ReadyIn returns the ready runs in a lane; see history.Queue.
func (s *Store) ReadyIn(ctx context.Context, l history.Lane, limit int) (ids []string, err error) {
	err = s.do(ctx, func() {
		for _, x := range slices.SortedFunc(maps.Keys(s.ready), longest) {
			if x.place.Lane == l && (limit == 0 || len(ids) < limit) {
				ids = append(ids, x.id)
			}
		}
	})
	return ids, err
}

// WatchReady calls wake whenever runs may have become ready; see history.Queue.
func (s *Store) WatchReady(ctx context.Context, wake func()) error {
	wakes := make(chan struct{}, 1)
	err := s.do(ctx, func() {
		s.wakes[wakes] = true
		if len(s.ready) > 0 {
			wakes <- struct{}{}
		}
	})
	if err != nil {
		return err
	}
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.wakes, wakes)
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case _, open := <-wakes:
			if !open {
				return errClosed
			}
			wake()
		}
	}
}
