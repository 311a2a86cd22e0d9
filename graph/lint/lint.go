// Package lint finds what will not work in a definition that is valid: programs that read members which no schema declares,
// comparisons that always come out the same, values that break the schema of where they are written, misspelt keywords.
//
//	prog, findings := lint.Compile(doc, lint.Options{})
//
// All it finds are warnings, beside those of definition.Compile. Where it is not sure, it is silent: an executor, a host or
// the input of a run may bring members that no schema speaks of.
package lint

import (
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Options are those of definition.Compile, and where subworkflows are found. The zero value knows of none.
type Options struct {
	definition.Options
	// Subworkflow returns the definition behind a workflow_ref, which may be pinned by its hash; nil if it is not at hand.
	Subworkflow func(ref, pin string) *definition.Document
	// Agents are the names of the agents that run inside the engine (protocol sdk), sorted; nil if they are not known.
	Agents []string
}

// Compile is definition.Compile with the findings of this package, which only a document without errors has. What o.Visit is
// given is not changed.
func Compile(d *definition.Document, o Options) (*definition.Program, problem.Findings) {
	var sources []definition.Source
	visit := o.Visit
	o.Visit = func(s definition.Source) {
		sources = append(sources, s)
		if visit != nil {
			visit(s)
		}
	}
	program, findings := definition.Compile(d, o.Options)
	if program == nil {
		return nil, findings
	}
	l := &linter{
		program: program, sources: sources, budget: maxWork, compared: maxCompared, room: definition.MaxFindings - len(findings),
		subworkflow: o.Subworkflow, known: o.Agents, children: map[string]*child{}, given: map[*definition.Node][]given{},
	}
	l.check()
	if len(l.findings) == 0 {
		return program, findings
	}
	findings = append(slices.Clip(findings), l.findings...)
	findings.Sort()
	return program, findings
}

// linter is what one lint knows.
type linter struct {
	program *definition.Program
	sources []definition.Source
	// budget is how much may still be looked at, compared how many names, and room how many findings there may still be.
	budget, compared budget
	room             int
	findings         problem.Findings
	said             map[said]bool

	state *stateShapes
	// mentioned are the words of all programs.
	mentioned words
	// children are the subworkflows that have been looked for, by reference and pin; given are the programs of their inputs.
	subworkflow func(ref, pin string) *definition.Document
	children    map[string]*child
	given       map[*definition.Node][]given
	// known are the agents inside the engine, nil if that is not known.
	known []string
}

// said is a finding that is given once, however often a program makes the mistake.
type said struct{ pointer, message string }

func (l *linter) check() {
	l.said = map[said]bool{}
	l.schemas()
	l.mentioned = wordsOf(l.sources)
	l.state = l.newStateShapes()
	for _, s := range l.sources {
		l.source(s)
	}
	l.answers()
	l.inputs()
	l.assignedKeys()
	l.unusedKeys()
	l.caughtCodes()
	l.agents()
}

// warn adds a finding at a place of the document.
func (l *linter) warn(code problem.Code, pointer string, n *definition.Node, message, hint string) {
	key := said{pointer, message}
	if l.room <= 0 || l.said[key] {
		return
	}
	l.said[key] = true
	l.room--
	at := l.program.Document.Place(pointer)
	if n != nil {
		at.NodeID = n.ID
	}
	l.findings = append(l.findings, problem.Finding{
		Code: code, Severity: problem.SeverityWarning, At: at, Message: message, Hint: hint,
		Keyword: "profile", SchemaPath: "#/profile/lint", Params: map[string]any{"code": string(code)},
	})
}

// walker returns what looks at a program at a place.
func (l *linter) walker(pointer string, n *definition.Node) *walker {
	report := func(code problem.Code, message, hint string) { l.warn(code, pointer, n, message, hint) }
	return &walker{budget: &l.budget, compared: &l.compared, report: report}
}

// source looks at a program, and at where its output goes.
func (l *linter) source(s definition.Source) {
	w := l.walker(s.Pointer, s.Node)
	out := w.query(s.Query, l.state.at(s.Node))
	l.mapped(s, out)
	switch role := l.role(s); {
	case role == "items":
		l.state.item(s.Node, w.itemsOf(out))
		if !out.unsure && out.kinds&array == 0 && out.kinds != nothing {
			l.warn(problem.MapItemsInvalid, s.Pointer, s.Node, "the items of a map must be an array, not "+out.kinds.String(),
				"write a program that gives a list")
		}
	case role == "output_mapping":
		if schema := s.Node.Config["output_schema"]; schema != nil && s.Node.End != nil {
			l.fits(problem.OutputSchemaViolation, s, "the result", "output_schema", out, schemaShape(schema))
		}
	case s.Node.SetState != nil && role != "":
		l.assigned(s, role, out)
	}
}

// role says what the output of a program is for: "items" of a map, "output_mapping", or the key of the state that a set_state node
// assigns it to; "" for anything else.
func (l *linter) role(s definition.Source) string {
	pointer := nodePointer(s.Node)
	switch s.Pointer {
	case pointer + "/map/items":
		return "items"
	case pointer + "/config/output_mapping":
		return "output_mapping"
	}
	return keyOfAssignment(pointer, s.Pointer)
}
