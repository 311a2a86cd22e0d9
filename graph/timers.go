package graph

import (
	"context"
	"errors"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Timers are rows in the store and outlive every process. This process wakes up for those of the runs that it had in
// hand; others are fired when somebody asks about their run, or by Recover and Options.Background.

// fireDue fires the run's timers whose time has come. The run must be open. A timer that turns out to be over is
// nothing to speak of.
func (x *run) fireDue(ctx context.Context, y *yield) error {
	over := map[string]bool{}
	for {
		due, ok := x.nextDue(over)
		if !ok {
			return nil
		}
		over[due.Key] = true
		if e := x.m.Poll(due.Key); e != nil {
			if x.flights[e.Key()] == nil {
				y.flights = append(y.flights, x.fly(e))
			}
			continue
		}
		err := x.apply(ctx, step{in: machine.TimerFired{Key: due.Key}}, y)
		if err != nil && !errors.Is(err, problem.HistoryConflict) {
			return err
		}
	}
}

// nextDue gives a timer whose time has come.
func (x *run) nextDue(except map[string]bool) (machine.Timer, bool) {
	if x.m == nil {
		return machine.Timer{}, false
	}
	ts := x.m.Timers()
	if len(ts) == 0 {
		return machine.Timer{}, false
	}
	now := x.r.now()
	for _, t := range ts {
		if !t.Due.After(now) && !except[t.Key] {
			return t, true
		}
	}
	return machine.Timer{}, false
}

// visit fires what is due when somebody asks about an open run, unless that is the business of the process that
// drives it, or would lead to work that this process is not equipped for.
func (x *run) visit(ctx context.Context, y *yield) error {
	if gone, err := x.leaveWithParent(ctx, y); gone || err != nil {
		return err
	}
	if _, due := x.nextDue(nil); !due || !x.r.equipped(x) {
		return nil
	}
	drives, err := x.claim(ctx)
	switch {
	case errors.Is(err, errAgain): // fireDue decides again
	case err != nil || !drives:
		return err
	}
	return x.fireDue(ctx, y)
}

// equipped reports whether this process can perform whatever the run may come to. A run that is in process is left
// alone rather than failed for want of an executor that another process has.
func (r *Runner) equipped(x *run) bool {
	return r.performs(x.m.Config().Mode, x.prog)
}

// performs is equipped for a run that does not exist yet.
func (r *Runner) performs(mode machine.Mode, prog *definition.Program) bool {
	return mode == machine.HostMediated || r.lacks(prog) == "" && r.performsAll(prog)
}

// performsAll asks executors that perform some nodes only.
func (r *Runner) performsAll(prog *definition.Program) bool {
	types, _ := r.opts.Activities.(activities.Selective)
	nodes, _ := r.opts.Activities.(activities.NodeSelective)
	protocols, _ := r.opts.Delegates.(delegate.Selective)
	agents, _ := r.opts.Delegates.(delegate.AgentSelective)
	for _, n := range prog.Nodes {
		switch {
		case n.Type.IsActivity():
			if types != nil && !types.Performs(string(n.Type)) || nodes != nil && !nodes.PerformsNode(string(n.Type), n.Config) {
				return false
			}
		case n.Delegate != nil:
			if protocols != nil && !protocols.Performs(n.Delegate.Protocol) ||
				agents != nil && !agents.PerformsAgent(n.Delegate.Protocol, n.Delegate.AgentID) {
				return false
			}
		}
	}
	return true
}

// lacks names a node type of a program that nothing here performs, "" if there is none.
func (r *Runner) lacks(prog *definition.Program) definition.Type {
	if r.opts.Activities != nil && r.opts.Delegates != nil {
		return ""
	}
	for _, n := range prog.Nodes {
		if n.Type.IsActivity() && r.opts.Activities == nil || n.Type == definition.AgentDelegate && r.opts.Delegates == nil {
			return n.Type
		}
	}
	return ""
}

// performable refuses an input that would make this process drive what it cannot perform: the run would fail for good,
// where another process or the host could have gone on. mode is the caller's, "" for the run's own.
func (x *run) performable(mode machine.Mode, code problem.Code) error {
	if x.m == nil || x.ended() {
		return nil
	}
	fallback(&mode, x.m.Config().Mode)
	if mode == machine.HostMediated {
		return nil
	}
	lacking := x.r.lacks(x.prog)
	if lacking == "" {
		return nil
	}
	return problem.New(code, "run %q is in process, and no executor for %s nodes is configured here", x.id, lacking).
		WithPlace(problem.Place{ExecutionID: x.id}).
		WithHint("Continue it where the executors are configured, or with activity_execution_mode host_mediated, which leaves activities to the host.")
}
