package workflowtest_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/workflowtest"
	"github.com/workflows-engine/workflows-engine/schemas"
)

const gate = `
document: {schema: s, name: gate, version: '1'}
state_schema: {type: object}
nodes:
  - {id: a, type: start}
  - {id: build, type: step, config: {handler: h}, retry: {max_attempts: 2}}
  - {id: ask, type: interrupt, config: {prompt: go, resume_schema: {type: object}}}
  - {id: sub, type: subworkflow, config: {workflow_ref: part, input_mapping: {}}}
  - {id: go, type: wait, config: {kind: signal, signal: go}}
  - {id: z, type: end, config: {output_mapping: "{image, list}"}}
edges:
  - {source: __start__, target: a}
  - {source: a, target: build}
  - {source: build, target: ask}
  - {source: ask, target: sub}
  - {source: sub, target: go}
  - {source: go, target: z}
`

const part = `
document: {schema: s, name: part, version: '1'}
state_schema: {type: object}
nodes: [{id: b, type: start}, {id: think, type: llm_call, config: {model: m, output_schema: {type: object, required: [x, y]}}}, {id: e, type: end}]
edges: [{source: __start__, target: b}, {source: b, target: think}, {source: think, target: e}]
`

// folder makes a folder with files.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func all(string) bool { return true }

// run runs the tests of a text for gate.
func run(t *testing.T, text string) []*workflowtest.Result {
	t.Helper()
	dir := folder(t, map[string]string{"gate.workflow.yaml": gate, "part.workflow.yml": part, "gate.test.yaml": text})
	f, err := workflowtest.Load(dir, "gate.test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return f.Run(all)
}

// passes is a test of gate that passes.
const passes = `
tests:
  - name: all
    start: "2026-03-01T12:00:00.5+01:00"
    input: {n: 1}
    stubs:
      build:
        - attempts: [{fail: {code: BUSY, message: later, final: false}, delay: 5s}, {output: {image: i, list: [1, {a: b, c: d}]}}]
        - output: {}
      sub/think: {output: {x: 1, y: 2}, delay: 1m}
    answers: {ask: [{payload: {ok: true}, after: 1h}]}
    signals: [{name: go, payload: {by: kim}, when: go, after: 1s}]
    expect:
      status: completed
      path: [a, build, ask, sub, go, z]
      visits: {build: 1, sub/think: 1}
      waiting: []
      state: {n: 1, image: i, list: [1, {a: b}], ok: true, x: 1, y: 2, by: kim}
      result: {image: i, list: [1, {a: b, c: d}]}
      elapsed: 3666s
`

func TestPasses(t *testing.T) {
	t.Parallel()
	for _, r := range run(t, passes) {
		if !r.Passed() {
			t.Errorf("%+v", r.Differences)
		}
	}
}

// Each expectation that is not met is reported with what was expected and what came.
func TestDifferences(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ from, to, want string }{
		{"status: completed", "status: failed", "status: failed, completed"},
		{"path: [a, build,", "path: [a,", "path: a → ask → sub → go → z, a → build → ask → sub → go → z"},
		{"build: 1,", "build: 2,", "visits of build: 2, 1"},
		{"waiting: []", "waiting: [go]", "waiting: go, none"},
		{"list: [1, {a: b}], ok", "list: [1, {a: c}], ok", `state.list.1.a: "c", "b"`},
		{"list: [1, {a: b}], ok", "list: [1], ok", `state.list: [1], [1,{"a":"b","c":"d"}]`},
		{"x: 1, y: 2, by: kim", "x: 1, z: null", "state.z: null, nothing"},
		{"state: {", "exactly: true\n      state: {", `state.list.1.c: nothing, "d"`},
		{"c: d}]}\n      elapsed", "}]}\n      elapsed", `result.list.1.c: nothing, "d"`},
		{"elapsed: 3666s", "elapsed: 1h", "elapsed: 1h, 3666s"},
		{"status: completed", "error: {code: C, message: m, node: build}", "status: failed, completed; error code: C, none; error message: … m …, none; failed node: build, none"},
		{"- attempts: [", "- fail: {code: BAD, message: boom, final: true}\n        - attempts: [", "status: completed, failed: BAD boom; path: a → build → ask → sub → go → z, a → build; visits of sub/think: 1, 0; " +
			`state.by: "kim", nothing; state.image: "i", nothing; state.list: [1,{"a":"b"}], nothing; state.ok: true, nothing; state.x: 1, nothing; state.y: 2, nothing; ` +
			`result: {"image":"i","list":[1,{"a":"b","c":"d"}]}, null; elapsed: 3666s, 0ms`},
		{"signals: [{name: go, payload: {by: kim}, when: go, after: 1s}]", "cancel: {after: 2m, when: go, reason: slow}", "status: completed, cancelled: slow"},
		{"after: 1s}]", "after: 1s}]\n    cancel: {after: 2h, when: go}", "the cancel never comes: the run is completed after 1h1m6s of its time"},
		{"answers: {ask", "answers: {", "status: completed, interrupted at ask"},
		{"sub/think: {output: {x: 1, y: 2}, delay: 1m}", "", `node "sub/think" (llm_call) of workflow "part" is called and has no stub. Add it to the test:
  stubs:
    sub/think:
      output: { x: …, y: … }`},
		{"signals: [{name: go,", "signals: [{name: stop,", `signal "stop" after 1h1m6s was refused: the run awaits signal "go", not "stop"`},
	} {
		text := strings.Replace(passes, c.from, c.to, 1)
		if text == passes {
			t.Fatalf("%q is not in the test", c.from)
		}
		if strings.HasPrefix(c.from, "answers") {
			text = strings.Replace(text, "{: [{payload: {ok: true}, after: 1h}]}", "{}", 1)
		}
		var got []string
		for _, d := range run(t, text)[0].Differences {
			line := d.What
			if d.Expected+d.Got != "" {
				line += ": " + d.Expected + ", " + d.Got
			}
			got = append(got, line)
		}
		if text := strings.Join(got, "; "); !strings.HasPrefix(text, c.want) {
			t.Errorf("%s\n got %s\nwant %s", c.to, text, c.want)
		}
	}
}

