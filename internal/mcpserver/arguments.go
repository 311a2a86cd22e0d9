package mcpserver

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// arguments reads the arguments of one call, or an object within them. It collects everything that is wrong, so that
// a caller can mend it all at once; what a reader method returns counts only if problem gives nil.
//
// Forgiving where it is harmless: null counts as absent, and JSON text is taken where an object is wanted, because some
// hosts encode objects twice. Strict where a typing error would hurt: a name that is not known is refused.
type arguments struct {
	path   []any
	values map[string]any
	// source is the JSON text of values; nil for an object within.
	source []byte
	names  []string
	// inner says of names that are known within an argument only, in which.
	inner map[string]string
	// progress gets what happens while the call waits; nil if the client does not want to know.
	progress func(graph.Progress)
	hangup   hangup
	*findings
}

// findings are shared by the arguments of a call and the objects within.
type findings struct {
	issues []members
	texts  []string
	// more counts those that are not listed, see maxFindings.
	more int
	// refused is what made a definition unusable.
	refused *problem.Error
}

// readArguments takes the raw arguments of a call, which may be absent.
func readArguments(raw []byte, t *tool) *arguments {
	a := &arguments{names: t.names(), inner: t.inner, findings: new(findings)}
	if len(raw) == 0 {
		return a
	}
	v, err := jsonvalue.Decode(raw)
	if err != nil {
		a.issue("", "must be JSON: %v", err)
		return a
	}
	if v == nil {
		return a
	}
	m, why := asObject(v)
	if why != "" {
		a.issue("", "%s", why)
		return a
	}
	a.values, a.source = m, raw
	if text, encodedTwice := v.(string); encodedTwice {
		a.source = []byte(text)
	}
	a.refuseUnknown()
	return a
}

// sourceOf gives the JSON text of an argument as the caller wrote it, which shows what a decoded value does not: members
// that were given twice, for instance.
func (a *arguments) sourceOf(name string) []byte { return jsonvalue.MemberText(a.source, name) }

// within reads an object argument of known members. Members may be spelt as in aliases too.
func (a *arguments) within(name string, value map[string]any, names []string, aliases map[string]string) *arguments {
	inner := &arguments{path: append(slices.Clone(a.path), name), values: map[string]any{}, names: names, findings: a.findings}
	for member, v := range value {
		if alias, ok := aliases[member]; ok {
			member = alias
		}
		inner.values[member] = v
	}
	inner.refuseUnknown()
	return inner
}

func (a *arguments) refuseUnknown() {
	for _, name := range jsonvalue.Keys(a.values) {
		if slices.Contains(a.names, name) {
			continue
		}
		if a.full() {
			a.more++
			continue
		}
		hint := "known are " + strings.Join(a.names, ", ")
		respelt := snakeCase(name)
		if outer := a.inner[respelt]; outer != "" {
			hint = "it belongs in " + outer
		} else if near := cmp.Or(known(respelt, a.names), suggest.Nearest(respelt, a.names)); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		a.issue(name, "is not known; %s", hint)
	}
}

func known(name string, names []string) string {
	if slices.Contains(names, name) {
		return name
	}
	return ""
}

