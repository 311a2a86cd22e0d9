package graph

import (
	"context"
	"errors"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// open loads the run unless it is loaded: x.exec is then its projection and, unless it has ended, x.m its machine.
// doc is needed only for a run whose definition is not stored. The error is EXECUTION_NOT_FOUND, DEFINITION_REQUIRED
// or what the store says.
func (x *run) open(ctx context.Context, doc *definition.Document) error {
	if x.m != nil {
		return nil
	}
	exec, err := x.r.store.Execution(ctx, x.id)
	if err != nil {
		return err
	}
	return x.load(ctx, exec, doc)
}

// sync is open for readers: it also looks whether another process has written to the run since.
func (x *run) sync(ctx context.Context, doc *definition.Document) error {
	if x.m == nil {
		return x.open(ctx, doc)
	}
	exec, err := x.r.store.Execution(ctx, x.id)
	if err != nil {
		return err
	}
	if x.isAt(&exec) {
		return nil
	}
	x.forget()
	return x.load(ctx, exec, doc)
}

// behind reports whether another process has written to the run since the machine was made.
func (x *run) behind(ctx context.Context) (bool, error) {
	exec, err := x.r.store.Execution(ctx, x.id)
	return !x.isAt(&exec), err
}

// isAt reports whether the run is where its stored projection is: at the same record of the same run. An id may have been
// used again since, for one that has as many records.
func (x *run) isAt(stored *history.Execution) bool {
	return stored.Seq == x.exec.Seq && stored.CreatedAt.UnixMilli() == x.exec.CreatedAt.UnixMilli() && stored.InputHash == x.exec.InputHash
}

// forget throws the machine away.
func (x *run) forget() {
	x.m, x.left, x.prior = nil, machine.Batch{}, history.Prior{}
	x.keepBytes.Store(0)
}

func (x *run) load(ctx context.Context, exec history.Execution, doc *definition.Document) error {
	x.see(exec)
	if exec.Phase.Terminal() {
		x.landAll(errOver)
		return nil
	}
	prog, err := x.program(ctx, doc)
	if err != nil {
		return err
	}
	m, err := x.rebuild(ctx, prog)
	if err != nil {
		return err
	}
	if x.exec.Seq != exec.Seq {
		x.started = false // another process has just written
	}
	m.SetLimits(x.r.opts.MaxVisits, x.r.limits())
	m.SetBytes(x.exec.Bytes)
	x.m, x.prog = m, prog
	x.left = m.Ready()
	x.lastStatus = m.Status()
	x.unsure = exec.Parent != ""
	x.adopting = x.held                // what others requested meanwhile is to be performed here
	x.sincePosition = maxSincePosition // the next commit stores where the run stands now
	x.findChildren()
	x.landOthers()
	x.priceKeeping(x.lastStatus, 0)
	return nil
}

// see takes in the projection as it is stored. Once another process has written to the run, it is the business of this one
// no more than of any other: what is missing here may well be there.
func (x *run) see(exec history.Execution) {
	if x.exec.Seq > 0 && x.exec.Seq != exec.Seq {
		x.started = false
		x.r.hub.wake(x.id)
	}
	x.exec = exec
}

// program gives the compiled definition of the run: the stored one, or else the caller's, which is then stored with
// the next commit.
func (x *run) program(ctx context.Context, doc *definition.Document) (*definition.Program, error) {
	hash := x.exec.DefinitionHash
	if hash != "" {
		prog, err := x.r.library.stored(ctx, hash)
		if p, ok := problem.As(err); ok && p.Code == problem.HistoryCorrupt {
			p.At.ExecutionID = x.id
		}
		if err == nil || !errors.Is(err, problem.DefinitionNotFound) {
			return prog, err
		}
	}
	if doc == nil {
		return nil, problem.New(problem.DefinitionNotFound, "the definition of run %q is not stored", x.id).
			WithPlace(problem.Place{ExecutionID: x.id}).
			WithHint("Another engine began this run. Send its definition once; it is stored from then on.")
	}
	prog, err := x.r.library.admit(doc)
	if err != nil {
		return nil, err
	}
	x.exec.DefinitionHash = prog.Hash
	x.unstored = storedForm(prog)
	return prog, nil
}

// rebuild makes the machine from the newest stored position and the records after it, or else from all records.
func (x *run) rebuild(ctx context.Context, prog *definition.Program) (*machine.Machine, error) {
	m, err := x.restore(ctx, prog)
	if m != nil || err != nil {
		return m, err
	}
	records, err := x.r.store.Read(ctx, x.id, 1, 0)
	if err != nil {
		return nil, err
	}
	x.foldTail(records)
	x.notePrior(1, records)
	if err := x.needsInput(records); err != nil {
		return nil, err
	}
	// Only a run that another engine began does not say these things itself. Whether a host or an executor was to
	// perform what it waits for is not recorded there; a host is harmless.
	unsaid := machine.Config{
		ExecutionID: x.id,
		Mode:        x.unsaidMode,
		Branches:    machine.Sequential,
		MaxVisits:   x.r.opts.MaxVisits,
		Parent:      x.exec.Parent,
		Depth:       x.exec.Depth,
	}
	fallback(&unsaid.Mode, machine.HostMediated)
	return machine.Replay(prog, unsaid, records, x.unsaidInput, x.r.now())
}

// needsInput refuses a run that another engine left before it had recorded its input in a first state.
func (x *run) needsInput(records []history.Record) error {
	if x.exec.InputHash != "" || x.exec.StateSeq > 0 || x.unsaidInput != nil {
		return nil
	}
	for i := range records {
		if len(records[i].Payload.InputKeys) > 0 {
			return problem.New(problem.DefinitionNotFound, "the input of run %q is not stored", x.id).
				WithPlace(problem.Place{ExecutionID: x.id}).
				WithHint("Another engine began this run and stopped at once. Send its definition and input once.")
		}
	}
	return nil
}

// restore makes the machine from a stored position. It gives nil if there is none that can be used: the history holds
// everything that a position does.
func (x *run) restore(ctx context.Context, prog *definition.Program) (*machine.Machine, error) {
	seq, data, err := x.r.store.Position(ctx, x.id)
	if err != nil || seq == 0 || len(data) == 0 {
		return nil, err
	}
	if seq > x.exec.Seq { // another process wrote since the projection was read
		hash := x.exec.DefinitionHash
		if x.exec, err = x.r.store.Execution(ctx, x.id); err != nil {
			return nil, err
		}
		fallback(&x.exec.DefinitionHash, hash)
	}
	var state map[string]any
	if at := machine.PositionStateSeq(data); at > 0 {
		records, err := x.r.store.Read(ctx, x.id, at, 1)
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
		x.r.log.Warn("stored position not used", logRun, x.id, logSeq, seq, logError, err)
		return nil, nil
	}
	tail, err := x.r.store.Read(ctx, x.id, seq+1, 0)
	if err != nil {
		return nil, err
	}
	if err := m.Catchup(tail, x.r.now()); err != nil {
		x.r.log.Warn("stored position not used", logRun, x.id, logSeq, seq, logError, err)
		return nil, nil
	}
	x.foldTail(tail)
	x.notePrior(seq+1, tail)
	return m, nil
}

// foldTail brings the projection up to date with records that were read after it.
func (x *run) foldTail(records []history.Record) {
	for i := range records {
		if records[i].Seq > x.exec.Seq {
			x.exec.Apply(records[i])
		}
	}
}

// findChildren notes the subworkflows that the run waits for.
func (x *run) findChildren() {
	clear(x.children)
	for _, w := range x.m.Pending() {
		if w.Kind == machine.WaitChild {
			x.noteChild(w.Key, w.ChildExecutionID)
		}
	}
}

func (x *run) noteChild(key, id string) {
	if x.children == nil {
		x.children = map[string]string{}
	}
	x.children[key] = id
}
