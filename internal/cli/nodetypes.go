package cli

import (
	"context"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/history"
)

// nodeTypes knows the node types of stored runs, which records do not hold for every node.
type nodeTypes struct {
	store history.Store
}

// of gives a run's nesting depth and its node types by node id. Display goes on without what cannot be learnt, for
// instance of a run whose definition is not stored.
func (n nodeTypes) of(executionID string) (depth int, types map[string]string) {
	ctx := context.Background()
	execution, err := n.store.Execution(ctx, executionID)
	if err != nil {
		return 0, nil
	}
	stored, err := n.store.Definition(ctx, execution.DefinitionHash)
	if err != nil {
		return execution.Depth, nil
	}
	document, err := definition.Parse(stored.Text)
	if err != nil {
		return execution.Depth, nil
	}
	return execution.Depth, typesOf(document)
}

// typesOf reads the node types of a document.
func typesOf(document *definition.Document) map[string]string {
	types := map[string]string{}
	root, _ := document.Value().(map[string]any)
	nodes, _ := root["nodes"].([]any)
	for _, e := range nodes {
		node, _ := e.(map[string]any)
		id, _ := node["id"].(string)
		types[id], _ = node["type"].(string)
	}
	return types
}
