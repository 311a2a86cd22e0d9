package a2atest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// bench drives runs against one agent. Whatever is logged is kept.
type bench struct {
	*graph.Runner
	t     *testing.T
	agent *agent
	store *historymem.Store
	log   *text
}

type text struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (x *text) Write(p []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.all.Write(p)
}

func (x *text) String() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.all.String()
}

// a2aConfig polls so often that tests are quick.
func a2aConfig(url string) delegate.A2AConfig {
	return delegate.A2AConfig{
		BaseURL: url, APIKey: func(context.Context) (string, error) { return key, nil },
		PollInterval: 2 * time.Millisecond, MaxPollInterval: 4 * time.Millisecond, RequestTimeout: 5 * time.Second, MaxAnswerBytes: 1 << 16,
	}
}

func newBench(t *testing.T, a *agent, tune ...func(*delegate.A2AConfig)) *bench {
	b := &bench{t: t, agent: a, store: historymem.New(), log: &text{}}
	b.restart(tune...)
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		b.checkSecret()
	})
	return b
}

// restart ends the process, as it were, and starts the next one on the same store.
func (b *bench) restart(tune ...func(*delegate.A2AConfig)) {
	if b.Runner != nil {
		if err := b.Close(); err != nil {
			b.t.Fatal(err)
		}
	}
	c := a2aConfig(b.agent.url)
	for _, f := range tune {
		f(&c)
	}
	remote, err := delegate.NewA2A(c)
	if err != nil {
		b.t.Fatal(err)
	}
	b.Runner, err = graph.New(b.store, graph.Options{
		Delegates: activities.Composite{A2A: remote}, Work: graph.WorkAll,
		Logger: slog.New(slog.NewTextHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// checkSecret looks for the key in everything that was kept or said.
func (b *bench) checkSecret() {
	b.t.Helper()
	said := b.log.String()
	page, err := b.store.List(context.Background(), history.ListQuery{})
	if err != nil {
		b.t.Fatal(err)
	}
	for _, e := range page.Executions {
		records, err := b.store.Read(context.Background(), e.ID, 1, 0)
		if err != nil {
			b.t.Fatal(err)
		}
		for _, r := range records {
			said += string(r.Raw)
		}
		said += string(e.AppendText(nil))
		_, position, _ := b.store.Position(context.Background(), e.ID)
		said += string(position)
	}
	if strings.Contains(said, key) {
		b.t.Errorf("the key is kept or logged")
	}
	if len(page.Executions) > 0 && !strings.Contains(said, "agent_delegate") {
		b.t.Errorf("nothing was looked through")
	}
}

// node is a delegate node whose input has the member "do".
func node(id, do string, members ...string) string {
	more := ""
	for _, m := range members {
		more += "," + m
	}
	return fmt.Sprintf(`{"id":%q,"type":"agent_delegate","config":{"agent_id":"coder","protocol":"a2a","input_mapping":{"do":%q,"name":"Ada"}}%s}`, id, do, more)
}

func define(t *testing.T, nodes, edges string) *definition.Document {
	t.Helper()
	return enginetest.Define(t, fmt.Sprintf(`{"document":{"schema":"urn:test","name":"d","version":"1"},"state_schema":{"type":"object"},
		"nodes":[`+startNode+`,%s,`+endNode+`],"edges":[{"source":"__start__","target":"s"},%s]}`, nodes, edges))
}

const (
	startNode = `{"id":"s","type":"start"}`
	endNode   = `{"id":"e","type":"end","config":{"output_mapping":"."}}`
)

func linear(t *testing.T, do string, members ...string) *definition.Document {
	return enginetest.Define(t, enginetest.Linear("d", startNode, node("d", do, members...), endNode))
}

func (b *bench) start(id string, d *definition.Document) *view.Run {
	b.t.Helper()
	run, err := b.Start(b.t.Context(), graph.StartRequest{ExecutionID: id, Definition: d, Wait: graph.Wait{Limit: time.Minute}})
	if err != nil {
		b.t.Fatal(err)
	}
	return run
}

// begin starts a run and waits until the agent has its task.
func (b *bench) begin(id string, d *definition.Document) string {
	b.t.Helper()
	if _, err := b.Start(b.t.Context(), graph.StartRequest{ExecutionID: id, Definition: d, Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
		b.t.Fatal(err)
	}
	return b.until(id, func(run *view.Run) bool { return len(run.Pending) > 0 && run.Pending[0].ExternalTaskID != "" }).Pending[0].ExternalTaskID
}

// until asks for a run's status until it is as wanted.
func (b *bench) until(id string, ok func(*view.Run) bool) *view.Run {
	b.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		run, err := b.Status(b.t.Context(), graph.StatusRequest{ExecutionID: id, Wait: &graph.Wait{Limit: 5 * time.Millisecond}})
		if err != nil {
			b.t.Fatal(err)
		}
		if ok(run) {
			return run
		}
	}
	b.t.Fatalf("the run does not come to where it should; the log:\n%s", b.log)
	return nil
}

func (b *bench) ended(id string) *view.Run {
	b.t.Helper()
	return b.until(id, func(run *view.Run) bool { return run.Status.Terminal() })
}

func (b *bench) resume(id, question string, payload map[string]any) error {
	_, err := b.Resume(b.t.Context(), graph.ResumeRequest{ExecutionID: id, InterruptID: question, Payload: payload, Caller: graph.Caller{Wait: graph.Wait{Limit: graph.NoWait}}})
	return err
}

func want(t *testing.T, run *view.Run, s machine.Status) {
	t.Helper()
	if run.Status != s {
		t.Fatalf("status %s, want %s: %s %s", run.Status, s, run.ErrorCode, run.Error)
	}
}

// encode writes a value as JSON, with its members in order.
func encode(v any) string {
	out, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(out)
}
