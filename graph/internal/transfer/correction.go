package transfer

import (
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// corrected adds to a past the state with which the new run continues. It is recorded whole, so that no replay has to apply the
// patch again.
func (f *ForkedPast) corrected(past []history.Record) ([]history.Record, error) {
	at := problem.Place{ExecutionID: f.From, NodeID: f.BeforeNode}
	newest := -1
	for i := range past {
		if past[i].Name == history.StateUpdated {
			newest = i
		}
	}
	switch {
	case newest < 0:
		return nil, problem.New(problem.ValidationError, "before node %q the state is the input of the run", f.BeforeNode).WithPlace(at).
			WithHint("Start a new run with the input that you want.")
	case inBlock(past):
		return nil, problem.New(problem.ValidationError, "node %q is in a parallel branch, where there are several states", f.BeforeNode).WithPlace(at).
			WithHint("Fork before the parallel node to correct the state.")
	}
	state := jsonvalue.MergePatch(past[newest].Payload.State, f.Correction)
	if size, before := jsonvalue.Size(state, 0), jsonvalue.Size(past[newest].Payload.State, 0); size > f.MaxStateBytes && size > before {
		return nil, problem.New(problem.ValidationError, "the corrected state would take %d bytes, more than %d", size, f.MaxStateBytes).WithPlace(at).
			WithHint("Nothing was written. Correct less, or put a reference in the place of what is large.")
	}
	if violations := f.Program.State.Validate(state); len(violations) > 0 {
		return nil, problem.New(problem.ValidationError, "the corrected state would break state_schema: %s", problem.Excerpt(jsonschema.Text(violations), problem.MaxText)).
			WithPlace(at).WithHint("Nothing was written. Correct the values and send them again.")
	}
	return append(slices.Clip(past), history.Record{
		Seq: int64(len(past)) + 1, Kind: history.Event, Name: history.StateUpdated, CreatedAt: f.Now,
		Payload: history.Payload{State: state, Correction: true, Actor: f.Actor},
	}), nil
}

// inBlock reports whether a parallel block is open at the end of a past: one that was neither joined, nor left by a failure that a node
// around it caught, nor cancelled with its branch.
func inBlock(past []history.Record) bool {
	var open []string
	for i := range past {
		p := &past[i].Payload
		switch past[i].Name {
		case history.StartParallel:
			open = append(open, p.NodeID)
		case history.JoinParallel:
			open = until(open, p.NodeID)
		case history.FailNode:
			open = until(open, p.CaughtBy)
		case history.CancelParallelBranch:
			if rest := until(open, p.NodeID); len(rest) < len(open) {
				open = append(rest, p.NodeID)
			}
		}
	}
	return len(open) > 0
}

// until returns the blocks around a node, all if it is none of them.
func until(open []string, node string) []string {
	if i := slices.Index(open, node); i >= 0 {
		return open[:i]
	}
	return open
}
