package definition_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/lint"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

const extendedBase = `
document: {schema: "urn:t", name: w, version: "1"}
x-workflows-engine: {uses: [catch, early_signals, loop, map, on_timeout, interrupt_in_branch, templates, compensate], rollback: [cancel]}
state_schema: {type: object}
nodes:
  - {id: s, type: start}
  - {id: work, type: step, config: {handler: h}, catch: [{codes: [TIMEOUT, "LLM_*"], target: late, as: error, rollback: true}, {codes: ["*"], target: e}], compensate: {node: undo, as: done}}
  - {id: pause, type: wait, config: {kind: duration, duration: 1m}, wait_templates: {duration: "${ .minutes }m"}}
  - {id: late, type: wait, config: {kind: signal, signal: go, timeout: 1h}, on_timeout: e, keep: true}
  - {id: fork, type: parallel, config: {join: all, branches: [{name: a, entry: ask}, {name: b, entry: try}]}, catch: [{codes: ["*"], target: e}]}
  - {id: ask, type: interrupt, config: {prompt: "Send ${ .draft }?", resume_schema: {type: object}, timeout: 1h}, prompt_templates: true, show: .draft, on_timeout: e2}
  - {id: try, type: subworkflow, config: {workflow_ref: w, input_mapping: {}}, map: {items: .docs, as: doc, concurrency: 3, collect: out, tolerate: {count: 2, percent: 5, as: failed}}, catch: [{codes: ["*"], target: e2}], compensate: {node: undo}}
  - {id: e2, type: set_state, config: {assignments: {x: {literal: 1}}}}
  - {id: e, type: end}
  - {id: round, type: switch, config: {default: fork}, loop: {while: .more, body: draft, max: 5, counter: rounds, on_limit: late}}
  - {id: draft, type: step, config: {handler: h}}
  - {id: undo, type: tool_call, config: {server: s, tool: t}, retry: {max_attempts: 2}}
edges:
  - {source: __start__, target: s}
  - {source: s, target: pause}
  - {source: pause, target: work}
  - {source: work, target: round}
  - {source: late, target: fork}
  - {source: fork, target: e}
  - {source: ask, target: e}
  - {source: try, target: e}
  - {source: e2, target: e}
  - {source: draft, target: round}
`

func extendedValue(t *testing.T) any {
	t.Helper()
	d, err := definition.ParseYAML([]byte(extendedBase))
	if err != nil {
		t.Fatal(err)
	}
	return d.Value()
}

