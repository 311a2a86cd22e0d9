package run

import (
	"context"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/internal/library"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
)

// Processes with different executors may share a store; each effect is assigned by itself. The process that applies an input records it
// and walks on, which takes only the definition. Of the resulting effects it performs those that it has executors for, and leaves the
// others requested. It owns the run only while it performs an effect; then a process that can perform a remaining effect claims the run.
// A process never claims a run that it cannot advance, so such a run causes no writes.
//
// The process that started a run also performs effects that it lacks an executor for, so that the run fails and the caller learns of it.
// Once another process has written to the run, that rule ends.

// LackOf returns the executor that this process lacks for a node, or nil.
func (x *Run) LackOf(n *definition.Node) *view.Lack {
	return library.MissingExecutor(x.env.Performer, x.id, n)
}

// LackFor returns the executor that this process lacks to end a wait, or nil: it has the executor, or someone else ends the wait.
func (x *Run) LackFor(w *machine.Wait) *view.Lack {
	if w.Host || w.Kind == machine.WaitBackoff && x.m.Config().Mode == machine.HostMediated {
		return nil
	}
	return x.LackOf(x.prog.Node(w.NodeID))
}

// Lacks returns the first executor that this process lacks, for the current waits or else for the nodes after a wait for a host, a person
// or a signal; nil if it has them all.
func (x *Run) Lacks() *view.Lack { return x.lacks(x.m.Pending()) }

func (x *Run) lacks(waits []machine.Wait) *view.Lack {
	for i := range waits {
		if l := x.LackFor(&waits[i]); l != nil && !x.leaves(x.prog.Node(waits[i].NodeID)) {
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

// lackOfTrust returns the lack of a run whose definition is not trusted here; nil for any other error.
func (x *Run) lackOfTrust(err error) *view.Lack {
	if p, ok := problem.As(err); ok && p.Code == problem.DefinitionNotFound && p.Err != nil {
		return &view.Lack{ExecutionID: x.id, Missing: "a definition that it trusts: " + p.Error()}
	}
	return nil
}

// UnlessOwned returns l, or nil while a process with a live lease owns the run: it may perform the very node.
func (x *Run) UnlessOwned(ctx context.Context, l *view.Lack) (*view.Lack, error) {
	if l == nil {
		return nil, nil
	}
	if owner, err := x.env.Store.Owner(ctx, x.id); err != nil || owner.Live() && !x.Owned() {
		return nil, err
	}
	return l, nil
}