// snakeCase spells a camelCase name as the protocol's arguments are spelt.
func snakeCase(name string) string {
	var b strings.Builder
	for i, r := range name {
		if r >= 'A' && r <= 'Z' {
			if i > 0 {
				b.WriteByte('_')
			}
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// issue notes that an argument is wrong. A path like that of the protocol's validator tells programs where, the text
// tells people.
func (a *arguments) issue(name, format string, args ...any) {
	if a.full() {
		a.more++
		return
	}
	path := slices.Clone(a.path)
	if name != "" {
		path = append(path, problem.Excerpt(name, problem.MaxQuoted))
	}
	message := problem.Format(format, args...)
	if path == nil {
		path = []any{}
	}
	a.issues = append(a.issues, members{{"path", path}, {"message", message}})
	place := "arguments"
	if len(path) > 0 {
		words := make([]string, len(path))
		for i, p := range path {
			words[i] = fmt.Sprint(p)
		}
		place = strings.Join(words, ".")
	}
	a.texts = append(a.texts, place+" "+message)
}

// full reports whether as many issues are listed as an answer shows.
func (f *findings) full() bool { return len(f.issues) == maxFindings }

// problem is what is wrong with the arguments, nil if nothing is.
func (a *arguments) problem() error {
	switch {
	case len(a.issues) > 0:
		texts := a.texts
		if a.more > 0 {
			texts = append(texts, fmt.Sprintf("and %d more", a.more))
		}
		e := problem.New(problem.ValidationError, "%s", strings.Join(texts, "; "))
		issues := make([]any, len(a.issues))
		for i, m := range a.issues {
			issues[i] = map[string]any{"path": m[0].value, "message": m[1].value}
		}
		e.Details = map[string]any{"issues": issues}
		return e
	case a.refused != nil:
		return a.refused
	}
	return nil
}

// get gives an argument that is present.
func (a *arguments) get(name string, isRequired bool) (any, bool) {
	v := a.values[name]
	if v == nil && isRequired {
		a.issue(name, "is required")
	}
	return v, v != nil
}

// text reads a non-empty string, "" if absent.
func (a *arguments) text(name string, isRequired bool) string {
	v, ok := a.get(name, isRequired)
	if !ok {
		return ""
	}
	s, isText := v.(string)
	switch {
	case !isText:
		a.issue(name, "must be a string, not %s", kindOf(v))
	case s == "":
		a.issue(name, "must not be empty")
	}
	return s
}

// anyText reads a string that may be empty.
func (a *arguments) anyText(name string) string {
	if s, ok := a.values[name].(string); ok && s == "" {
		return ""
	}
	return a.text(name, false)
}

func (a *arguments) choice(name string, known ...string) string {
	s := a.text(name, false)
	if s != "" && !slices.Contains(known, s) {
		hint := ""
		if near := suggest.Nearest(s, known); near != "" {
			hint = fmt.Sprintf("; did you mean %q?", near)
		}
		a.issue(name, "must be %s, not %q%s", strings.Join(known, " or "), s, hint)
		return ""
	}
	return s
}

func (a *arguments) boolean(name string, isRequired bool) bool {
	v, ok := a.get(name, isRequired)
	if !ok {
		return false
	}
	b, isBool := v.(bool)
	if !isBool {
		a.issue(name, "must be true or false, not %s", kindOf(v))
	}
	return b
}

// integer reads a whole number within bounds; set tells whether it is there.
func (a *arguments) integer(name string, low, high int64) (n int64, set bool) {
	v, ok := a.get(name, false)
	if !ok {
		return 0, false
	}
	f, isNumber := v.(float64)
	switch {
	case !isNumber:
		a.issue(name, "must be a number, not %s", kindOf(v))
	case f != math.Trunc(f) || f < float64(low) || f > float64(high):
		a.issue(name, "must be a whole number from %d to %d", low, high)
	default:
		return int64(f), true
	}
	return 0, false
}

// object reads an object, nil if absent.
func (a *arguments) object(name string, isRequired bool) map[string]any {
	v, ok := a.get(name, isRequired)
	if !ok {
		return nil
	}
	m, why := asObject(v)
	if why != "" {
		a.issue(name, "%s", why)
	}
	return m
}

// asObject takes an object, or the JSON text of one, or says why it cannot.
func asObject(v any) (m map[string]any, why string) {
	switch v := v.(type) {
	case map[string]any:
		return v, ""
	case string:
		if isBlank(v) {
			return nil, blankLeft(v)
		}
		parsed, err := jsonvalue.Decode([]byte(v))
		if err != nil && !strings.HasPrefix(strings.TrimSpace(v), "{") {
			return nil, "must be an object, not text"
		}
		if err != nil {
			return nil, "must be an object, not text (and the text is no JSON: " + err.Error() + ")"
		}
		if m, ok := parsed.(map[string]any); ok {
			return m, ""
		}
		return nil, "must be an object, not text that holds " + kindOf(parsed)
	default:
		return nil, "must be an object, not " + kindOf(v)
	}
}

func kindOf(v any) string {
	switch v.(type) {
	case string:
		return "a string"
	case float64:
		return "a number"
	case bool:
		return "a boolean"
	case []any:
		return "an array"
	case map[string]any:
		return "an object"
	default:
		return "null"
	}
}
