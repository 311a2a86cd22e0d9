package expr

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/itchyny/gojq"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// maxSource bounds a program's text, and so the depth of its tree, which is walked by recursion.
const maxSource = 64 << 10

// Compile compiles a program. The error is *problem.Error with code EXPRESSION_INVALID; its Details hold "offset"
// (bytes into src) when the place is known.
func Compile(src string) (*Program, error) {
	if len(src) > maxSource {
		return nil, problem.New(problem.ExpressionInvalid, "the program has %d bytes; %d are allowed", len(src), maxSource)
	}
	if at := strings.IndexByte(src, 0); at >= 0 { // the parser takes it for the end
		e := problem.New(problem.ExpressionInvalid, "the program %s does not compile: it holds a null character", quoteProgram(src))
		e.Details = map[string]any{"offset": float64(at)}
		return nil, e.WithHint(`In a string write \u0000.`)
	}
	p, err := compile(src)
	if err != nil {
		return nil, invalid(src, err)
	}
	return p, nil
}

func compile(src string) (p *Program, err error) {
	defer func() {
		if caught := recover(); caught != nil {
			p, err = nil, fmt.Errorf("the compiler failed: %v", caught)
		}
	}()
	query, err := gojq.Parse(src)
	if err != nil {
		return nil, err
	}
	p = &Program{src: src}
	r := newRewriter()
	r.query(query)
	if r.err != nil {
		return nil, r.err
	}
	r.outlined(query)
	r.withPrelude(query)
	p.query, p.natives, p.strings = query, r.natives, r.strings
	i, err := p.newInstance()
	if err != nil {
		return nil, err
	}
	p.release(i)
	return p, nil
}

func (p *Program) newInstance() (*instance, error) {
	m := &meter{}
	options := make([]gojq.CompilerOption, 0, len(p.natives))
	for key, f := range p.natives {
		arity := int(key[len(key)-1] - '0')
		options = append(options, gojq.WithFunction(nativePrefix+key, arity, arity, func(in any, args []any) any {
			return f(m, in, args)
		}))
	}
	code, err := gojq.Compile(p.query, options...)
	if err != nil {
		return nil, err
	}
	return &instance{code, m}, nil
}

// invalid makes the error of a program that does not compile.
func invalid(src string, err error) error {
	text, hint := err.Error(), ""
	offset := -1
	var name string
	if e, ok := errors.AsType[*gojq.ParseError](err); ok {
		offset = max(0, min(e.Offset, len(src))-len(e.Token))
		if e.Token == "" {
			offset = min(e.Offset, len(src))
		}
		hint = unexpected(src[:offset], src[offset:])
	} else if e, ok := errors.AsType[*undefinedError](err); ok {
		name = e.name
	} else if _, rest, ok := strings.Cut(text, "not defined: "); ok {
		name, _, _ = strings.Cut(rest, "/")
	}
	if name != "" {
		offset = offsetOf(src, name)
		if hint = unavailable[name]; hint == "" {
			hint = suggest.DidYouMean(name, functions())
		}
	}
	e := problem.New(problem.ExpressionInvalid, "the program %s does not compile: %s", quoteProgram(src), text)
	if offset >= 0 {
		e.Details = map[string]any{"offset": float64(offset)}
	}
	if hint != "" {
		e = e.WithHint("%s", hint)
	}
	return e
}

// unexpected returns a hint for the syntax of another language at the place where a program does not parse, "" for
// anything else.
func unexpected(before, rest string) string {
	switch {
	case strings.HasPrefix(rest, "'"):
		return `Texts take double quotes: .name == "x".`
	case strings.HasPrefix(rest, "&&"):
		return "Write and: .a and .b."
	case strings.HasPrefix(rest, "|") && strings.HasSuffix(before, "|"):
		return "Write or: .a or .b."
	case strings.HasPrefix(rest, "!"):
		return "Write not after the negated value: (.a | not)."
	case strings.HasPrefix(rest, "=") && (strings.HasSuffix(before, "==") || strings.HasSuffix(before, "!=")):
		return "Compare with == and !=."
	case strings.HasPrefix(rest, "$."), strings.HasPrefix(rest, "$["):
		return "The input is written as a dot: .name, not $.name."
	}
	return ""
}

// unavailable maps names that programs do not have (functions of jq, words of other languages) to a hint.
var unavailable = map[string]string{
	"True": "Write true.", "TRUE": "Write true.", "False": "Write false.", "FALSE": "Write false.",
	"None": "Write null.", "NULL": "Write null.", "nil": "Write null.", "undefined": "Write null.",
	"len":            "Write .items | length.",
	"debug":          "There is no diagnostic output; remove the call.",
	"stderr":         "There is no diagnostic output; remove the call.",
	"input_filename": "A program sees the state and nothing else.",
	"$__loc__":       "A program does not know its place in the definition.",
}

// functions are the names of the functions of jq, without those that are its own.
var functions = sync.OnceValue(func() []string {
	query, err := gojq.Parse("builtins")
	if err != nil {
		return nil
	}
	found, _ := query.Run(nil).Next()
	signatures, _ := found.([]any)
	var names []string
	for _, s := range signatures {
		s, _ := s.(string)
		if name, _, _ := strings.Cut(s, "/"); !strings.HasPrefix(name, "_") && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
})

// offsetOf finds a name in a program, -1 unless it occurs exactly once.
func offsetOf(src, name string) int {
	boundary := `(?:^|[^A-Za-z0-9_$.])`
	re, err := regexp.Compile(boundary + `(` + regexp.QuoteMeta(name) + `)(?:[^A-Za-z0-9_]|$)`)
	if err != nil {
		return -1
	}
	found := re.FindAllStringSubmatchIndex(src, 2)
	if len(found) != 1 {
		return -1
	}
	return found[0][2]
}
