package temporal

import (
	"errors"
	"math"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/internal/library"
	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
)

// walker holds the code of the workflow.
type walker struct {
	// trust, unless nil, returns an error for a definition that this worker does not walk.
	trust func(history.StoredDefinition) error
}

// walk is the workflow: it performs one run, or a part of it after which the run continues as new. However the run ends, its result is a
// snapshot, and the only error is that of continuing as new. A fault of this package or of the worker is a panic: Temporal repeats the workflow
// task, and another worker may get it.
func (w *walker) walk(ctx workflow.Context, in runInput) (snapshot, error) {
	prog, err := w.program(&in, in.Definition)
	check(err)
	detached, _ := workflow.NewDisconnectedContext(ctx)
	r := &walk{
		ctx: detached, requested: ctx, walker: w, in: in, id: in.Config.ExecutionID, flights: map[string]*flight{}, timers: map[string]*timer{}, first: 1,
		exec: history.Execution{ID: in.Config.ExecutionID}, phase: history.PhaseRunning,
	}
	if in.Ended != nil && in.Continued != nil {
		check(r.end())
		check(r.listen(ctx))
		return r.snapshot(), nil
	}
	check(r.begin(prog))
	check(r.listen(ctx))
	for {
		check(workflow.Await(detached, func() bool { return r.ended() || r.full() && r.movable() }))
		if r.ended() {
			break
		}
		next, err := r.continueAsNew()
		check(err)
		if next != nil {
			return snapshot{}, next
		}
	}
	check(workflow.Await(detached, func() bool { return workflow.AllHandlersFinished(detached) && r.releasing == 0 }))
	return r.snapshot(), nil
}

// check panics with an error.
func check(err error) {
	if err != nil {
		panic(err)
	}
}

// walk is one run in its workflow. Its methods run in the coroutines of the workflow, one at a time.
type walk struct {
	*walker
	// ctx is not cancelled with the workflow: a cancel is an input, after which a rollback may follow.
	ctx workflow.Context
	// requested ends with a cancel of the workflow; cancelled reports that the run has taken it as its input.
	requested workflow.Context
	cancelled bool

	in runInput
	id string
	m  *machine.Machine
	// exec is the projection of the records so far, bytes their size. records are those from first on.
	exec    history.Execution
	bytes   int64
	records []history.Record
	first   int64
	// archived is the seq of the last record in the archive.
	archived int64
	// flights are the effects under way, timers the open timers, by key.
	flights map[string]*flight
	timers  map[string]*timer
	// granting is the flight whose turn it is, nil between turns.
	granting *flight
	// leaving is set for a run that ends here because it moves elsewhere: it begins no more effects.
	leaving bool
	// held is set when the event history is so long that no more effects begin until the run continues as new.
	held bool
	// beginning are the subworkflows that are about to start.
	beginning []string
	// releasing counts the tasks at agents that are being cancelled.
	releasing int
	// stretches counts the stretches of the current walk since the last yield.
	stretches int
	// phase is the phase that the search attributes show.
	phase history.Phase
}

// program returns a definition that the run is bound to.
func (w *walker) program(in *runInput, hash string) (*definition.Program, error) {
	if in.Walk < oldestWalk || in.Walk > machine.WalkVersion {
		return nil, problem.New(problem.HistoryNewer, "the run walks by version %d, and this worker by %d", in.Walk, machine.WalkVersion)
	}
	s, ok := in.Library[hash]
	if !ok {
		return nil, problem.New(problem.DefinitionNotFound, "the definition %s is not bound to the run", hash)
	}
	return w.compiled(&s, hash)
}

// compiled returns the program of a definition.
func (w *walker) compiled(s *source, hash string) (*definition.Program, error) {
	d := s.stored(hash)
	prog, err := library.CompileStored(d)
	if err == nil && prog == nil {
		err = problem.New(problem.ValidationError, "this worker does not accept the definition %s", hash)
	}
	if err == nil && w.trust != nil {
		err = w.trust(d)
	}
	return prog, err
}

// oldestWalk is the oldest machine.WalkVersion by which this package walks.
const oldestWalk = 1

func (l *limits) machine() machine.Limits {
	return machine.Limits{
		MaxRecords: l.Records, MaxBytes: l.Bytes, MaxPending: l.Pending, MinHostTimeout: l.MinHostTimeout, StretchUnits: l.StretchUnits, Queued: queues,
	}
}

