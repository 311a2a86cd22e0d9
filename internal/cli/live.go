package cli

import (
	"io"
	"sync"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/timeline"
)

// liveView prints a line for each node as it completes. The runner passes records on without waiting (record); a
// goroutine, which runs while there are any, turns them into lines, because writing to a terminal may block.
type liveView struct {
	out   io.Writer
	paint palette
	store history.Store
	// redaction masks secrets; nil means history.DefaultRedaction.
	redaction *history.Redaction

	mu      sync.Mutex
	printed sync.Cond // printing has become false, or records have come
	queue   []graph.RecordEvent
	// taken is the seq of the newest received record of each run.
	taken map[string]int64
	// printing is true while the goroutine runs, which alone uses runs. held keeps new records for follow, so that other output is not cut.
	printing, held bool
	runs           map[string]*liveRun
	// several is set if the view shows several root runs. named is then the root of the last line.
	several bool
	named   string
	// tree knows the visits of all runs.
	tree *timeline.Timeline
}

func newLiveView(out io.Writer, paint palette, store history.Store) *liveView {
	v := &liveView{out: out, paint: paint, store: store, runs: map[string]*liveRun{}, taken: map[string]int64{}, tree: timeline.New("", oneLine)}
	v.printed.L = &v.mu
	return v
}

// record takes appended records; it is graph.Options.OnRecord.
func (v *liveView) record(e graph.RecordEvent) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.queue = append(v.queue, e)
	v.taken[e.ExecutionID] = e.Records[len(e.Records)-1].Seq
	v.printed.Broadcast()
	if !v.held {
		v.begin()
	}
}

// begin starts the goroutine that prints the queue. v.mu is held.
func (v *liveView) begin() {
	if len(v.queue) > 0 && !v.printing {
		v.printing = true
		go v.print()
	}
}

// settleTime is how long settle waits for records of this process. Records of other processes are not received.
const settleTime = time.Second

func (v *liveView) settle(run *view.Run) {
	if run != nil {
		late := time.AfterFunc(settleTime, func() {
			v.mu.Lock()
			defer v.mu.Unlock()
			v.taken[run.ExecutionID] = max(v.taken[run.ExecutionID], run.Seq)
			v.printed.Broadcast()
		})
		defer late.Stop()
		v.mu.Lock()
		for v.taken[run.ExecutionID] < run.Seq {
			v.printed.Wait()
		}
		v.mu.Unlock()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.drain()
	v.held = true
}

func (v *liveView) follow() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.held = false
	v.begin()
}

func (v *liveView) close() { v.settle(nil) }

// flush returns when all records so far are printed.
func (v *liveView) flush() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.drain()
}

// drain returns when the queue is empty. v.mu is held.
func (v *liveView) drain() {
	for v.begin(); v.printing; {
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
