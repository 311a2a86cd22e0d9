package cli

import (
	"context"
	"sync"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/timeline"
)

// lookInterval is the shortest time between two reads of new records, followInterval the longest.
const lookInterval = 100 * time.Millisecond

// follower reads the records of a run and its subworkflows, of all processes, and passes them on.
type follower struct {
	engine graph.Engine
	store  history.Store
	// clean makes texts safe for a terminal.
	clean func(string) string
	// take is called with each new record, shown after all of them.
	take  func(executionID string, records []history.Record)
	shown func()

	changed chan struct{}
	stop    context.CancelFunc
	stopped sync.WaitGroup

	mu   sync.Mutex
	tree *timeline.Tree   // nil until the run is known
	next map[string]int64 // the next record to read, by run
	// rests is set while reading is paused.
	rests bool
}

// start follows a run; with "" the first with a new record.
func (f *follower) start(executionID string) {
	f.changed, f.next = make(chan struct{}, 1), map[string]int64{}
	f.know(executionID)
	ctx, stop := context.WithCancel(context.Background())
	f.stop = stop
	f.stopped.Go(func() {
		for {
			f.look(ctx)
			if !sleep(ctx, lookInterval, nil) || !sleep(ctx, followInterval-lookInterval, f.changed) {
				return
			}
		}
	})
}

func (f *follower) know(executionID string) {
	if executionID != "" && f.tree == nil {
		f.tree = timeline.NewTree(executionID, f.clean)
	}
}

// record takes a record of this process.
func (f *follower) record(e graph.RecordEvent) {
	f.mu.Lock()
	f.know(e.ExecutionID)
	f.mu.Unlock()
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// sleep waits for a time, or until something has changed; false means that ctx has ended.
func sleep(ctx context.Context, d time.Duration, changed <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-changed:
	case <-ctx.Done():
		return false
	}
	return true
}

// look reads and shows new records. The calls that drive the run report errors.
func (f *follower) look(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.tree == nil || f.rests {
		return
	}
	for _, id := range f.tree.Open() {
		f.read(ctx, id)
	}
	f.shown()
}

// read reads the new records of a run, and of subworkflows that it starts.
func (f *follower) read(ctx context.Context, id string) {
	if f.tree.NeedsProgram(id) {
		execution, err := f.store.Execution(ctx, id)
		if err != nil {
			return
		}
		f.tree.Define(id, storedProgram(ctx, f.store, execution.DefinitionHash))
	}
	for more := true; more; {
		records, err := f.engine.History(ctx, graph.HistoryRequest{ExecutionID: id, FromSeq: max(f.next[id], 1), Limit: recordPage})
		if err != nil || len(records) == 0 {
			return
		}
		f.next[id] = records[len(records)-1].Seq + 1
		more = len(records) == recordPage
		taken := 0
		for i := range records {
			f.tree.Record(id, &records[i])
			if child := records[i].Payload.ChildExecutionID; records[i].Name == history.SubworkflowStarted && f.next[child] == 0 {
				f.take(id, records[taken:i+1])
				taken = i + 1
				f.read(ctx, child) // before the records that follow from its end
			}
		}
		if taken < len(records) {
			f.take(id, records[taken:])
		}
	}
}

// storedProgram returns the program of a stored definition, nil if it is not stored or does not compile here.
func storedProgram(ctx context.Context, store history.Store, hash string) *definition.Program {
	document, err := storedDefinition(ctx, store, hash)
	if err != nil {
		return nil
	}
	program, _ := compileStored(document)
	return program
}

// rest reads new records, then pauses until follow.
func (f *follower) rest() {
	f.look(context.Background())
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rests = true
}

func (f *follower) follow() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rests = false
}

func (f *follower) end() {
	f.rest()
	f.stop()
	f.stopped.Wait()
}
