package jsonschema

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	lib "github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// A schema is rewritten before the library sees it, because the library reads some things otherwise than the protocol
// (spec: definition, 14.2):
//
//   - a missing $schema is set: without it the library treats every vocabulary as present;
//   - a format that is not asserted is left out, and so is what describes encoded texts, which the library checks in older drafts;
//   - a pattern that Go's engine cannot run, or reads otherwise than ECMAScript does, becomes a placeholder (expression.go);
//   - "nullable": true beside a type adds "null" to that type, as the reference reads it;
//   - limits beyond every length are cut to one that an int can hold;
//   - regexProperties, which the library reads although no dialect of ours has it, is left out.
//
// Faults that cannot be put right are reported: unknown dialects, an empty enum, invalid patterns, dangling references.
type preparer struct {
	root  any
	draft *lib.Draft
	// assertFormat is Options.AssertFormat.
	assertFormat bool
	problems     []Problem
	notes        []Problem
	// unchecked are the formats that are not asserted.
	unchecked  []Problem
	subschemas int
	// unnamed are the objects below unknown keywords, which are schemas only if a reference leads to them.
	unnamed int
	// hasIDs is set when a subschema has an $id of its own; references are then left to the library.
	hasIDs  bool
	anchors map[string]bool
	refs    []reference
	taken   *Together
}

type reference struct{ pointer, target string }

// Keywords whose value is one schema or a list of schemas.
var schemaKeywords = map[string]bool{
	"items": true, "prefixItems": true, "additionalItems": true, "contains": true, "allOf": true, "anyOf": true,
	"oneOf": true, "not": true, "if": true, "then": true, "else": true, "additionalProperties": true,
	"unevaluatedItems": true, "unevaluatedProperties": true, "propertyNames": true, "contentSchema": true,
}

// Keywords whose value maps names to schemas.
var schemaMapKeywords = map[string]bool{
	"properties": true, "patternProperties": true, "$defs": true, "definitions": true, "dependentSchemas": true,
	"dependencies": true,
}

// Keywords whose value is data: nothing inside is a schema.
var dataKeywords = map[string]bool{
	"const": true, "enum": true, "default": true, "examples": true, "required": true, "type": true,
	"dependentRequired": true, "$vocabulary": true,
}

var limitKeywords = map[string]bool{
	"minLength": true, "maxLength": true, "minItems": true, "maxItems": true, "minProperties": true,
	"maxProperties": true, "minContains": true, "maxContains": true,
}

// maxLimit is a length that nothing reaches and that is exact as a double and as an int.
const maxLimit = 1 << 53

func newPreparer(raw any, o Options) *preparer {
	p := &preparer{root: raw, draft: lib.Draft2020, assertFormat: o.AssertFormat, anchors: map[string]bool{}, taken: o.Together}
	if p.taken == nil {
		p.taken = new(Together)
	}
	return p
}

// prepare returns the schema to compile. It cannot be compiled if there are problems.
func (p *preparer) prepare() any {
	tooLarge := func(message, hint string) any {
		p.problems = []Problem{{Message: message, Hint: hint}}
		return nil
	}
	if depthExceeds(p.root, MaxDepth) {
		return tooLarge(fmt.Sprintf("the schema is nested deeper than %d levels", MaxDepth), "")
	}
	m, ok := p.root.(map[string]any)
	if !ok {
		return p.root
	}
	p.dialect(m)
	object := p.object(m, "", true).(map[string]any)
	object["$schema"] = p.draft.URL()
	if len(p.refs) > 0 {
		p.subschemas += p.unnamed
	}
	if p.subschemas > MaxSubschemas {
		return tooLarge(fmt.Sprintf("the schema has more than %d subschemas", MaxSubschemas), "")
	}
	if p.taken.subschemas += p.subschemas; p.taken.subschemas > MaxSubschemasTogether {
		p.taken.subschemas -= p.subschemas // a smaller schema may have room
		return tooLarge(fmt.Sprintf("the schemas have more than %d subschemas together", MaxSubschemasTogether),
			"split the workflow into subworkflows, or ask less of the values")
	}
	p.resolve()
	return object
}

