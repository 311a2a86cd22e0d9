package definition

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// A shape describes a part of a document: the structural check reads it, and the published JSON Schema is generated from it
// (jsonschema.go). One mistake makes one finding, about the node type that the author declared (spec: definition, 14.1).
type shape struct {
	// noun names the part in messages, for instance "an edge".
	noun string
	kind jsonvalue.Kind
	// any admits every kind; integer narrows Number.
	any, integer bool
	// enum lists the only strings; it is checked before everything else, the kind included.
	enum []string
	// notEmpty requires at least one character, element or field.
	notEmpty bool
	// minimum bounds a number from below, maximum from above.
	minimum, maximum *float64
	// members lists the fields of an object; open admits others, values is the shape of every field instead.
	members []member
	// extended lists fields that belong to extensions.
	extended []extended
	open     bool
	values   *shape
	element  *shape
	// rules check several fields together.
	rules []rule
	// hint is the advice for a value of another kind.
	hint string
	// instead holds hints for fields that authors often write here and that do not exist.
	instead map[string]string

	// description and examples, JSON texts, are published in the schema; name is the shape's name among its $defs, "" for a shape
	// that is written where it is used. deprecated marks a field that nothing reads.
	description string
	examples    []string
	name        string
	deprecated  bool
}

type member struct {
	name     string
	shape    *shape
	required bool
}

// A rule checks several fields of an object together.
type rule interface {
	check(c *shapeCheck, n *jsonvalue.Node, at *path)
	// keywords is the rule in JSON Schema. Those of several rules of one object are in an allOf.
	keywords() jsonvalue.Ordered
}

// shapeCheck collects the findings of one document's structure.
type shapeCheck struct {
	findings problem.Findings
	// enough says that no more findings are shown: faults only count.
	enough bool
	faults int
	// strangers counts the faults that are unknown fields; hidden counts required fields that are missing because an unknown one was meant.
	strangers, hidden int
	// uses are the extensions that the document names, unnamed those that it uses without, which are reported once.
	uses    []Extension
	unnamed map[Extension]bool
}

// path is the way from the root to a value; its pointer is written only when a finding needs it.
type path struct {
	parent *path
	name   string
	index  int // used where name is ""; an empty member name has index -1
}

func (p *path) member(name string) *path { return &path{parent: p, name: name, index: -1} }

func (p *path) element(i int) *path { return &path{parent: p, index: i} }

func (p *path) pointer() string {
	if p == nil {
		return ""
	}
	if p.name == "" && p.index >= 0 {
		return p.parent.pointer() + "/" + strconv.Itoa(p.index)
	}
	return p.parent.pointer() + "/" + jsonvalue.EscapePointer(p.name)
}

// report adds a structural error at a value.
func (c *shapeCheck) report(n *jsonvalue.Node, at *path, keyword string, params map[string]any, message, hint string) {
	if c.faults++; c.enough || c.full() {
		return
	}
	c.findings = append(c.findings, problem.Finding{
		Code: problem.DefinitionSchema, Severity: problem.SeverityError,
		At:      problem.Place{Pointer: at.pointer(), Line: n.Line, Column: n.Column},
		Message: message, Hint: hint, Keyword: keyword, SchemaPath: "#/" + keyword, Params: params,
	})
}

// check reports whether the value has the shape.
func (c *shapeCheck) check(s *shape, n *jsonvalue.Node, at *path) bool {
	before := c.faults
	if c.full() {
		return false
	}
	switch {
	case s.enum != nil:
		c.checkEnum(s, n, at)
	case s.any:
	case n.Kind != s.kind || s.integer && n.Num != math.Trunc(n.Num):
		c.checkKind(s, n, at)
	default:
		c.checkContent(s, n, at)
	}
	return c.faults == before
}

// full reports whether more findings than are shown have been collected; the rest is not checked.
func (c *shapeCheck) full() bool { return len(c.findings) > MaxFindings }

func (c *shapeCheck) checkEnum(s *shape, n *jsonvalue.Node, at *path) {
	if n.Kind == jsonvalue.String && slices.Contains(s.enum, n.Str) {
		return
	}
	allowed := make([]any, len(s.enum))
	for i, e := range s.enum {
		allowed[i] = e
	}
	message := s.noun + " must be one of " + problem.OrList(s.enum)
	hint := ""
	if n.Kind == jsonvalue.String {
		message += fmt.Sprintf(", not %q", clip(n.Str))
		hint = suggest.DidYouMean(n.Str, s.enum)
	}
	c.report(n, at, "enum", map[string]any{"allowedValues": allowed}, message, hint)
}

func (c *shapeCheck) checkKind(s *shape, n *jsonvalue.Node, at *path) {
	want := s.kind.String()
	if s.integer {
		want = "integer"
	}
	hint := s.hint
	if hint == "" && n.Kind == jsonvalue.String {
		hint = unquoted(s.kind, n.Str)
	}
	c.report(n, at, "type", map[string]any{"type": want},
		fmt.Sprintf("%s must be %s, not %s", s.noun, article(want), describeValue(n)), hint)
}

// unquoted returns the hint for a string that contains a boolean or a number, or "".
func unquoted(kind jsonvalue.Kind, text string) string {
	switch text = strings.ToLower(strings.TrimSpace(strings.TrimSuffix(text, "%"))); {
	case kind == jsonvalue.Bool && slices.Contains([]string{"true", "yes", "on"}, text):
		return "write true, without quotes"
	case kind == jsonvalue.Bool && slices.Contains([]string{"false", "no", "off"}, text):
		return "write false, without quotes"
	case kind == jsonvalue.Number && strings.Trim(text, "0123456789.") == "":
		if _, err := strconv.ParseFloat(text, 64); err == nil {
			return "write " + clip(text) + ", without quotes"
		}
	}
	return ""
}

