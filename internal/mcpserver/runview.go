package mcpserver

import (
	"context"
	"errors"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
)

// runView is a run as an answer shows it.
type runView struct {
	*view.Run
	// lost reports that the definition of the run is not stored here: until a caller sends it, nothing drives the run.
	lost bool
	// node limits pending to the entries of one node; "" for all.
	node string
	// asking is what the call knows about asking the person.
	asking *asking
	// before is what the caller has seen in the answer that it names by since_seq, nil if nothing is known of it, and now what it sees in
	// this one. unchanged are the entries of pending that it has seen as they are, but for again, which next speaks of.
	before    *seenState
	now       seenState
	unchanged map[*view.Pending]digest
	again     *view.Pending
}

// view looks whether the definition of a run that has not ended is known.
func (s *server) view(ctx context.Context, a *arguments, run *view.Run) runView {
	t := runView{Run: run, asking: a.asking}
	switch {
	case run.Status.Terminal():
	case len(run.Pending) > 0:
		for i := range run.Pending {
			p := &run.Pending[i]
			t.lost = t.lost || isUnbound(p) && (p.ExecutionID == run.ExecutionID || p.ExecutionID == "")
		}
	case run.DefinitionHash == "":
		t.lost = true
	case s.opts.Definitions != nil:
		_, err := s.opts.Definitions.Definition(ctx, run.DefinitionHash)
		t.lost = errors.Is(err, problem.DefinitionNotFound)
	}
	return t
}

// isUnbound reports whether an entry is of a run whose definition is not known: only an engine that knows it can name its waits.
func isUnbound(p *view.Pending) bool { return p.ID == "" }

// shown are the entries of pending that the answer has.
func (t runView) shown() []*view.Pending {
	list := make([]*view.Pending, 0, len(t.Pending))
	for i := range t.Pending {
		if p := &t.Pending[i]; t.node == "" || p.NodeID == t.node {
			list = append(list, p)
		}
	}
	return list
}

// awaits reports whether the run waits at a node.
func (t runView) awaits(node string) bool {
	t.node = node
	return len(t.shown()) > 0
}