func (p *preparer) problem(pointer, message, hint string) {
	p.problems = append(p.problems, Problem{Pointer: pointer, Message: message, Hint: hint})
}

func (p *preparer) dialect(m map[string]any) {
	d, present := m["$schema"]
	if !present {
		return
	}
	s, _ := d.(string)
	if draft := draftOf(s); draft != nil {
		p.draft = draft
		return
	}
	p.problem("/$schema", "unknown dialect: JSON Schema drafts 4, 6, 7, 2019-09 and 2020-12 are understood", "leave $schema out, or write "+Dialect)
}

// schemas rewrites a value that holds one schema or a list of them. strict is false below unknown keywords: a value
// there is a schema only if a $ref leads to it, so it is rewritten but never reported.
func (p *preparer) schemas(v any, pointer string, strict bool) any {
	switch v := v.(type) {
	case map[string]any:
		return p.object(v, pointer, strict)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = p.schemas(e, pointer+"/"+strconv.Itoa(i), strict)
		}
		return out
	case bool:
		if strict {
			p.subschemas++
		}
	}
	return v
}

func (p *preparer) object(m map[string]any, pointer string, strict bool) any {
	if strict {
		if p.subschemas++; p.subschemas > MaxSubschemas {
			return m // refused when all are counted
		}
	} else {
		p.unnamed++
	}
	out := make(map[string]any, len(m)+1)
	for _, key := range jsonvalue.Keys(m) {
		v, at := m[key], pointer+"/"+jsonvalue.EscapePointer(key)
		switch {
		case key == "pattern":
			v = p.pattern(v, at, strict)
		case schemaMapKeywords[key]:
			v = p.schemaMap(key, v, at, strict)
		case schemaKeywords[key]:
			v = p.schemas(v, at, strict)
		case key == "regexProperties", key == "contentEncoding", key == "contentMediaType", key == "contentSchema":
			continue
		case key == "format":
			if name, ok := v.(string); ok && !p.format(name, at, strict) {
				continue
			}
		case key == "enum":
			if list, ok := v.([]any); ok && len(list) == 0 && strict {
				p.problem(at, "enum lists no value, so nothing could ever be valid", "list at least one value")
			}
		case limitKeywords[key]:
			if n, ok := v.(float64); ok && n > maxLimit {
				v = float64(maxLimit)
			}
		case key == "$ref" || key == "$dynamicRef":
			if s, ok := v.(string); ok && strict {
				p.refs = append(p.refs, reference{at, s})
			}
		case key == "$anchor" || key == "$dynamicAnchor":
			if s, ok := v.(string); ok {
				p.anchors[s] = true
			}
		case key == "$id", key == "id" && p.draft == lib.Draft4:
			s, _ := v.(string)
			if anchor, found := strings.CutPrefix(s, "#"); found {
				p.anchors[anchor] = true // as drafts before 2019-09 write an anchor
			} else {
				p.hasIDs = p.hasIDs || pointer != ""
			}
		case dataKeywords[key]:
		default:
			v = p.schemas(v, at, false)
		}
		out[key] = v
	}
	if strict {
		p.nullable(out, pointer)
	}
	return out
}

// format reports whether a format is kept, which the library then asserts.
func (p *preparer) format(name, pointer string, strict bool) bool {
	_, known := lib.Formats[name]
	message := ""
	switch {
	case !known:
		message = fmt.Sprintf("the format %q is unknown, so no value is checked against it", name)
	case !p.assertFormat:
		message = fmt.Sprintf("the format %q is not checked here, as in other engines of the protocol", name)
	default:
		return true
	}
	if strict {
		p.unchecked = append(p.unchecked, Problem{
			Pointer: pointer, Message: message, Hint: "write a pattern beside it if the value must be checked",
		})
	}
	return false
}

