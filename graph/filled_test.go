package graph_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/llmcall"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// filled is a workflow whose prompt, arguments and items are templates.
func filled(t *testing.T, prompt string) *definition.Document {
	return workflowWith(t, "filled", `"x-workflows-engine":{"uses":["map"]}`, []string{startNode(),
		`{"id":"ask","type":"llm_call","metadata":{"prompt_templates":true},"retry":{"max_attempts":3},"config":{"model":"m","user_prompt":` + prompt + `}}`,
		`{"id":"each","type":"tool_call","metadata":{"argument_templates":true},"map":{"items":".list","as":"it","concurrency":2},
			"config":{"server":"x","tool":"t","arguments":{"n":{"jq":".it * 2"},"key":"${ .key }"}}}`, endNode()}, "s ask", "ask each", "each e")
}

// TestAHostGetsWhatTheStateFillsIn: the config that a host sees is filled in, as the record of the request has it, but for what records
// hide; another process, which has read the history, shows the same.
func TestAHostGetsWhatTheStateFillsIn(t *testing.T) {
	t.Parallel()
	hide := history.DefaultRedaction().WithMask(func(s string) string { return strings.ReplaceAll(s, "sk-1234", "***") })
	o := graph.Options{Redaction: &hide}
	r, store := host(t, o)
	run := start(t, r, "r", filled(t, `"Sum up ${ .doc } at ${ now | todate }"`), object{"doc": "D", "list": []any{1.0, 2.0}, "key": "sk-1234"})
	prompt := "Sum up D at " + run.Pending[0].RequestedAt.UTC().Format(time.RFC3339)
	want := []object{{"user_prompt": prompt}}
	pending := func(run *view.Run, want ...object) {
		t.Helper()
		o.DefaultMode = machine.HostMediated
		for _, run := range []*view.Run{run, status(t, newRunner(t, store, o), "r")} {
			if len(run.Pending) != len(want) {
				t.Fatalf("pending %+v", run.Pending)
			}
			for i, config := range want {
				if !sameJSON(run.Pending[i].Config, config) {
					t.Errorf("config %d: %v, want %v", i, run.Pending[i].Config, config)
				}
			}
		}
	}
	pending(run, object{"model": "m", "user_prompt": prompt})
	run = submit(t, r, "r", "ask", nil)
	var items []object
	for i, n := range []float64{2, 4} {
		items = append(items, object{"server": "x", "tool": "t", "arguments": object{"n": n, "key": "sk-1234"}})
		want = append(want, object{"item": i, "arguments": object{"n": n, "key": "***"}})
	}
	pending(run, items...)
	got := requests(t, store, "r")
	if len(got) != len(want) {
		t.Fatalf("recorded %v", got)
	}
	for i := range want {
		if !sameJSON(got[i], want[i]) {
			t.Errorf("recorded %v, want %v", got[i], want[i])
		}
	}
	verifyAll(t, r)
}

// TestWhatCannotBeFilledInFailsAlike: the node fails in both modes, with one code and text, and neither the model nor the host is asked.
func TestWhatCannotBeFilledInFailsAlike(t *testing.T) {
	t.Parallel()
	provider := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the model is asked") }))
	t.Cleanup(provider.Close)
	model, err := llmcall.New(llmcall.Config{BaseURL: provider.URL, NoAuth: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, prompt := range []string{`"Sum up ${ .doc.title }"`, `"Sum up ${ .doc"`, `17`} {
		var failures []string
		for _, mode := range []machine.Mode{machine.InProcess, machine.HostMediated} {
			store := historymem.New()
			r := newRunner(t, store, graph.Options{Activities: activities.Composite{LLMCall: model}, DefaultMode: mode})
			run := start(t, r, "r", filled(t, prompt), object{"doc": "D"})
			wantStatus(t, run, machine.Failed)
			failures = append(failures, run.ErrorCode+" "+run.Error+" at "+run.ErrorNodeID)
			if n := count(records(t, store, "r"), history.ActivityFailed); n != 1 {
				t.Errorf("%s: %d attempts failed", mode, n)
			}
			verifyAll(t, r)
		}
		if failures[0] != failures[1] || !strings.HasPrefix(failures[0], "LLM_CONFIG_INVALID ") {
			t.Errorf("%s: %q", prompt, failures)
		}
	}
}

// TestWhatIsNotRecordedIsFilledInAllTheSame: a host gets the values although the history has no requests.
func TestWhatIsNotRecordedIsFilledInAllTheSame(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{OmitRequests: true})
	run := start(t, r, "r", filled(t, `"Sum up ${ .doc }"`), object{"doc": "D"})
	if got := run.Pending[0].Config["user_prompt"]; got != "Sum up D" {
		t.Errorf("the prompt is %q", got)
	}
	if got := requests(t, store, "r"); len(got) != 1 || got[0] != nil {
		t.Errorf("recorded %v", got)
	}
}
