package definition_test

import (
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// verdicts returns whether a document is accepted by each of the options, and the error codes of those that refuse it.
func verdicts(t *testing.T, doc any, options ...definition.Options) (accepted []bool, codes []string) {
	t.Helper()
	d, err := definition.FromValue(doc)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range options {
		p, findings := definition.Compile(d, o)
		accepted = append(accepted, p != nil)
		for _, f := range findings {
			if f.Severity == problem.SeverityError {
				codes = append(codes, string(f.Code)+" "+f.At.Pointer)
			}
		}
	}
	return accepted, codes
}

// TestRunnable holds faults that the protocol accepts: a definition with one cannot do here what it says, so Runnable refuses it,
// and a start, like the protocol, does not.
func TestRunnable(t *testing.T) {
	t.Parallel()
	// A switch whose other case avoids what is wrong.
	const avoidable = `
set /nodes/- {"id":"pick","type":"switch","config":{"cases":[{"when":".a","target":"odd"}],"default":"end"}}
set /edges/2 {"source":"greet","target":"pick"}
set /edges/- {"source":"odd","target":"end"}
`
	for name, tt := range map[string]struct{ lines, want string }{
		"a switch to nowhere":        {strings.Replace(avoidable, `"default":"end"`, `"default":"ende"`, 1) + `set /nodes/- {"id":"odd","type":"step","config":{"handler":"h"}}`, "UNKNOWN_NODE /nodes/3/config/default"},
		"an edge to nowhere":         {strings.Replace(avoidable, `{"source":"odd","target":"end"}`, `{"source":"odd","target":"ende"}`, 1) + `set /nodes/- {"id":"odd","type":"step","config":{"handler":"h"}}`, "UNKNOWN_NODE /edges/3/target"},
		"a program that is wrong":    {avoidable + `set /nodes/- {"id":"odd","type":"set_state","config":{"assignments":{"a":{"jq":".a["}}}}`, "EXPRESSION_INVALID /nodes/4/config/assignments/a/jq"},
		"a timeout that is wrong":    {avoidable + `set /nodes/- {"id":"odd","type":"step","config":{"handler":"h"},"timeout":"soon"}`, "DURATION_INVALID /nodes/4/timeout"},
		"a resume_schema":            {avoidable + `set /nodes/- {"id":"odd","type":"interrupt","config":{"prompt":"?","resume_schema":{"pattern":"(["}}}`, "SCHEMA_INVALID /nodes/4/config/resume_schema/pattern"},
		"an unknown reducer":         {`set /state_schema/properties/greeting/reducer "sum"`, "REDUCER_UNKNOWN /state_schema/properties/greeting/reducer"},
		"an interval that is wrong":  {`set /nodes/1/retry {"max_attempts":2,"initial_interval":"soon"}`, "DURATION_INVALID /nodes/1/retry/initial_interval"},
		"a retry that nothing reads": {`set /nodes/2/retry {"max_attempts":2}`, "FIELD_IGNORED /nodes/2/retry"},
		"a timeout nothing reads":    {`set /nodes/2/timeout "1s"`, "FIELD_IGNORED /nodes/2/timeout"},
		"an llm_call without model":  {`set /nodes/1 {"id":"greet","type":"llm_call","config":{"prompt":"Hi"}}`, "CONFIG_INVALID /nodes/1/config"},
		"a prompt of another type":   {`set /nodes/1 {"id":"greet","type":"llm_call","config":{"model":"m","prompt":5}}`, "CONFIG_INVALID /nodes/1/config/prompt"},
	} {
		doc := patch(t, base(t, "linear"), tt.lines)
		accepted, codes := verdicts(t, doc, definition.Options{}, definition.Options{Protocol: true}, definition.Options{Runnable: true})
		if !accepted[0] || !accepted[1] || accepted[2] || strings.Join(codes, ",") != tt.want {
			t.Errorf("%s: accepted %v, errors %q; want %q with Runnable alone", name, accepted, codes, tt.want)
		}
	}
}

// TestSchemasOfOurOwn shows who refuses an input_schema or output_schema that cannot be compiled: the protocol's engine never looks at
// it, and a run that began goes on.
func TestSchemasOfOurOwn(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{
		`{"required":["a"],"properties":{"b":{"pattern":"(["}}}`, `{"properties":{"a":{"$ref":"#/$defs/none"}}}`, `{"$schema":"https://example.org/own"}`,
	} {
		for _, place := range []string{"/nodes/0/config", "/nodes/2/config"} {
			member := "input_schema"
			if place == "/nodes/2/config" {
				member = "output_schema"
			}
			doc := patch(t, base(t, "linear"), "set "+place+` {"`+member+`":`+schema+"}")
			accepted, _ := verdicts(t, doc, definition.Options{}, definition.Options{Runnable: true}, definition.Options{Protocol: true}, definition.Options{Stored: true})
			if want := [4]bool{false, false, true, true}; [4]bool(accepted) != want {
				t.Errorf("%s %s: accepted %v, want %v", member, schema, accepted, want)
			}
		}
	}
}
