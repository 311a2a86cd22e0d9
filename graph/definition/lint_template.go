package definition

import (
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Warnings about templates that a node switches on: prompts with prompt_templates, arguments with argument_templates (Templates). A
// mistake there fails the attempt. The protocol allows it, so it is not an error.

// lintPrompt warns about a prompt that cannot be filled in.
func (c *compiler) lintPrompt(n *jsonvalue.Node, at *path, v *vertex) {
	var (
		template *expr.Template
		err      error
	)
	switch {
	case n.Kind == jsonvalue.String:
		if template, err = expr.ParseTemplate(n.Str); err == nil && strings.Contains(n.Str, "{{") {
			c.warn(problem.TemplateLiteral, n, at, v, "{{ has no meaning here: it is sent as written",
				`write programs as "${ .name }"`)
		}
	case len(n.Members) == 1 && n.Get("literal") != nil && n.Get("literal").Kind == jsonvalue.String:
		return
	case len(n.Members) == 1 && n.Get("jq") != nil && n.Get("jq").Kind == jsonvalue.String:
		n, at = n.Get("jq"), at.member("jq")
		template, err = expr.TemplateProgram(n.Str)
	default:
		c.warn(problem.ConfigInvalid, n, at, v, "a prompt must be a text or a program",
			`write a text with "${ .name }" in it, or {"jq": "<program>"}`)
		return
	}
	if err != nil {
		c.brokenTemplate(err, n, at, v)
		return
	}
	for _, program := range template.Programs() {
		c.lintSource(program, n, at, v)
	}
}

// lintArguments warns about arguments that cannot be filled in, at any depth.
func (c *compiler) lintArguments(n *jsonvalue.Node, at *path, v *vertex) {
	switch {
	case n.Kind == jsonvalue.String, n.Get("jq") != nil:
		c.lintMapping(n, at, v)
	case n.Get("literal") != nil:
	case n.Kind == jsonvalue.Array:
		for i, element := range n.Elements {
			c.lintArguments(element, at.element(i), v)
		}
	case n.Kind == jsonvalue.Object:
		for _, m := range n.Members {
			c.lintArguments(m.Value, at.member(m.Name), v)
		}
	}
}

// lintMapping warns about the program in one member of a mapping, if it has one (spec: execution, 4.4).
func (c *compiler) lintMapping(n *jsonvalue.Node, at *path, v *vertex) {
	m, problems := expr.CompileMapping(map[string]any{"": n.Value()})
	if jq := n.Get("jq"); jq != nil {
		n, at = jq, at.member("jq")
	}
	if err := problems[""]; err != nil {
		c.brokenTemplate(err, n, at, v)
		return
	}
	programs := m.Programs()
	for _, program := range programs {
		c.lintSource(program, n, at, v)
	}
	if n.Kind == jsonvalue.String && len(programs) == 0 && strings.Contains(n.Str, "${") {
		c.warn(problem.TemplateLiteral, n, at, v, "the text contains ${ but is not a template: it is passed on unchanged",
			`write the whole value as one program, for example "${ \"Hello \" + .name }"`)
	}
}

func (c *compiler) brokenTemplate(err error, n *jsonvalue.Node, at *path, v *vertex) {
	c.warn(problem.ExpressionInvalid, n, at, v, "the attempt fails: "+err.Error(), hintOf(err))
}

// unfilled warns of texts with ${ in the members of a config that nothing fills in, at any depth. Schemas may have it in a pattern, and
// mappings are evaluated.
func (x *config) unfilled(hint string, filled ...string) {
	var look func(n *jsonvalue.Node, at *path)
	look = func(n *jsonvalue.Node, at *path) {
		switch n.Kind {
		case jsonvalue.String:
			if strings.Contains(n.Str, "${") {
				x.c.warn(problem.TemplateLiteral, n, at, x.v, "the text looks like a template, but nothing fills it in", hint)
			}
		case jsonvalue.Array:
			for i, e := range n.Elements {
				look(e, at.element(i))
			}
		case jsonvalue.Object:
			for _, m := range n.Members {
				look(m.Value, at.member(m.Name))
			}
		}
	}
	for _, m := range x.json.Members {
		if !strings.HasSuffix(m.Name, "_schema") && !slices.Contains(filled, m.Name) {
			look(m.Value, x.at.member(m.Name))
		}
	}
}
