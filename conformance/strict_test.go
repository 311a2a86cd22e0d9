package conformance_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/workflows-engine/workflows-engine/conformance"
	"github.com/workflows-engine/workflows-engine/graph"
)

const minimal = `{"document":{"schema":"https://agent-workflow.dev/schemas/workflow-definition.json","name":"m","version":"1"},
"state_schema":{"type":"object"},"nodes":[{"id":"start","type":"start"},{"id":"end","type":"end"}],
"edges":[{"source":"__start__","target":"start"},{"source":"start","target":"end"}]}`

// root is a folder with one definition and the given vectors.
func root(vectors ...string) fstest.MapFS {
	fs := fstest.MapFS{"examples/m.workflow.json": {Data: []byte(minimal)}, "examples/broken.workflow.json": {Data: []byte(`{`)}}
	for i, v := range vectors {
		fs["vectors/"+string(rune('a'+i))+"/v.vector.json"] = &fstest.MapFile{Data: []byte(v)}
	}
	return fs
}

// A vector that is wrong fails, and so does one whose expectation is not met: the runner must be able to fail.
func TestStrictness(t *testing.T) {
	t.Parallel()
	const head = `{"id":"v","definition":"examples/m.workflow.json",`
	for _, c := range []struct{ name, vector, message string }{
		{"not JSON", `{`, ""},
		{"not an object", `[]`, "expected object, found array"},
		{"a member given twice", `{"id":"v","id":"w","kind":"schema","definition":"examples/m.workflow.json","expect":{"ok":true}}`, ""},
		{"no id", `{"kind":"schema","definition":"examples/m.workflow.json","expect":{"ok":true}}`, `missing field "id"`},
		{"no kind", head + `"expect":{"ok":true}}`, `missing field "kind"`},
		{"unknown kind", head + `"kind":"golden","expect":{"ok":true}}`, `found "golden"`},
		{"no definition", `{"id":"v","kind":"schema","expect":{"ok":true}}`, `missing field "definition"`},
		{"definition outside", `{"id":"v","kind":"schema","definition":"../m.workflow.json","expect":{"ok":true}}`, "below the root"},
		{"definition not there", `{"id":"v","kind":"schema","definition":"examples/x.workflow.json","expect":{"ok":true}}`, "cannot be read"},
		{"definition no JSON", `{"id":"v","kind":"replay","definition":"examples/broken.workflow.json","expect":{"status":"completed"}}`, "cannot be read"},

		{"schema: unknown field", head + `"kind":"schema","note":1,"expect":{"ok":true}}`, "unknown field"},
		{"schema: field of another kind", head + `"kind":"schema","input":{},"expect":{"ok":true}}`, "unknown field"},
		{"schema: no expectation", head + `"kind":"schema"}`, `missing field "expect"`},
		{"schema: no verdict", head + `"kind":"schema","expect":{}}`, `missing field "ok"`},
		{"schema: verdict of the wrong kind", head + `"kind":"schema","expect":{"ok":"true"}}`, "expected boolean, found string"},
		{"schema: signals of an accepted one", head + `"kind":"schema","expect":{"ok":true,"diagnostics":[{}]}}`, "no errors to look for"},
		{"schema: another verdict", head + `"kind":"schema","expect":{"ok":false}}`, "verdict differs"},
		{"schema: signal that fits nothing", `{"id":"v","definition":"examples/broken.workflow.json","kind":"schema","expect":{"ok":false,"diagnostics":[{"keyword":"oneOf"}]}}`, "none of the signals"},

		{"replay: unknown field deep inside", head + `"kind":"replay","historyPrefix":[{"kind":"event","name":"X","payload":{},"seq":1}],"expect":{"status":"completed"}}`, "unknown field"},
		{"replay: unknown expectation", head + `"kind":"replay","expect":{"status":"completed","tail":[]}}`, "unknown field"},
		{"replay: no status", head + `"kind":"replay","expect":{}}`, `missing field "status"`},
		{"replay: a list that is none", head + `"kind":"replay","expect":{"status":"completed","tailCommands":{}}}`, "expected array, found object"},
		{"replay: cardinality that is no number", head + `"kind":"replay","expect":{"status":"completed","eventCardinality":{"ExecutionCompleted":"1"}}}`, "expected number, found string"},
		{"replay: submission without outcome", head + `"kind":"replay","activitySubmissions":[{"nodeId":"x"}],"expect":{"status":"completed"}}`, `missing field "outcome"`},
		{"replay: another status", head + `"kind":"replay","expect":{"status":"failed"}}`, "differs"},
		{"replay: another tail", head + `"kind":"replay","expect":{"status":"completed","tailCommands":[{"name":"ScheduleNode"}]}}`, "commands after the prefix"},
		{"replay: another node in the tail", head + `"kind":"replay","expect":{"status":"completed","tailCommands":[{"name":"ScheduleNode","nodeId":"end"},{"name":"CompleteNode"},{"name":"ScheduleNode"},{"name":"CompleteNode"}]}}`, "commands after the prefix"},
		{"replay: another number of events", head + `"kind":"replay","expect":{"status":"completed","eventCardinality":{"ExecutionCompleted":2}}}`, "number of these events"},
		{"replay: another number at a node", head + `"kind":"replay","expect":{"status":"completed","eventCardinality":{"NodeScheduled":{"end":2}}}}`, "number of these events"},
		{"replay: no mismatch", head + `"kind":"replay","expect":{"status":"completed","mismatch":{"messageIncludes":"x"}}}`, "no ExecutionFailed"},
		{"replay: a submit that is taken for refused", head + `"kind":"replay","activitySubmissions":[{"nodeId":"x","outcome":{"ok":true},"expectFailure":{"code":"X"}}],"expect":{"status":"completed"}}`, "expected a refusal"},

		{"parity: no steps", head + `"kind":"parity","executionId":"e","steps":[]}`, "without steps"},
		{"parity: unknown operation", head + `"kind":"parity","executionId":"e","steps":[{"op":"restart"}]}`, `found "restart"`},
		{"parity: field of another operation", head + `"kind":"parity","executionId":"e","steps":[{"op":"status","input":{}}]}`, "unknown field"},
		{"parity: expectation that no snapshot has", head + `"kind":"parity","executionId":"e","steps":[{"op":"start","expect":{"stauts":"completed"}}]}`, "no snapshot of this operation"},
		{"parity: code without error", head + `"kind":"parity","executionId":"e","steps":[{"op":"start","expectErrorCode":"X"}]}`, "without expectError"},
		{"parity: pending", head + `"kind":"parity","executionId":"e","pending":true,"pendingReason":"soon","steps":[{"op":"start"}]}`, "pending: soon"},
		{"parity: another value", head + `"kind":"parity","executionId":"e","steps":[{"op":"start","expect":{"status":"failed"}}]}`, "differs"},
		{"parity: a member that is missing", head + `"kind":"parity","executionId":"e","steps":[{"op":"start","expect":{"node_id":"end"}}]}`, "is missing"},
		{"parity: no error", head + `"kind":"parity","executionId":"e","steps":[{"op":"start","expectError":true}]}`, "differs"},
		{"parity: an error", head + `"kind":"parity","executionId":"e","steps":[{"op":"status"}]}`, "differs"},
		{"parity: another code", head + `"kind":"parity","executionId":"e","steps":[{"op":"status","expectError":true,"expectErrorCode":"X"}]}`, "differs"},

		{"signing: unknown mode", head + `"kind":"signing","signingPolicy":{"mode":"off"},"publicKeys":{},"expect":{"ok":true}}`, `found "off"`},
		{"signing: bad key", head + `"kind":"signing","publicKeys":{"k":"x"},"expect":{"ok":true}}`, "cannot be used"},
		{"signing: nothing to tamper with", head + `"kind":"signing","tamperSignatureValue":true,"publicKeys":{},"expect":{"ok":true}}`, "no signature"},
		{"signing: another verdict", head + `"kind":"signing","publicKeys":{},"expect":{"ok":false}}`, "verdict differs"},
		{"signing: not verified", head + `"kind":"signing","publicKeys":{},"expect":{"ok":true,"verified":true}}`, "differs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			report, err := conformance.Run(t.Context(), root(c.vector), conformance.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if report.Status != conformance.Fail || report.Failed != 1 || len(report.Vectors) != 1 {
				t.Fatalf("the run passed: %+v", report)
			}
			text, err := json.Marshal(report.Vectors[0].Problems)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(strings.ReplaceAll(string(text), `\"`, `"`), c.message) {
				t.Errorf("problems %s, want one with %q", text, c.message)
			}
		})
	}
}

