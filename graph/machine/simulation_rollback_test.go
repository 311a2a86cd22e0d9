package machine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
)

// compensate gives nodes of some workflows compensations, and lets their catches, failures and cancels roll back.
func (w *simWorkflow) compensate(rng *rand.Rand) {
	parallel := slices.ContainsFunc(w.order, func(id string) bool { return w.nodes[id].kind == "parallel" })
	if rng.IntN(4) == 0 || w.pure && parallel { // how far dropped branches have come depends on the time
		return
	}
	shared := ""
	for _, id := range slices.Clone(w.order) {
		n := w.nodes[id]
		performed := n.attempts > 0 || n.kind == "subworkflow"
		if n.caught != "" {
			n.rollback = rng.IntN(3) > 0
		}
		if !performed || rng.IntN(5) == 0 {
			continue
		}
		if n.undo = shared; shared == "" || parallel { // in concurrent branches the visits of a shared one depend on the time
			k := &simNode{id: "u_" + id, kind: []string{"tool_call", "step", "agent_delegate", "subworkflow"}[rng.IntN(4)]}
			if k.kind != "subworkflow" {
				k.attempts = rng.IntN(3) + 1
				k.backoff = rng.IntN(3) == 0
			}
			n.undo, shared = w.add(k), k.id
		}
		w.onFailure, w.onCancel = rng.IntN(4) > 0, rng.IntN(4) > 0
	}
	if shared != "" && !w.onCancel { // something must roll back
		w.onFailure = true
	}
}

// compensated reports whether a node of the workflow has a compensation.
func (w *simWorkflow) compensated() bool {
	return slices.ContainsFunc(w.order, func(id string) bool { return w.nodes[id].undo != "" })
}

// simUndo is a visit that a rollback undoes.
type simUndo struct {
	node  string
	visit int
}

// did notes a completed visit.
func (p *passage) did(n *simNode, visit int) {
	if n.undo != "" {
		p.done = append(p.done, simUndo{n.id, visit})
	}
}

// rollBack undoes what a path has done. It is arrived if all is undone, stuck, or failed at a compensation, which ends the run.
func (o *naive) rollBack(p *passage) verdict {
	for len(p.done) > 0 {
		u := p.done[len(p.done)-1]
		k := o.w.nodes[o.w.nodes[u.node].undo]
		visit := o.visits[k.id] + 1
		if o.facts != nil {
			scheduled := o.fact(p, history.NodeScheduled, k.id, visit, 0)
			if scheduled == nil {
				return stuck
			}
			if want := fmt.Sprintf("%s#%d", u.node, u.visit); scheduled.Compensates != want {
				o.complain("%s#%d compensates %s, want %s", k.id, visit, scheduled.Compensates, want)
			}
		}
		o.visits[k.id] = visit
		p.at = k.id
		var v verdict
		if k.kind == "subworkflow" {
			if v = o.wait(p, history.SubworkflowCompleted, k.id, visit); v == arrived && o.world.child(k.id, visit) != machine.Completed {
				v = failed
			}
		} else {
			v = o.attempts(p, k, visit)
		}
		if v == failed {
			p.code, p.fatal = "COMPENSATION_FAILED", true
		}
		if v != arrived {
			return v
		}
		p.update(simUpdate{delta: output(k.id, visit)})
		p.done = p.done[:len(p.done)-1]
	}
	return arrived
}

// run walks a workflow from its beginning to where it stands, rollbacks of the run included.
func (o *naive) run(view object) passage {
	p := o.walk(view, o.w.first, "")
	at, cancel := p.at, o.facts["cancel"]
	switch {
	case p.verdict == failed && o.w.onFailure && !p.fatal:
		if p.verdict = o.rollBack(&p); p.verdict == arrived {
			p.verdict, p.at = failed, at
		}
	case p.verdict == stuck && o.w.onCancel && cancel != nil && !p.rolling:
		if p.verdict = o.rollBack(&p); p.verdict == arrived {
			p.verdict = stuck // until ExecutionCancelled, which comes at once
		}
	}
	return p
}

// checkFound compares what a compensation finds in its state with what it undoes.
func (s *schedule) checkFound(e *machine.EffectBase) {
	scheduled := s.facts[factKey(history.NodeScheduled, e.NodeID, e.Visit, 0)]
	found, _ := e.State["undo"].(object)
	if scheduled == nil || scheduled.Payload.Compensates == "" {
		if found != nil {
			s.fatalf("effect %s finds %v, and undoes nothing", e.Key(), found)
		}
		return
	}
	var node string
	var visit int
	if _, err := fmt.Sscanf(scheduled.Payload.Compensates, "n%d#%d", new(int), &visit); err != nil {
		s.fatalf("effect %s compensates %q", e.Key(), scheduled.Payload.Compensates)
	}
	node = scheduled.Payload.Compensates[:len(scheduled.Payload.Compensates)-len(fmt.Sprintf("#%d", visit))]
	if want := output(node, visit); found["node"] != node || text(found["output"]) != text(want) {
		s.fatalf("effect %s finds %s, want the output %s of %s", e.Key(), text(found), text(want), node)
	}
}
