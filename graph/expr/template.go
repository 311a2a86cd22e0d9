package expr

import (
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Template is a compiled text with programs in it, safe for concurrent use. "${ program }" becomes the result of the
// program: a string as it is, null as nothing, any other value as compact JSON. "$${" stands for "${". Nodes fill in
// prompts as templates on request.
type Template struct{ parts []templatePart }

// templatePart is a program, or a text where that is nil.
type templatePart struct {
	text    string
	program *Program
}

// ParseTemplate compiles a text. The error is *problem.Error with code EXPRESSION_INVALID.
func ParseTemplate(text string) (*Template, error) {
	t := &Template{}
	var literal strings.Builder
	for {
		at := strings.Index(text, "${")
		if at < 0 {
			literal.WriteString(text)
			t.add(literal.String(), nil)
			return t, nil
		}
		if at > 0 && text[at-1] == '$' {
			literal.WriteString(text[:at-1] + "${")
			text = text[at+len("${"):]
			continue
		}
		literal.WriteString(text[:at])
		text = text[at+len("${"):]
		end := programEnd(text)
		if end < 0 {
			return nil, problem.New(problem.ExpressionInvalid, "a %q has no matching }", "${").WithHint(`Write "$${" for the characters themselves.`)
		}
		program, err := templateProgram(text[:end])
		if err != nil {
			return nil, err
		}
		t.add(literal.String(), program)
		literal.Reset()
		text = text[end+1:]
	}
}

// TemplateProgram is the template of one program without a text around it, as in {"jq": program}. The error is that of
// ParseTemplate.
func TemplateProgram(src string) (*Template, error) {
	program, err := templateProgram(src)
	if err != nil {
		return nil, err
	}
	return &Template{parts: []templatePart{{program: program}}}, nil
}

func templateProgram(src string) (*Program, error) {
	if strings.TrimSpace(src) == "" {
		return nil, problem.New(problem.ExpressionInvalid, "the program of a template is empty").WithHint(`Write "${ . }" for the whole state.`)
	}
	return Compile(src)
}

func (t *Template) add(text string, program *Program) {
	if text != "" {
		t.parts = append(t.parts, templatePart{text: text})
	}
	if program != nil {
		t.parts = append(t.parts, templatePart{program: program})
	}
}

// Programs returns the programs of the template, in order.
func (t *Template) Programs() []*Program {
	var programs []*Program
	for _, part := range t.parts {
		if part.program != nil {
			programs = append(programs, part.program)
		}
	}
	return programs
}

// EvalAt fills the template in, on one budget. The first error ends it. state is asked for only if there is a program.
func (t *Template) EvalAt(state func() map[string]any, env Env) (string, error) {
	filled, _, err := t.EvalShown(state, env)
	return filled, err
}

// nothing is shown to a person for null, so that the missing value is visible.
const nothing = "(nothing)"

// EvalShown is EvalAt, and gives the text as a person is to see it, too.
func (t *Template) EvalShown(state func() map[string]any, env Env) (text, shown string, err error) {
	env = env.shared()
	var filled, seen strings.Builder
	for _, part := range t.parts {
		if part.program == nil {
			filled.WriteString(part.text)
			seen.WriteString(part.text)
			continue
		}
		value, err := part.program.EvalAt(state(), env)
		if err != nil {
			return "", "", err
		}
		switch value := value.(type) {
		case nil:
			seen.WriteString(nothing)
		case string:
			filled.WriteString(value)
			seen.WriteString(value)
		default:
			text := jsonvalue.Canonical(value)
			filled.Write(text)
			seen.Write(text)
		}
	}
	return filled.String(), seen.String(), nil
}

// programEnd returns the index of the brace that closes a program, -1 if there is no such brace. Braces in strings
// and those that close a nested bracket do not count.
func programEnd(text string) int {
	// open is the stack of open brackets: '{', '(' or '[' of a program, and '"' of a string. A string may hold "\("
	// program ")".
	var open []byte
	top := func() byte {
		if len(open) == 0 {
			return 0
		}
		return open[len(open)-1]
	}
	for i := 0; i < len(text); i++ {
		c := text[i]
		if top() == '"' {
			switch {
			case c == '"':
				open = open[:len(open)-1]
			case c == '\\' && i+1 < len(text):
				i++
				if text[i] == '(' {
					open = append(open, '(')
				}
			}
			continue
		}
		switch c {
		case '"', '{', '(', '[':
			open = append(open, c)
		case '}', ')', ']':
			if len(open) == 0 {
				if c == '}' {
					return i
				}
				return -1
			}
			open = open[:len(open)-1]
		}
	}
	return -1
}
