package cli

import (
	"context"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// nodeFacts are the facts about a node that only its definition has.
type nodeFacts struct {
	nodeType string
	// by names the executor of an activity: the model, server/tool, or the handler.
	by string
}

// storedDefinition reads a definition by its hash.
func storedDefinition(ctx context.Context, store history.Store, hash string) (*definition.Document, error) {
	stored, err := store.Definition(ctx, hash)
	if err != nil {
		return nil, err
	}
	return definition.Parse(stored.Text)
}

// compileStored compiles the definition of a run, with the extensions that a Runner of another program may have accepted.
func compileStored(document *definition.Document) (*definition.Program, []problem.Finding) {
	return definition.Compile(document, definition.Options{AllowInterruptInBranch: true, Stored: true})
}

// nodesOf returns the facts about the nodes of a stored definition, by node id. It is nil for a definition that is not stored:
// display works without them.
func nodesOf(ctx context.Context, store history.Store, hash string) map[string]nodeFacts {
	document, err := storedDefinition(ctx, store, hash)
	if err != nil {
		return nil
	}
	all := map[string]nodeFacts{}
	root, _ := document.Value().(map[string]any)
	nodes, _ := root["nodes"].([]any)
	for _, e := range nodes {
		node, _ := e.(map[string]any)
		config, _ := node["config"].(map[string]any)
		id, _ := node["id"].(string)
		var facts nodeFacts
		facts.nodeType, _ = node["type"].(string)
		if label := definition.Type(facts.nodeType).Info().Performer.Label; label != nil {
			facts.by = label(config)
		}
		all[id] = facts
	}
	return all
}
