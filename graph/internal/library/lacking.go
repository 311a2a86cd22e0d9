package library

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
)

const (
	// maxLacking bounds how many missing things an error or warning names.
	maxLacking = 20
	// maxRequired bounds how many definitions are looked at for one run.
	maxRequired = 256
)

// Capabilities says what a process can perform.
type Capabilities interface {
	// Missing names what the process lacks to perform a node, and the setting that provides it; "" if it lacks nothing.
	Missing(n *definition.Node) (missing, setting string)
}

// MissingExecutor returns what a process lacks to perform a node of a run, nil if it lacks nothing.
func MissingExecutor(c Capabilities, executionID string, n *definition.Node) *view.Lack {
	if n == nil {
		return nil
	}
	missing, setting := c.Missing(n)
	if missing == "" {
		return nil
	}
	return &view.Lack{ExecutionID: executionID, NodeID: n.ID, Missing: missing, Setting: setting}
}

// MissingExecutorAfter returns what a process lacks to perform the nodes of a run that can follow some others, the nearest first.
func MissingExecutorAfter(c Capabilities, executionID string, prog *definition.Program, nodes []*definition.Node) *view.Lack {
	for n := range prog.After(nodes) {
		if l := MissingExecutor(c, executionID, n); l != nil {
			l.Host = true
			return l
		}
	}
	return nil
}

// lacking collects what a process lacks to perform a run in process.
type lacking struct {
	library      *Library
	capabilities Capabilities
	seen         map[string]bool
	named        map[string]bool
	findings     problem.Findings
}

// Lacking is require for a run that requires it, and otherwise the warning that this process lacks executors for nodes of a
// definition, nil if it lacks none. What a host performs is not looked at.
func (l *Library) Lacking(ctx context.Context, prog *definition.Program, c Capabilities, mode machine.Mode, required bool) (*view.Warning, error) {
	switch {
	case mode == machine.HostMediated:
		return nil, nil
	case required:
		return nil, l.require(ctx, prog, prog.Nodes, c)
	}
	w := lacking{capabilities: c, named: map[string]bool{}}
	if w.nodes(prog.Nodes, ""); len(w.findings) == 0 {
		return nil, nil
	}
	return &view.Warning{
		Code: problem.ExecutorNotConfigured, Message: "this process lacks: " + w.text(),
		Hint: "A run that was started here fails at such a node.",
	}, nil
}

// LackingAhead refuses a run in process that requires it, where it stands, if this process lacks something for what can come. What
// lies behind it may be missing.
func (l *Library) LackingAhead(ctx context.Context, m *machine.Machine, c Capabilities, required bool) error {
	if !required || m.Config().Mode == machine.HostMediated {
		return nil
	}
	prog := m.Program()
	var now []*definition.Node
	for _, w := range m.Pending() {
		now = append(now, prog.Node(w.NodeID))
		if w.Span != nil { // other branches may not have begun
			now = append(now, prog.Node(w.Span.ParallelNodeID))
		}
	}
	return l.require(ctx, prog, slices.AppendSeq(now, prog.After(now)), c)
}

// LackingFor says in one line what this process lacks to perform definitions in process, "" if nothing.
func (l *Library) LackingFor(ctx context.Context, definitions []*definition.Document, c Capabilities) string {
	w := lacking{library: l, capabilities: c, seen: map[string]bool{}, named: map[string]bool{}}
	for _, d := range definitions {
		if prog, err := l.Admit(d); err == nil {
			w.walk(ctx, prog, prog.Nodes, fmt.Sprintf(" of workflow %q", prog.Name))
		}
	}
	return w.text()
}

// require refuses nodes of a definition that this process cannot perform in process, those of their subworkflows included, with
// one error that lists what is missing. A subworkflow that cannot be looked up at the moment is passed over.
func (l *Library) require(ctx context.Context, prog *definition.Program, nodes []*definition.Node, c Capabilities) error {
	w := lacking{library: l, capabilities: c, seen: map[string]bool{}, named: map[string]bool{}}
	w.walk(ctx, prog, nodes, "")
	if len(w.findings) == 0 {
		return nil
	}
	e := problem.New(problem.ExecutorNotConfigured, "this process lacks: %s", w.text()).
		WithHint("Nothing was started. Configure what is missing, start the run where it is, or run it in mode %q.", "host_mediated")
	e.Findings = w.findings[:min(len(w.findings), maxLacking)]
	return e
}

// walk looks at nodes of a definition and at the subworkflows that they name.
func (w *lacking) walk(ctx context.Context, prog *definition.Program, nodes []*definition.Node, of string) {
	if w.seen[prog.Hash] || len(w.seen) == maxRequired {
		return
	}
	w.seen[prog.Hash] = true
	w.nodes(nodes, of)
	for _, n := range nodes {
		if n.Subworkflow == nil {
			continue
		}
		ref := n.Subworkflow.WorkflowRef
		child, err := w.library.Resolve(ctx, WorkflowName{Ref: ref, Pin: n.Subworkflow.VersionPin})
		switch {
		case err == nil:
			w.walk(ctx, child, child.Nodes, fmt.Sprintf(" of subworkflow %q", ref))
		case errors.Is(err, problem.WorkflowNotFound), errors.Is(err, problem.VersionPinMismatch):
			w.add(n, of, fmt.Sprintf("the subworkflow %q", ref), err.Error())
		}
	}
}

// nodes looks at nodes of a definition. of is what messages say of the definition, "" for that of the run.
func (w *lacking) nodes(nodes []*definition.Node, of string) {
	for _, n := range nodes {
		if missing, setting := w.capabilities.Missing(n); missing != "" {
			if setting != "" {
				setting = "set " + setting
			}
			w.add(n, of, missing, setting)
		}
	}
}

// add notes what is missing for a node. What several nodes lack is noted once.
func (w *lacking) add(n *definition.Node, of, missing, remedy string) {
	if w.named[missing] {
		return
	}
	w.named[missing] = true
	message := fmt.Sprintf("%s (node %q%s)", missing, n.ID, of)
	if remedy != "" {
		message += ": " + remedy
	}
	w.findings = append(w.findings, problem.Finding{
		Code: problem.ExecutorNotConfigured, Severity: problem.SeverityError, At: problem.Place{NodeID: n.ID}, Message: message,
	})
}

// text lists what is missing.
func (w *lacking) text() string {
	var names []string
	for _, f := range w.findings[:min(len(w.findings), maxLacking)] {
		names = append(names, f.Message)
	}
	if more := len(w.findings) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, "; ")
}