// TestExtensions changes a document that uses extensions: what is wrong is refused by Compile and by the published schema alike.
func TestExtensions(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, tt := range []struct{ name, patch string }{
		{"as it is", ""},
		{"no extension is named", "del /x-workflows-engine"},
		{"catch is not named", `set /x-workflows-engine {"uses":["on_timeout","interrupt_in_branch"]}`},
		{"on_timeout is not named", `set /x-workflows-engine {"uses":["catch","interrupt_in_branch"]}`},
		{"map is not named", `set /x-workflows-engine {"uses":["catch","on_timeout","interrupt_in_branch"]}`},
		{"a map without items", `del /nodes/6/map/items`},
		{"a map whose items do not compile", `set /nodes/6/map/items ".docs["`},
		{"a map with numbers that are none", `set /nodes/6/map {"items":".","concurrency":0,"tolerate":{"count":1.5,"percent":101}}`},
		{"a map with wrong names", `set /nodes/6/map {"each":".","max_concurrency":1,"tolerate":{"failures":1}}`},
		{"a map that does too much at once", `set /nodes/6/map/concurrency 5000`},
		{"a map with one name for two things", `set /nodes/6/map/tolerate/as "out"`},
		{"a map at a delegate", "set /nodes/- {\"id\":\"a\",\"type\":\"agent_delegate\",\"config\":{\"agent_id\":\"a\",\"protocol\":\"sdk\",\"input_mapping\":{}},\"map\":{\"items\":\".\"}}\nset /edges/- {\"source\":\"a\",\"target\":\"e\"}"},
		{"compensate is not named", `set /x-workflows-engine {"uses":["catch","map","on_timeout","interrupt_in_branch","templates"]}`},
		{"rollback of an extension that is not named", "del /nodes/1/compensate\ndel /nodes/6/compensate\nset /x-workflows-engine/uses [\"catch\",\"map\",\"on_timeout\",\"interrupt_in_branch\",\"templates\"]"},
		{"a compensate that is a text", `set /nodes/1/compensate "undo"`},
		{"a compensate without a node", `set /nodes/1/compensate {"target":"undo"}`},
		{"a compensate that names no node", `set /nodes/1/compensate/node "und"`},
		{"a node that compensates itself", `set /nodes/1/compensate/node "work"`},
		{"a compensation of a wrong type", `set /nodes/1/compensate/node "e2"`},
		{"compensations that compensate each other", `set /nodes/11/compensate {"node":"work"}`},
		{"a compensation with a catch and a map", "set /nodes/11/catch [{\"codes\":[\"*\"],\"target\":\"e\"}]\nset /nodes/11/map {\"items\":\".\"}"},
		{"an edge leads on from a compensation", `set /edges/- {"source":"undo","target":"e"}`},
		{"an edge leads to a compensation", `set /edges/4/target "undo"`},
		{"a catch leads to a compensation", `set /nodes/1/catch/1/target "undo"`},
		{"a branch begins at a compensation", `set /nodes/4/config/branches/0/entry "undo"`},
		{"a run begins at a compensation", `set /edges/0/target "undo"`},
		{"a rollback with nothing to undo", "del /nodes/1/compensate\ndel /nodes/6/compensate\nset /edges/- {\"source\":\"undo\",\"target\":\"e\"}"},
		{"nothing rolls back", "del /nodes/1/catch/0/rollback\ndel /x-workflows-engine/rollback"},
		{"a rollback of a catch is false", "set /nodes/1/catch/0/rollback false\ndel /x-workflows-engine/rollback"},
		{"a rollback at an unknown end", `set /x-workflows-engine/rollback ["failed"]`},
		{"a rollback at no end", `set /x-workflows-engine/rollback []`},
		{"a compensate at a set_state", `set /nodes/7/compensate {"node":"undo"}`},
		{"templates is not named", `set /x-workflows-engine {"uses":["catch","map","on_timeout","interrupt_in_branch"]}`},
		{"a template that does not compile", `set /nodes/5/config/prompt "Send ${ .draft[ }?"`},
		{"a time that does not compile", `set /nodes/2/wait_templates/duration "${ . "`},
		{"a show that does not compile", `set /nodes/5/show ".draft["`},
		{"a time of another kind", `set /nodes/2/wait_templates {"until":"${ .at }"}`},
		{"templates with wrong names", "set /nodes/5/prompt_templates \"yes\"\nset /nodes/2/wait_templates {\"delay\":\"1m\"}"},
		{"loop and early_signals are not named", `set /x-workflows-engine {"uses":["catch","map","on_timeout","interrupt_in_branch","templates"]}`},
		{"a loop until", "del /nodes/9/loop/while\nset /nodes/9/loop/until \".good\""},
		{"a loop without a condition", "del /nodes/9/loop/while"},
		{"a loop with two conditions", `set /nodes/9/loop/until ".good"`},
		{"a loop without a body", "del /nodes/9/loop/body"},
		{"a loop without a max", "del /nodes/9/loop/max"},
		{"a loop with a max of none", "set /nodes/9/loop/max 0"},
		{"a loop with too large a max", "set /nodes/9/loop/max 10001"},
		{"a loop with wrong names", `set /nodes/9/loop {"when":".more","do":"draft","max_iterations":3}`},
		{"a loop that does not compile", `set /nodes/9/loop/while ".more["`},
		{"a loop with a condition of several values", `set /nodes/9/loop/while ".more[]"`},
		{"a loop with an unknown body", `set /nodes/9/loop/body "draf"`},
		{"a loop that goes on nowhere at its limit", `set /nodes/9/loop/on_limit "nowhere"`},
		{"a loop whose body is itself", `set /nodes/9/loop/body "round"`},
		{"a loop whose body does not lead back", `set /edges/9/target "fork"`},
		{"a loop whose body leads nowhere", `set /edges/9/target "rond"`},
		{"a loop that is entered past its switch", `set /edges/3/target "draft"`},
		{"a loop that goes on into its body at the limit", `set /nodes/9/loop/on_limit "draft"`},
		{"a loop that is never over", "del /nodes/9/config/default"},
		{"a loop with cases", `set /nodes/9/config/cases [{"when":".late","target":"late"}]`},
		{"a loop with cases and no default", "set /nodes/9/config/cases [{\"when\":\".late\",\"target\":\"late\"}]\ndel /nodes/9/config/default"},
		{"a loop with no cases at all", `set /nodes/9/config/cases []`},
		{"a switch without cases", "del /nodes/9/loop"},
		{"a switch with no cases at all", "del /nodes/9/loop\nset /nodes/9/config/cases []"},
		{"a counter that the state forbids", `set /state_schema {"type":"object","additionalProperties":false,"properties":{"more":{}}}`},
		{"a counter that is too large", `set /state_schema/properties {"rounds":{"type":"integer","maximum":4}}`},
		{"a counter that cannot be 0", `set /state_schema/properties {"rounds":{"type":"integer","minimum":1}}`},
		{"a counter that is a text", `set /state_schema/properties {"rounds":{"type":"string"}}`},
		{"a counter that is combined", `set /state_schema/properties {"rounds":{"type":"array","reducer":"append"}}`},
		{"a loop at a step", `set /nodes/1/loop {"while":".x","body":"e","max":1}`},
		{"a wait for time that keeps signals", `set /nodes/2/keep true`},
		{"keep is a text", `set /nodes/3/keep "yes"`},
		{"members of nodes in their configs", "set /nodes/3/config/keep true\nset /nodes/5/config/show \".draft\"\nset /nodes/9/config/loop {}\nset /nodes/11/config/retry {\"max_attempts\":2}"},
		{"members of a config beside it", "set /nodes/1/handler \"h\"\nset /nodes/3/signal \"go\"\nset /nodes/9/default \"fork\""},
		{"texts for a boolean and numbers", "set /nodes/5/prompt_templates \"no\"\nset /nodes/6/map/tolerate {\"count\":\"two\",\"percent\":\"5%\"}"},
		{"a heartbeat", "set /nodes/1/heartbeat \"30s\"\nset /x-workflows-engine/uses/- \"heartbeat\""},
		{"a heartbeat whose extension is not named", `set /nodes/1/heartbeat "30s"`},
		{"a heartbeat that is no time", "set /nodes/1/heartbeat \"soon\"\nset /nodes/11/heartbeat \"0s\"\nset /x-workflows-engine/uses/- \"heartbeat\""},
		{"a heartbeat beyond the timeout", "set /nodes/1/heartbeat \"30s\"\nset /nodes/1/timeout \"30s\"\nset /x-workflows-engine/uses/- \"heartbeat\""},
		{"a heartbeat of a model that does not stream", "set /nodes/1/type \"llm_call\"\nset /nodes/1/config {\"model\":\"any\",\"stream\":false}\nset /nodes/1/heartbeat \"30s\"\nset /x-workflows-engine/uses/- \"heartbeat\""},
		{"a heartbeat at a subworkflow", "set /nodes/6/heartbeat \"30s\"\nset /x-workflows-engine/uses/- \"heartbeat\""},
		{"queues", "set /nodes/1/queue \"gpu\"\nset /nodes/1/queue_timeout \"5m\"\nset /x-workflows-engine/queue \"nightly\"\nset /x-workflows-engine/uses/- \"queue\""},
		{"queues whose extension is not named", "set /nodes/1/queue \"gpu\"\nset /nodes/1/queue_timeout \"5m\"\nset /x-workflows-engine/queue \"nightly\""},
		{"queues that are none", "set /nodes/1/queue \"g/p u\"\nset /nodes/11/queue_timeout \"soon\"\nset /x-workflows-engine/queue \"a b\"\nset /x-workflows-engine/uses/- \"queue\""},
		{"queues that are no texts", "set /nodes/1/queue 5\nset /nodes/11/queue_timeout 5\nset /x-workflows-engine/queue [\"a\"]\nset /x-workflows-engine/uses/- \"queue\""},
		{"deadlines", "set /nodes/1/deadline \"10m\"\nset /x-workflows-engine/deadline \"72h\"\nset /x-workflows-engine/uses/- \"deadline\""},
		{"deadlines whose extension is not named", "set /nodes/1/deadline \"10m\"\nset /x-workflows-engine/deadline \"72h\""},
		{"deadlines that are none", "set /nodes/1/deadline \"soon\"\nset /x-workflows-engine/deadline \"0s\"\nset /x-workflows-engine/uses/- \"deadline\""},
		{"deadlines that are no texts", "set /nodes/1/deadline 5\nset /x-workflows-engine/deadline 5\nset /x-workflows-engine/uses/- \"deadline\""},
		{"a deadline of a wait", "set /nodes/2/deadline \"10m\"\nset /x-workflows-engine/uses/- \"deadline\""},
		{"deadlines that are short", "set /nodes/1/deadline \"10s\"\nset /nodes/1/timeout \"10s\"\nset /x-workflows-engine/deadline \"1ms\"\nset /x-workflows-engine/uses/- \"deadline\""},
		{"a deadline that is shorter than the pauses", "set /nodes/1/deadline \"1m\"\nset /nodes/1/retry {\"max_attempts\":4,\"initial_interval\":\"20s\"}\nset /x-workflows-engine/uses/- \"deadline\""},
		{"a queue of a wait", "set /nodes/2/queue \"gpu\"\nset /x-workflows-engine/uses/- \"queue\""},
		{"an unknown extension", `set /x-workflows-engine/uses/- "catches"`},
		{"no list of extensions", `set /x-workflows-engine {}`},
		{"a member besides uses", `set /x-workflows-engine/version 1`},
		{"the list is a text", `set /x-workflows-engine/uses "catch"`},
		{"no catch at all", `set /nodes/1/catch []`},
		{"a catch without a target", `del /nodes/1/catch/0/target`},
		{"a catch without codes", `set /nodes/1/catch/0/codes []`},
		{"a catch with a wrong name", "del /nodes/1/catch/0/codes\nset /nodes/1/catch/0/code \"TIMEOUT\""},
		{"a catch that leads nowhere", `set /nodes/1/catch/0/target "lat"`},
		{"on_timeout leads nowhere", `set /nodes/3/on_timeout "nowhere"`},
		{"a catch behind one of all", `set /nodes/1/catch/- {"codes":["X"],"target":"e"}`},
		{"a catch at a set_state", `set /nodes/7/catch [{"codes":["*"],"target":"e"}]`},
		{"on_timeout at a step", `set /nodes/1/on_timeout "e"`},
		{"on_timeout without a timeout", "del /nodes/3/config/timeout"},
		{"a timeout that is none", `set /nodes/3/config/timeout "soon"`},
		{"an interrupt with a timeout that is none", `set /nodes/5/config/timeout "soon"`},
		{"a timeout of a wait that needs none", "set /nodes/3/config {\"kind\":\"duration\",\"duration\":\"1h\",\"timeout\":\"1h\"}\ndel /nodes/3/on_timeout"},
		{"a catch leads out of a branch", `set /nodes/6/catch/0/target "late"`},
		{"a catch is the only way on", "set /nodes/1/type \"agent_delegate\"\nset /nodes/1/config {\"agent_id\":\" \",\"protocol\":\"sdk\",\"input_mapping\":{}}"},
		{"a catch leaves a loop", "set /edges/2/target \"work\"\nset /edges/3/target \"work\""},
		{"only a catch leads to a node", "set /nodes/- {\"id\":\"spare\",\"type\":\"set_state\",\"config\":{\"assignments\":{\"y\":{\"literal\":1}}}}\n" +
			"set /edges/- {\"source\":\"spare\",\"target\":\"e\"}\nset /nodes/1/catch/0/target \"spare\""},
		{"extensions that nothing uses", "del /nodes/1/catch\ndel /nodes/4/catch\ndel /nodes/6/catch\ndel /nodes/3/on_timeout\ndel /nodes/3/config/timeout\ndel /nodes/5/on_timeout\ndel /nodes/9\ndel /nodes/9\ndel /nodes/3/keep\ndel /edges/9\nset /edges/3/target \"fork\""},
		{"an interrupt in a branch that is not allowed", `set /x-workflows-engine {"uses":["catch","on_timeout"]}`},
	} {
		d, p, findings := compileValue(t, patch(t, extendedValue(t), tt.patch))
		structure, _ := structural(findings)
		named := slices.ContainsFunc(findings, func(f problem.Finding) bool { return f.Code == problem.ExtensionNotNamed })
		if got := len(publishedSchema().Validate(d.Value())) > 0; got != (len(structure) > 0 || named) {
			t.Errorf("%s: the published schema refuses is %v, the structural check says %v", tt.name, got, !got)
		}
		_, findings = lint.Compile(d, lint.Options{})
		fmt.Fprintf(&b, "%s: %v\n%s", tt.name, p != nil, list(findings))
	}
	golden(t, "extensions.golden", b.String())
}