// begin starts the run, or restores it after it has continued as new.
func (r *walk) begin(prog *definition.Program) error {
	now := workflow.Now(r.ctx)
	if c := r.in.Continued; c != nil {
		return r.restore(prog, c, now)
	}
	config := r.in.Config
	config.Limits, config.Title, config.Labels, config.Notify, config.Queue = r.in.Limits.machine(), r.in.Title, r.in.Labels, r.in.Notify, r.in.Queue
	config.Deadline = r.in.Deadline
	if r.in.Signal != nil {
		config.Limits.StretchUnits = math.MaxInt // up to the first wait, which may be for the signal
	}
	r.m = machine.Start(prog, config, r.in.Input, now)
	if r.in.Signal != nil {
		if err := r.m.Handle(*r.in.Signal, now); err != nil { // it was checked before the start
			workflow.GetLogger(r.ctx).Warn("signal rejected", "signal", r.in.Signal.Name, "error", err)
		}
		r.m.SetLimits(config.MaxVisits, r.in.Limits.machine())
	}
	r.settle(r.in.Actor)
	return nil
}

// listen accepts calls, signals, queries and a cancel of the workflow.
func (r *walk) listen(ctx workflow.Context) error {
	err := errors.Join(
		workflow.SetQueryHandler(r.ctx, queryView, func() (snapshot, error) { return r.snapshot(), nil }),
		workflow.SetQueryHandler(r.ctx, queryRecords, r.page),
		workflow.SetQueryHandler(r.ctx, queryLibrary, func() (map[string]source, error) { return r.in.Library, nil }),
		workflow.SetQueryHandler(r.ctx, queryDefinition, func() (source, error) { return r.in.Library[r.in.Definition], nil }),
		workflow.SetUpdateHandlerWithOptions(r.ctx, updateCall, r.call, workflow.UpdateHandlerOptions{
			Validator: r.check, UnfinishedPolicy: workflow.HandlerUnfinishedPolicyAbandon,
		}),
		workflow.SetUpdateHandlerWithOptions(r.ctx, updateTurn, r.grant, workflow.UpdateHandlerOptions{
			Validator: r.checkTurn, UnfinishedPolicy: workflow.HandlerUnfinishedPolicyAbandon,
		}),
	)
	workflow.Go(r.ctx, func(own workflow.Context) {
		signals := workflow.GetSignalChannel(own, signalSignal)
		for {
			var s machine.Signal
			signals.Receive(own, &s)
			if err := r.take(own, s, "", nil); err != nil {
				workflow.GetLogger(own).Warn("signal rejected", "signal", s.Name, "error", err)
			}
		}
	})
	workflow.Go(r.ctx, func(own workflow.Context) {
		var in machine.Cancel
		workflow.GetSignalChannel(own, signalLeave).Receive(own, &in)
		r.leave(own, in)
	})
	workflow.Go(r.ctx, func(own workflow.Context) {
		ctx.Done().Receive(own, nil)
		if r.leaving {
			r.cancelled = true
			return
		}
		in := machine.Cancel{Reason: "cancelled in Temporal"}
		if parent := r.in.Config.Parent; parent != "" {
			in = machine.Cancel{Reason: "the parent run " + parent + " does not wait for it any more", ByParent: true}
		}
		if err := r.take(own, in, "", nil); err != nil {
			workflow.GetLogger(own).Info("cancel ignored", "error", err)
		}
		r.cancelled = true
	})
	return err
}

// check is the validator of the update: a rejected call does not enter the event history.
func (r *walk) check(ctx workflow.Context, c call) error {
	in := c.input()
	if in == nil {
		return nil
	}
	if err := r.accepts(ctx, in); err != nil {
		return rejection(err)
	}
	return nil
}

func (r *walk) accepts(ctx workflow.Context, in machine.Input) error {
	if r.ended() {
		return admit.Ended(&r.exec, in)
	}
	if c, ok := in.(machine.Cancel); ok && c.KeepTasks && r.attempting() {
		return attemptUnderWay(r.id)
	}
	err := r.m.Check(in, workflow.Now(ctx))
	if errors.Is(err, machine.ErrWalking) {
		return nil // the handler waits
	}
	if err == nil {
		err = r.room(in, workflow.Now(ctx))
	}
	return err
}