func (c *shapeCheck) checkContent(s *shape, n *jsonvalue.Node, at *path) {
	switch n.Kind {
	case jsonvalue.String:
		if s.notEmpty && n.Str == "" {
			c.report(n, at, "minLength", map[string]any{"limit": 1.0}, s.noun+" must not be empty", "")
		}
	case jsonvalue.Number:
		if s.minimum != nil && n.Num < *s.minimum {
			c.report(n, at, "minimum", map[string]any{"comparison": ">=", "limit": *s.minimum},
				fmt.Sprintf("%s must be at least %v", s.noun, *s.minimum), "")
		}
		if s.maximum != nil && n.Num > *s.maximum {
			c.report(n, at, "maximum", map[string]any{"comparison": "<=", "limit": *s.maximum},
				fmt.Sprintf("%s must be at most %v", s.noun, *s.maximum), "")
		}
	case jsonvalue.Array:
		if s.notEmpty && len(n.Elements) == 0 {
			c.report(n, at, "minItems", map[string]any{"limit": 1.0}, s.noun+" must have at least one element", "")
		}
		if s.element != nil {
			for i, e := range n.Elements {
				c.check(s.element, e, at.element(i))
			}
		}
	case jsonvalue.Object:
		c.checkObject(s, n, at)
	}
}

func (c *shapeCheck) checkObject(s *shape, n *jsonvalue.Node, at *path) {
	if s.notEmpty && len(n.Members) == 0 {
		c.report(n, at, "minProperties", map[string]any{"limit": 1.0}, s.noun+" must have at least one field", s.hint)
	}
	for _, m := range s.members {
		if !m.required || n.Get(m.name) != nil {
			continue
		}
		rename := c.misspelt(s, n, m.name)
		if rename != "" && !s.open && s.values == nil {
			c.hidden++
			continue // the member that is not known is reported, with this name
		}
		c.report(n, at, "required", map[string]any{"missingProperty": m.name}, fmt.Sprintf("%s must have the field %q", s.noun, m.name), rename)
	}
	for _, m := range n.Members {
		switch i := slices.IndexFunc(s.members, func(known member) bool { return known.name == m.Name }); {
		case i >= 0:
			c.check(s.members[i].shape, m.Value, at.member(m.Name))
		case slices.ContainsFunc(s.extended, func(e extended) bool { return e.name == m.Name }):
			i := slices.IndexFunc(s.extended, func(e extended) bool { return e.name == m.Name })
			c.extendedMember(s.extended[i], m, at)
		case s.values != nil:
			c.check(s.values, m.Value, at.member(m.Name))
		case !s.open && !c.full():
			c.unknownMember(s, m, at)
		}
	}
	for _, r := range s.rules {
		r.check(c, n, at)
	}
}

// unknownMember reports a member that its object does not have, at the member's name.
func (c *shapeCheck) unknownMember(s *shape, m jsonvalue.Member, at *path) {
	hint := s.instead[m.Name]
	if hint == "" {
		names := make([]string, len(s.members))
		for i, known := range s.members {
			names[i] = known.name
		}
		if hint = suggest.DidYouMean(m.Name, names); hint == "" {
			hint = "use " + problem.OrList(names)
		}
	}
	message := fmt.Sprintf("%s must NOT have additional properties: unknown field %q", s.noun, clip(m.Name))
	name, before := &jsonvalue.Node{Line: m.Line, Column: m.Column}, len(c.findings)
	c.strangers++
	c.report(name, at, "additionalProperties", map[string]any{"additionalProperty": m.Name}, message, hint)
	if fault := signatureFault(m.Value); m.Name == "signature" && fault != "" && len(c.findings) > before {
		f := &c.findings[len(c.findings)-1]
		f.Code, f.Hint = problem.DefinitionSignature, fault
	}
}

// misspelt suggests that a missing member is there under another name, or under a similar one.
func (c *shapeCheck) misspelt(s *shape, n *jsonvalue.Node, missing string) string {
	similar := ""
	for _, m := range n.Members[:min(len(n.Members), 100)] {
		known := slices.ContainsFunc(s.members, func(k member) bool { return k.name == m.Name })
		switch instead := s.instead[m.Name]; {
		case known:
		case instead == fmt.Sprintf("write %q", missing):
			return fmt.Sprintf("rename %q", m.Name)
		case instead == "" && similar == "" && suggest.DidYouMean(m.Name, []string{missing}) != "":
			similar = fmt.Sprintf("rename %q", m.Name)
		}
	}
	return similar
}

func article(kind string) string {
	switch kind {
	case "object", "array", "integer":
		return "an " + kind
	case "string":
		return "a text"
	case "null":
		return kind
	}
	return "a " + kind
}

// describeValue names a value of the wrong kind; short ones are shown.
func describeValue(n *jsonvalue.Node) string {
	switch n.Kind {
	case jsonvalue.Number:
		return "the number " + clip(n.Text)
	case jsonvalue.Bool:
		return strconv.FormatBool(n.Bool)
	case jsonvalue.String:
		return "the text " + strconv.Quote(clip(n.Str))
	}
	return article(n.Kind.String())
}

// clip shortens a quotation in a message.
func clip(s string) string { return problem.ClipRunes(s, 60) }