// mutations are changes that make the file of passes invalid, with what is said of each, or leave it valid.
var mutations = []struct{ from, to, want string }{
	{"tests:", "test:", `2:1 missing field "tests"`},
	{"tests:", "definition: other\ntests:", "2:13 there is no definition other"},
	{"tests:", "definition: ''\ntests:", "2:13 must not be empty"},
	{"tests:", "definition: 1\ntests:", "2:13 expected string, found number"},
	{"tests:", "definition: gate.workflow.yaml\ntests:", ""},
	{"name: all", "nam: all", `missing field "name"`},
	{"name: all", "name: ''", "must not be empty"},
	{"name: all", "name: all\n    snapshot: 1", "expected boolean, found number"},
	{"name: all", "name: all\n    snapshot: true", ""},
	{"start: \"2026-03-01T12", "start: \"2026-03-01 12", "invalid time"},
	{"input: {n: 1}", "input: [1]", "expected object, found array"},
	{"input: {n: 1}", "input: null", "expected object, found null"},
	{"      build:\n", "      build: 1\n      go:\n", `node "go" is of type wait and takes no stub`},
	{"sub/think:", "sup/think:", `10:18 the definition has no node "sup"`},
	{"{fail: {code: BUSY", "{fail: {code: ''", "must not be empty"},
	{"final: false", "final: 1", "expected boolean, found number"},
	{"final: false", "finally: false", `unknown field "finally"`},
	{", delay: 5s}", ", delay: 5 s}", `invalid duration "5 s"`},
	{", delay: 5s}", ", delay: 5}", "expected string, found number"},
	{", delay: 5s}", ", output: 1}", "fail cannot be used with output"},
	{", delay: 5s}", "}", ""},
	{"- output: {}", "- {}", "expected one of output, fail or attempts"},
	{"- output: {}", "- delay: 1s", "expected one of output, fail or attempts"},
	{"- output: {}", "- output: {}\n          attempts: [{output: 1}]", "output cannot be used with attempts"},
	{"- output: {}", "- delay: 1s\n          attempts: [{output: 1}]", "delay cannot be used with attempts"},
	{"- output: {}", "- attempts: []", "the list is empty"},
	{"- output: {}", "- attempts: [{}]", "expected one of output or fail"},
	{"- output: {}", "- attempts: [{attempts: [{output: 1}]}]", `unknown field "attempts"`},
	{"- output: {}", "- 1", "expected object, found number"},
	{"- output: {}", "- output: null", ""},
	{"sub/think: {output", "sub/think: []\n      sub: {output", "the list is empty"},
	{"ask: [{payload: {ok: true}", "build: [{payload: {ok: true}", `node "build" is of type step and takes no answer`},
	{"payload: {ok: true}", "answer: {ok: true}", `missing field "payload"`},
	{"ask: [{payload: {ok: true}, after: 1h}]", "ask: []", "the list is empty"},
	{"ask: [{payload: {ok: true}, after: 1h}]", "ask: {payload: {ok: true}, after: 1h}", ""},
	{"signals: [{name: go", "signals: [{name: ''", "must not be empty"},
	{"signals: [{name: go", "signals: [{nam: go", `missing field "name"`},
	{"when: go, after: 1s", "when: gone, after: 1s", `the definition has no node "gone"`},
	{"when: go, after: 1s", "when: '', after: 1s", "must not be empty"},
	{"after: 1s}]", "after: 1s}]\n    cancel: {after: -2h}", `invalid duration "-2h"`},
	{"after: 1s}]", "after: 1s}]\n    cancel: {because: slow}", `unknown field "because"`},
	{"status: completed", "status: complete", `expected completed, failed, cancelled, refused, interrupted or awaiting_signal, found "complete"`},
	{"path: [a, build", "path: [1, build", "expected string, found number"},
	{"visits: {build: 1", "visits: {build: -1", "expected a whole number"},
	{"visits: {build: 1", "visits: {build: 1.5", "expected a whole number"},
	{"visits: {build: 1", "visits: {built: 1", `the definition has no node "built"`},
	{"waiting: []", "waiting: go", "expected array, found string"},
	{"waiting: []", "error: {kode: x}", `unknown field "kode"`},
	{"waiting: []", "exactly: yes", "expected boolean, found string"},
	{"elapsed: 3666s", "elapsed: 61m6s", `invalid duration "61m6s" -> write "3666s": one whole number and one unit`},
	{"elapsed: 3666s", "elapsed: 3666s\n  - name: all", `another test is named "all"`},
	{"elapsed: 3666s", "elapsed: 3666s\n  - name: other", ""},
	{"  - name: all", "  - {name: first}\n  - name: all", ""},
}