func (p *preparer) schemaMap(keyword string, v any, pointer string, strict bool) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	out := make(map[string]any, len(m))
	for _, name := range jsonvalue.Keys(m) {
		at := pointer + "/" + jsonvalue.EscapePointer(name)
		sub := m[name]
		if _, isList := sub.([]any); !isList || keyword != "dependencies" {
			sub = p.schemas(sub, at, strict)
		}
		if keyword == "patternProperties" {
			if s, ok := p.pattern(name, at, strict).(string); ok {
				name = s
			}
		}
		out[name] = sub
	}
	return out
}

func (p *preparer) pattern(v any, pointer string, strict bool) any {
	s, ok := v.(string)
	if !ok {
		return v
	}
	if p.taken.patterns > MaxPatterns {
		return v // reported
	}
	if p.taken.patterns += patternSize(s); p.taken.patterns > MaxPatterns {
		p.problems = []Problem{{
			Pointer: pointer, Message: fmt.Sprintf("the patterns are too large together: more than %d steps when repeats are written out", MaxPatterns),
			Hint: "write fewer patterns, and lengths as minLength and maxLength",
		}}
		return v
	}
	compiled, fault := checkPattern(s)
	if fault == nil {
		return compiled
	}
	if strict {
		p.problem(pointer, fault.message, fault.hint)
	}
	return v
}

// nullable reads the one OpenAPI keyword that the reference honours.
func (p *preparer) nullable(out map[string]any, pointer string) {
	v, present := out["nullable"]
	if !present {
		return
	}
	var types []any
	switch t := out["type"].(type) {
	case string:
		types = []any{t}
	case []any:
		types = t
	}
	hasNull := slices.Contains(types, any("null"))
	const hint = `write "type": ["string", "null"]`
	switch nullable, ok := v.(bool); {
	case !ok:
		p.problem(pointer+"/nullable", "nullable must be true or false", hint)
	case len(types) == 0:
		p.problem(pointer+"/nullable", "nullable needs a type beside it", hint)
	case hasNull && !nullable:
		p.problem(pointer+"/nullable", `nullable is false, but type allows "null"`, hint)
	case nullable && !hasNull:
		p.notes = append(p.notes, Problem{
			Pointer: pointer + "/nullable", Message: "nullable is not a keyword of JSON Schema; only some engines read it", Hint: hint,
		})
		out["type"] = append(slices.Clone(types), "null")
	}
}

// resolve reports dangling references, each by name.
func (p *preparer) resolve() {
	if p.hasIDs {
		return
	}
	idKeyword := "$id"
	if p.draft == lib.Draft4 {
		idKeyword = "id"
	}
	rootID, _ := p.root.(map[string]any)[idKeyword].(string)
	rootID, _, _ = strings.Cut(rootID, "#")
	for _, r := range p.refs {
		doc, fragment, _ := strings.Cut(r.target, "#")
		switch {
		case strings.HasPrefix(doc, "https://json-schema.org/draft/"), draftOf(doc) != nil:
		case doc != "" && doc != rootID:
			if rootID == "" {
				p.problem(r.pointer, fmt.Sprintf("%q names another document, and none is ever loaded", r.target),
					"copy its target into $defs and refer to it as #/$defs/<name>")
			}
		case fragment == "" || fragment == "/":
		case strings.HasPrefix(fragment, "/"):
			if _, ok := lookup(p.root, fragment); !ok {
				p.problem(r.pointer, fmt.Sprintf("%q leads to nothing in this schema", r.target), "")
			}
		case !p.anchors[fragment]:
			p.problem(r.pointer, fmt.Sprintf("no $anchor in this schema is called %q", fragment), "")
		}
	}
}

// depthExceeds reports whether objects and arrays are nested more than limit levels deep.
func depthExceeds(v any, limit int) bool {
	var parts iter.Seq[any]
	switch v := v.(type) {
	case map[string]any:
		parts = maps.Values(v)
	case []any:
		parts = slices.Values(v)
	default:
		return false
	}
	if limit == 0 {
		return true
	}
	for part := range parts {
		if depthExceeds(part, limit-1) {
			return true
		}
	}
	return false
}
