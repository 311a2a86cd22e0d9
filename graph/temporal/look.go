package temporal

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// sight is one run as the engine has read it.
type sight struct {
	exec history.Execution
	snap *snapshot
	// m is the machine of the run, nil for one that has ended, and for one whose definition or position is not available.
	m      *machine.Machine
	prog   *definition.Program
	ending *view.Ending
	// lack is set for a run that no worker answers for.
	lack *view.Lack
}

// look reads a run.
func (e *Engine) look(ctx context.Context, id string) (*sight, error) {
	var s snapshot
	ended, err := e.b.query(ctx, id, queryView, nil, &s)
	if err != nil {
		lost := failureOf(ctx, err, e.o.Address, id)
		if errors.Is(lost, problem.ExecutionNotFound) {
			return nil, lost
		}
		c, failed := e.b.end(ctx, id)
		switch {
		case failed != nil:
			return nil, lost
		case c.open:
			return &sight{exec: rowOf(e.o.Converter, c.info), lack: &view.Lack{
				ExecutionID: id, Missing: problem.Format("a worker that polls the task queue %q", c.info.GetTaskQueue()), Setting: "a worker",
			}}, nil
		}
		return e.closedSight(ctx, id, c)
	}
	if !ended {
		return e.sight(ctx, id, &s)
	}
	c, err := e.b.end(ctx, id)
	switch {
	case err != nil:
		return nil, failureOf(ctx, err, e.o.Address, id)
	case c.open: // it has continued as new meanwhile
		return e.look(ctx, id)
	}
	return e.closedSight(ctx, id, c)
}

func (e *Engine) closedSight(ctx context.Context, id string, c *closed) (*sight, error) {
	if c.result != nil {
		return e.sight(ctx, id, c.result)
	}
	exec := rowOf(e.o.Converter, c.info)
	exec.LastError = c.reason
	return &sight{exec: exec, ending: &view.Ending{
		Status: machine.Failed, Error: c.reason, Code: string(problem.Terminated), DefinitionHash: exec.DefinitionHash, State: map[string]any{},
	}}, nil
}

func (e *Engine) sight(ctx context.Context, id string, s *snapshot) (*sight, error) {
	exec, err := history.ParseExecution(id, s.Projection)
	if err != nil {
		return nil, err
	}
	exec.Bytes = s.Bytes
	x := &sight{exec: exec, snap: s, ending: s.Ending}
	if s.Ending != nil {
		if x.ending.State == nil {
			x.ending.State = map[string]any{}
		}
		return x, nil
	}
	if x.prog, err = e.program(ctx, &exec); err != nil {
		if !errors.Is(err, problem.DefinitionNotFound) {
			return nil, err
		}
		return x, nil
	}
	if s.Position == nil {
		return x, nil
	}
	m, err := machine.Restore(x.prog, s.Position, s.State)
	if err != nil {
		return nil, err
	}
	m.SetLimits(0, s.Limits.machine())
	m.SetBytes(s.Bytes)
	x.m = m
	return x, nil
}

// program returns the program of a run.
func (e *Engine) program(ctx context.Context, exec *history.Execution) (*definition.Program, error) {
	if _, ok := e.definitions.get(exec.DefinitionHash); !ok {
		if _, err := e.definitions.of(ctx, exec.ID, exec.DefinitionHash); err != nil {
			return nil, err
		}
	}
	return e.library.Stored(ctx, exec.DefinitionHash)
}

// admit compares the arguments of a caller with the run.
func (e *Engine) admit(exec *history.Execution, c admit.Caller, code problem.Code) error {
	if exec.Phase == history.PhaseCancelled {
		return nil // this answer comes first (spec: execution, 1.3, 7.2, 7.3 and 8.6)
	}
	if err := admit.SameDefinition(exec, c.Definition, code); err != nil {
		return err
	}
	if !c.InputSet {
		return nil
	}
	plain, err := admit.Object("input", c.Input, e.o.MaxDocumentBytes, code)
	if err == nil && jsonvalue.Hash(plain) != exec.InputHash {
		err = admit.OtherInput(exec.ID, code)
	}
	return err
}

// node is a run with the subworkflows that it waits for.
type node struct {
	*sight
	// children are the subworkflows, in the order of their waits; nil for one that has not begun.
	children []*node
}

// tree reads a run and the subworkflows that it waits for.
func (e *Engine) tree(ctx context.Context, id string) (*node, error) {
	x, err := e.look(ctx, id)
	if err != nil {
		return nil, err
	}
	n := &node{sight: x}
	for _, w := range n.pending() {
		if w.Kind != machine.WaitChild {
			continue
		}
		child, err := e.tree(ctx, w.ChildExecutionID)
		if err != nil && !errors.Is(err, problem.ExecutionNotFound) {
			return nil, err
		}
		n.children = append(n.children, child)
	}
	return n, nil
}

func (x *sight) pending() []machine.Wait {
	if x.m == nil {
		return nil
	}
	return x.m.Pending()
}

// waits calls f for the waits of the runs, in branch order.
func (n *node) waits(f func(id string, w machine.Wait)) {
	child := 0
	for _, w := range n.pending() {
		f(n.exec.ID, w)
		if w.Kind == machine.WaitChild {
			if c := n.children[child]; c != nil {
				c.waits(f)
			}
			child++
		}
	}
}

// settled reports whether the runs have reached their waits: no walk is under way, no subworkflow is about to start, and no end of one is on
// its way to the parent.
func (n *node) settled() bool {
	if n.m != nil && n.m.Walking() || n.snap != nil && len(n.snap.Beginning) > 0 {
		return false
	}
	for _, c := range n.children {
		if c == nil || c.ending != nil || !c.settled() {
			return false
		}
	}
	return true
}

