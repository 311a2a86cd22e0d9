package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// child describes a subworkflow.
type child struct {
	name string
	// input is its input_schema, state its state_schema: an input has to fit both. required are the members without which it does not.
	input, state *shape
	required     []string
	// final is its last state, result the output of its end.
	final, result *shape
	mentioned     words
	// writes are the fields of the state that its nodes are known to write, mapped says that its end has an output_mapping.
	writes []string
	mapped bool
}

const (
	// maxChildren bounds how many definitions of subworkflows are looked at.
	maxChildren = 20
	// maxWrites bounds how many members are known that a subworkflow writes.
	maxWrites = 100
)

// child describes the subworkflow of a node, nil if its definition is not at hand or has errors. What the subworkflows of a
// subworkflow bring is not checked.
func (l *linter) child(n *definition.Node) *child {
	ref, pin := n.Subworkflow.WorkflowRef, n.Subworkflow.VersionPin
	if c, seen := l.children[ref+" "+pin]; seen || l.subworkflow == nil || len(l.children) >= maxChildren {
		return c
	}
	var c *child
	if doc := l.subworkflow(ref, pin); doc != nil {
		c = l.readChild(doc)
	}
	l.children[ref+" "+pin] = c
	return c
}

func (l *linter) readChild(doc *definition.Document) *child {
	inner := &linter{budget: l.budget, compared: l.compared}
	inner.program, _ = definition.Compile(doc, definition.Options{AllowInterruptInBranch: true})
	if inner.program == nil {
		return nil
	}
	inner.sources = slices.Clip(inner.program.Sources)
	inner.templates()
	inner.state = inner.newStateShapes()
	c := &child{name: inner.program.Name, state: inner.state.declared, mentioned: wordsOf(inner.sources)}
	var schemas []any
	for _, n := range inner.program.Nodes {
		switch {
		case n.Start != nil:
			c.input = schemaShape(n.Config["input_schema"])
			schemas = append(schemas, n.Config["input_schema"])
		case n.End != nil:
			c.final = inner.state.at(n)
			c.result = c.final
		}
	}
	for _, s := range inner.sources {
		if isResult(s) {
			c.mapped = true
			w := inner.walker(s.Pointer, s.Node)
			w.quiet++
			c.result = w.query(s.Program.Tree(), c.final)
		}
	}
	for _, n := range inner.program.Nodes {
		for _, name := range inner.writesOf(n) {
			if !slices.Contains(c.writes, name) && len(c.writes) < maxWrites {
				c.writes = append(c.writes, name)
			}
		}
	}
	slices.Sort(c.writes)
	schemas = append(schemas, doc.Value().(map[string]any)["state_schema"])
	for _, schema := range schemas {
		schema, _ := schema.(map[string]any)
		required, _ := schema["required"].([]any)
		for _, name := range required {
			if name, ok := name.(string); ok && !slices.Contains(c.required, name) {
				c.required = append(c.required, name)
			}
		}
	}
	l.budget, l.compared = inner.budget, inner.compared
	return c
}

// mapped notes the output of a program of an input_mapping.
func (l *linter) mapped(s definition.Source, out *shape) {
	name, ok := strings.CutPrefix(s.Pointer, nodePointer(s.Node)+"/config/input_mapping/")
	if !ok || s.Node.Subworkflow == nil {
		return
	}
	l.given[s.Node] = append(l.given[s.Node], given{jsonvalue.UnescapePointer(strings.TrimSuffix(name, "/jq")), s, out})
}

// given is a member of the input of a subworkflow.
type given struct {
	name   string
	source definition.Source
	value  *shape
}

// inputs compares the inputs of subworkflows with the declarations of their definitions.
func (l *linter) inputs() {
	for _, n := range l.program.Nodes {
		if n.Subworkflow == nil {
			continue
		}
		if c := l.child(n); c != nil {
			l.inputOf(n, c)
		}
	}
}

func (l *linter) inputOf(n *definition.Node, c *child) {
	mapping, _ := n.Config["input_mapping"].(map[string]any)
	at := nodePointer(n) + "/config/input_mapping"
	members := l.given[n]
	for _, name := range jsonvalue.Keys(mapping) {
		if slices.ContainsFunc(members, func(g given) bool { return g.name == name }) {
			continue
		}
		value := mapping[name]
		if object, ok := value.(map[string]any); ok {
			if literal, ok := object["literal"]; ok {
				value = literal
			}
		}
		source := definition.Source{Node: n, Pointer: at + "/" + jsonvalue.EscapePointer(name)}
		members = append(members, given{name, source, shapeOf(value, &l.budget, 0)})
	}
	meant := map[string]bool{}
	for _, g := range members {
		near, wrong := l.unknownInput(g, c, mapping)
		if wrong {
			meant[near] = true
			message := fmt.Sprintf("the input of %q has no field %q", clip(c.name), clip(g.name))
			hint := suggest.Hint(near)
			if hint == "" {
				hint = "remove it, or declare it there"
			}
			l.warn(problem.InputInvalid, g.source.Pointer, n, message, hint)
			continue
		}
		what, of := fmt.Sprintf("the input %q", clip(g.name)), fmt.Sprintf(" of %q", clip(c.name))
		if l.fits(problem.InputInvalid, g.source, what, "the input_schema"+of, g.value, c.input.members[g.name]) {
			l.fits(problem.InputInvalid, g.source, what, "the state_schema"+of, g.value, c.state.members[g.name])
		}
	}
	for _, name := range c.required {
		if _, there := mapping[name]; !there && !meant[name] {
			l.warn(problem.InputInvalid, at, n, fmt.Sprintf("the input of %q requires the field %q", clip(c.name), clip(name)),
				"give it a value here")
		}
	}
}

// unknownInput reports whether the subworkflow ignores a field of an input, and suggests a similar one.
func (l *linter) unknownInput(g given, c *child, mapping map[string]any) (near string, wrong bool) {
	refused := false
	for _, s := range []*shape{c.input, c.state} {
		refused = refused || s.members[g.name] == nil && s.rest == nil && !s.unsure
	}
	if !refused && (c.input.members[g.name] != nil || c.state.members[g.name] != nil) {
		return "", false
	}
	names := slices.Concat(c.input.names(), c.state.names())
	names = slices.DeleteFunc(names, func(name string) bool { _, taken := mapping[name]; return taken })
	if !l.compared.take(len(names)) {
		return "", false
	}
	near = suggest.Nearest(g.name, names)
	return near, refused || near != "" && misspelt(g.name, near) && !c.mentioned.mention(g.name)
}
