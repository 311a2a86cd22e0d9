package mcpserver

import (
	"context"
	"errors"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// told is a run as an answer tells of it.
type told struct {
	*graph.Run
	// lost says that another engine began the run and that its definition is not stored here: until somebody sends it,
	// nothing drives the run.
	lost bool
	// node limits pending to the entries of one node; "" for all.
	node string
}

// desk is what the tools work with.
type desk struct {
	graph.Engine
	definitions Definitions
}

// tell looks whether the definition of a run that goes on is known.
func (d *desk) tell(ctx context.Context, run *graph.Run) told {
	t := told{Run: run}
	switch {
	case run.Status.Terminal():
	case len(run.Pending) > 0:
		for i := range run.Pending {
			p := &run.Pending[i]
			t.lost = t.lost || isUnbound(p) && (p.ExecutionID == run.ExecutionID || p.ExecutionID == "")
		}
	case run.DefinitionHash == "":
		t.lost = true
	case d.definitions != nil:
		_, err := d.definitions.Definition(ctx, run.DefinitionHash)
		t.lost = errors.Is(err, problem.DefinitionNotFound)
	}
	return t
}

// isUnbound tells entries of a run whose definition is not known: only the engine that knows it can name its waits.
func isUnbound(p *graph.Pending) bool { return p.ID == "" }

// shown are the entries of pending that the answer has.
func (t told) shown() []*graph.Pending {
	list := make([]*graph.Pending, 0, len(t.Pending))
	for i := range t.Pending {
		if p := &t.Pending[i]; t.node == "" || p.NodeID == t.node {
			list = append(list, p)
		}
	}
	return list
}

// awaits reports whether the run waits at a node.
func (t told) awaits(node string) bool {
	t.node = node
	return len(t.shown()) > 0
}