// attempting reports whether a worker may be performing an attempt of the run.
func (r *walk) attempting() bool {
	for _, f := range r.flights {
		if f.attempts() {
			return true
		}
	}
	return false
}

// leaveTime is how long a subworkflow whose parent moves elsewhere waits for the outcomes of its attempts.
const leaveTime = time.Minute

// leave ends a subworkflow whose parent moves elsewhere. Outcomes of attempts under way are recorded before; the others are performed again there,
// with the same idempotency keys.
func (r *walk) leave(ctx workflow.Context, in machine.Cancel) {
	r.leaving = true
	if _, err := workflow.AwaitWithTimeout(ctx, leaveTime, func() bool { return r.ended() || !r.attempting() }); err != nil || r.ended() {
		return
	}
	if err := r.take(ctx, in, "", nil); err != nil {
		workflow.GetLogger(ctx).Info("cancel ignored", "error", err)
	}
}

// nearRecords and nearBytes are the room in a run below which an input is tried on a copy.
const (
	nearRecords = 10_000
	nearBytes   = 64 << 20
)

// room rejects an input that would end the run, because the run has no room for it.
func (r *walk) room(in machine.Input, now time.Time) error {
	l := r.in.Limits.machine()
	if l.MaxRecords-r.exec.Seq > nearRecords && l.MaxBytes-r.bytes > nearBytes {
		return nil
	}
	copied, err := r.copied()
	if err != nil || copied == nil || copied.Handle(in, now) != nil {
		return nil
	}
	return admit.Room(r.execution(), copied, l, in, copied.Ready().Records)
}

// copied returns a copy of the machine, nil if the machine has no position at the moment.
func (r *walk) copied() (*machine.Machine, error) {
	position := r.m.Position()
	if position == nil {
		return nil, nil
	}
	m, err := machine.Restore(r.m.Program(), position, r.stateAt(machine.PositionStateSeq(position)))
	if err == nil {
		m.SetLimits(0, r.in.Limits.machine())
		m.SetBytes(r.bytes)
	}
	return m, err
}

// call is the handler of the update.
func (r *walk) call(ctx workflow.Context, c call) (snapshot, error) {
	if in := c.input(); in != nil {
		if err := r.take(ctx, in, c.Mode, c.Actor); err != nil {
			return snapshot{}, rejection(err)
		}
	}
	if c.Wait > 0 {
		until := workflow.Now(ctx).Add(c.Wait)
		if !r.rests(until) {
			if _, err := workflow.AwaitWithTimeout(ctx, c.Wait, func() bool { return r.rests(until) }); err != nil {
				return snapshot{}, err
			}
		}
	}
	return r.snapshot(), nil
}

// rests reports whether the run does not proceed by itself until a time. A subworkflow that has begun proceeds on its own. A run that is about
// to continue as new counts as resting: it waits for its callers, who ask again.
func (r *walk) rests(until time.Time) bool {
	if r.full() {
		return true
	}
	switch r.m.Status() {
	case machine.Running:
		return false
	case machine.AwaitingChild:
		return len(r.beginning) == 0
	case machine.AwaitingTimer:
		due := earliest(r.m)
		return due.IsZero() || due.After(until)
	}
	return true
}

// take passes an input from outside to the machine. It waits for the end of a walk.
func (r *walk) take(ctx workflow.Context, in machine.Input, mode machine.Mode, by *history.Actor) error {
	for !r.ended() {
		was := r.m.Config().Mode
		if mode != "" {
			r.m.SetMode(mode)
		}
		err := r.m.Handle(in, workflow.Now(ctx))
		if err == nil {
			switch in.(type) {
			case machine.Resume, machine.Signal, machine.Cancel, machine.Outcome:
			default:
				by = nil
			}
			r.stretches = 0
			r.settle(by)
			return nil
		}
		r.m.SetMode(was)
		if !errors.Is(err, machine.ErrWalking) {
			return err
		}
		if err := workflow.Await(ctx, func() bool { return !r.m.Walking() }); err != nil {
			return err
		}
	}
	return admit.Ended(&r.exec, in)
}