// beyondTheSchema are the keywords of what only the reader can know: other files, ids and names.
var beyondTheSchema = []string{"definition", "node", "uniqueItems"}

// Test files are refused with the place and what is wrong, and the published schema refuses the same ones.
func TestMutations(t *testing.T) {
	t.Parallel()
	node, faults := jsonvalue.Parse(schemas.WorkflowTest(), 0, 0)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	schema, err := jsonschema.Compile(node.Value())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutations {
		text := strings.Replace(passes, m.from, m.to, 1)
		if text == passes {
			t.Fatalf("%q is not in the test", m.from)
		}
		dir := folder(t, map[string]string{"gate.workflow.yaml": gate, "part.workflow.yml": part, "gate.test.yaml": text})
		_, err := workflowtest.Load(dir, "gate.test.yaml")
		var found []string
		beyond := err != nil
		if b, ok := errors.AsType[*workflowtest.Broken](err); ok {
			for _, f := range b.Err.Findings {
				found = append(found, decimal(f.At.Line)+":"+decimal(f.At.Column)+" "+strings.TrimSuffix(f.Message+" -> "+f.Hint, " -> "))
				beyond = beyond && slices.Contains(beyondTheSchema, f.Keyword)
				if f.At.Line == 0 || f.Code != "TEST_FILE_INVALID" {
					t.Errorf("%q: %+v", m.to, f)
				}
			}
		} else if err != nil {
			t.Errorf("%q: %v", m.to, err)
		}
		if got := strings.Join(found, "\n"); (m.want == "") != (err == nil) || !strings.Contains(got, m.want) {
			t.Errorf("%q: %v\n got %s\nwant %s", m.to, err, got, m.want)
		}
		if violations := schema.Validate(value(t, text)); (len(violations) == 0) != (err == nil || beyond) {
			t.Errorf("%q: the reader says %q, the schema %v", m.to, found, violations)
		}
	}
}

