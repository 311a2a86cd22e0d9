package graph

import (
	"container/list"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
)

// run is one execution as this process knows it. Whoever holds mu may give the machine an input, commit what comes of
// it and take the effects out to perform them; effects are performed without the lock. There is no goroutine that owns
// a run: the caller of a method, the goroutine in which an executor has just returned, the clock, all take the lock,
// do their step, and leave.
//
// Rules. What the machine yields is committed before the lock is given back; if that fails the machine is thrown away
// (forget), because it is ahead of the history, and rebuilt when it is next needed. Never two runs are locked at once.
type run struct {
	r  *Runner
	id string

	// refs, idle and idleBytes belong to the table. keepBytes is what keeping the machine would cost, 0 if there is
	// nothing worth keeping.
	refs      int
	idle      *list.Element
	idleBytes int64
	keepBytes atomic.Int64

	mu sync.Mutex
	// m is the machine; nil before the run is loaded, after forget, and for runs found ended.
	m    *machine.Machine
	prog *definition.Program
	// exec is the projection as of the last record that is known to be stored. Its Seq is 0 for a run that does not
	// exist.
	exec history.Execution
	// prior is the newest stored state, as it was read or appended. Nobody changes states in place, so the store may
	// write the next one as what has changed of it.
	prior history.Prior
	// left is what loading brought to light: records that the history lacks, to be appended before anything else.
	left machine.Batch
	// unsaidMode and unsaidInput are what a caller said about a run that does not record it.
	unsaidMode  machine.Mode
	unsaidInput map[string]any
	// unstored is a definition that a caller brought and the store has not.
	unstored *history.StoredDefinition
	// flights are the effects that this process performs, children the subworkflows that the run waits for, by key.
	flights  map[string]*flight
	children map[string]string
	// held says that this process holds the run's lease, until leaseEnd unless it is renewed.
	held     bool
	leaseEnd time.Time
	// driven is until when the lease lasted, or lasts, that somebody had when this process last looked; zero for nobody's.
	driven time.Time
	// adopting says that the lease was taken from a driver that is gone, and that what it had in flight, as far as this
	// process can perform it, is still to be performed.
	adopting bool
	// started says that the run was begun here and that nobody else has written to it since: it then fails here if it comes
	// to what this process lacks.
	started bool
	// insistent says, while somebody asks for it, that subworkflows are tried whose workflow was not known when last asked for.
	insistent bool
	// sincePosition counts appends since a position was stored.
	sincePosition int
	// unsure says that a subworkflow's run was loaded and its parent may have ended meanwhile.
	unsure bool
	// lastStatus is the status as of the last commit; committed when that was.
	lastStatus machine.Status
	committed  time.Time
}

func newRun(r *Runner, id string) *run { return &run{r: r, id: id} }

// ended reports whether the stored run has ended. The run must have been opened.
func (x *run) ended() bool { return x.exec.Phase.Terminal() }

// notePrior keeps the newest state among records of which the first has the seq given.
func (x *run) notePrior(first int64, records []history.Record) {
	for i := len(records) - 1; i >= 0; i-- {
		if records[i].Name == history.StateUpdated {
			x.prior = history.Prior{Seq: first + int64(i), State: records[i].Payload.State}
			return
		}
	}
}

// flight is one effect that this process performs.
type flight struct {
	key    string
	effect machine.Effect
	// config is the run's as of the request.
	config machine.Config
	// started is the run's as of the request or the adoption; adopted is when that was, zero for what was requested here.
	started bool
	adopted time.Time
	// activity or delegate is the executor's request, once it has been made.
	activity *activities.Request
	delegate *delegate.Request
	ctx      context.Context
	cancel   context.CancelCauseFunc
}

// yield collects what one or several inputs brought, to be carried out after the lock is given back.
type yield struct {
	// flights are to be performed.
	flights []*flight
	// orphans are subworkflows that nobody waits for any more.
	orphans []string
	// tasks run at remote agents, and nobody waits for them any more.
	tasks []*machine.DelegateEffect
	// parent is the run that is to be told that this one has ended, "" if none is.
	parent string
}
