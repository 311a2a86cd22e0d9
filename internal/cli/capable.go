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

// explainDefinition says with which flags a run is continued whose definition is not stored.
func explainDefinition(err error) error {
	e, ok := problem.As(err)
	if !ok || e.Code != problem.DefinitionNotFound || e.Err != nil {
		return err
	}
	named := *e
	return named.WithHint("Name its file with --definition FILE.")
}

// explainMissing says how a run begins that was refused because something is missing here. or is another way, first says what to look at
// before; nil is nothing.
func explainMissing(err error, or string, first func() string) error {
	e, ok := problem.As(err)
	if !ok || e.Code != problem.ExecutorNotConfigured {
		return err
	}
	look := ""
	if first != nil {
		look = first()
	}
	return e.WithHint("Nothing was started. %sConfigure what is missing, or pretend it with --profile demo, or begin all the same with --allow-missing%s.", look, or)
}

// misspeltAgent says of the first delegation to an agent that is not configured here which one it probably means, "" if none is near.
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
// compiled are left out: the engine says what is wrong with them.
func (s *session) eachNode(ctx context.Context, document *definition.Document, seen map[string]bool, do func(*definition.Node)) {
	if seen[document.Hash()] {
		return
	}
	seen[document.Hash()] = true
	program, _ := definition.Compile(document, definition.Options{})
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

// addRequiredFlags adds to what commands repeat the flags without which no command could continue the run. Which executors there are is for the
// user to say: a command that was called without --profile demo names none that has it, or pretended outcomes would be recorded as real ones.
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
