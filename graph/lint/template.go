package lint

import (
	"slices"
	"strconv"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// templates warns of templates that executors cannot fill in, which fails the attempt, and of texts that look like templates and are not
// filled in. It adds the programs of templates and mappings to the sources.
func (l *linter) templates() {
	for _, n := range l.program.Nodes {
		fill := n.Type.Info().Fill
		if fill.Hint != "" {
			l.unfilled(n, fill)
		}
		for _, name := range fill.Fields {
			if value, given := n.Config[name]; given {
				l.filled(n, fill, value, nodePointer(n)+"/config/"+name)
			}
		}
	}
}

// filled checks a field of the config that can be filled in.
func (l *linter) filled(n *definition.Node, fill definition.Fill, value any, at string) {
	_, isText := value.(string)
	object, isObject := value.(map[string]any)
	switch {
	case n.Interrupt != nil: // its template is part of the program
		if _, given := l.document(n)[definition.PromptTemplates]; !given {
			l.literalTexts(n, value, at, fill.Off)
		}
	case fill.Switch == "": // a mapping: definition.Compile rejects values that do not compile
		for _, name := range jsonvalue.Keys(object) {
			l.mapping(n, object[name], at+"/"+jsonvalue.EscapePointer(name), false)
		}
	case n.Metadata[fill.Switch] == true && fill.Deep:
		l.arguments(n, value, at)
	case n.Metadata[fill.Switch] == true && (isText || isObject):
		l.prompt(n, value, at)
	case isText || fill.Deep:
		l.literalTexts(n, value, at, fill.Off)
	}
}

// prompt warns of a prompt that cannot be filled in.
func (l *linter) prompt(n *definition.Node, value any, at string) {
	var template *expr.Template
	var err error
	object, _ := value.(map[string]any)
	_, isLiteral := object["literal"].(string)
	program, isProgram := object["jq"].(string)
	switch text, isText := value.(string); {
	case isText:
		if template, err = expr.ParseTemplate(text); err == nil && strings.Contains(text, "{{") {
			l.warn(problem.TemplateLiteral, at, n, "{{ has no meaning here: it is sent as written", `write programs as "${ .name }"`)
		}
	case len(object) == 1 && isLiteral:
		return
	case len(object) == 1 && isProgram:
		at += "/jq"
		template, err = expr.TemplateProgram(program)
	default:
		l.warn(problem.ConfigInvalid, at, n, "a prompt must be a string or a program",
			`write a string with "${ .name }" in it, or {"jq": "<program>"}`)
		return
	}
	if err != nil {
		l.brokenTemplate(n, err, at)
		return
	}
	l.addSources(n, template.Programs(), at)
}

// arguments warns of arguments that cannot be filled in, at any depth.
func (l *linter) arguments(n *definition.Node, value any, at string) {
	switch value := value.(type) {
	case string:
		l.mapping(n, value, at, true)
	case []any:
		for i, e := range value {
			l.arguments(n, e, at+"/"+strconv.Itoa(i))
		}
	case map[string]any:
		if _, ok := value["jq"]; ok {
			l.mapping(n, value, at, true)
			return
		}
		if _, ok := value["literal"]; ok {
			return
		}
		for _, name := range jsonvalue.Keys(value) {
			l.arguments(n, value[name], at+"/"+jsonvalue.EscapePointer(name))
		}
	}
}

// mapping checks the value of a field of a mapping, which may be a program (spec: execution, 4.4).
func (l *linter) mapping(n *definition.Node, value any, at string, reportBroken bool) {
	m, problems := expr.CompileMapping(map[string]any{"": value})
	if object, ok := value.(map[string]any); ok && object["jq"] != nil {
		at += "/jq"
	}
	if err := problems[""]; err != nil {
		if reportBroken {
			l.brokenTemplate(n, err, at)
		}
		return
	}
	programs := m.Programs()
	l.addSources(n, programs, at)
	if text, ok := value.(string); ok && len(programs) == 0 && strings.Contains(text, "${") {
		l.warn(problem.TemplateLiteral, at, n, "the text contains ${ but is not a template: it is passed on unchanged",
			`write the whole value as one program, for example "${ \"Hello \" + .name }"`)
	}
}

func (l *linter) addSources(n *definition.Node, programs []*expr.Program, at string) {
	for _, program := range programs {
		l.sources = append(l.sources, definition.Source{Node: n, Pointer: at, Program: program})
	}
}

func (l *linter) brokenTemplate(n *definition.Node, err error, at string) {
	hint := ""
	if e, ok := problem.As(err); ok {
		hint = e.Hint
	}
	l.warn(problem.ExpressionInvalid, at, n, "the attempt fails: "+err.Error(), hint)
}

// literalTexts warns of texts in a tool's arguments or a prompt that look like templates: both are sent as written (spec: definition,
// 11.1).
func (l *linter) literalTexts(n *definition.Node, value any, at, hint string) {
	switch value := value.(type) {
	case string:
		if strings.Contains(value, "${") || strings.Contains(value, "{{") {
			l.warn(problem.TemplateLiteral, at, n, "the text looks like a template but is sent as written", hint)
		}
	case []any:
		for i, e := range value {
			l.literalTexts(n, e, at+"/"+strconv.Itoa(i), hint)
		}
	case map[string]any:
		if _, ok := value["jq"].(string); ok && len(value) == 1 {
			l.warn(problem.TemplateLiteral, at, n, "the object looks like a program but is sent as written", hint)
			return
		}
		for _, name := range jsonvalue.Keys(value) {
			l.literalTexts(n, value[name], at+"/"+jsonvalue.EscapePointer(name), hint)
		}
	}
}

// unfilled warns of texts with ${ in the fields of a config that are not filled in, at any depth. Schemas may have it in a pattern.
func (l *linter) unfilled(n *definition.Node, fill definition.Fill) {
	var visit func(value any, at []string)
	visit = func(value any, at []string) {
		switch value := value.(type) {
		case string:
			if strings.Contains(value, "${") {
				l.warn(problem.TemplateLiteral, nodePointer(n)+"/config/"+strings.Join(at, "/"), n,
					"the text looks like a template, but nothing fills it in", fill.Hint)
			}
		case []any:
			for i, e := range value {
				visit(e, append(at, strconv.Itoa(i)))
			}
		case map[string]any:
			for _, name := range jsonvalue.Keys(value) {
				visit(value[name], append(at, jsonvalue.EscapePointer(name)))
			}
		}
	}
	for _, name := range jsonvalue.Keys(n.Config) {
		if !strings.HasSuffix(name, "_schema") && !slices.Contains(fill.Fields, name) {
			visit(n.Config[name], []string{jsonvalue.EscapePointer(name)})
		}
	}
}
