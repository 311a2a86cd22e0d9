package cli

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

func TestRequestText(t *testing.T) {
	t.Parallel()
	type obj = map[string]any
	for want, request := range map[string]obj{
		"": {},
		`gpt "Judge it" at https://api.example/v1`: {
			"model": "gpt", "endpoint": "https://api.example/v1", "temperature": 0.0,
			"messages": []any{obj{"role": "system", "content": "Be brief."}, obj{"role": "user", "content": "Judge it"}},
		},
		`gpt "(the state)"`:                 {"model": "gpt", "messages": []any{obj{"role": "user", "content_from": "state"}}},
		`files.read {"path":"a"}`:           {"server": "files", "tool": "read", "arguments": obj{"path": "a"}},
		`item 4 {"id":7}`:                   {"item": 3.0, "value": obj{"id": 7.0}},
		`item 5 files.list`:                 {"item": 4.0, "server": "files", "tool": "list", "arguments": obj{}},
		`{"left_out_bytes":5000000}`:        {"left_out_bytes": 5e6},
		`at https://agents.example`:         {"endpoint": "https://agents.example"},
		`{"kind":"an executor of its own"}`: {"kind": "an executor of its own"},
	} {
		if got := requestText(request, detailWidth); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if got := requestText(request, math.MaxInt); len(request) > 0 && !strings.HasPrefix(got, "{") {
			t.Errorf("not whole: %s", got)
		}
	}
}

func TestStateTrail(t *testing.T) {
	t.Parallel()
	var trail stateTrail
	for _, step := range []struct {
		state map[string]any
		width int
		want  string
	}{
		{map[string]any{"n": 1.0, "log": []any{"a"}}, detailWidth, `{"log":["a"],"n":1}`},
		{map[string]any{"n": 1.0, "log": []any{"a", "b"}}, detailWidth, `log/1="b"`},
		{map[string]any{"n": 2.0}, detailWidth, `-log n=2`},
		{map[string]any{"n": 2.0}, detailWidth, `(unchanged)`},
		{map[string]any{"n": 3.0}, wholeWidth, `{"n":3}`},
		{map[string]any{"n": 4.0}, detailWidth, `n=4`},
	} {
		if got := trail.text(step.state, step.width); got != step.want {
			t.Errorf("%v: %s, want %s", step.state, got, step.want)
		}
	}
}

// asking is an executor that does not answer before it is told to.
type asking struct{ asked, answer chan struct{} }

func (x asking) Execute(ctx context.Context, _ activities.Request) (activities.Result, error) {
	close(x.asked)
	select {
	case <-x.answer:
	case <-ctx.Done():
	}
	return activities.Result{}, nil
}

func (x asking) Capabilities(activities.Node) activities.Capabilities {
	return activities.Capabilities{Describe: x.describe}
}

func (asking) describe(req activities.Request) map[string]any {
	return map[string]any{"model": "m", "messages": []any{map[string]any{"content": "for " + req.NodeID}}}
}

// TestStatusSaysWhatWasSent: of an attempt that is under way, status shows the request, and the command that prints all of it.
func TestStatusSaysWhatWasSent(t *testing.T) {
	t.Parallel()
	x := asking{make(chan struct{}), make(chan struct{})}
	s := sampleSession()
	s.store = historymem.New()
	runner, err := graph.New(s.store, graph.Options{Activities: x, WaitLimit: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		close(x.answer)
		if err := runner.Close(); err != nil {
			t.Error(err)
		}
	}()
	s.engine, s.sameStore = runner, []string{"--db", "runs.db"}
	d, err := definition.Parse([]byte(`{"document":{"schema":"s","name":"n","version":"1"},"state_schema":{"type":"object"},"nodes":[{"id":"s","type":"start"},
		{"id":"ask","type":"llm_call","config":{"model":"m"}},{"id":"e","type":"end"}],
		"edges":[{"source":"__start__","target":"s"},{"source":"s","target":"ask"},{"source":"ask","target":"e"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	run, err := runner.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: d})
	if err != nil || len(run.Pending) != 1 {
		t.Fatalf("%+v, %v", run, err)
	}
	<-x.asked
	requests, err := s.requestsOf(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := writeStatus(&out, run, s, run.CreatedAt, standing{requests: requests}); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("  sent: m \"for ask\"\n  all of it:\n    workflows-engine history r --from %d --limit 1 --full --db runs.db\n", run.Seq)
	if !strings.Contains(out.String(), want) {
		t.Errorf("%s does not contain\n%s", out.String(), want)
	}
}

// unspoken is an executor that records no request, and does not answer before it is told to.
type unspoken struct{ asked, answer chan struct{} }

func (x unspoken) Execute(ctx context.Context, req activities.Request) (activities.Result, error) {
	return asking(x).Execute(ctx, req)
}

// countedReads counts the records that are read.
type countedReads struct {
	graph.Engine
	records int
}

func (e *countedReads) History(ctx context.Context, req graph.HistoryRequest) ([]history.Record, error) {
	records, err := e.Engine.History(ctx, req)
	e.records += len(records)
	return records, err
}

// TestStatusReadsLittle: each record has a state, which may be large. status reads the newest few, also of an attempt of which nothing was
// recorded that it could show.
func TestStatusReadsLittle(t *testing.T) {
	t.Parallel()
	x := unspoken{make(chan struct{}), make(chan struct{})}
	s := sampleSession()
	s.store = historymem.New()
	runner, err := graph.New(s.store, graph.Options{Activities: x, WaitLimit: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		close(x.answer)
		if err := runner.Close(); err != nil {
			t.Error(err)
		}
	}()
	counted := &countedReads{Engine: runner}
	s.engine = counted
	d, err := definition.Parse([]byte(`{"document":{"schema":"s","name":"n","version":"1"},"x-workflows-engine":{"uses":["loop"]},"state_schema":{"type":"object"},
		"nodes":[{"id":"s","type":"start"},{"id":"again","type":"switch","config":{"default":"do"},"loop":{"while":".i < 200","body":"count","max":200,"counter":"i"}},
		{"id":"count","type":"set_state","config":{"assignments":{"n":{"jq":".i"}}}},{"id":"do","type":"step","config":{"handler":"h"}},{"id":"e","type":"end"}],
		"edges":[{"source":"__start__","target":"s"},{"source":"s","target":"again"},{"source":"count","target":"again"},{"source":"do","target":"e"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := runner.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: d}); err != nil {
		t.Fatal(err)
	}
	<-x.asked
	run, err := runner.Status(t.Context(), graph.StatusRequest{ExecutionID: "r"})
	if err != nil || len(run.Pending) != 1 || run.Seq < 500 {
		t.Fatalf("%+v, %v", run, err)
	}
	if requests, err := s.requestsOf(t.Context(), run); err != nil || len(requests) != 0 {
		t.Errorf("%v, %v", requests, err)
	}
	if counted.records > 50 {
		t.Errorf("%d records of %d were read", counted.records, run.Seq)
	}
}