// settle handles the results of the last input.
func (r *walk) settle(by *history.Actor) {
	var next []machine.Input
	for {
		b := r.m.Ready()
		run.SignAs(by, b.Records)
		by = nil
		before := r.exec.Phase
		r.record(b.Records)
		r.notify(before, b.Records)
		keep := keepsTasks(b.Records)
		for _, key := range b.Abandoned {
			r.abandon(key, keep)
		}
		for _, e := range b.Dropped {
			if !keep {
				r.release(e)
			}
		}
		for _, e := range b.Effects {
			if in := r.perform(e); in != nil {
				next = append(next, in)
			}
		}
		if b.TimersChanged {
			r.setTimers(b.Timers)
		}
		if r.ended() {
			r.abandonAll(keep)
			break
		}
		if len(next) == 0 {
			break
		}
		in := next[0]
		next = next[1:]
		switch err := r.m.Handle(in, workflow.Now(r.ctx)); {
		case errors.Is(err, machine.ErrWalking):
			workflow.Go(r.ctx, func(ctx workflow.Context) { r.input(ctx, in) })
		case err != nil:
			workflow.GetLogger(r.ctx).Info("input dropped", "error", err)
		}
	}
	if phase := r.exec.Phase; phase != r.phase {
		r.phase = phase
		if err := workflow.UpsertTypedSearchAttributes(r.ctx, attrPhase.ValueSet(string(phase))); err != nil {
			workflow.GetLogger(r.ctx).Error("search attribute not set", "error", err)
		}
	}
}

// keepsTasks reports whether records end a run that keeps its tasks at agents.
func keepsTasks(records []history.Record) bool {
	n := len(records)
	return n > 0 && records[n-1].Name == history.ExecutionCancelled && records[n-1].Payload.KeepTasks
}

func (r *walk) ended() bool { return r.m == nil || r.m.Status().Terminal() }

// record applies new records to the projection and keeps them.
func (r *walk) record(records []history.Record) {
	for i := range records {
		r.bytes += int64(records[i].Weigh(maxWeight))
	}
	r.exec.ApplyAll(records)
	if r.m != nil {
		r.m.SetBytes(r.bytes)
	}
	r.records = append(r.records, records...)
}

// maxWeight bounds the size that counts for one record.
const maxWeight = 1 << 30

// execution returns the projection with the size of the run.
func (r *walk) execution() *history.Execution {
	e := r.exec
	e.Bytes = r.bytes
	return &e
}

// stateAt returns the state of a StateUpdated record, nil for seq 0.
func (r *walk) stateAt(seq int64) map[string]any {
	switch i := seq - r.first; {
	case seq == 0:
		return nil
	case i >= 0 && i < int64(len(r.records)):
		return r.records[i].Payload.State
	case r.in.Continued != nil && r.in.Continued.StateSeq == seq:
		return r.in.Continued.State
	}
	return nil
}

// snapshot returns the run as it is now.
func (r *walk) snapshot() snapshot {
	config := r.in.Config
	if r.m != nil {
		config = r.m.Config()
	}
	s := snapshot{
		Walk: r.in.Walk, Projection: r.exec.AppendText(nil), Bytes: r.bytes, Limits: r.in.Limits, MaxVisits: config.MaxVisits, Mode: config.Mode,
		Beginning: r.beginning, First: r.first,
	}
	if r.m == nil {
		s.Ending = r.in.Ended
		return s
	}
	if r.ended() {
		end := view.EndingOf(r.m, r.exec.DefinitionHash)
		s.Ending = &end
		return s
	}
	s.Position = r.m.Position()
	if s.Position != nil {
		s.State = r.stateAt(machine.PositionStateSeq(s.Position))
	}
	return s
}

// maxPageBytes bounds the records of one answer.
const maxPageBytes = 512 << 10

// page answers the records query.
func (r *walk) page(q recordsQuery) (recordsPage, error) {
	p := recordsPage{First: r.first, Last: r.exec.Seq, Archived: r.in.Layout.Archive, Records: []history.Row{}}
	size := 0
	for i := max(q.From-r.first, 0); i < int64(len(r.records)) && size < maxPageBytes && (q.Limit <= 0 || len(p.Records) < q.Limit); i++ {
		row := r.records[i].Row(r.id)
		size += len(row.Payload)
		p.Records = append(p.Records, row)
	}
	return p, nil
}