// TestSignalThatNobodyAwaits: a signal that no node waits for would never come, and the test pass without it.
func TestSignalThatNobodyAwaits(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"w.workflow.yaml": `document: { schema: s, name: w, version: "1" }
state_schema: { type: object }
nodes:
  - { id: a, type: start }
  - { id: go, type: wait, config: { kind: signal, signal: approved } }
  - { id: z, type: end }
edges: [{ source: __start__, target: a }, { source: a, target: go }, { source: go, target: z }]
`,
		"w.test.yaml": "tests:\n  - name: t\n    signals: [{ name: aproved }]\n    expect: { status: awaiting_signal }\n",
	})
	_, err := workflowtest.Load(dir, "w.test.yaml")
	b, ok := errors.AsType[*workflowtest.Broken](err)
	if !ok || len(b.Err.Findings) != 1 {
		t.Fatal(err)
	}
	if f := b.Err.Findings[0]; f.At.Line != 3 || f.Message != `no node of the definition waits for the signal "aproved"` || f.Hint != `did you mean "approved"?` {
		t.Errorf("%+v", f)
	}
}

// TestWhatAProgramRaisedIsShown: a failure that was not expected says what a program has raised.
func TestWhatAProgramRaisedIsShown(t *testing.T) {
	t.Parallel()
	const raising = `
document: {schema: s, name: raising, version: '1'}
state_schema: {type: object}
nodes: [{id: a, type: start}, {id: b, type: set_state, config: {assignments: {x: {jq: 'error("order \(.id) is closed")'}}}}, {id: e, type: end}]
edges: [{source: __start__, target: a}, {source: a, target: b}, {source: b, target: e}]
`
	dir := folder(t, map[string]string{"raising.workflow.yaml": raising, "raising.test.yaml": "tests: [{name: closed, input: {id: 7}, expect: {status: completed}}]"})
	f, err := workflowtest.Load(dir, "raising.test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d := f.Run(all)[0].Differences
	if len(d) != 1 || !strings.HasSuffix(d[0].Got, `; it raised "order 7 is closed"`) {
		t.Errorf("%+v", d)
	}
}

// TestOnlyWhatValidateAcceptsIsTested: a definition that leaves undone what it says is not tested as if it did it.
func TestOnlyWhatValidateAcceptsIsTested(t *testing.T) {
	t.Parallel()
	timed := strings.Replace(gate, "id: sub,", "id: sub, timeout: 2s,", 1)
	if timed == gate {
		t.Fatal("the definition has no subworkflow")
	}
	dir := folder(t, map[string]string{"gate.workflow.yaml": timed, "part.workflow.yml": part, "gate.test.yaml": passes})
	if _, err := workflowtest.Load(dir, "gate.test.yaml"); err == nil || !strings.Contains(err.Error(), "have a timeout") {
		t.Errorf("got %v", err)
	}
}