const accepted = `{"id":"%","kind":"schema","definition":"examples/m.workflow.json","expect":{"ok":true}%}`

func vector(id, more string) string {
	return strings.Replace(strings.Replace(accepted, "%", id, 1), "%", more, 1)
}

func TestSelection(t *testing.T) {
	t.Parallel()
	two := root(vector("one", `,"profiles":["core"]`), vector("two", ""))
	for _, c := range []struct {
		name    string
		fs      fstest.MapFS
		profile string
		status  conformance.Status
		total   int
	}{
		{"all", two, "", conformance.Pass, 2},
		{"a profile selects those that name it and those that name none", two, "core", conformance.Pass, 2},
		{"another profile", two, "extra", conformance.Pass, 1},
		{"a profile that selects nothing", root(vector("one", `,"profiles":["core"]`)), "extra", conformance.Fail, 0},
		{"an empty list of profiles belongs to none", root(vector("one", `,"profiles":[]`)), "extra", conformance.Fail, 0},
		{"no vectors", root(), "", conformance.Fail, 0},
		{"an id given twice", root(vector("one", ""), vector("one", "")), "", conformance.Fail, 2},
		{"without a vectors folder", fstest.MapFS{"m.workflow.json": {Data: []byte(minimal)}, "v.vector.json": {Data: []byte(strings.Replace(vector("one", ""), "examples/", "", 1))}}, "", conformance.Pass, 1},
	} {
		report, err := conformance.Run(t.Context(), c.fs, conformance.Options{Profile: c.profile})
		if err != nil || report.Status != c.status || report.Total != c.total {
			t.Errorf("%s: %s with %d vectors, %v; want %s with %d", c.name, report.Status, report.Total, err, c.status, c.total)
		}
	}
}

