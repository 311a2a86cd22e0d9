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

// Run is one run as this process knows it. The holder of its lock may apply an input; it dispatches the resulting Work after unlocking. A
// run has no goroutine: a call, an executor that has just returned and a timer each take the lock, make their step and leave.
//
// All methods except Lock, LockFirst, Unlock, ID, Seq and Tell need the lock. The machine's records are committed before the lock is
// released; if that fails, the machine is ahead of the history, so it is dropped and rebuilt when next needed. Two runs are never locked
// at once.
type Run struct {
	env *Environment
	id  string
	tableEntry

	lock  *Lock
	state DriveState
	// m is the machine; nil in the states Unloaded and Claimed until the run is loaded, and for runs found ended.
	m    *machine.Machine
	prog *definition.Program
	// exec is the projection at the last known record. Its Seq is 0 for a run that does not exist.
	exec history.Execution
	seq  atomic.Int64 // exec.Seq, readable without the lock
	// prior is the newest stored state. States are immutable, so the store may write the next one as a difference.
	prior history.Prior
	// found is the run as a claim has read it, while it is loaded.
	found *history.ReadyRun
	// unrecorded are records that loading found missing from the history, to be appended first.
	unrecorded machine.Batch
	// unstored is a caller's definition that the store lacks.
	unstored *history.StoredDefinition
	// unstoredChildren are the definitions of the subworkflows of a new run.
	unstoredChildren []history.StoredDefinition
	// attempts are the effects that this process performs, children the ids of the awaited subworkflows, by key.
	attempts map[string]*work.Attempt
	children map[string]string
	// process is the name of this process as the owner. claimed is when it claimed the run as a ready one, zero for another run.
	process string
	claimed time.Time
	// places give back the places that are reserved for attempts until the run is unlocked.
	places []func()
	// lastDriven is the end of the last owner's lease, as of the last check.
	lastDriven time.Time
	// startedHere reports that this process started the run and that no other process has written to it since. Such a run fails if an
	// executor is missing; other runs are left to processes that have the executor.
	startedHere bool
	// parentUnchecked reports that a subworkflow's run was loaded and that its parent may have ended meanwhile.
	parentUnchecked bool
	// sincePosition counts the appends since the last stored position.
	sincePosition int
	// walked, unless nil, is closed at the end of the current walk.
	walked chan struct{}
	// short is Limits.Short for the next stretch.
	short bool
	// lastStatus is the status at the last commit.
	lastStatus machine.Status
	news       newsQueue
}

// tableEntry is the table's part of a run.
type tableEntry struct {
	uses      int
	idle      *list.Element
	idleBytes int64
	// cost is the memory that the machine of a resting run takes, 0 if it is not worth keeping.
	cost atomic.Int64
}

// Lock locks the run.
func (x *Run) Lock() { x.lock.Lock() }

// Unlock unlocks the run. It drops a machine that has reserved places for requests which are not recorded yet.
func (x *Run) Unlock() {
	if len(x.places) > 0 && len(x.unrecorded.Records) > 0 {
		x.forget()
	}
	x.returnPlaces()
	x.lock.Unlock()
}

// LockFirst locks the run before all other waiters, and makes a long evaluation stop.
func (x *Run) LockFirst() { x.lock.LockFirst() }

// ID returns the execution id.
func (x *Run) ID() string { return x.id }

// Seq returns the seq of the last record known here. It needs no lock.
func (x *Run) Seq() int64 { return x.seq.Load() }

// Execution returns the projection at the last record known here.
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

// setExecution sets the projection of a newer record.
func (x *Run) setExecution(e history.Execution) {
	x.exec = e
	x.seq.Store(e.Seq)
}

// notePrior keeps the newest state among records that start at a seq.
func (x *Run) notePrior(first int64, records []history.Record) {
	for i := len(records) - 1; i >= 0; i-- {
		if records[i].Name == history.StateUpdated {
			x.prior = history.Prior{Seq: first + int64(i), State: records[i].Payload.State}
			return
		}
	}
}

// estimateCost sets cost. The machine of a run that has ended or is busy is not kept without users.
func (x *Run) estimateCost(status machine.Status, position int) {
	if status.Terminal() || status == machine.Running && !x.m.Resting() {
		x.cost.Store(0)
		return
	}
	const machineBytes = 4096
	x.cost.Store(int64(machineBytes + position + jsonvalue.Size(x.m.State(), maxIdleBytes)))
}

// become changes the state, and updates the process's set of owned runs.
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
