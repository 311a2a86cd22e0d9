package llmcall

import (
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// fill evaluates a prompt over the state. In a text each "${ program }" is replaced by what the jq program gives, and
// "$${" stands for "${"; {"jq": program} is one program as a whole, {"literal": text} a text as it is. A program's text
// is taken as it is, null as nothing, and any other value as compact JSON. known is false for other forms of values.
func fill(v any, state func() map[string]any, now time.Time) (text string, known bool, err error) {
	switch v := v.(type) {
	case string:
		text, err = fillText(v, state, now)
		return text, true, err
	case map[string]any:
		if len(v) != 1 {
			return "", false, nil
		}
		if literal, ok := v["literal"].(string); ok {
			return literal, true, nil
		}
		if src, ok := v["jq"].(string); ok {
			text, err = evaluate(src, state, now)
			return text, true, err
		}
	}
	return "", false, nil
}

func fillText(text string, state func() map[string]any, now time.Time) (string, error) {
	var filled strings.Builder
	for {
		at := strings.Index(text, "${")
		if at < 0 {
			filled.WriteString(text)
			return filled.String(), nil
		}
		if at > 0 && text[at-1] == '$' {
			filled.WriteString(text[:at-1] + "${")
			text = text[at+len("${"):]
			continue
		}
		filled.WriteString(text[:at])
		text = text[at+len("${"):]
		end := programEnd(text)
		if end < 0 {
			return "", problem.New(problem.ExpressionInvalid, "a %q has no matching }", "${").WithHint(`Write "$${" for the characters themselves.`)
		}
		value, err := evaluate(text[:end], state, now)
		if err != nil {
			return "", err
		}
		filled.WriteString(value)
		text = text[end+1:]
	}
}

func evaluate(src string, state func() map[string]any, now time.Time) (string, error) {
	if strings.TrimSpace(src) == "" {
		return "", problem.New(problem.ExpressionInvalid, "the program of a template is empty").WithHint(`Write "${ . }" for the whole state.`)
	}
	program, err := expr.Compile(src)
	if err != nil {
		return "", err
	}
	value, err := program.EvalAt(state(), now)
	if err != nil {
		return "", err
	}
	switch value := value.(type) {
	case nil:
		return "", nil
	case string:
		return value, nil
	}
	return string(jsonvalue.Canonical(value)), nil
}

// programEnd finds the brace that closes a program: one that opens nothing inside it, and stands in none of its strings.
// It gives -1 if there is none.
func programEnd(text string) int {
	// open holds what is open: '{', '(' or '[' of a program, and '"' of a string. A string may hold "\(" program ")".
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
