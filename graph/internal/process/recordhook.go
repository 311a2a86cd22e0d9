package process

import (
	"log/slog"
	"sync"

	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/guard"
)

// RecordEvent is what the engine's OnRecord hook gets.
type RecordEvent struct {
	ExecutionID string
	Records     []history.Record
}

// RecordHook calls the engine's OnRecord hook, in order for each run, outside of every lock: what is committed is queued, and delivered by
// whoever dispatches work of the run.
type RecordHook struct {
	// Call is the hook, nil for none.
	Call func(RecordEvent)
	Log  *slog.Logger

	mu     sync.Mutex
	queues map[string]*recordQueue
}

type recordQueue struct {
	events     []RecordEvent
	delivering bool
}

// Queue notes records of a run, and reports whether it has kept them.
func (h *RecordHook) Queue(id string, records []history.Record) bool {
	if h.Call == nil {
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

// Deliver calls the hook with what is queued for a run, unless another goroutine does.
func (h *RecordHook) Deliver(id string) {
	if h.Call == nil {
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
		_ = guard.Call(h.Log.With(run.LogRun, e.ExecutionID), "OnRecord", func() { h.Call(e) })
		h.mu.Lock()
	}
	delete(h.queues, id)
}
