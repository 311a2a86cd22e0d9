package graph

import (
	"log/slog"
	"runtime/debug"
	"sync"

	"github.com/workflows-engine/workflows-engine/graph/execution"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/perform"
	"github.com/workflows-engine/workflows-engine/history"
)

// RecordEvent is what Options.OnRecord gets.
type RecordEvent struct {
	ExecutionID string
	Records     []history.Record
}

// recordHook calls Options.OnRecord, in order for each run, outside of every lock: what is committed is queued, and delivered by
// whoever dispatches work of the run.
type recordHook struct {
	call func(RecordEvent)
	log  *slog.Logger

	mu     sync.Mutex
	queues map[string]*recordQueue
}

type recordQueue struct {
	events     []RecordEvent
	delivering bool
}

// queue notes records of a run, and reports whether it has kept them.
func (h *recordHook) queue(id string, records []history.Record) bool {
	if h.call == nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.queues == nil {
		h.queues = map[string]*recordQueue{}
	}
	q := h.queues[id]
	if q == nil {
		q = &recordQueue{}
		h.queues[id] = q
	}
	q.events = append(q.events, RecordEvent{ExecutionID: id, Records: records})
	return true
}

// deliver calls the hook with what is queued for a run, unless another goroutine does.
func (h *recordHook) deliver(id string) {
	if h.call == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	q := h.queues[id]
	if q == nil || q.delivering {
		return
	}
	q.delivering = true
	for len(q.events) > 0 {
		e := q.events[0]
		q.events = q.events[1:]
		h.mu.Unlock()
		h.safely(e)
		h.mu.Lock()
	}
	delete(h.queues, id)
}

func (h *recordHook) safely(e RecordEvent) {
	defer func() {
		if v := recover(); v != nil {
			h.log.Error("OnRecord panicked", logRun, e.ExecutionID, logError, v, "stack", string(debug.Stack()))
		}
	}()
	h.call(e)
}

// observer is notified by runs of what they have committed.
type observer struct{ r *Runner }

func (o observer) Recorded(id string, visits int, records []history.Record) (kept bool) {
	o.r.notifier.Recorded(id, visits, records)
	return o.r.records.queue(id, records)
}

func (o observer) Changed(id string) { o.r.notifier.Changed(id) }

func (o observer) Timers(x *execution.Run, ts []machine.Timer) { o.r.timers.Set(x, ts) }

// alive reports a sign of life of an executor to who waits for the run.
func (r *Runner) alive(h perform.Heartbeat) {
	r.notifier.Report(Progress{
		ExecutionID: h.ExecutionID, NodeID: h.NodeID, Branch: h.Branch, Kind: ExecutorAlive, Attempt: h.Attempt, Detail: h.Details,
	})
}