func TestPendingMayBeAllowed(t *testing.T) {
	t.Parallel()
	fs := root(`{"id":"v","kind":"parity","definition":"examples/m.workflow.json","executionId":"e","pending":true,"steps":[{"op":"start","expect":{"status":"failed"}}]}`)
	report, err := conformance.Run(t.Context(), fs, conformance.Options{AllowPending: true})
	if err != nil || report.Status != conformance.Pass {
		t.Errorf("%s, %v", report.Status, err)
	}
}

// A part of a vectors folder, or one file, can be run; paths in vectors stay relative to the folder that holds vectors/.
func TestRunDirFindsTheRoot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, file := range root(vector("one", ""), vector("two", "")) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, file.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for part, total := range map[string]int{".": 2, "vectors": 2, "vectors/a": 1, "vectors/b/v.vector.json": 1} {
		report, err := conformance.RunDir(t.Context(), filepath.Join(dir, filepath.FromSlash(part)), conformance.Options{})
		if err != nil || report.Status != conformance.Pass || report.Total != total {
			t.Errorf("%s: %s with %d vectors, %v; want %d", part, report.Status, report.Total, err, total)
		}
	}
	if _, err := conformance.RunDir(t.Context(), filepath.Join(dir, "none"), conformance.Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
}

// lying is a surface that passes calls on and changes what comes back.
type lying struct {
	change func(*conformance.Answer) error
}

func (l lying) Call(_ context.Context, c conformance.Call) (conformance.Answer, error) {
	answer := conformance.Answer{Fields: map[string]any{
		"execution_id": c.ExecutionID, "status": "completed", "final_state": map[string]any{}, "result": map[string]any{}, "not_compared": 1,
	}}
	return answer, l.change(&answer)
}

func (l lying) Close() error { return nil }

