package document

import (
	"fmt"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// report turns violations into findings, one for each mistake, and returns their places. The place of a missing or misspelt field is where
// the field should be. That of a choice that a value does not make (anyOf, oneOf, not) is a field without a name: the fields of the value can
// be checked.
func (d *Document) report(violations []jsonschema.Violation) (broken []string) {
	violations = d.nearestAlternatives(violations)
	seen := map[string]bool{}
	for _, v := range violations {
		mistake := fmt.Sprint(v.InstancePath, "\n", v.Params["missingProperty"], v.Params["additionalProperty"], v.Params["propertyName"])
		if isChoice(v) {
			mistake += "\n" + v.SchemaPath
		}
		if seen[mistake] {
			continue
		}
		seen[mistake] = true
		place := v.InstancePath + At(v.Params["missingProperty"])
		if !d.misspelt(v, violations) {
			f := d.violation(v)
			switch v.Keyword {
			case "required":
			case "anyOf", "oneOf", "not":
				place = f.At.Pointer + At("")
			default:
				place = f.At.Pointer
			}
		}
		broken = append(broken, place)
		if v.Keyword == "additionalProperties" {
			if meant := suggest.Nearest(v.Params["additionalProperty"].(string), d.known(v)); meant != "" {
				broken = append(broken, v.InstancePath+At(meant))
			}
		}
	}
	return broken
}

func (d *Document) violation(v jsonschema.Violation) *problem.Finding {
	schema := d.schemaOf(v)
	message := schema.Get("errorMessage")
	var f *problem.Finding
	switch v.Keyword {
	case "required":
		f = d.Fail(v.InstancePath, v.Keyword, "missing field %q", v.Params["missingProperty"])
	case "additionalProperties":
		name, known := v.Params["additionalProperty"].(string), d.known(v)
		f = d.FailName(v.InstancePath+At(name), v.Keyword, "unknown field %q", name)
		if f.Hint = suggest.DidYouMean(name, known); f.Hint == "" && len(known) > 0 {
			f.Hint = "Known fields: " + strings.Join(known, ", ") + "."
		}
		message = nil
	case "propertyNames":
		f = d.FailName(v.InstancePath+At(v.Params["propertyName"]), v.Keyword, "%s", v.Message)
	case "dependentRequired":
		f = d.FailName(v.InstancePath+At(v.Params["property"]), v.Keyword, "needs the field %q beside it", v.Params["missingProperty"])
	case "uniqueItems":
		f = d.Fail(v.InstancePath+At(v.Params["j"]), v.Keyword, "must not equal %s", v.InstancePath+At(v.Params["i"]))
		f.Hint, message = "Leave one of them out.", nil
	case "enum":
		f = d.Fail(v.InstancePath, v.Keyword, "%s", v.Message)
		if text, ok := d.root.Lookup(v.InstancePath).Value().(string); ok {
			f.Hint = suggest.DidYouMean(text, texts(schema.Get("enum")))
		}
	case "minimum", "maximum":
		f = d.Fail(v.InstancePath, v.Keyword, "%s", v.Message)
		if least, most := schema.Get("minimum"), schema.Get("maximum"); least != nil && most != nil {
			f.Message = problem.Format("must be from %s to %s, not %s", least.Text, most.Text, d.root.Lookup(v.InstancePath).Text)
		}
	default:
		f = d.Fail(v.InstancePath, v.Keyword, "%s", v.Message)
		if least := schema.Get("minLength"); v.Keyword == "minLength" && least.Text == "1" {
			f.Message = "must not be empty"
		}
	}
	f.Params = v.Params
	if hint := schema.Get("errorHint"); hint != nil && f.Hint == "" {
		f.Hint = hint.Str
	}
	if message != nil && v.Keyword != "type" {
		f.Message = message.Str
	}
	return f
}

// schemaOf returns the schema that has the keyword of a violation.
func (d *Document) schemaOf(v jsonschema.Violation) *jsonvalue.Node {
	place := strings.TrimPrefix(v.SchemaPath, "#")
	if at := strings.LastIndex(place, "/dependentRequired/"); at >= 0 {
		place = place[:at+1] // a name and an index follow
	}
	node := d.kind.raw.Lookup(place[:max(0, strings.LastIndexByte(place, '/'))])
	if node == nil {
		return &jsonvalue.Node{}
	}
	return node
}

// known returns the names of the fields that an object may have.
func (d *Document) known(v jsonschema.Violation) []string { return propertiesOf(d.schemaOf(v)) }

func propertiesOf(schema *jsonvalue.Node) (names []string) {
	if fields := schema.Get("properties"); fields != nil {
		for _, m := range fields.Members {
			names = append(names, m.Name)
		}
	}
	return names
}

// misspelt reports whether a field is missing because its name is misspelt: the finding about the unknown name suggests it.
func (d *Document) misspelt(missing jsonschema.Violation, all []jsonschema.Violation) bool {
	name, ok := missing.Params["missingProperty"].(string)
	return ok && slices.ContainsFunc(all, func(v jsonschema.Violation) bool {
		unknown, ok := v.Params["additionalProperty"].(string)
		return ok && v.InstancePath == missing.InstancePath && suggest.Nearest(unknown, d.known(v)) == name
	})
}

// nearestAlternatives keeps, of the violations below an anyOf or oneOf, those of the alternative that the value is most like, in place of
// that of the keyword; none of them where the value breaks another keyword, too. Mistakes in the fields of an object do not count if the
// alternatives differ in which fields there are, nor do other choices and other fields that are missing or unknown.
func (d *Document) nearestAlternatives(violations []jsonschema.Violation) []jsonschema.Violation {
	for _, whole := range violations {
		if whole.Keyword != "anyOf" && whole.Keyword != "oneOf" {
			continue
		}
		below := func(v jsonschema.Violation) bool { return strings.HasPrefix(v.SchemaPath, whole.SchemaPath+"/") }
		presence := !slices.ContainsFunc(violations, func(v jsonschema.Violation) bool {
			return below(v) && within(v.InstancePath, whole.InstancePath) && v.Keyword != "required"
		})
		others := slices.ContainsFunc(violations, func(v jsonschema.Violation) bool {
			if below(v) || v.SchemaPath == whole.SchemaPath || !within(v.InstancePath, whole.InstancePath) {
				return false
			}
			return !presence || v.InstancePath == whole.InstancePath && !isChoice(v) && v.Keyword != "required" &&
				(v.Keyword != "additionalProperties" || slices.ContainsFunc(violations, func(missing jsonschema.Violation) bool {
					return below(missing) && d.misspelt(missing, []jsonschema.Violation{v})
				}))
		})
		nearest := ""
		if !others {
			nearest = nearestAlternative(whole, violations)
		}
		violations = slices.DeleteFunc(slices.Clone(violations), func(v jsonschema.Violation) bool {
			if !within(v.InstancePath, whole.InstancePath) {
				return false
			}
			if v.SchemaPath == whole.SchemaPath {
				return others || nearest != ""
			}
			return below(v) && (nearest == "" || !strings.HasPrefix(v.SchemaPath, nearest))
		})
	}
	return violations
}

// nearestAlternative returns the place of the alternative with the fewest violations, "" if several have as few. A const decides between
// alternatives, so a violation of one counts more.
func nearestAlternative(whole jsonschema.Violation, violations []jsonschema.Violation) string {
	cost := map[string]int{}
	for _, v := range violations {
		rest, ok := strings.CutPrefix(v.SchemaPath, whole.SchemaPath+"/")
		if !ok || !within(v.InstancePath, whole.InstancePath) {
			continue
		}
		index, _, _ := strings.Cut(rest, "/")
		if cost[whole.SchemaPath+"/"+index+"/"]++; v.Keyword == "const" {
			cost[whole.SchemaPath+"/"+index+"/"] += 100
		}
	}
	nearest, least, equal := "", 0, false
	for place, n := range cost {
		switch {
		case nearest == "" || n < least:
			nearest, least, equal = place, n, false
		case n == least:
			equal = true
		}
	}
	if equal {
		return ""
	}
	return nearest
}

func within(pointer, root string) bool {
	return pointer == root || strings.HasPrefix(pointer, root+"/")
}

func texts(list *jsonvalue.Node) (texts []string) {
	if list == nil {
		return nil
	}
	for _, e := range list.Elements {
		texts = append(texts, fmt.Sprint(e.Value()))
	}
	return texts
}

// isChoice reports whether a value does not make a choice between fields.
func isChoice(v jsonschema.Violation) bool {
	return v.Keyword == "anyOf" || v.Keyword == "oneOf" || v.Keyword == "not"
}
