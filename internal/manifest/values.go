package manifest

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// add notes an error at a value and gives it, for more to be said.
func (c *checker) add(p place, code problem.Code, keyword, format string, args ...any) *problem.Finding {
	c.findings = append(c.findings, problem.Finding{
		Code: code, Severity: problem.SeverityError, Message: fmt.Sprintf(format, args...), Keyword: keyword,
		At: problem.Place{Pointer: p.pointer, Line: p.node.Line, Column: p.node.Column},
	})
	return &c.findings[len(c.findings)-1]
}

// addAt notes an error at the name of a member of p.
func (c *checker) addAt(member jsonvalue.Member, p place, keyword, format string, args ...any) *problem.Finding {
	f := c.add(p.at(member), problem.ManifestInvalid, keyword, format, args...)
	f.At.Line, f.At.Column = member.Line, member.Column
	return f
}

// unknown notes a member that an object must not have.
func (c *checker) unknown(p place, member jsonvalue.Member, what string, known []string) {
	f := c.addAt(member, p, "additionalProperties", "%s has no member %q", what, member.Name)
	f.Params = map[string]any{"additionalProperty": member.Name}
	f.Hint = "The members are " + strings.Join(known, ", ") + "."
	if near := suggest.Nearest(member.Name, known); near != "" {
		f.Hint = fmt.Sprintf("Did you mean %q?", near)
	}
}

// warn notes what runs, but probably not as meant.
func (c *checker) warn(p place, code problem.Code, message string) {
	f := c.add(p, code, "profile", "%s", message)
	f.Severity = problem.SeverityWarning
}

// missing notes that an object lacks a member. As in the protocol's schema the pointer is the object's.
func (c *checker) missing(p place, name, hint string) {
	f := c.add(p, problem.ManifestInvalid, "required", "member %q is missing", name)
	f.Params, f.Hint = map[string]any{"missingProperty": name}, hint
}

// ignored warns of a member that nothing reads.
func (c *checker) ignored(p place, member jsonvalue.Member, known []string) {
	f := c.add(p.at(member), problem.FieldIgnored, "additionalProperties", "member %q has no effect here", member.Name)
	f.Severity, f.Params = problem.SeverityWarning, map[string]any{"additionalProperty": member.Name}
	f.At.Line, f.At.Column = member.Line, member.Column
	switch near := suggest.Nearest(member.Name, known); {
	case member.Name == "envFile":
		f.Hint = `Put what the server needs under "env"; "env:NAME" and "file:path" refer to secrets.`
	case near != "":
		f.Hint = fmt.Sprintf("Did you mean %q?", near)
	}
}

// is reports whether a value is of the kind, and notes it if not.
func (c *checker) is(p place, kind jsonvalue.Kind, what string) bool {
	if p.node.Kind == kind {
		return true
	}
	f := c.add(p, problem.ManifestInvalid, "type", "%s must be of type %s, not %s", what, kind, p.node.Kind)
	f.Params = map[string]any{"type": kind.String()}
	return false
}

// text gives a string of at least one character.
func (c *checker) text(p place, what string) string {
	if !c.is(p, jsonvalue.String, what) {
		return ""
	}
	switch {
	case p.node.Str == "":
		c.add(p, problem.ManifestInvalid, "minLength", "%s is empty", what)
	case strings.ContainsRune(p.node.Str, 0):
		c.add(p, problem.ManifestInvalid, "pattern", "%s contains the character U+0000", what)
	}
	return p.node.Str
}

func (c *checker) texts(p place, what string) []string {
	if !c.is(p, jsonvalue.Array, what) {
		return nil
	}
	list := make([]string, 0, len(p.node.Elements))
	for i, element := range p.node.Elements {
		at := place{element, p.pointer + "/" + strconv.Itoa(i)}
		if c.is(at, jsonvalue.String, "an element of "+what) {
			list = append(list, element.Str)
		}
	}
	return list
}

func (c *checker) textMap(p place, what string) map[string]string {
	if !c.is(p, jsonvalue.Object, what) {
		return nil
	}
	values := map[string]string{}
	for _, member := range p.node.Members {
		if c.is(p.at(member), jsonvalue.String, "a member of "+what) {
			values[member.Name] = member.Value.Str
		}
	}
	return values
}

// whole gives a whole number from 1 to most, 0 if it is none.
func (c *checker) whole(p place, what string, most int) int {
	if !c.is(p, jsonvalue.Number, what) {
		return 0
	}
	n := p.node.Num
	if n < 1 || n > float64(most) || n != math.Trunc(n) {
		c.add(p, problem.ManifestInvalid, "range", "%s must be a whole number from 1 to %d", what, most)
		return 0
	}
	return int(n)
}
