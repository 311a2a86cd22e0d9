package cli

import (
	"io"
	"sync"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/history"
)

// liveView prints a line for each node as it completes. The runner hands records over without waiting (record); a
// goroutine turns them into lines, because writing to a terminal may block.
type liveView struct {
	out   io.Writer
	paint palette
	types nodeTypes

	mu      sync.Mutex
	changed sync.Cond // queue, busy or closed has changed
	queue   []graph.RecordEvent
	busy    bool
	closed  bool
	done    chan struct{}

	// runs is used by the goroutine alone.
	runs map[string]*liveRun
}

func newLiveView(out io.Writer, paint palette, store history.Store) *liveView {
	v := &liveView{
		out: out, paint: paint, types: nodeTypes{store: store},
		done: make(chan struct{}), runs: map[string]*liveRun{},
	}
	v.changed.L = &v.mu
	go v.loop()
	return v
}

// record takes what was appended; it is graph.Options.OnRecord.
func (v *liveView) record(e graph.RecordEvent) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.queue = append(v.queue, e)
	v.changed.Broadcast()
}

// flush returns when everything recorded so far is printed.
func (v *liveView) flush() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for len(v.queue) > 0 || v.busy {
		v.changed.Wait()
	}
}

// close prints what is left and ends the goroutine.
func (v *liveView) close() {
	v.mu.Lock()
	v.closed = true
	v.changed.Broadcast()
	v.mu.Unlock()
	<-v.done
}

func (v *liveView) loop() {
	defer close(v.done)
	for {
		v.mu.Lock()
		v.busy = false
		v.changed.Broadcast()
		for len(v.queue) == 0 && !v.closed {
			v.changed.Wait()
		}
		if len(v.queue) == 0 {
			v.mu.Unlock()
			return
		}
		events := v.queue
		v.queue, v.busy = nil, true
		v.mu.Unlock()
		for _, e := range events {
			for _, r := range e.Records {
				v.show(e.ExecutionID, r)
			}
		}
	}
}
