package definition_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/lint"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// The two spellings of one definition whose hash the protocol gives (spec: definition, 14.4.2).
const (
	spelling1 = `{"document":{"schema":"s","name":"n","version":"1"},"state_schema":{"type":"object","properties":{"10":{"reducer":"append"},"9":{},"a":{}}},"nodes":[{"id":"s","type":"start"},{"id":"t","type":"tool_call","config":{"server":"a","tool":"b","arguments":{"n":1.0,"m":-0,"e":1E21,"f":1e-7,"g":12345678901234567890,"x":"<&>\u2028","é":"\u00e9"}},"retry":{"max_attempts":2.0,"backoff_coefficient":1.50}},{"id":"e","type":"end","config":{"output_mapping":".a > 1"}}],"edges":[{"source":"__start__","target":"s"},{"source":"s","target":"t"},{"source":"t","target":"e"}],"checkpointing":{"n":2.0,"strategy":"every_n_nodes"}}`
	spelling2 = `{"edges":[{"target":"s","source":"__start__"},{"target":"t","source":"s"},{"target":"e","source":"t"}],"checkpointing":{"strategy":"every_n_nodes","n":2},"nodes":[{"type":"start","id":"s"},{"config":{"arguments":{"\u00e9":"é","x":"<&>\u2028","g":12345678901234567000,"f":0.0000001,"e":1000000000000000000000,"m":0,"n":1},"tool":"b","server":"a"},"retry":{"backoff_coefficient":1.5,"max_attempts":2},"type":"tool_call","id":"t"},{"config":{"output_mapping":".a > 1"},"type":"end","id":"e"}],"state_schema":{"properties":{"a":{},"9":{},"10":{"reducer":"append"}},"type":"object"},"document":{"version":"1","name":"n","schema":"s"}}`
	// astral has member names that sort by UTF-16 and not by code point.
	astral = `{"document":{"schema":"s","name":"n","version":"1"},"state_schema":{"type":"object"},"nodes":[{"id":"s","type":"start","metadata":{"\ud83d\ude00":1,"\uffff":2}},{"id":"e","type":"end"}],"edges":[{"source":"__start__","target":"s"},{"source":"s","target":"e"}]}`
)

func TestHash(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, text, want string }{
		{"first spelling", spelling1, "77cb2651d4f5c36e3bbf270d638b908cc3650f27985c4abf4d4ac0faa56af89f"},
		{"second spelling", spelling2, "77cb2651d4f5c36e3bbf270d638b908cc3650f27985c4abf4d4ac0faa56af89f"},
		{"member order", astral, "8d8084a3ca68bcde7b085cb329778eade07372291e2e4d94db6ebc2c1c452c2e"},
		{"empty object", `{}`, "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"},
		{"escapes", `{"a":"<&>"}`, "8658fe1f872cd0d087e206ab8fd59cbc9873d8a4d5701620f4d3d17b0f2fb388"},
	} {
		d, err := definition.Parse([]byte(tt.text))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if got := d.Hash(); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
		v, err := definition.FromValue(d.Value())
		if err != nil || v.Hash() != tt.want {
			t.Errorf("%s: as a value: %v, %v", tt.name, v.Hash(), err)
		}
	}
}

// exampleHashes are the hashes of the protocol's example documents (spec: definition, 14.4.2).
var exampleHashes = map[string]string{
	"agentic-task-intake-prompt-improver.workflow.json": "fa74f6b56414ef4241deacf1d5ac6f421afb2117f7b53bc68a54e7519234c3f9",
	"conformance-agent-delegate-linear.workflow.json":   "6d0698a42b4d377a2670666a16b7a801e3574565fcaaddfcfdb3f5f2edeb441c",
	"conformance-host-activity-linear.workflow.json":    "5f97ff9cd98775195180a7e4615ab721ba72813fa14f5b025e5ed149cb2bb873",
	"conformance-host-activity-parallel.workflow.json":  "afda241e82c4b81701db9f9596157e6b841873a15c8c14ada90d92862ae46a59",
	"conformance-retry-step.workflow.json":              "3bfb507655d678b672d87711c085c7f304f66ea512bd667664cbbe88b1354ba2",
	"conformance-signal-wait.workflow.json":             "14e5d25c5e66ca459d433a23849d351105feeeb80765f4ebfea3e2717d52583f",
	"conformance-step-handler.workflow.json":            "0b92f99314d2daec450118be4bf6198acf8fc55c2812f2488f42615959c8a67c",
	"conformance-subworkflow-parent.workflow.json":      "8c67993b22dafc7a86c2b7305f711adc261bd8590be96619b79560859a16cde6",
	"lighthouse-customer-routing.workflow.json":         "691aadcfa8524b9fd4258c37200024bbedd8bca362a6d443be7ce18d6b9ee042",
	"paperclip-read-compact.workflow.json":              "a008ad656d6283fec6222d336e167b92354b173b7f5820747429271a2fd3ca6d",
	"paperclip-read-parallel.workflow.json":             "cf0b3137503bb4638c0f0b2a60a20d5136f7da3775653fd107b6bf4a4a248948",
	"paperclip-read-snapshot.workflow.json":             "24344aea68b60d5f622403329521b2c656eccfb0b6ba4dbc13c93dcf12187b71",
	"r2-parallel-join-any.workflow.json":                "c6ad178d8f03f9e3981914bbb3e159ecc519661c543f031d2f006c22fa422006",
	"r2-parallel-join-n2-of-3.workflow.json":            "ed909e2685fba288b9755d777f14e559844ff4e4f6400f6d58f273d472cbcbeb",
	"r2-research-parallel.workflow.json":                "e6c2e42e46ef4250aec916290e63412cbda610e5b6855dfb4e66b64debc4889f",
	"r3-multi-agent-coding.workflow.json":               "e4ddde06719846e58789816b691ec1492f79c59ca504c017036e458ddd10432b",
	"r3-unit-tests-child.workflow.json":                 "ba289b582bd7dbcc4720e32c3d1b5332f11a07eb18e02de243220cde9208914a",
	"fixtures.valid/minimal-linear.workflow.json":       "5ccd6bf92db5a724d58c9ddd84aeabaa8eb147906aba3d188a6bcbad2e3a287e",
}

