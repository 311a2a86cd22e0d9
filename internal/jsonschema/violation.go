package jsonschema

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	lib "github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// MaxViolations bounds the violations that are listed of one value.
const MaxViolations = 1000

// Violation is one failed keyword.
type Violation struct {
	// InstancePath is a JSON pointer to the offending value (to the object, for required and additionalProperties).
	InstancePath string
	Keyword      string
	// Message is one sentence without the pointer.
	Message string
	// Params are the keyword's parameters in the protocol's form, for instance {"missingProperty":"id"} (spec:
	// definition, 6.1). Never nil.
	Params map[string]any
	// SchemaPath is the keyword's place in the schema, as a fragment such as "#/properties/a/type".
	SchemaPath string
}

// Text joins violations as "<pointer or /> <message>", separated by "; " (spec: execution, 0.3). It is an excerpt of
// problem.MaxText bytes: one wrong array can have thousands.
func Text(vs []Violation) string {
	var b strings.Builder
	for i, v := range vs {
		if i > 0 {
			b.WriteString("; ")
		}
		if v.InstancePath == "" {
			b.WriteByte('/')
		} else {
			b.WriteString(v.InstancePath)
		}
		b.WriteByte(' ')
		b.WriteString(v.Message)
	}
	return problem.Excerpt(b.String(), problem.MaxText)
}

// flatten turns the library's tree of causes into a list: one violation for each failed keyword, failures inside an
// anyOf, oneOf or then before the keyword itself (spec: definition, 6.1 and 14.2).
func flatten(root *lib.ValidationError, instance any, places locations) []Violation {
	f := flattener{instance: instance, places: places, seen: map[string]bool{}}
	f.walk(root)
	return f.out
}

type flattener struct {
	instance any
	places   locations
	out      []Violation
	seen     map[string]bool
}

func (f *flattener) walk(e *lib.ValidationError) {
	if len(f.out) == MaxViolations {
		return
	}
	if len(e.Causes) == 0 {
		f.leaf(e)
		return
	}
	_, below := f.places.keyword(e.AbsoluteKeywordLocation)
	keyword := ""
	if len(below) > 0 && e.Message != "" {
		keyword = below[0]
	}
	if keyword == "minContains" {
		// The keyword describes the failure better than its elements do.
		f.leaf(e)
		return
	}
	causes := slices.Clone(e.Causes)
	slices.SortStableFunc(causes, byPlace)
	for _, c := range causes {
		f.walk(c)
	}
	switch keyword {
	case "anyOf":
		f.leaf(e)
	case "oneOf":
		f.add(e, noAlternative())
	case "then", "else":
		f.add(e, Violation{
			Keyword: "if", Params: map[string]any{"failingKeyword": keyword},
			Message: "must match the schema in " + quote(keyword),
		})
	}
}

// byPlace orders causes by the instance, indexes numerically, then by the schema.
func byPlace(a, b *lib.ValidationError) int {
	return cmp.Or(
		comparePointers(a.InstanceLocation, b.InstanceLocation),
		comparePointers(a.KeywordLocation, b.KeywordLocation),
	)
}

func comparePointers(a, b string) int {
	for a != b {
		x, restA, moreA := strings.Cut(a, "/")
		y, restB, moreB := strings.Cut(b, "/")
		if x != y {
			i, errX := strconv.Atoi(x)
			j, errY := strconv.Atoi(y)
			if errX == nil && errY == nil && i != j {
				return cmp.Compare(i, j)
			}
			return cmp.Compare(x, y)
		}
		if !moreA || !moreB {
			return cmp.Compare(len(a), len(b))
		}
		a, b = restA, restB
	}
	return 0
}

// leaf describes one failed keyword; keywords that speak of several members become one violation for each.
func (f *flattener) leaf(e *lib.ValidationError) {
	s, below := f.places.keyword(e.AbsoluteKeywordLocation)
	if len(below) == 0 {
		f.falseSchema(e)
		return
	}
	value, found := lookup(f.instance, e.InstanceLocation)
	if name, _, isName := propertyName(e); isName {
		value, found = name, true
	}
	if s == nil || !found {
		f.add(e, Violation{Keyword: below[0], Message: "breaks the keyword " + below[0], Params: map[string]any{}})
		return
	}
	for _, v := range describe(s, below, value) {
		f.add(e, v)
	}
}

