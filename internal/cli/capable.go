package cli

import (
	"context"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
)

// checkCapable refuses to drive a stored in-process run whose definition has nodes that nothing here can perform. The
// engine would record the refusal as the node's failure and end the run, only because somebody forgot a flag.
func (s *session) checkCapable(ctx context.Context, id string, caller graph.Caller) error {
	execution, err := s.store.Execution(ctx, id)
	if err != nil {
		return err
	}
	mode := caller.Mode
	if mode == "" {
		mode = machine.Mode(execution.Mode)
	}
	if execution.Phase.Terminal() || mode == machine.HostMediated {
		return nil
	}
	document := caller.Definition
	if document == nil {
		if document, err = s.storedDefinition(ctx, execution.DefinitionHash); err != nil {
			return err
		}
	}
	missing := s.missing(document)
	if len(missing) == 0 {
		return nil
	}
	return usage("run %s has %s nodes, which nothing configured here can perform", id, strings.Join(missing, " and ")).
		WithHint("Repeat the flags and variables that it was begun with, for instance --profile demo, " +
			"or hand those nodes to a host with --mode host_mediated.")
}

func (s *session) storedDefinition(ctx context.Context, hash string) (*definition.Document, error) {
	stored, err := s.store.Definition(ctx, hash)
	if err != nil {
		return nil, err
	}
	return definition.Parse(stored.Text)
}

// missing lists the node types and delegate protocols of a document that nothing is configured for.
func (s *session) missing(document *definition.Document) []string {
	program, _ := definition.Compile(document, definition.Options{})
	if program == nil {
		return nil // the engine says why
	}
	var missing []string
	seen := map[string]bool{}
	for _, n := range program.Nodes {
		route := ""
		switch {
		case n.Type.IsActivity():
			route = string(n.Type)
		case n.Delegate != nil:
			route = n.Delegate.Protocol
		}
		if route == "" || seen[route] || s.executors.Performs(route) {
			continue
		}
		seen[route] = true
		missing = append(missing, route)
	}
	return missing
}