// view returns the answer about a run.
func (e *Engine) view(n *node) (*view.Run, error) {
	s := view.Source{
		Execution: &n.exec, Machine: n.m, Program: n.prog, Waits: n.pending(), Ending: n.ending, MaxVisits: e.o.MaxVisits, Mode: e.o.DefaultMode, Now: e.b.now(),
	}
	if n.snap != nil {
		s.MaxVisits, s.Mode, s.Limits = n.snap.MaxVisits, n.snap.Mode, n.snap.Limits.machine()
	}
	v := view.Of(s)
	v.Lacks = n.lack
	if err := run.Journals(context.Background(), past{Engine: e}, v.Pending); err != nil {
		return nil, err
	}
	child := 0
	err := view.Compose(v, func(*view.Pending) (*view.Run, error) {
		c := n.children[child]
		child++
		if c == nil {
			return view.Child(nil), nil
		}
		below, err := e.view(c)
		return view.Child(below), err
	})
	return v, err
}

// standing is the state of a run and the subworkflows that it waits for.
type standing struct {
	status machine.Status
	due    time.Time
	// seq is the run's last record, sum the sum over all runs.
	seq, sum int64
}

func (n *node) standing() standing {
	s := standing{status: view.StatusOf(n.exec.Phase), seq: n.exec.Seq, sum: n.exec.Seq}
	if n.ending != nil {
		s.status = n.ending.Status
	}
	if n.m == nil {
		return s
	}
	s.status, s.due = n.m.Status(), earliest(n.m)
	if n.snap != nil && len(n.snap.Beginning) > 0 {
		s.status = machine.Running
	}
	first := true
	for _, c := range n.children {
		sub := standing{status: machine.Running}
		if c != nil {
			sub = c.standing()
		}
		s.sum += sub.sum
		if !sub.due.IsZero() && (s.due.IsZero() || sub.due.Before(s.due)) {
			s.due = sub.due
		}
		if sub.status.Terminal() {
			sub.status = machine.Running // its parent is about to be notified
		}
		if n.m.Status() == machine.AwaitingChild && s.status != machine.Running && (first || view.Rank(sub.status) < view.Rank(s.status)) {
			s.status = sub.status
		}
		first = false
	}
	return s
}

// goesOn reports whether the run will proceed by itself within the time left.
func (s *standing) goesOn(now time.Time, left time.Duration) bool {
	switch s.status {
	case machine.Running, machine.AwaitingChild:
		return true
	case machine.AwaitingTimer:
		return !s.due.IsZero() && s.due.Sub(now) <= left
	}
	return false
}

// waiting is the wait of a call.
type waiting struct {
	graph.Wait
	e     *Engine
	began time.Time
	// ctx ends with the wait.
	ctx context.Context
	// until, unless nil, may end the wait early. was is the first look, nil during that one.
	until     func(was, now *standing) bool
	anyChange bool
}

// waiting returns the wait of a call that begins now.
func (e *Engine) waiting(ctx context.Context, w graph.Wait) (*waiting, func()) {
	w.Limit = cmp.Or(w.Limit, e.o.WaitLimit)
	own, cancel := context.WithCancel(ctx)
	stop := func() bool { return true }
	if w.End != nil {
		done := make(chan struct{})
		go func() {
			select {
			case <-w.End:
				cancel()
			case <-done:
			}
		}()
		stop = func() bool { close(done); return true }
	}
	return &waiting{Wait: w, e: e, began: e.b.now(), ctx: own}, func() { stop(); cancel() }
}

// inUpdate is how long the run itself waits before it answers.
func (w *waiting) inUpdate() time.Duration {
	if w.Applied != nil || w.Progress != nil || w.Limit <= 0 {
		return 0
	}
	return w.Limit
}

// apply reports that the change of the call is committed.
func (w *waiting) apply() {
	if w.Applied != nil && w.Limit > 0 {
		w.Applied()
		w.Applied = nil
	}
}

// The pauses between two looks at a run. They grow with waits of many minutes. A look costs no event.
const (
	firstLook = 5 * time.Millisecond
	lastLook  = 250 * time.Millisecond
)

// answer waits until the run waits or ends, or the limit passes, and returns its view. The end of ctx ends only the wait.
func (e *Engine) answer(ctx context.Context, id string, w *waiting) (*view.Run, error) {
	pause := firstLook
	var first *standing
	var reported int64
	for {
		n, err := e.tree(work.Detached(ctx), id)
		if err != nil {
			return nil, err
		}
		s := n.standing()
		now := e.b.now()
		left := w.Limit - now.Sub(w.began)
		goesOn := s.goesOn(now, left) || w.anyChange && !s.status.Terminal()
		if left <= 0 || !goesOn || w.until != nil && w.until(first, &s) || w.ctx.Err() != nil {
			return e.view(n)
		}
		if first == nil {
			first = &s
		}
		w.apply()
		if w.Progress != nil && s.sum != reported {
			reported = s.sum
			n.places(w.Progress)
		}
		if err := e.b.sleep(w.ctx, min(pause, left)); err != nil {
			w.Limit = 0 // one last look
		}
		pause = min(2*pause, max(lastLook, now.Sub(w.began)/100))
	}
}

// places reports the nodes where the runs proceed by themselves.
func (n *node) places(progress func(graph.Progress)) {
	n.waits(func(id string, w machine.Wait) {
		if w.Kind == machine.WaitInterrupt || w.Kind == machine.WaitSignal || w.Kind == machine.WaitChild || w.Host {
			return
		}
		p := graph.Progress{ExecutionID: id, NodeID: w.NodeID, Kind: graph.NodeRuns, Attempt: w.Attempt}
		if w.Span != nil {
			p.Branch = w.Span.BranchName
		}
		progress(p)
	})
}
