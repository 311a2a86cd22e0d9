package cli

import (
	"context"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/history"
)

// nodeTypes knows the node types of stored runs, which records do not hold for every node.
type nodeTypes struct {
	store history.Store
}

// nodeFacts are what a definition says of a node that its records do not.
type nodeFacts struct {
	nodeType string
	// by names what performs an activity: the model, server/tool, or the handler.
	by string
}

// of returns a run's nesting depth and its node types by node id. Display goes on without what cannot be learnt, for
// instance of a run whose definition is not stored.
func (n nodeTypes) of(executionID string) (depth int, types map[string]string) {
	execution, document := n.read(context.Background(), executionID)
	if document == nil {
		return execution.Depth, nil
	}
	types = map[string]string{}
	for id, facts := range factsOf(document) {
		types[id] = facts.nodeType
	}
	return execution.Depth, types
}

// facts returns what the definition of a run says of its nodes, by node id, nil if it is not stored.
func (n nodeTypes) facts(ctx context.Context, executionID string) map[string]nodeFacts {
	_, document := n.read(ctx, executionID)
	if document == nil {
		return nil
	}
	return factsOf(document)
}

func (n nodeTypes) read(ctx context.Context, executionID string) (history.Execution, *definition.Document) {
	execution, err := n.store.Execution(ctx, executionID)
	if err != nil {
		return history.Execution{}, nil
	}
	stored, err := n.store.Definition(ctx, execution.DefinitionHash)
	if err != nil {
		return execution, nil
	}
	document, err := definition.Parse(stored.Text)
	if err != nil {
		return execution, nil
	}
	return execution, document
}

// factsOf reads the nodes of a document.
func factsOf(document *definition.Document) map[string]nodeFacts {
	all := map[string]nodeFacts{}
	root, _ := document.Value().(map[string]any)
	nodes, _ := root["nodes"].([]any)
	for _, e := range nodes {
		node, _ := e.(map[string]any)
		config, _ := node["config"].(map[string]any)
		member := func(name string) string {
			text, _ := config[name].(string)
			return strings.TrimSpace(text)
		}
		id, _ := node["id"].(string)
		var facts nodeFacts
		facts.nodeType, _ = node["type"].(string)
		switch facts.nodeType {
		case "llm_call":
			facts.by = member("model")
		case "tool_call":
			facts.by = member("server") + "/" + member("tool")
		case "step":
			facts.by = member("handler")
		case "agent_delegate":
			facts.by = member("agent_id")
		}
		all[id] = facts
	}
	return all
}