// What a surface answers differently is found, whether the vector names it or not.
func TestSurfacesAreCompared(t *testing.T) {
	t.Parallel()
	fs := root(`{"id":"v","kind":"parity","definition":"examples/m.workflow.json","executionId":"e","steps":[{"op":"start","expect":{"status":"completed"}}]}`)
	for name, c := range map[string]struct {
		change func(*conformance.Answer) error
		status conformance.Status
	}{
		"honest":            {func(*conformance.Answer) error { return nil }, conformance.Pass},
		"another state":     {func(a *conformance.Answer) error { a.Fields["final_state"] = map[string]any{"x": 1}; return nil }, conformance.Fail},
		"a member less":     {func(a *conformance.Answer) error { delete(a.Fields, "result"); return nil }, conformance.Fail},
		"a member more":     {func(a *conformance.Answer) error { a.Fields["reason"] = "x"; return nil }, conformance.Fail},
		"an error":          {func(a *conformance.Answer) error { a.IsError = true; return nil }, conformance.Fail},
		"a door that broke": {func(*conformance.Answer) error { return errors.New("broken pipe") }, conformance.Fail},
		"no JSON":           {func(a *conformance.Answer) error { a.Fields["result"] = func() {}; return nil }, conformance.Fail},
	} {
		report, err := conformance.Run(t.Context(), fs, conformance.Options{Surfaces: []conformance.SurfaceFactory{{
			Name: "lying",
			Open: func(context.Context, *graph.Runner) (conformance.Surface, error) { return lying{c.change}, nil },
		}}})
		if err != nil || report.Status != c.status {
			t.Errorf("%s: %s, %v, want %s", name, report.Status, err, c.status)
		}
	}
}

func TestCallArguments(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		call conformance.Call
		want string
	}{
		{conformance.Call{Op: conformance.OpStart, ExecutionID: "e", Mode: "host_mediated"}, `{"activity_execution_mode":"host_mediated","execution_id":"e","input":{}}`},
		{conformance.Call{Op: conformance.OpStatus, ExecutionID: "e"}, `{"execution_id":"e"}`},
		{conformance.Call{Op: conformance.OpResume, ExecutionID: "e"}, `{"execution_id":"e","resume_payload":{}}`},
		{conformance.Call{Op: conformance.OpSubmit, ExecutionID: "e", NodeID: "n", Outcome: conformance.Outcome{Error: "x", Code: "C"}}, `{"execution_id":"e","input":{},"node_id":"n","outcome":{"code":"C","error":"x","ok":false}}`},
		{conformance.Call{Op: conformance.OpSignal, ExecutionID: "e", SignalName: "s", Payload: map[string]any{}}, `{"execution_id":"e","input":{},"payload":{},"signal_name":"s"}`},
		{conformance.Call{Op: conformance.OpCancel, ExecutionID: "e", Reason: "r"}, `{"execution_id":"e","reason":"r"}`},
		{conformance.Call{Op: conformance.OpList, ExecutionID: "e", Phase: "failed", Limit: 2, Cursor: "c|d"}, `{"cursor":"c|d","limit":2,"phase":"failed"}`},
	} {
		got, err := json.Marshal(c.call.Arguments())
		if err != nil || string(got) != c.want || c.call.Tool() != "workflow_"+c.call.Op {
			t.Errorf("%s: %s, %v, want %s", c.call.Tool(), got, err, c.want)
		}
	}
}

// No vector, however broken, does more than fail.
func FuzzVector(f *testing.F) {
	for _, seed := range []string{
		vector("v", ""), `{"id":"v","kind":"replay","definition":"examples/m.workflow.json","expect":{"status":"completed"}}`, `{"kind":"parity","steps":[{}]}`, `null`, `{"kind":5}`, "\xff",
		`{"id":"v","kind":"signing","definition":"examples/m.workflow.json","signFixture":true,"publicKeys":{},"expect":{"ok":false}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		report, err := conformance.Run(t.Context(), root(string(text)), conformance.Options{})
		if err != nil || report.Total != 1 || report.Vectors[0].Status == "" {
			t.Errorf("%+v, %v", report, err)
		}
	})
}
