package cli

import (
	"io"
	"sync"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/runtree"
)

// liveView prints a line for each node as it completes. The runner hands records over without waiting (record); a
// goroutine, which lives while there are any, turns them into lines, because writing to a terminal may block.
type liveView struct {
	out   io.Writer
	paint palette
	store history.Store
	// redaction is what is hidden; nil means history.DefaultRedaction.
	redaction *history.Redaction

	mu      sync.Mutex
	printed sync.Cond // printing has become false
	queue   []graph.RecordEvent
	// printing is true while the goroutine runs, which alone uses runs.
	printing bool
	runs     map[string]*liveRun
	// tree knows the visits of all runs.
	tree *runtree.Tree
}

func newLiveView(out io.Writer, paint palette, store history.Store) *liveView {
	v := &liveView{out: out, paint: paint, store: store, runs: map[string]*liveRun{}, tree: runtree.New("", plain)}
	v.printed.L = &v.mu
	return v
}

// record takes what was appended; it is graph.Options.OnRecord.
func (v *liveView) record(e graph.RecordEvent) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.queue = append(v.queue, e)
	if !v.printing {
		v.printing = true
		go v.print()
	}
}

func (v *liveView) settle() { v.flush() }
func (v *liveView) follow() {}
func (v *liveView) close()  { v.flush() }

// flush returns when everything recorded so far is printed, so that what is printed next comes after it.
func (v *liveView) flush() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for v.printing {
		v.printed.Wait()
	}
}

// print prints until the queue is empty.
func (v *liveView) print() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for len(v.queue) > 0 {
		events := v.queue
		v.queue = nil
		v.mu.Unlock()
		for _, e := range events {
			for _, r := range e.Records {
				v.show(e.ExecutionID, r)
			}
		}
		v.mu.Lock()
	}
	v.printing = false
	v.printed.Broadcast()
}