// protocolFile reads a file of the protocol's data, which lies beside the repository.
func protocolFile(t *testing.T, name string) []byte {
	t.Helper()
	root := filepath.Join("..", "..", "..", "shared", "awp-v1")
	if _, err := os.Stat(root); errors.Is(err, os.ErrNotExist) {
		t.Skip("the protocol's data (../shared/awp-v1 beside the repository) is absent")
	}
	src, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// TestProtocolExamples shows that good documents have the protocol's hash, no errors, and few warnings: the golden file
// has them all.
func TestProtocolExamples(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, name := range sortedKeys(exampleHashes) {
		src := protocolFile(t, "examples/"+name)
		d, err := definition.Parse(src)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := d.Hash(); got != exampleHashes[name] {
			t.Errorf("%s: got the hash %s, want %s", name, got, exampleHashes[name])
		}
		p, findings := lint.Compile(d, lint.Options{})
		if p == nil {
			t.Errorf("%s is refused:\n%s", name, list(findings))
		}
		b.WriteString(name + "\n" + list(findings))

		asYAML, err := definition.ParseYAML(src)
		if err != nil || asYAML.Hash() != exampleHashes[name] {
			t.Errorf("%s: read as YAML: %v", name, err)
		}
	}
	golden(t, "examples.golden", b.String())
}

// TestProtocolVectors runs the protocol's vectors of kind schema.
func TestProtocolVectors(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"invalid/agent-delegate-invalid-protocol", "invalid/extensions-top-level", "invalid/interrupt-in-parallel-branch",
		"invalid/unsupported-node-type", "valid/agentic-task-intake-prompt-improver", "valid/conformance-agent-delegate-linear",
		"valid/conformance-host-activity-linear", "valid/conformance-host-activity-parallel", "valid/conformance-subworkflow-parent",
		"valid/lighthouse", "valid/minimal-linear", "valid/r2-parallel-join-any", "valid/r2-parallel-join-n2-of-3",
		"valid/r2-research-parallel", "valid/r3-multi-agent-coding", "valid/r3-unit-tests-child",
	} {
		v, err := jsonvalue.Decode(protocolFile(t, "vectors/schema/"+name+".vector.json"))
		if err != nil {
			t.Fatal(err)
		}
		vector := v.(map[string]any)
		d, err := definition.Parse(protocolFile(t, vector["definition"].(string)))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		p, findings := definition.Compile(d, definition.Options{})
		expect := vector["expect"].(map[string]any)
		if (p != nil) != expect["ok"].(bool) {
			t.Errorf("%s: ok is %v\n%s", name, p != nil, list(findings))
		}
		if signals, _ := expect["diagnostics"].([]any); signals != nil && !anySignal(signals, findings) {
			t.Errorf("%s: no finding is as expected\n%s", name, list(findings))
		}
	}
}

// anySignal matches as the protocol's runner does: at least one signal, with all its members, in at least one finding.
func anySignal(signals []any, findings problem.Findings) bool {
	for _, s := range signals {
		want := s.(map[string]any)
		for _, f := range findings {
			path, hasPath := want["instancePath"].(string)
			keyword, hasKeyword := want["keyword"].(string)
			part, _ := want["messageIncludes"].(string)
			if f.Severity == problem.SeverityError && (!hasPath || path == f.At.Pointer) && (!hasKeyword || keyword == f.Keyword) &&
				strings.Contains(strings.ToLower(f.Message), strings.ToLower(part)) {
				return true
			}
		}
	}
	return false
}

