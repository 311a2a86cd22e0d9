package run

import (
	"cmp"
	"context"
	"errors"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// Open loads the run unless it is loaded: it sets Execution and, unless the run has ended, Machine. The error is EXECUTION_NOT_FOUND,
// DEFINITION_REQUIRED or the store's.
func (x *Run) Open(ctx context.Context) error {
	if x.m != nil {
		return nil
	}
	exec, err := x.env.Store.Execution(ctx, x.id)
	if err != nil {
		return err
	}
	return x.load(ctx, exec, nil)
}

// Refresh is Open, and also reads the writes of other processes.
func (x *Run) Refresh(ctx context.Context) error {
	if x.m == nil {
		return x.Open(ctx)
	}
	exec, err := x.env.Store.Execution(ctx, x.id)
	if err != nil {
		return err
	}
	if x.isAt(&exec) {
		return nil
	}
	x.forget()
	return x.load(ctx, exec, nil)
}

// refreshTo is Refresh with what a claim has just read. If another process has written since, the next append conflicts.
func (x *Run) refreshTo(ctx context.Context, r *history.ReadyRun) error {
	switch e := &r.Execution; {
	case e.Seq == 0 || e.Seq < x.exec.Seq:
		return x.Refresh(ctx)
	case x.m != nil && x.isAt(e):
		return nil
	case x.m != nil:
		x.forget()
	}
	x.found = r
	defer func() { x.found = nil }()
	return x.load(ctx, r.Execution, nil)
}

// position returns the newest stored position.
func (x *Run) position(ctx context.Context) (seq int64, data []byte, err error) {
	if r := x.found; r != nil {
		x.found = nil
		return r.PositionSeq, r.Position, nil
	}
	return x.env.Store.Position(ctx, x.id)
}

// behind reports whether another process has written to the run since the machine was made.
func (x *Run) behind(ctx context.Context) (bool, error) {
	exec, err := x.env.Store.Execution(ctx, x.id)
	return !x.isAt(&exec), err
}

// isAt reports whether the stored run is the same run at the same record. Another run with as many records may have the id now.
func (x *Run) isAt(stored *history.Execution) bool {
	return stored.Seq == x.exec.Seq && stored.CreatedAt.UnixMilli() == x.exec.CreatedAt.UnixMilli() && stored.InputHash == x.exec.InputHash
}

// forget drops the machine. The owner stays the same.
func (x *Run) forget() {
	x.returnPlaces()
	x.m, x.unrecorded, x.prior = nil, machine.Batch{}, history.Prior{}
	x.cost.Store(0)
	if x.Owned() {
		x.become(Claimed)
	} else {
		x.become(Unloaded)
	}
}

// load builds the machine of a run from its stored projection. doc is needed only if the definition is not stored.
func (x *Run) load(ctx context.Context, exec history.Execution, doc *definition.Document) error {
	x.see(exec)
	if exec.Phase.Terminal() {
		x.abortAll(work.ErrUnwanted)
		x.become(Ended)
		return nil
	}
	prog, err := x.program(ctx, doc)
	if err != nil {
		return err
	}
	x.prog = prog
	var m *machine.Machine
	err = x.compute(func() error { m, err = x.rebuild(ctx, prog); return err })
	if errors.Is(err, machine.ErrAbandoned) {
		if err = x.afterAbandoning(); err == nil {
			err = x.Refresh(ctx)
		}
		return err
	}
	if err != nil {
		return err
	}
	if x.exec.Seq != exec.Seq {
		x.startedHere = false // another process has just written
		x.seq.Store(x.exec.Seq)
	}
	m.SetLimits(x.env.MaxVisits, x.limits())
	m.SetBytes(x.exec.Bytes)
	x.m = m
	x.unrecorded = m.Ready()
	x.lastStatus = m.Status()
	x.parentUnchecked = exec.Parent != ""
	x.sincePosition = maxSincePosition // the next commit stores a position
	if !x.Owned() {                    // else requests made meanwhile are performed here
		x.become(Following)
	}
	x.findChildren()
	x.abortUnawaited()
	x.estimateCost(x.lastStatus, 0)
	return nil
}

// see sets the projection to the stored one. If another process has written to the run, the missing executors may exist there.
func (x *Run) see(exec history.Execution) {
	if x.exec.Seq > 0 && x.exec.Seq != exec.Seq {
		x.startedHere = false
		x.env.Process.Changed(x)
	}
	x.setExecution(exec)
}

// program returns the compiled definition of the run: the stored one, or else the caller's, which the next commit stores.
func (x *Run) program(ctx context.Context, doc *definition.Document) (*definition.Program, error) {
	if x.exec.Mode == "" {
		return nil, problem.New(problem.DefinitionNotFound, "run %q was begun by the npm engine, and its definition is not stored", x.id).
			WithPlace(problem.Place{ExecutionID: x.id}).
			WithHint("It cannot be continued here. Import the database of that engine into another one.")
	}
	hash := x.exec.DefinitionHash
	if hash != "" {
		prog, err := x.env.Programs.Stored(ctx, hash)
		p, ok := problem.As(err)
		if ok && (p.Code == problem.HistoryCorrupt || p.Code == problem.DefinitionNotFound) {
			p.At.ExecutionID = x.id
		}
		refused := ok && p.Err != nil && doc == nil // it is stored, and not trusted here
		if err == nil || refused || !errors.Is(err, problem.DefinitionNotFound) {
			return prog, err
		}
	}
	if doc == nil {
		return nil, problem.New(problem.DefinitionNotFound, "the definition of run %q is not stored", x.id).
			WithPlace(problem.Place{ExecutionID: x.id}).
			WithHint("Send the definition with the call; it is stored then.")
	}
	prog, err := x.env.Programs.Admit(doc)
	if err != nil {
		return nil, err
	}
	x.exec.DefinitionHash = prog.Hash
	x.unstored = admit.StoredForm(prog)
	return prog, nil
}

// rebuild builds the machine from the newest stored position and the records after it, or else from all records.
func (x *Run) rebuild(ctx context.Context, prog *definition.Program) (*machine.Machine, error) {
	m, err := x.restore(ctx, prog)
	if m != nil || err != nil {
		return m, err
	}
	records, err := x.env.Store.Read(ctx, x.id, 1, 0)
	if err != nil {
		return nil, err
	}
	x.foldTail(records)
	x.notePrior(1, records)
	config := machine.Config{
		ExecutionID: x.id,
		MaxVisits:   x.env.MaxVisits,
		Limits:      machine.Limits{Queued: x.queued, MinHostTimeout: x.env.Limits.MinHostTimeout, Stop: x.stop},
	}
	return machine.Replay(prog, config, records, nil, x.env.Now())
}

// restore builds the machine from a stored position. It returns nil without a usable one; the history has everything that a position has.
func (x *Run) restore(ctx context.Context, prog *definition.Program) (*machine.Machine, error) {
	seq, data, err := x.position(ctx)
	if err != nil || seq == 0 || len(data) == 0 {
		return nil, err
	}
	if seq > x.exec.Seq { // another process wrote since the projection was read
		hash := x.exec.DefinitionHash
		if x.exec, err = x.env.Store.Execution(ctx, x.id); err != nil {
			return nil, err
		}
		x.exec.DefinitionHash = cmp.Or(x.exec.DefinitionHash, hash)
	}
	var state map[string]any
	if at := machine.PositionStateSeq(data); at > 0 {
		records, err := x.env.Store.Read(ctx, x.id, at, 1)
		if err != nil {
			return nil, err
		}
		if len(records) == 1 {
			state = records[0].Payload.State
			x.notePrior(at, records)
		}
	}
	m, err := machine.Restore(prog, data, state)
	if err != nil {
		x.env.Log.Warn("stored position not used", LogRun, x.id, LogSeq, seq, LogError, err)
		return nil, nil
	}
	m.SetLimits(0, machine.Limits{Queued: x.queued, MinHostTimeout: x.env.Limits.MinHostTimeout, Stop: x.stop})
	var tail []history.Record
	if seq < x.exec.Seq { // else nothing follows, or the next append conflicts with it
		if tail, err = x.env.Store.Read(ctx, x.id, seq+1, 0); err != nil {
			return nil, err
		}
	}
	if err := m.Catchup(tail, x.env.Now()); errors.Is(err, machine.ErrAbandoned) {
		return nil, err
	} else if err != nil {
		x.env.Log.Warn("stored position not used", LogRun, x.id, LogSeq, seq, LogError, err)
		return nil, nil
	}
	x.foldTail(tail)
	x.notePrior(seq+1, tail)
	return m, nil
}

// foldTail applies newer records to the projection.
func (x *Run) foldTail(records []history.Record) {
	for i := range records {
		if records[i].Seq > x.exec.Seq {
			x.exec.Apply(records[i])
		}
	}
}
