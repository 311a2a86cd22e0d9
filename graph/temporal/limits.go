package temporal

import (
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// limited returns the limits of the task queues of a worker, by the need that each serves. A limit is kept by one task queue or not at all.
func (o *Options) limited(needs []string) (map[string]graph.Limit, error) {
	limited := map[string]graph.Limit{}
	for _, l := range o.Limits {
		if len(o.Queues) > 1 {
			return nil, notLimited(l.Class).WithHint("Start a worker for each queue, with its own limits.")
		}
		need := strings.Replace(l.Class, "mcp:", "tool_call:", 1)
		if id, ok := strings.CutPrefix(l.Class, "agent:"); ok {
			need = ""
			for _, lane := range o.Lanes {
				if kind, name, _ := strings.Cut(lane, ":"); name == id && !slices.Contains([]string{"step", "llm_call", "tool_call"}, kind) {
					need = lane
				}
			}
		}
		kind, _, own := strings.Cut(need, ":")
		switch {
		case own && !slices.Contains(o.Lanes, need), need == "":
			return nil, notLimited(l.Class).WithHint("Make it a lane, with its own task queue, in all processes of the runs.")
		case !own && slices.ContainsFunc(o.Lanes, func(lane string) bool { return strings.HasPrefix(lane, kind+":") }):
			return nil, notLimited(l.Class).WithHint("Some of its executors are lanes with their own task queues: limit each of them.")
		case !slices.Contains(needs, need):
			return nil, notLimited(l.Class).WithHint("This worker performs %s.", problem.OrList(needs))
		}
		limited[need] = l
	}
	return limited, nil
}

func notLimited(class string) *problem.Error {
	return problem.New(problem.Unsupported, "a worker on Temporal cannot keep the limit of %s: only task queues have limits", class)
}
