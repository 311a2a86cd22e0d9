package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/internal/config"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// explainDefinition adds the flags that continue a run without a stored definition.
func explainDefinition(err error) error {
	e, ok := problem.As(err)
	if !ok || e.Code != problem.DefinitionNotFound || e.Err != nil {
		return err
	}
	named := *e
	return named.WithHint("Name its file with --definition FILE.")
}

// explainMissing adds to a rejected start how to start the run. or is another way; first, if not nil, returns a command to inspect the
// problem.
func explainMissing(err error, or string, first func() string) error {
	e, ok := problem.As(err)
	if !ok || e.Code != problem.ExecutorNotConfigured {
		return err
	}
	look := ""
	if first != nil {
		look = first()
	}
	return e.WithHint("Nothing was started. %sConfigure the executors, or use stub outputs with --profile demo, or start anyway with --allow-missing%s.", look, or)
}

// misspeltAgent returns the configured agent nearest to the first unknown one of a definition, "" if all differ much.
func (s *session) misspeltAgent(ctx context.Context, document *definition.Document) (text string) {
	names := s.config.AgentNames()
	s.eachNode(ctx, document, map[string]bool{}, func(n *definition.Node) {
		if text != "" || n.Delegate == nil || n.Delegate.Protocol != "sdk" || slices.Contains(names, n.Delegate.AgentID) {
			return
		}
		if near := suggest.DidYouMean(n.Delegate.AgentID, names); near != "" {
			text = fmt.Sprintf("Agent %q: %s ", n.Delegate.AgentID, near)
		}
	})
	return text
}

// missing lists the node types and delegate protocols of a definition, and of its subworkflows as far as they can be
// found, that nothing is configured for.
func (s *session) missing(ctx context.Context, document *definition.Document) []string {
	var missing []string
	s.eachNode(ctx, document, map[string]bool{}, func(n *definition.Node) {
		route := ""
		switch {
		case n.Type.IsActivity():
			route = string(n.Type)
		case n.Delegate != nil:
			route = n.Delegate.Protocol
		}
		if route != "" && !slices.Contains(missing, route) && !s.executors.Performs(route) {
			missing = append(missing, route)
		}
	})
	return missing
}

// eachNode calls do with every node of a definition and of its subworkflows. Definitions that cannot be found or
// compiled are left out: the engine reports their mistakes.
func (s *session) eachNode(ctx context.Context, document *definition.Document, seen map[string]bool, do func(*definition.Node)) {
	if seen[document.Hash()] {
		return
	}
	seen[document.Hash()] = true
	program, _ := compileStored(document)
	if program == nil {
		return
	}
	for _, n := range program.Nodes {
		do(n)
		if n.Subworkflow == nil {
			continue
		}
		if child := s.subworkflow(ctx, n.Subworkflow); child != nil {
			s.eachNode(ctx, child, seen, do)
		}
	}
}

// subworkflow finds the definition that a node names: pinned, in the folder, or stored under the name. nil if nowhere.
func (s *session) subworkflow(ctx context.Context, c *definition.SubworkflowConfig) *definition.Document {
	if s.workflows != nil {
		if document, err := s.workflows.ResolveWorkflow(ctx, c.WorkflowRef, c.VersionPin); err == nil {
			return document
		}
	}
	if document, err := storedDefinition(ctx, s.store, c.VersionPin); err == nil {
		return document
	}
	stored, err := s.store.DefinitionByName(ctx, c.WorkflowRef[strings.LastIndex(c.WorkflowRef, ":")+1:], "")
	if err != nil {
		return nil
	}
	document, _ := definition.Parse(stored.Text)
	return document
}

// addRequiredFlags adds to printed commands the flags that continuing the run requires. Executors are the choice of the user: a command
// without --profile demo never prints it, or stub outcomes would be recorded as real ones.
func (s *session) addRequiredFlags(ctx context.Context, run *view.Run) error {
	if run.Status.Terminal() {
		return nil
	}
	add := func(flag, value string) {
		if !slices.Contains(s.repeat, "--"+flag) {
			s.repeat = append(s.repeat, "--"+flag, value)
		}
	}
	document, err := storedDefinition(ctx, s.store, run.DefinitionHash)
	if errors.Is(err, problem.DefinitionNotFound) {
		add(flagDefinition, "FILE")
		return nil
	}
	if err != nil {
		return err
	}
	unresolved := false
	s.eachNode(ctx, document, map[string]bool{}, func(n *definition.Node) {
		unresolved = unresolved || n.Subworkflow != nil && s.subworkflow(ctx, n.Subworkflow) == nil
	})
	if unresolved {
		add(config.FlagWorkflowDir, "DIR")
	}
	return nil
}
