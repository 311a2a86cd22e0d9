package calls

import (
	"fmt"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonobject"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// Arguments reads the arguments of one call. It collects every mistake, so that the caller can correct all of them at
// once; the results of its methods are valid only if Problem returns nil.
//
// It is lenient where that is harmless: null counts as absent, and JSON text is accepted for an object, because some
// hosts encode objects twice. An unknown name is rejected.
type Arguments struct {
	*jsonobject.Object
	Report *jsonobject.Report
	// Broken is the syntax error of the arguments.
	Broken error
	// NoLines is set for a definition that is an object: its author has seen no lines.
	NoLines bool
	// Refused is the error of a definition that cannot be read.
	Refused *problem.Error
	// unread is the error of arguments that were not decoded: single ones have no findings then.
	unread error
	// definitionText is the JSON text of a definition that is an object: a decoded value does not show duplicate fields, for instance.
	definitionText []byte
}

// MaxFindings is how many mistakes an answer lists: a caller that has corrected these will see the next.
const MaxFindings = 20

// Of reads arguments that have been decoded, such as those of a query.
func Of(values map[string]any, names []string) *Arguments {
	report := &jsonobject.Report{Code: problem.ValidationError, NullIsAbsent: true, Limit: MaxFindings}
	a := &Arguments{Object: report.Object(values), Report: report}
	rejectUnknown(a.Object, names, nil)
	return a
}

// Read reads the text of the arguments, which may be empty. names are those of the arguments; inner maps names that are
// valid only inside an argument to that argument. A definition is left to Definition. The arguments of elsewhere, such as
// those of a path, count as if they were in the text, which must not contradict them.
func Read(raw []byte, names []string, inner map[string]string, elsewhere map[string]any) *Arguments {
	report := &jsonobject.Report{Code: problem.ValidationError, NullIsAbsent: true, Limit: MaxFindings}
	a := &Arguments{Object: report.Object(elsewhere), Report: report}
	if len(raw) == 0 {
		return a
	}
	if at := jsonvalue.InvalidUTF8(raw); at >= 0 {
		a.Broken = fmt.Errorf("invalid UTF-8 at byte %d", at+1)
		return a
	}
	rest := raw
	if from, to := jsonvalue.MemberSpan(raw, definitionArgument); to > 0 && raw[from] == '{' {
		a.definitionText, rest = raw[from:to], slices.Concat(raw[:from], []byte("{}"), raw[to:])
	}
	plain, losses, err := decodeExact(rest)
	if err == errTooMuch {
		a.Fail("type", "%v", err)
		a.unread = a.Problem()
		return a
	}
	if err != nil {
		a.Broken = err
		return a
	}
	if text, encodedTwice := plain.(string); encodedTwice {
		a.definitionText = jsonvalue.MemberText([]byte(text), definitionArgument)
	}
	if plain != nil {
		rejectLosses(report.Value(plain), losses, definitionArgument)
		values := ReadObject(report.Value(plain), definitionArgument)
		a.Object = report.Object(values)
		for name, value := range elsewhere {
			if given := a.Get(name); given.Present() && given.Plain != value {
				given.Fail("const", "expected %q, which the address names", value)
			} else if values != nil {
				values[name] = value
			}
		}
	}
	rejectUnknown(a.Object, names, inner)
	return a
}

// definitionArgument is the name of the argument that is a definition, wherever a tool has one.
const definitionArgument = "definition"

// maxDecoded bounds the memory of the decoded arguments of a call. 2 MiB of the smallest objects, and 4 MiB of
// numbers, take less.
const maxDecoded = 128 << 20

// largeText is the size of the smallest text whose memory is estimated before it is decoded.
const largeText = 64 << 10

var errTooMuch = fmt.Errorf("need more than %d MiB of memory: send fewer or shorter values", maxDecoded>>20)

// decodeExact is jsonvalue.DecodeUnique for a text that does not take too much.
func decodeExact(text []byte) (v any, losses []jsonvalue.SyntaxError, err error) {
	if len(text) > largeText && jsonvalue.DecodedBytes(text, maxDecoded) > maxDecoded {
		return nil, nil, errTooMuch
	}
	return jsonvalue.DecodeUnique(text)
}

// within reads an object argument with known fields. aliases maps other spellings of a field to its name.
func (a *Arguments) within(name string, values map[string]any, names []string, aliases map[string]string) *jsonobject.Object {
	renamed := map[string]any{}
	for member, v := range values {
		if alias, ok := aliases[member]; ok {
			member = alias
		}
		renamed[member] = v
	}
	o := a.Get(name).With(renamed).Object()
	rejectUnknown(o, names, nil)
	return o
}

// rejectUnknown reports the fields that are not among the names. inner maps the names that are valid inside an argument
// to that argument.
func rejectUnknown(o *jsonobject.Object, names []string, inner map[string]string) {
	o.Known(names...)
	unknown := o.Close()
	for i := range unknown {
		respelt := snakeCase(unknown[i].Params["additionalProperty"].(string))
		if outer := inner[respelt]; outer != "" {
			unknown[i].Hint = "it belongs in " + outer
		} else if slices.Contains(names, respelt) {
			unknown[i].Hint = suggest.Hint(respelt)
		} else if at := slices.IndexFunc(synonyms[respelt], func(name string) bool { return slices.Contains(names, name) }); at >= 0 {
			unknown[i].Hint = suggest.Hint(synonyms[respelt][at])
		} else if near := suggest.DidYouMean(respelt, names); near != "" {
			unknown[i].Hint = near
		}
	}
}

// synonyms maps other words for arguments to the arguments that they may mean: the first that the tool has is suggested.
var synonyms = map[string][]string{
	"id": {"execution_id"}, "run_id": {"execution_id"}, "run": {"execution_id"}, "execution": {"execution_id"}, "workflow_id": {"execution_id"},
	"payload": {"resume_payload", "outcome", "input"}, "answer": {"resume_payload"}, "response": {"resume_payload"},
	"output": {"result", "outcome"}, "data": {"result", "payload", "resume_payload", "input"}, "message": {"error", "reason"},
	"name": {"signal_name", "definition_ref", "definition_name"}, "signal": {"signal_name"}, "workflow": {"definition_ref", "definition_name"},
	"node": {"node_id"}, "status": {"phase"}, "mode": {"activity_execution_mode"}, "timeout_ms": {"wait_ms"}, "jq": {"select"},
	"inputs": {"input"}, "args": {"input"}, "arguments": {"input"},
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

// Problem returns the mistakes in the arguments as one error, nil without a mistake. The path has the form of the
// protocol's validator, for programs; the text is for people.
func (a *Arguments) Problem() error {
	if a.unread != nil {
		return a.unread
	}
	if len(a.Report.Findings) == 0 {
		if a.Refused != nil {
			return a.Refused
		}
		return nil
	}
	var (
		issues []any
		texts  []string
	)
	for _, f := range a.Report.Findings {
		path := []any{}
		for _, name := range jsonobject.Path(f) {
			path = append(path, name)
		}
		issues = append(issues, map[string]any{"path": path, "message": jsonobject.Message(f)})
		texts = append(texts, jsonobject.Describe("arguments", f))
	}
	if a.Report.Omitted > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", a.Report.Omitted))
	}
	e := problem.New(problem.ValidationError, "%s", strings.Join(texts, "; "))
	e.Details = map[string]any{"issues": issues}
	return e
}

// rejectLosses reports the values of a text that cannot be kept, except in fields that are read from their own texts.
func rejectLosses(v jsonobject.Value, losses []jsonvalue.SyntaxError, except ...string) {
	for _, loss := range losses {
		path := jsonvalue.PointerTokens(loss.Pointer)
		if len(path) == 0 || len(path) == 1 && loss.Kind == "duplicate" || !slices.Contains(except, path[0]) {
			v.Fail("type", "%s", loss.Message).At.Pointer += loss.Pointer
		}
	}
}

// ReadObject reads an object, or the JSON text of one; it returns nil otherwise. except is that of refuseLosses.
func ReadObject(v jsonobject.Value, except ...string) map[string]any {
	text, isText := v.Plain.(string)
	if !isText {
		return v.Map()
	}
	parsed, losses, err := decodeExact([]byte(text))
	object, isObject := parsed.(map[string]any)
	switch {
	case isObject:
		rejectLosses(v, losses, except...)
		return object
	case isBlank(text):
		v.Fail("type", "%s", blankLeft(text))
	case err == nil:
		v.Fail("type", "expected object, found the JSON text of %s", jsonvalue.KindOf(parsed))
	case err == errTooMuch:
		v.Fail("type", "%v", err)
	case strings.HasPrefix(strings.TrimSpace(text), "{"):
		v.Fail("type", "expected object, found string (which is not the JSON text of one: %v)", err)
	default:
		v.Fail("type", "expected object, found string")
	}
	return nil
}

// DefinitionSchema is the schema of an argument that is a definition.
func DefinitionSchema(description string) Members {
	return Members{{"anyOf", []Members{{{"type", "object"}}, {{"type", "string"}}}}, {"description", description}}
}

// Definition reads the argument that is a definition: an object, or text in JSON or YAML. All three are read from their text, as strictly as
// a file (spec: definition, 14.1). The error of a definition that cannot be read has the given code. Nil if absent or unusable.
func (a *Arguments) Definition(read func(text []byte) (*definition.Document, error), invalid problem.Code) *definition.Document {
	argument := a.Get(definitionArgument)
	if !argument.Present() {
		return nil
	}
	text := a.definitionText
	switch v := argument.Plain.(type) {
	case map[string]any:
		a.NoLines = true
	case string:
		text = []byte(v)
		switch {
		case isBlank(v):
			argument.Fail("type", "%s", blankLeft(v))
			return nil
		case !strings.ContainsAny(v, ":{"):
			argument.Fail("type", "expected object, or JSON or YAML text of one; to run a stored definition, name it in definition_ref")
			return nil
		}
	default:
		argument.Fail("type", "expected object, or JSON or YAML text of one, found %s", jsonvalue.KindOf(v))
		return nil
	}
	doc, err := read(text)
	if err == nil {
		return doc
	}
	e, ok := problem.As(err)
	if !ok {
		e = problem.New(invalid, "the definition cannot be read").WithCause(err)
	}
	refused := *e
	refused.Code = invalid
	a.Refused = &refused
	return nil
}

// BlankStart begins every placeholder for an object in next. It is text, so that a copy of it is rejected by the
// arguments' reader: an empty object could reach the run.
const BlankStart = "<object"

func isBlank(s string) bool {
	s = strings.TrimSpace(s)
	return strings.HasPrefix(s, BlankStart) && strings.HasSuffix(s, ">")
}

// blankLeft returns the error text for an argument that is still a placeholder.
func blankLeft(blank string) string {
	return fmt.Sprintf("found the placeholder %q of next; replace it with the object", strings.TrimSpace(blank))
}
