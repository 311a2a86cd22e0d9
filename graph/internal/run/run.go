package run

import (
	"container/list"
	"sync/atomic"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Run is one execution as this process knows it. Whoever holds its lock may apply an input, and dispatches the resulting Work
// after giving the lock back. No goroutine belongs to a run: the caller of a method, the goroutine in which an executor has just
// returned, a timer, each takes the lock, does its step, and leaves.
//
// All methods but Lock, LockFirst, Unlock, ID and Seq need the lock. What the machine yields is committed before the lock is given back; if
// that fails the machine is dropped, because it is ahead of the history, and rebuilt when it is next needed. Never are two runs
// locked at once.
type Run struct {
	env *Environment
	id  string
	tableEntry

	lock  *Lock
	state DriveState
	// m is the machine; nil in the states Unloaded and Claimed until the run is loaded, and for runs found ended.
	m    *machine.Machine
	prog *definition.Program
	// exec is the projection as of the last record that is known to be stored. Its Seq is 0 for a run that does not exist.
	exec history.Execution
	seq  atomic.Int64 // exec.Seq, for those without the lock
	// prior is the newest stored state, as it was read or appended. Nobody changes states in place, so the store may write
	// the next one as what has changed of it.
	prior history.Prior
	// unrecorded is what loading brought to light: records that the history lacks, to be appended before anything else.
	unrecorded machine.Batch
	// unstored is a definition that a caller brought and the store does not have.
	unstored *history.StoredDefinition
	// unstoredChildren are those of the subworkflows of a run that begins.
	unstoredChildren []history.StoredDefinition
	// attempts are the effects that this process performs, children the subworkflows that the run waits for, by key.
	attempts map[string]*work.Attempt
	children map[string]string
	// process is the name under which this process owns the run.
	process string
	// lastDriven is until when the lease of the last owner lasted, or lasts, when this process last looked.
	lastDriven time.Time
	// startedHere says that the run was started by this process, and that no other has written to it since. Such a run fails
	// when it comes to what the process lacks; any other is left to processes that have it.
	startedHere bool
	// parentUnchecked says that a subworkflow's run was loaded, and that its parent may have ended meanwhile.
	parentUnchecked bool
	// sincePosition counts appends since a position was stored.
	sincePosition int
	// walked, unless nil, is closed when the walk under way is over.
	walked chan struct{}
	// short is Limits.Short of the stretch that begins.
	short bool
	// lastStatus is the status as of the last commit.
	lastStatus machine.Status
	news       news
}

// tableEntry is what the table keeps of a run.
type tableEntry struct {
	uses      int
	idle      *list.Element
	idleBytes int64
	// cost is what keeping the machine of a run at rest takes in memory, 0 if there is nothing worth keeping.
	cost atomic.Int64
}

// Lock locks the run.
func (x *Run) Lock() { x.lock.Lock() }

// Unlock unlocks the run.
func (x *Run) Unlock() { x.lock.Unlock() }

// LockFirst locks the run before all others who want it, and has an evaluation that it is busy with abandoned.
func (x *Run) LockFirst() { x.lock.LockFirst() }

// ID returns the execution id.
func (x *Run) ID() string { return x.id }

// Seq returns the seq of the last record that this process knows of. It needs no lock.
func (x *Run) Seq() int64 { return x.seq.Load() }

// Execution returns the projection as of the last record that this process knows of.
func (x *Run) Execution() *history.Execution { return &x.exec }

// Machine returns the machine, nil if the run is not loaded. Only Apply changes it.
func (x *Run) Machine() *machine.Machine { return x.m }

// Program returns the compiled definition, nil before the run was first loaded.
func (x *Run) Program() *definition.Program { return x.prog }

// Owned reports whether this process owns the run.
func (x *Run) Owned() bool { return x.state.Owned() }

// Ended reports whether the stored run has ended. The run must have been opened.
func (x *Run) Ended() bool { return x.exec.Phase.Terminal() }

// StartedHere reports whether this process started the run and no other has written to it since.
func (x *Run) StartedHere() bool { return x.startedHere }

// setExecution notes the projection as of a newer record.
func (x *Run) setExecution(e history.Execution) {
	x.exec = e
	x.seq.Store(e.Seq)
}

// notePrior keeps the newest state among records, the first of which has the seq given.
func (x *Run) notePrior(first int64, records []history.Record) {
	for i := len(records) - 1; i >= 0; i-- {
		if records[i].Name == history.StateUpdated {
			x.prior = history.Prior{Seq: first + int64(i), State: records[i].Payload.State}
			return
		}
	}
}

// estimateCost estimates what keeping the machine of a run at rest takes in memory; a run that has ended or that is being driven
// is not kept once nobody uses it.
func (x *Run) estimateCost(status machine.Status, position int) {
	if status.Terminal() || status == machine.Running && !x.m.Resting() {
		x.cost.Store(0)
		return
	}
	const machineBytes = 4096
	x.cost.Store(int64(machineBytes + position + jsonvalue.Size(x.m.State(), maxIdleBytes)))
}

// become changes the state. The owner's set of runs follows.
func (x *Run) become(next DriveState) {
	last := x.state
	if last == next {
		return
	}
	if !CanFollow(last, next) {
		x.env.Log.Error("unexpected change of state", LogRun, x.id, "from", last.String(), "to", next.String())
	}
	x.state = next
	if last.Owned() != next.Owned() {
		x.env.Process.Owns(x, x.process, next.Owned())
	}
}