// TestParseRefuses holds what is no definition at all: every problem of a text, with its code and place.
func TestParseRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		want       []string // "<code> <line>:<column> <pointer>"
	}{
		{"nothing", ``, []string{"DEFINITION_SYNTAX 1:1 "}},
		{"no JSON", `{"a":}`, []string{"DEFINITION_SYNTAX 1:6 /a"}},
		{"comment", "{}\n// more", []string{"DEFINITION_SYNTAX 2:1 "}},
		{"an error behind a byte order mark", "\ufeff{\"a\":}", []string{"DEFINITION_SYNTAX 1:6 /a"}},
		{"duplicate", "{\"a\":1,\n \"a\":2}", []string{"DEFINITION_DUPLICATE_MEMBER 2:2 /a"}},
		{"reserved", `{"a":{"__proto__":{}}}`, []string{"DEFINITION_RESERVED_MEMBER 1:7 /a/__proto__"}},
		{"surrogate", `{"a":"\ud800"}`, []string{"DEFINITION_ENCODING 1:7 /a"}},
		{"UTF-8", "{\"a\":\"\xff\"}", []string{"DEFINITION_ENCODING 1:7 /a"}},
		{"number", `{"a":1e400}`, []string{"DEFINITION_NUMBER 1:6 /a"}},
		{"deep", strings.Repeat("[", 600) + strings.Repeat("]", 600), []string{"DEFINITION_TOO_DEEP"}},
		{"large", `"` + strings.Repeat("x", definition.MaxBytes) + `"`, []string{"DEFINITION_TOO_LARGE"}},
		{"several", `{"a":1e400,"b":"\ud800","b":1}`, []string{"DEFINITION_NUMBER", "DEFINITION_ENCODING", "DEFINITION_DUPLICATE_MEMBER"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := definition.Parse([]byte(tt.text))
			checkRefusal(t, err, tt.want)
		})
	}
}

func checkRefusal(t *testing.T, err error, want []string) {
	t.Helper()
	e, ok := problem.As(err)
	if !ok || e.Code != problem.ValidationError {
		t.Fatalf("got %v", err)
	}
	if len(e.Findings) != len(want) {
		t.Fatalf("got %d findings, want %d\n%s", len(e.Findings), len(want), list(e.Findings))
	}
	for i, f := range e.Findings {
		got := string(f.Code) + " " + place(f)
		if !strings.HasPrefix(got, want[i]) || f.Severity != problem.SeverityError || f.Message == "" {
			t.Errorf("finding %d: got %q, want %q (%s)", i, got, want[i], f.Message)
		}
	}
}

// TestFromValueRefuses holds what a decoded value can still show.
func TestFromValueRefuses(t *testing.T) {
	t.Parallel()
	deep := any(nil)
	for range 600 {
		deep = []any{deep}
	}
	for _, tt := range []struct {
		name  string
		value any
		want  string
	}{
		{"no JSON", map[string]any{"a": func() {}}, "DEFINITION_SYNTAX"},
		{"reserved", map[string]any{"a": map[string]any{"__proto__": 1}}, "DEFINITION_RESERVED_MEMBER 0:0 /a/__proto__"},
		{"deep", deep, "DEFINITION_TOO_DEEP"},
		{"large", strings.Repeat("x", definition.MaxBytes+1), "DEFINITION_TOO_LARGE"},
	} {
		_, err := definition.FromValue(tt.value)
		checkRefusal(t, err, []string{tt.want})
	}
	d, err := definition.FromValue(map[string]any{"n": 3, "list": []string{"a"}})
	if err != nil || string(d.Canonical()) != `{"list":["a"],"n":3}` {
		t.Errorf("Go values: %v, %v", d, err)
	}
}

// TestPlaces shows that findings point into the text.
func TestPlaces(t *testing.T) {
	t.Parallel()
	src := strings.ReplaceAll(string(mustRead(t, "testdata/bases/linear.json")), `"handler": "greet" }`, "\"handler\": \"greet\" },\n      \"timeout\": \"é1x\", \"tiemout\": 1")
	d, err := definition.Parse([]byte(src))
	if err != nil {
		t.Fatal(err)
	}
	_, findings := definition.Compile(d, definition.Options{})
	if len(findings) != 1 {
		t.Fatalf("got\n%s", list(findings))
	}
	f := findings[0]
	if got := place(f); got != "7:25 /nodes/1" || f.At.NodeID != "greet" || f.Hint != `did you mean "timeout"?` {
		t.Errorf("got %s of %q, hint %q", got, f.At.NodeID, f.Hint)
	}
}

// TestFindingsNameTheirNode: also those of the schema, which know only the place.
func TestFindingsNameTheirNode(t *testing.T) {
	t.Parallel()
	for change, want := range map[string]string{
		`set /nodes/1/config/handler 5`:  "greet",
		`set /nodes/1/timeout 5`:         "greet",
		`set /nodes/1/nonsense 5`:        "greet",
		`set /nodes/1/id 5`:              "",
		`set /state_schema 5`:            "",
		`set /nodes/1/config "nonsense"`: "greet",
	} {
		_, _, findings := compileValue(t, patch(t, base(t, "linear"), change))
		if len(findings) == 0 || findings[0].At.NodeID != want {
			t.Errorf("%s: %s", change, list(findings))
			for _, f := range findings {
				t.Log(f.At.NodeID)
			}
		}
	}
}
