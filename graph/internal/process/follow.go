package process

import (
	"context"
	"errors"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// follower receives the changes of all runs. Notifier.mu guards changed and err.
type follower struct {
	// changed holds the runs to report, with the seq of each run's last record.
	changed map[string]int64
	// err ends the following: the store is neither watched nor can be listed.
	err    error
	signal chan struct{}
}

// Follow calls changed for each run that has grown; see graph.Follower.
func (p *Process) Follow(ctx context.Context, changed func(executionID string, seq int64)) error {
	f := &follower{changed: map[string]int64{}, signal: make(chan struct{}, 1)}
	p.notifier.follow(&p.Env, f)
	defer p.notifier.unfollow(f)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-p.Context.Done():
			return errClosed
		case <-f.signal:
		}
		grown, err := p.notifier.take(f)
		for id, seq := range grown {
			if ctx.Err() != nil {
				return nil
			}
			changed(id, seq)
		}
		if err != nil {
			return err
		}
	}
}

// follow adds a follower and, for the first one, begins to look at the store for changes of other processes.
func (n *Notifier) follow(env *work.Env, f *follower) {
	n.WatchOnce(env)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.followers == nil {
		n.followers = map[*follower]struct{}{}
	}
	n.followers[f] = struct{}{}
	if len(n.followers) == 1 {
		ctx, cancel := context.WithCancel(env.Context)
		n.unpoll = cancel
		env.Go(func() { n.poll(ctx, env) })
	}
}

func (n *Notifier) unfollow(f *follower) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if delete(n.followers, f); len(n.followers) == 0 {
		n.unpoll()
	}
}

// take returns the changes that a follower has not reported, and the error that ends it.
func (n *Notifier) take(f *follower) (map[string]int64, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	taken := f.changed
	f.changed = map[string]int64{}
	return taken, f.err
}

// grown reports to all followers that a run has grown. n.mu must be held.
func (n *Notifier) grown(id string, seq int64) {
	for f := range n.followers {
		f.changed[id] = max(f.changed[id], seq)
		f.wake()
	}
}

// lost ends all followers: they would not hear of changes.
func (n *Notifier) lost(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for f := range n.followers {
		f.err = err
		f.wake()
	}
}

func (f *follower) wake() {
	select {
	case f.signal <- struct{}{}:
	default:
	}
}

const (
	// pollEvery is the pause between two lists of the changed runs, while the store is not watched.
	pollEvery = time.Second
	// pollBack is how far a list goes back behind the newest change: the clocks of processes differ, and a commit takes time.
	pollBack = 5 * time.Second
)

// poll lists the changed runs while the store is not watched, until ctx ends.
func (n *Notifier) poll(ctx context.Context, env *work.Env) {
	seen := polled{env: env}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if !n.Watched() {
			// The first look reports the newest changes, too: they may be newer than the call of Follow.
			grown, err := seen.look(ctx)
			switch {
			case err == nil:
				n.mu.Lock()
				for id, seq := range grown {
					n.grown(id, seq)
				}
				n.mu.Unlock()
			case ctx.Err() == nil && !errors.Is(err, problem.StoreLocked): // a lock passes
				n.lost(err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// polled is the state of a poll: the newest change, and the runs that changed shortly before it, with their seqs.
type polled struct {
	env    *work.Env
	newest time.Time
	seqs   map[string]int64
}

// look returns the runs that have grown since the last look.
func (p *polled) look(ctx context.Context) (grown map[string]int64, err error) {
	q := history.ListQuery{Limit: 100}
	if p.newest.IsZero() {
		q.UpdatedAfter = p.env.Now().Add(-pollBack)
	} else {
		q.UpdatedAfter = p.newest.Add(-pollBack)
	}
	newest, seqs := p.newest, map[string]int64{}
	grown = map[string]int64{}
	for {
		page, err := p.env.Store.List(ctx, q)
		if err != nil {
			return nil, err
		}
		for i := range page.Executions {
			e := &page.Executions[i]
			seqs[e.ID] = e.Seq
			if e.UpdatedAt.After(newest) {
				newest = e.UpdatedAt
			}
			if p.seqs[e.ID] != e.Seq {
				grown[e.ID] = e.Seq
			}
		}
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			break
		}
	}
	p.newest, p.seqs = newest, seqs
	return grown, nil
}
