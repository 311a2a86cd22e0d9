package process

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/history"
)

// Notifier knows the waiting calls of each run, and the followers of all runs. The zero value is ready for use. Its methods return at once and may be called while a run
// is locked.
type Notifier struct {
	watched atomic.Bool
	watch   sync.Once
	mu      sync.Mutex
	waiters map[string]map[*Waiter]struct{}

	followers map[*follower]struct{}
	// unpoll ends the poll for the followers.
	unpoll context.CancelFunc
}

// Waiter waits for changes of some runs.
type Waiter struct {
	n      *Notifier
	ids    map[string]struct{}
	signal chan struct{}
	// progress receives the progress of the runs; nil if unwanted. Progress that does not fit is dropped, so that commits do not wait for
	// observers.
	progress chan Progress
}

// maxUnread bounds the unread progress of a waiter.
const maxUnread = 64

// Waiter returns a waiter without runs. It must be stopped.
func (n *Notifier) Waiter(progress bool) *Waiter {
	w := &Waiter{n: n, ids: map[string]struct{}{}, signal: make(chan struct{}, 1)}
	if progress {
		w.progress = make(chan Progress, maxUnread)
	}
	return w
}

// Add adds runs, and reports whether one of them is new to the waiter: it may have changed before.
func (w *Waiter) Add(ids []string) (added bool) {
	n := w.n
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, id := range ids {
		if _, ok := w.ids[id]; ok {
			continue
		}
		added = true
		w.ids[id] = struct{}{}
		if n.waiters == nil {
			n.waiters = map[string]map[*Waiter]struct{}{}
		}
		if n.waiters[id] == nil {
			n.waiters[id] = map[*Waiter]struct{}{}
		}
		n.waiters[id][w] = struct{}{}
	}
	return added
}

// Stop ends the waiting.
func (w *Waiter) Stop() {
	n := w.n
	n.mu.Lock()
	defer n.mu.Unlock()
	for id := range w.ids {
		delete(n.waiters[id], w)
		if len(n.waiters[id]) == 0 {
			delete(n.waiters, id)
		}
	}
}

// Changed wakes the waiters of a run.
func (n *Notifier) Changed(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for w := range n.waiters[id] {
		select {
		case w.signal <- struct{}{}:
		default:
		}
	}
}

// Report passes progress to the waiters of a run.
func (n *Notifier) Report(p Progress) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.report(p)
}

func (n *Notifier) report(p Progress) {
	for w := range n.waiters[p.ExecutionID] {
		if w.progress == nil {
			continue
		}
		select {
		case w.progress <- p:
		default:
		}
	}
}

// Recorded reports to followers that a run has grown, and progress from its new records. seq is that of the last record; visits is the
// number of node visits so far.
func (n *Notifier) Recorded(id string, seq int64, visits int, records []history.Record) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.grown(id, seq)
	if len(n.waiters[id]) == 0 {
		return
	}
	for i := range records {
		if p, ok := progressOf(id, &records[i]); ok {
			p.NodeVisits = visits
			n.report(p)
		}
	}
}

// WatchOnce starts, once, a watch of the store that wakes waiters and followers, if the store reports the writes of other processes. It ends when the
// engine closes.
func (n *Notifier) WatchOnce(env *work.Env) {
	if s, ok := history.As[history.Watcher](env.Store); ok {
		n.watch.Do(func() { env.Go(func() { n.watchStore(env.Context, s, env.Log) }) })
	}
}

// watchStore watches the store until ctx ends. Meanwhile waiters poll less often.
func (n *Notifier) watchStore(ctx context.Context, store history.Watcher, log *slog.Logger) {
	n.watched.Store(true)
	defer n.watched.Store(false)
	err := store.Watch(ctx, func(executionID string, seq int64) {
		n.Changed(executionID)
		n.mu.Lock()
		defer n.mu.Unlock()
		n.grown(executionID, seq)
	})
	if err != nil && ctx.Err() == nil {
		log.Warn("store not watched any more: calls that wait and follow poll it instead", run.LogError, err)
	}
}

// Watched reports whether the store is being watched.
func (n *Notifier) Watched() bool { return n.watched.Load() }

// Progress is graph.Progress, which documents the fields.
type Progress struct {
	ExecutionID, NodeID, Branch string
	NodeVisits                  int
	Kind                        ProgressKind
	Attempt                     int
	Error                       string
	Detail                      map[string]any
}

// ProgressKind is graph.ProgressKind, which documents the values.
type ProgressKind string

// The kinds of progress.
const (
	NodeRuns      ProgressKind = "runs"
	NodeDone      ProgressKind = "completed"
	AttemptFailed ProgressKind = "attempt failed"
	ExecutorAlive ProgressKind = "alive"
)

// progressOf converts a record to progress. ok is false for records that are not progress.
func progressOf(id string, rec *history.Record) (p Progress, ok bool) {
	p = Progress{ExecutionID: id, NodeID: rec.Payload.NodeID}
	if s := rec.Payload.Span; s != nil {
		p.Branch = s.BranchName
	}
	if rec.Kind == history.Command || p.NodeID == "" || rec.Payload.AgentStep != nil { // executors report their entries themselves
		return p, false
	}
	switch rec.Name {
	case history.NodeScheduled:
		p.Kind = NodeRuns
	case history.ActivityRequested:
		p.Kind, p.Attempt = NodeRuns, rec.Payload.Attempt
	case history.ActivityCompleted, history.TimerFired, history.SignalReceived, history.InterruptResumed:
		p.Kind = NodeDone
	case history.SubworkflowCompleted:
		p.Kind = NodeDone
		if rec.Payload.Failed {
			p.Kind, p.Error = AttemptFailed, rec.Payload.Error
		}
	case history.ActivityFailed:
		p.Kind, p.Attempt, p.Error = AttemptFailed, rec.Payload.Attempt, rec.Payload.Error
	default:
		return p, false
	}
	return p, true
}