// falseSchema describes a value that the schema false rejects, from the keyword that holds it: the last one on the
// dynamic path.
func (f *flattener) falseSchema(e *lib.ValidationError) {
	steps := strings.Split(e.KeywordLocation, "/")
	v := Violation{Keyword: "false schema", Params: map[string]any{}, Message: "must NOT be there"}
	if last := steps[len(steps)-1]; isKeyword(steps) {
		switch last {
		case "unevaluatedProperties":
			object, name := splitLocation(e.InstanceLocation)
			f.addAt(object, e, Violation{
				Keyword: last, Params: map[string]any{"unevaluatedProperty": name},
				Message: "must NOT have unevaluated properties: " + quoteName(name) + " is not allowed here",
			})
			return
		case "items", "additionalItems", "unevaluatedItems":
			v.Keyword, v.Message = last, "must NOT be there: the list is too long"
		}
	}
	f.add(e, v)
}

// isKeyword reports whether the last step of a dynamic path is a keyword and not a member of the same name.
func isKeyword(steps []string) bool {
	return len(steps) < 2 || !schemaMapKeywords[steps[len(steps)-2]]
}

// add completes a violation with its places and keeps it.
func (f *flattener) add(e *lib.ValidationError, v Violation) {
	if name, object, ok := propertyName(e); ok {
		v = Violation{
			Keyword: "propertyNames", Params: map[string]any{"propertyName": name},
			Message: "must not have a member named " + quoteName(name) + ": the name " + v.Message,
		}
		f.addAt(object, e, v)
		return
	}
	f.addAt(plainPointer(e.InstanceLocation), e, v)
}

// addAt adds a violation unless it is a duplicate.
func (f *flattener) addAt(instancePath string, e *lib.ValidationError, v Violation) {
	v.InstancePath = instancePath
	v.SchemaPath = fragment(e.AbsoluteKeywordLocation)
	key := v.InstancePath + "\x00" + v.SchemaPath + "\x00" + v.Keyword + "\x00" + v.Message
	if !f.seen[key] && len(f.out) < MaxViolations {
		f.seen[key] = true
		f.out = append(f.out, v)
	}
}

// propertyName reports whether a failure is about a member's name, and returns the name and the object's pointer.
func propertyName(e *lib.ValidationError) (name, object string, ok bool) {
	if !strings.Contains(e.KeywordLocation, "/propertyNames") {
		return "", "", false
	}
	steps := strings.Split(e.KeywordLocation, "/")
	for i, step := range steps {
		if step == "propertyNames" && isKeyword(steps[:i+1]) {
			object, name = splitLocation(e.InstanceLocation)
			return name, object, true
		}
	}
	return "", "", false
}

// splitLocation returns the pointer of the object that holds a value, and the value's member name.
func splitLocation(location string) (object, name string) {
	cut := strings.LastIndexByte(location, '/')
	if cut < 0 {
		return "", ""
	}
	return plainPointer(location[:cut]), unescapeToken(location[cut+1:])
}

// lookup follows a location of the library into the instance.
func lookup(v any, location string) (any, bool) {
	if location == "" {
		return v, true
	}
	for token := range strings.SplitSeq(location[1:], "/") {
		token = unescapeToken(token)
		switch c := v.(type) {
		case map[string]any:
			next, ok := c[token]
			if !ok {
				return nil, false
			}
			v = next
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(c) {
				return nil, false
			}
			v = c[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// Suggestion returns a hint with the allowed string nearest to the one that breaks an enum, or "". instance is the value that was validated.
func (v Violation) Suggestion(instance any) string {
	list, _ := v.Params["allowedValues"].([]any)
	wrong := jsonvalue.FromValue(instance).Lookup(v.InstancePath)
	if wrong == nil || wrong.Kind != jsonvalue.String {
		return ""
	}
	var texts []string
	for _, value := range list {
		if text, ok := value.(string); ok {
			texts = append(texts, text)
		}
	}
	return suggest.DidYouMean(wrong.Str, texts)
}
