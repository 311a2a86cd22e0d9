package mcpserver

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/internal/agentsteps"
	"github.com/workflows-engine/workflows-engine/internal/jsonobject"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// arguments reads the arguments of one call. It collects every mistake, so that the caller can correct all of them at
// once; the results of its methods are valid only if problem returns nil.
//
// It is lenient where that is harmless: null counts as absent, and JSON text is accepted for an object, because some
// hosts encode objects twice. An unknown name is rejected.
type arguments struct {
	*jsonobject.Object
	report *jsonobject.Report
	// broken is the syntax error of the arguments; the connection does not decode large ones.
	broken error
	// unread is the error of arguments that were not decoded: single ones have no findings then.
	unread error
	// definitionText is the JSON text of a definition that is an object: a decoded value does not show duplicate fields, for instance.
	definitionText []byte
	// noLines is set for a definition that is an object: its author has seen no lines.
	noLines bool
	// refused is the error of a definition that cannot be read.
	refused *problem.Error
	// progress reports events while the call waits; nil if the client sent no token.
	progress func(graph.Progress)
	hangup   hangup
	// client is the session of the call, tool its tool, raw its arguments as they came.
	client any
	tool   string
	raw    []byte
	// asking holds the call's part in asking the person; reporter sends its progress. Both may be nil.
	asking   *asking
	reporter *reporter
	// usual is the default size of answers; room is answer_bytes, 0 if absent.
	usual, room int
	// since is since_seq, 0 if absent.
	since int64
	// turn ends the call's turn, enough lets another call be at work; may be nil.
	turn, enough func()
}

// applied is called when the call's change is made and only the wait for the run, or for a person, is left.
func (a *arguments) applied() {
	for _, over := range []func(){a.enough, a.turn} {
		if over != nil {
			over()
		}
	}
}

// readArguments takes the raw arguments of a call, which may be absent. A definition is left to arguments.definition.
func readArguments(raw []byte, t *tool) *arguments {
	report := &jsonobject.Report{Code: problem.ValidationError, NullIsAbsent: true, Limit: maxFindings}
	a := &arguments{Object: report.Object(nil), report: report}
	if len(raw) == 0 {
		return a
	}
	if at := jsonvalue.InvalidUTF8(raw); at >= 0 {
		a.broken = fmt.Errorf("invalid UTF-8 at byte %d", at+1)
		return a
	}
	rest := raw
	if from, to := jsonvalue.MemberSpan(raw, definitionArgument); to > 0 && raw[from] == '{' {
		a.definitionText, rest = raw[from:to], slices.Concat(raw[:from], []byte("{}"), raw[to:])
	}
	plain, losses, err := decodeExact(rest)
	if err == errTooMuch {
		a.Fail("type", "%v", err)
		a.unread = a.problem()
		return a
	}
	if err != nil {
		a.broken = err
		return a
	}
	if text, encodedTwice := plain.(string); encodedTwice {
		a.definitionText = jsonvalue.MemberText([]byte(text), definitionArgument)
	}
	if plain != nil {
		rejectLosses(report.Value(plain), losses, definitionArgument)
		a.Object = report.Object(readObject(report.Value(plain), definitionArgument))
	}
	names := t.names()
	rejectUnknown(a.Object, names, t.inner)
	// Options of the answer are checked here as well: a rejected argument must not follow a change that was made.
	if slices.Contains(names, answerBytesArgument.name) {
		room, _ := a.Get(answerBytesArgument.name).Whole(MinAnswerBytes, math.MaxInt32)
		a.room = int(room)
	}
	if slices.Contains(names, sinceArgument.name) {
		a.since, _ = a.Get(sinceArgument.name).Whole(1, math.MaxInt32)
	}
	return a
}

// definitionArgument is the name of the argument that is a definition, wherever a tool has one.
const definitionArgument = "definition"

// maxDecoded bounds the memory of the decoded arguments of a call. 2 MiB of the smallest objects, and 4 MiB of
// numbers, take less.
const maxDecoded = 128 << 20

