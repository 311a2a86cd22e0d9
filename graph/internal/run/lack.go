package run

import (
	"context"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/internal/library"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
)

// Processes of different configuration may share a store. What a process lacks is decided effect by effect. Whoever applies an
// input records it and walks on, which takes nothing but the definition; of the effects that follow it performs those that it
// can, and leaves the others pending as they are recorded: requested, not begun. It owns the run while it performs something, and
// no longer; a process that can perform something of what is left claims the run then. Nobody claims a run of which it can
// perform nothing, so that such a run stands still without a write.
//
// A run is driven by the process that started it, after an answer too, and fails there if it comes to what is missing, so that
// the caller hears of it; once another process has written to the run it is left like any other.

// LackOf returns what this process lacks to perform a node, nil if it lacks nothing.
func (x *Run) LackOf(n *definition.Node) *view.Lack {
	return library.MissingExecutor(x.env.Performer, x.id, n)
}

// LackFor returns what this process lacks to go on with what the run waits for, nil if it lacks nothing: somebody else ends the
// wait, or this process could.
func (x *Run) LackFor(w *machine.Wait) *view.Lack {
	if w.Host || w.Kind == machine.WaitBackoff && x.m.Config().Mode == machine.HostMediated {
		return nil
	}
	return x.LackOf(x.prog.Node(w.NodeID))
}

// Lacks returns what this process lacks to go on with the run where it stands, or else to go on after what somebody is asked
// for; nil if it lacks nothing.
func (x *Run) Lacks() *view.Lack { return x.lacks(x.m.Pending()) }

func (x *Run) lacks(waits []machine.Wait) *view.Lack {
	for i := range waits {
		if l := x.LackFor(&waits[i]); l != nil {
			return l
		}
	}
	if x.startedHere || x.m.Config().Mode == machine.HostMediated {
		return nil
	}
	var asked []*definition.Node
	for i := range waits {
		if w := &waits[i]; w.Host || w.Kind == machine.WaitInterrupt || w.Kind == machine.WaitSignal {
			asked = append(asked, x.prog.Node(w.NodeID))
		}
	}
	return library.MissingExecutorAfter(x.env.Performer, x.id, x.prog, asked)
}

// lackOfTrust returns what this process lacks for a run that was not loaded because its definition is not trusted here; nil for any
// other error.
func (x *Run) lackOfTrust(err error) *view.Lack {
	if p, ok := problem.As(err); ok && p.Code == problem.DefinitionNotFound && p.Err != nil {
		return &view.Lack{ExecutionID: x.id, Missing: "a definition that it trusts: " + p.Error()}
	}
	return nil
}

// UnlessOwned returns what this process lacks, nil while a process with a live lease owns the run: it may perform the very node.
func (x *Run) UnlessOwned(ctx context.Context, l *view.Lack) (*view.Lack, error) {
	if l == nil {
		return nil, nil
	}
	if owner, err := x.env.Store.Owner(ctx, x.id); err != nil || owner.Live() && !x.Owned() {
		return nil, err
	}
	return l, nil
}
