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
	// maxRequired bounds the definitions checked for one run.
	maxRequired = 256
)

// Capabilities reports which nodes a process can perform.
type Capabilities interface {
	// Missing names the executor that a node needs and the process does not have, and the setting that provides it; "" if
	// nothing is missing. partial is true if the process performs other nodes of the type.
	Missing(n *definition.Node) (missing, setting string, partial bool)
}

// MissingExecutor returns the missing executor of a node, nil if nothing is missing.
func MissingExecutor(c Capabilities, executionID string, n *definition.Node) *view.Lack {
	if n == nil {
		return nil
	}
	missing, setting, partial := c.Missing(n)
	if missing == "" {
		return nil
	}
	return &view.Lack{ExecutionID: executionID, NodeID: n.ID, Missing: missing, Setting: setting, Partial: partial}
}

// MissingExecutorAfter returns the missing executor of the nearest node that can follow some nodes of a run, nil if
// nothing is missing.
func MissingExecutorAfter(c Capabilities, executionID string, prog *definition.Program, nodes []*definition.Node) *view.Lack {
	for n := range prog.After(nodes) {
		if l := MissingExecutor(c, executionID, n); l != nil {
			l.Host = true
			return l
		}
	}
	return nil
}

// lacking collects the executors and subworkflows that a process needs for a run and does not have.
type lacking struct {
	library      *Library
	capabilities Capabilities
	seen         map[string]bool
	named        map[string]bool
	findings     problem.Findings
}

// Lacking rejects a definition whose nodes this process cannot perform, if required; otherwise it returns a warning,
// nil if nothing is missing. Activities of a host are not checked.
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

// LackingAhead rejects a run in process, if required, when this process cannot perform a node that can still be
// reached.
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

// LackingFor lists, in one line, the missing executors and subworkflows of definitions; "" if nothing is missing.
func (l *Library) LackingFor(ctx context.Context, definitions []*definition.Document, c Capabilities) string {
	w := lacking{library: l, capabilities: c, seen: map[string]bool{}, named: map[string]bool{}}
	for _, d := range definitions {
		if prog, err := l.Admit(d); err == nil {
			w.walk(ctx, prog, prog.Nodes, fmt.Sprintf(" of workflow %q", prog.Name))
		}
	}
	return w.text()
}

// require returns one error that lists everything missing for nodes and their subworkflows. A subworkflow that cannot
// be resolved at the moment is ignored.
func (l *Library) require(ctx context.Context, prog *definition.Program, nodes []*definition.Node, c Capabilities) error {
	w := lacking{library: l, capabilities: c, seen: map[string]bool{}, named: map[string]bool{}}
	w.walk(ctx, prog, nodes, "")
	if len(w.findings) == 0 {
		return nil
	}
	e := problem.New(problem.ExecutorNotConfigured, "this process lacks: %s", w.text()).
		WithHint("Nothing was started. Configure the missing parts, start the run in a process that has them, or use mode %q.", "host_mediated")
	e.Findings = w.findings[:min(len(w.findings), maxLacking)]
	return e
}

// walk checks nodes of a definition and their subworkflows.
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

// nodes checks nodes of a definition. of names the definition in messages, "" for that of the run.
func (w *lacking) nodes(nodes []*definition.Node, of string) {
	for _, n := range nodes {
		if missing, setting, partial := w.capabilities.Missing(n); missing != "" {
			switch {
			case setting != "" && partial:
				setting = "add it to " + setting
			case setting != "":
				setting = "set " + setting
			}
			w.add(n, of, missing, setting)
		}
	}
}

// add notes a missing executor or subworkflow once, with the first node that needs it.
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

// text lists the findings in one line.
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