var errTooMuch = fmt.Errorf("need more than %d MiB of memory: send fewer or shorter values", maxDecoded>>20)

// decodeExact is jsonvalue.DecodeUnique for a text that does not take too much.
func decodeExact(text []byte) (v any, losses []jsonvalue.SyntaxError, err error) {
	if len(text) > largeCall && jsonvalue.DecodedBytes(text, maxDecoded) > maxDecoded {
		return nil, nil, errTooMuch
	}
	return jsonvalue.DecodeUnique(text)
}

// within reads an object argument with known fields. aliases maps other spellings of a field to its name.
func (a *arguments) within(name string, values map[string]any, names []string, aliases map[string]string) *jsonobject.Object {
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

// problem returns the mistakes in the arguments as one error, nil without a mistake. The path has the form of the
// protocol's validator, for programs; the text is for people.
func (a *arguments) problem() error {
	if a.unread != nil {
		return a.unread
	}
	if len(a.report.Findings) == 0 {
		if a.refused != nil {
			return a.refused
		}
		return nil
	}
	var (
		issues []any
		texts  []string
	)
	for _, f := range a.report.Findings {
		path := []any{}
		for _, name := range jsonobject.Path(f) {
			path = append(path, name)
		}
		issues = append(issues, map[string]any{"path": path, "message": jsonobject.Message(f)})
		texts = append(texts, jsonobject.Describe("arguments", f))
	}
	if a.report.Omitted > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", a.report.Omitted))
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

// readObject reads an object, or the JSON text of one; it returns nil for other values. except is passed to rejectLosses.
func readObject(v jsonobject.Value, except ...string) map[string]any {
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

// definitionSchema is the schema of an argument that is a definition.
func definitionSchema(description string) members {
	return members{{"anyOf", []members{{{"type", "object"}}, {{"type", "string"}}}}, {"description", description}}
}

// definition reads the argument that is a definition: an object, or text in JSON or YAML. All three are read from their text, as strictly as
// a file (spec: definition, 14.1). The error of a definition that cannot be read has the given code. Nil if absent or unusable.
func (s *server) definition(a *arguments, invalid problem.Code) *definition.Document {
	argument := a.Get(definitionArgument)
	if !argument.Present() {
		return nil
	}
	text := a.definitionText
	switch v := argument.Plain.(type) {
	case map[string]any:
		a.noLines = true
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
	doc, err := s.ReadDefinition(text)
	if err == nil {
		return doc
	}
	e, ok := problem.As(err)
	if !ok {
		e = problem.New(invalid, "the definition cannot be read").WithCause(err)
	}
	refused := *e
	refused.Code = invalid
	a.refused = &refused
	return nil
}

// blankStart begins every placeholder for an object in next. It is text, so that a copy of it is rejected by the
// arguments' reader: an empty object could reach the run.
const blankStart = "<object"

// Placeholders that are the same for every run.
const (
	blankDefinition = "<object: the definition of this run>"
	blankPayload    = "<object: payload of the signal, {} if it has none; merged into the state>"
)

func isBlank(s string) bool {
	s = strings.TrimSpace(s)
	return strings.HasPrefix(s, blankStart) && strings.HasSuffix(s, ">")
}

// blankLeft returns the error text for an argument that is still a placeholder.
func blankLeft(blank string) string {
	return fmt.Sprintf("found the placeholder %q of next; replace it with the object", strings.TrimSpace(blank))
}

// blankResult returns the placeholder for the result of an activity or delegate.
func blankResult(p *view.Pending) string {
	if p.OutputSchema != nil {
		return "<object that fits output_schema>"
	}
	return "<object: " + cmp.Or(definition.Type(p.NodeType).Info().Performer.Result, "the result, {} if empty") + ">"
}

func blankAnswer(p *view.Pending) string {
	switch {
	case agentsteps.Approval(p.Show) != nil:
		return "<object: the person's decision>"
	case p.ResumeSchema == nil:
		return "<object: the person's answer>"
	}
	return "<object that fits resume_schema>"
}
