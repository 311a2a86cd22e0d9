package toolcall

import (
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// TemplatesKey is the field of a node's metadata that, if true, makes templates in the node's arguments be evaluated.
const TemplatesKey = definition.ArgumentTemplates

// arguments returns the arguments of a call: those in the definition, {} without any (spec: activities, 6.2). Only if the node's
// metadata asks for it are they filled in.
func arguments(req activities.Request) (map[string]any, error) {
	node := definition.Templates{ID: req.NodeID, Type: req.NodeType, Config: req.Config, Metadata: req.Metadata}
	filled, err := node.Values(req.State, expr.Env{Now: req.Time(time.Now)})
	if err != nil {
		return nil, activities.Pointless(err)
	}
	raw, given := definition.OverlayConfig(req.Config, filled)["arguments"]
	if !given {
		return map[string]any{}, nil
	}
	object, ok := raw.(map[string]any)
	if !ok {
		return nil, activities.Fail(problem.InvalidToolCallConfig, "the arguments of %q are not an object", req.NodeID)
	}
	return object, nil
}
