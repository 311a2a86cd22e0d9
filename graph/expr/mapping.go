package expr

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Mapping is a compiled input_mapping (spec: execution, 4.4), safe for concurrent use.
type Mapping struct{ members []mappingMember }

// mappingMember has a program, or a literal where that is nil.
type mappingMember struct {
	name    string
	program *Program
	literal any
}

// CompileMapping compiles the fields of an input_mapping. It never fails as a whole: an invalid field makes EvalAt
// fail. problems lists the errors by field name for validation; nil if there are no errors.
func CompileMapping(raw map[string]any) (m *Mapping, problems map[string]error) {
	m = &Mapping{}
	for _, name := range jsonvalue.Keys(raw) {
		member := mappingMember{name: name}
		src, isProgram, err := mappingProgram(raw[name])
		switch {
		case err != nil:
			member.program = Failing("", err)
		case !isProgram:
			member.literal = mappingLiteral(raw[name])
		default:
			if member.program, err = Compile(src); err != nil {
				member.program = Failing(src, err)
			}
		}
		if err != nil {
			if problems == nil {
				problems = map[string]error{}
			}
			problems[name] = err
		}
		m.members = append(m.members, member)
	}
	return m, problems
}

// mappingProgram returns the program in a member's value, if it is one.
func mappingProgram(v any) (src string, isProgram bool, err error) {
	switch v := v.(type) {
	case map[string]any:
		jq, ok := v["jq"]
		if !ok {
			return "", false, nil
		}
		src, ok := jq.(string)
		if !ok {
			return "", true, problem.New(problem.ExpressionInvalid, `"jq" has to be a program, which is a string`)
		}
		if TrimSpace(src) == "" {
			return "", true, problem.New(problem.ExpressionInvalid, `the program in "jq" is empty`).WithHint(`Write "." for the whole state.`)
		}
		return src, true, nil
	case string:
		src, ok := template(v)
		if ok && src == "" {
			return "", true, problem.New(problem.ExpressionInvalid, "the program in the template is empty").
				WithHint(`Write "${ . }" for the whole state.`)
		}
		return src, ok, nil
	}
	return "", false, nil
}

// template returns the text between "${" and "}" if they enclose a whole string and at least one character, on one
// line. Strings with text around it are not templates.
func template(s string) (inside string, ok bool) {
	s = TrimSpace(s)
	if len(s) <= len("${}") || !strings.HasPrefix(s, "${") || !strings.HasSuffix(s, "}") {
		return "", false
	}
	inside = TrimSpace(s[len("${") : len(s)-len("}")])
	return inside, !strings.ContainsAny(inside, "\n\r\u2028\u2029")
}

// TrimSpace strips white space as JavaScript does: that of Unicode without U+0085, and the byte order mark.
func TrimSpace(s string) string {
	return strings.TrimFunc(s, func(r rune) bool { return r == '\uFEFF' || r != '\u0085' && unicode.IsSpace(r) })
}

// mappingLiteral is a copy of the literal in a member's value. Nothing inside is searched for templates.
func mappingLiteral(v any) any {
	if object, ok := v.(map[string]any); ok {
		if literal, ok := object["literal"]; ok {
			return jsonvalue.Clone(literal)
		}
	}
	return jsonvalue.Clone(v)
}

// Programs returns the programs of the mapping, in the protocol's member order.
func (m *Mapping) Programs() []*Program {
	var programs []*Program
	for _, member := range m.members {
		if member.program != nil {
			programs = append(programs, member.program)
		}
	}
	return programs
}

// EvalAt evaluates the mapping over state, members in the protocol's member order, on one budget; the first error ends it. The error
// is that of Program.EvalAt, with the member's name and, in At, its pointer. Treat the result as immutable.
func (m *Mapping) EvalAt(state map[string]any, env Env) (map[string]any, error) {
	env = env.shared()
	mapped := make(map[string]any, len(m.members))
	for _, member := range m.members {
		if member.program == nil {
			mapped[member.name] = member.literal
			continue
		}
		v, err := member.program.EvalAt(state, env)
		if err == ErrAbandoned {
			return nil, err
		}
		if err != nil {
			return nil, member.failure(err)
		}
		mapped[member.name] = v
	}
	return mapped, nil
}

func (m *mappingMember) failure(err error) error {
	e := problem.New(problem.ExpressionFailed, "%v", err)
	if cause, ok := problem.As(err); ok {
		copied := *cause
		e = &copied
	}
	e.Message = "member " + strconv.Quote(m.name) + " of the mapping: " + e.Message
	e.At.Pointer = "/" + jsonvalue.EscapePointer(m.name)
	return e
}