// TestProtocolOnly refuses extensions where a document is to be plain AWP.
func TestProtocolOnly(t *testing.T) {
	t.Parallel()
	extended, err := definition.FromValue(extendedValue(t))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := definition.FromValue(base(t, "everything"))
	if err != nil {
		t.Fatal(err)
	}
	if p, findings := definition.Compile(extended, definition.Options{Protocol: true}); p != nil || findings[0].Code != problem.ExtensionUsed {
		t.Errorf("got %v", findings)
	}
	if p, findings := definition.Compile(plain, definition.Options{Protocol: true}); p == nil {
		t.Errorf("a plain document is refused: %v", findings)
	}
	want := []definition.Extension{definition.ExtensionCatch, definition.ExtensionCompensate, definition.ExtensionEarlySignals,
		definition.ExtensionInterruptInBranch, definition.ExtensionLoop, definition.ExtensionMap, definition.ExtensionOnTimeout,
		definition.ExtensionTemplates}
	if got := extended.Uses(); !slices.Equal(got, want) || len(plain.Uses()) > 0 {
		t.Errorf("uses %v and %v", got, plain.Uses())
	}
}

func TestCaughtBy(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pattern, code string
		want          bool
	}{
		{"*", "", true}, {"*", "ANY", true}, {"TIMEOUT", "TIMEOUT", true}, {"TIMEOUT", "TIMEOUT_2", false}, {"TIMEOUT", "", false},
		{"LLM_*", "LLM_X", true}, {"LLM_*", "LLM_", true}, {"LLM_*", "LLM", false}, {"*_X", "LLM_X", true}, {"A*B*C", "AxBxC", true},
		{"A*B*C", "ABC", true}, {"A*B*C", "AC", false}, {"AB*BA", "ABA", false}, {"**", "x", true}, {"", "", true},
	} {
		n := &definition.Node{Catches: []definition.Catch{{Codes: []string{tt.pattern}}}}
		if got := n.CaughtBy(tt.code) != nil; got != tt.want {
			t.Errorf("%q catches %q: %v, want %v", tt.pattern, tt.code, got, tt.want)
		}
	}
}
