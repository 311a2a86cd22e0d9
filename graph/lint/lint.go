// Package lint finds faults in valid definitions: programs that read fields that no schema declares, comparisons with a constant result,
// values that break the schema of the place they are written to, misspelt keywords, templates that nothing fills in, misplaced fields.
//
//	prog, findings := lint.Compile(doc, lint.Options{})
//
// Its findings are warnings, beside those of definition.Compile. In doubt it is silent: an executor, a host or the input of a run may add
// fields that no schema declares. It runs where an author asks; a stored definition is compiled without it.
package lint

import (
	"fmt"
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// Options are those of definition.Compile, and where subworkflows are found. The zero value finds no subworkflow.
type Options struct {
	definition.Options
	// Subworkflow returns the definition behind a workflow_ref, which may be pinned by its hash; nil if it is not at hand.
	Subworkflow func(ref, pin string) *definition.Document
	// Agents are the names of the agents that run inside the engine (protocol sdk), sorted; nil if they are not known.
	Agents []string
	// Skills are the skills of each of these agents that has some.
	Skills map[string][]string
}

// Compile is definition.Compile with the findings of Check. Of a document with errors it checks the parts that have no errors, each by
// itself.
func Compile(d *definition.Document, o Options) (*definition.Program, problem.Findings) {
	draft, findings := definition.Draft(d, o.Options)
	if !findings.HasErrors() {
		return draft, Check(draft, o)
	}
	l := newLinter(draft, nil)
	l.checkParts()
	return nil, l.all()
}

// Check returns the warnings of Compile about a program, and those of this package. Options.Options are ignored.
func Check(p *definition.Program, o Options) problem.Findings {
	l := newLinter(p, o.Subworkflow)
	l.known, l.skills = o.Agents, o.Skills
	l.check()
	return l.all()
}

func newLinter(p *definition.Program, subworkflow func(ref, pin string) *definition.Document) *linter {
	return &linter{
		program: p, sources: slices.Clip(p.Sources), budget: maxWork, compared: maxCompared, room: definition.MaxFindings - len(p.Warnings),
		said: map[said]bool{}, subworkflow: subworkflow, children: map[string]*child{}, given: map[*definition.Node][]given{},
	}
}

// all returns the findings, those of definition.Compile included, sorted.
func (l *linter) all() problem.Findings {
	findings := slices.Concat(l.program.Warnings, l.findings)
	findings.Sort()
	return findings
}

// linter holds the state of one lint.
type linter struct {
	program *definition.Program
	// sources are the jq programs of the definition, those in prompts, arguments and mappings included.
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
	// skills are those of each of them that has some.
	skills map[string][]string
}

// said is a finding that is given once, however often a program makes the mistake.
type said struct{ pointer, message string }

func (l *linter) check() {
	l.checkParts()
	l.schemas()
	l.mentioned = wordsOf(l.sources)
	l.state = l.newStateShapes()
	for _, s := range l.sources {
		l.source(s)
	}
	l.answers()
	l.blindQuestions()
	l.inputs()
	l.leaks()
	l.branches()
	l.assignedKeys()
	l.unusedKeys()
	l.caughtCodes()
	l.agents()
}

// checkParts makes the checks that ask for single parts of a definition and not for the state as a whole.
func (l *linter) checkParts() {
	l.templates()
	l.programs()
	l.misplaced()
	l.retries()
	l.literals()
	l.overwrites()
}

// stateSchema returns the state_schema, nil if the document has no valid one.
func (l *linter) stateSchema() map[string]any {
	root, _ := l.program.Document.Value().(map[string]any)
	schema, _ := root["state_schema"].(map[string]any)
	return schema
}

// document returns a node as it is written.
func (l *linter) document(n *definition.Node) map[string]any {
	nodes, _ := l.program.Document.Value().(map[string]any)["nodes"].([]any)
	written, _ := nodes[n.Index].(map[string]any)
	return written
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

// walker returns the walker for a program at a place.
func (l *linter) walker(pointer string, n *definition.Node) *walker {
	report := func(code problem.Code, message, hint string) { l.warn(code, pointer, n, message, hint) }
	return &walker{budget: &l.budget, compared: &l.compared, report: report}
}

// source checks a program, and at where its output goes.
func (l *linter) source(s definition.Source) {
	w := l.walker(s.Pointer, s.Node)
	in, hint := l.state.at(s.Node), "write a program that gives a list"
	if isItems(s) {
		if near := l.list(s.Node); near != "" {
			in = in.having(s.Node.Map.As, only(null))
			hint = fmt.Sprintf("%s is a single item, while the node works on it; did you mean %q?", s.Node.Map.As, near)
		}
	}
	out := w.query(s.Program.Tree(), in)
	l.mapped(s, out)
	key := assignedKey(s)
	switch {
	case isItems(s):
		l.state.item(s.Node, w.itemsOf(out))
		if !out.unsure && out.kinds&array == 0 && out.kinds != nothing {
			l.warn(problem.MapItemsInvalid, s.Pointer, s.Node, "the items of a map must be an array, not "+out.kinds.String(), hint)
		}
	case isResult(s):
		if schema := s.Node.Config["output_schema"]; schema != nil {
			l.fits(problem.OutputSchemaViolation, s, "the result", "output_schema", out, schemaShape(schema))
		}
	case key != "":
		l.assigned(s, key, out)
	}
}

// isItems reports whether a program gives the items of a map.
func isItems(s definition.Source) bool {
	return s.Node.Map != nil && s.Pointer == nodePointer(s.Node)+"/map/items"
}

// isResult reports whether a program gives the result of the run.
func isResult(s definition.Source) bool {
	return s.Node.End != nil && s.Pointer == nodePointer(s.Node)+"/config/output_mapping"
}

// assignedKey returns the key of the state that a set_state node assigns a program's output to, "" for any other program.
func assignedKey(s definition.Source) string {
	if s.Node.SetState == nil {
		return ""
	}
	return keyOfAssignment(nodePointer(s.Node), s.Pointer)
}

// list returns the declared field of the state that is named like the item of a map and is not the item: mails, if the item is mail.
// There the item's name in the program for the items stands for nothing.
func (l *linter) list(n *definition.Node) string {
	declared := l.state.declared
	if declared.members[n.Map.As] != nil || !l.compared.take(len(declared.members)) {
		return ""
	}
	return suggest.Nearest(n.Map.As, declared.names())
}
