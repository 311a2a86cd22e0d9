package graph_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// define parses a definition written for a test.
func define(t testing.TB, text string) *definition.Document {
	t.Helper()
	d, err := definition.Parse([]byte(text))
	if err != nil {
		t.Fatalf("definition: %v", err)
	}
	return d
}

// workflow makes a definition of nodes and edges. Each edge is "source target"; the edge to the first node is added.
func workflow(t testing.TB, name string, nodes []string, edges ...string) *definition.Document {
	t.Helper()
	return workflowWith(t, name, "", nodes, edges...)
}

// workflowWith is workflow with further top-level members.
func workflowWith(t testing.TB, name, members string, nodes []string, edges ...string) *definition.Document {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, `{"document":{"schema":"urn:test","name":%q,"version":"1"},`, name)
	if !strings.Contains(members, `"state_schema"`) {
		b.WriteString(`"state_schema":{"type":"object"},`)
	}
	if members != "" {
		b.WriteString(members + ",")
	}
	b.WriteString(`"nodes":[` + strings.Join(nodes, ",") + `],"edges":[`)
	first := nodes[0][strings.Index(nodes[0], `"id":"`)+len(`"id":"`):]
	fmt.Fprintf(&b, `{"source":"__start__","target":%q}`, first[:strings.Index(first, `"`)])
	for _, e := range edges {
		from, to, _ := strings.Cut(e, " ")
		fmt.Fprintf(&b, `,{"source":%q,"target":%q}`, from, to)
	}
	b.WriteString("]}")
	return define(t, b.String())
}

// The nodes that most tests are made of.
func startNode() string { return `{"id":"s","type":"start"}` }
func endNode() string   { return `{"id":"e","type":"end","config":{"output_mapping":"."}}` }

func tool(id string, members ...string) string {
	return fmt.Sprintf(`{"id":%q,"type":"tool_call","config":{"server":"x","tool":%q}%s}`, id, id, more(members))
}

func interrupt(id string) string {
	return fmt.Sprintf(`{"id":%q,"type":"interrupt","config":{"prompt":"well?","resume_schema":{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}}}`, id)
}

func signalWait(id, name string) string {
	return fmt.Sprintf(`{"id":%q,"type":"wait","config":{"kind":"signal","signal":%q}}`, id, name)
}

// keepingWait takes signals that came before it (extension early_signals).
func keepingWait(id, name string, members ...string) string {
	return fmt.Sprintf(`{"id":%q,"type":"wait","config":{"kind":"signal","signal":%q},"keep":true%s}`, id, name, more(members))
}

// loopNode repeats from body while a condition holds, and then goes on (extension loop).
func loopNode(id, while, counter, body, then string) string {
	return fmt.Sprintf(`{"id":%q,"type":"switch","loop":{"while":%q,"counter":%q,"max":5,"body":%q},"config":{"default":%q}}`,
		id, while, counter, body, then)
}

func timerWait(id, duration string) string {
	return fmt.Sprintf(`{"id":%q,"type":"wait","config":{"kind":"duration","duration":%q}}`, id, duration)
}

func subworkflow(id, ref string, members ...string) string {
	return fmt.Sprintf(`{"id":%q,"type":"subworkflow","config":{"workflow_ref":%q,"input_mapping":{"from":"%s"}%s}}`, id, ref, id, more(members))
}

func delegateNode(id string, members ...string) string {
	return fmt.Sprintf(`{"id":%q,"type":"agent_delegate","config":{"agent_id":"coder","protocol":"a2a","input_mapping":{"task":"do"}}%s}`, id, more(members))
}

// fork makes a parallel node with one branch for each entry.
func fork(id, join string, entries ...string) string {
	var bs []string
	for _, e := range entries {
		bs = append(bs, fmt.Sprintf(`{"name":"b_%s","entry":%q}`, e, e))
	}
	return fmt.Sprintf(`{"id":%q,"type":"parallel","config":{"join":%q,"branches":[%s]}}`, id, join, strings.Join(bs, ","))
}

func more(members []string) string {
	if len(members) == 0 {
		return ""
	}
	return "," + strings.Join(members, ",")
}

// linear is a workflow of tool calls, one after the other.
func linear(t testing.TB, name string, ids ...string) *definition.Document {
	t.Helper()
	nodes, edges := []string{startNode()}, []string{}
	last := "s"
	for _, id := range ids {
		nodes = append(nodes, tool(id))
		edges = append(edges, last+" "+id)
		last = id
	}
	return workflow(t, name, append(nodes, endNode()), append(edges, last+" e")...)
}

// script is an executor that answers by node id, and remembers its calls. A node without an answer of its own gives
// {"<node>": <visit>}.
type script struct {
	mu      sync.Mutex
	calls   []activities.Request
	answers map[string]func(context.Context, activities.Request) (any, error)
}

func (s *script) Execute(ctx context.Context, req activities.Request) (activities.Result, error) {
	s.mu.Lock()
	s.calls = append(s.calls, req)
	answer := s.answers[req.NodeID]
	s.mu.Unlock()
	if answer == nil {
		return activities.Result{Output: map[string]any{req.NodeID: req.Visit}}, nil
	}
	out, err := answer(ctx, req)
	return activities.Result{Output: out}, err
}

// keys gives the idempotency keys of the calls, in order.
func (s *script) keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ks []string
	for _, c := range s.calls {
		ks = append(ks, c.IdempotencyKey)
	}
	return ks
}

func (s *script) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls)
}

type answers = map[string]func(context.Context, activities.Request) (any, error)

// after answers when some time has passed, or the context's cause when that ends first.
func after(d time.Duration, out any) func(context.Context, activities.Request) (any, error) {
	return func(ctx context.Context, _ activities.Request) (any, error) {
		select {
		case <-time.After(d):
			return out, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// newRunner makes a Runner that is closed with the test.
func newRunner(t testing.TB, store history.Store, o graph.Options) *graph.Runner {
	t.Helper()
	if o.Logger == nil && testing.Verbose() {
		o.Logger = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	r, err := graph.New(store, o)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return r
}

// host makes a Runner over a new store that leaves activities to the host.
func host(t testing.TB, o graph.Options) (*graph.Runner, history.Store) {
	t.Helper()
	store := historymem.New()
	o.DefaultMode = machine.HostMediated
	return newRunner(t, store, o), store
}

func start(t testing.TB, r *graph.Runner, id string, d *definition.Document, input map[string]any) *view.Run {
	t.Helper()
	run, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: id, Definition: d, Input: input})
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	return run
}

func submit(t testing.TB, r *graph.Runner, id, node string, result map[string]any) *view.Run {
	t.Helper()
	run, err := r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: id, NodeID: node, OK: true, Result: result})
	if err != nil {
		t.Fatalf("SubmitActivity %s: %v", node, err)
	}
	return run
}

func status(t testing.TB, r *graph.Runner, id string) *view.Run {
	t.Helper()
	run, err := r.Status(t.Context(), graph.StatusRequest{ExecutionID: id})
	if err != nil {
		t.Fatalf("Status: %v", err)
	}
	return run
}

// settled waits until a run has ended or rests.
func settled(t testing.TB, r *graph.Runner, id string) *view.Run {
	t.Helper()
	for {
		run, err := r.Status(t.Context(), graph.StatusRequest{ExecutionID: id, Wait: &graph.Wait{Limit: time.Hour}})
		if err != nil {
			t.Fatalf("Status: %v", err)
		}
		if run.Status != machine.Running && run.Status != machine.AwaitingTimer {
			return run
		}
	}
}

func wantStatus(t testing.TB, run *view.Run, s machine.Status) {
	t.Helper()
	if run.Status != s {
		t.Fatalf("status %s, want %s (error %q %s)", run.Status, s, run.Error, run.ErrorCode)
	}
}

func wantCode(t testing.TB, err error, code problem.Code) *problem.Error {
	t.Helper()
	if !errors.Is(err, code) {
		t.Fatalf("error %v, want code %s", err, code)
	}
	p, ok := problem.As(err)
	if !ok {
		t.Fatalf("error %T is no problem", err)
	}
	return p
}

// records reads a whole history.
func records(t testing.TB, store history.Store, id string) []history.Record {
	t.Helper()
	rs, err := store.Read(t.Context(), id, 1, 0)
	if err != nil {
		t.Fatalf("Read: %v", err)
	}
	return rs
}

// names writes records as "Name(node)".
func names(rs []history.Record, kind history.Kind) []string {
	var out []string
	for _, r := range rs {
		if kind == "" || r.Kind == kind {
			out = append(out, fmt.Sprintf("%s(%s)", r.Name, r.Payload.NodeID))
		}
	}
	return out
}

func count(rs []history.Record, name history.Name) int {
	n := 0
	for _, r := range rs {
		if r.Name == name {
			n++
		}
	}
	return n
}

// unchanged checks that f adds no record to any run of a store.
func unchanged(t *testing.T, store history.Store, f func()) {
	t.Helper()
	before := heads(t, store)
	f()
	if after := heads(t, store); !maps.Equal(before, after) {
		t.Errorf("the store changed: %v, then %v", before, after)
	}
}

func heads(t testing.TB, store history.Store) map[string]int64 {
	t.Helper()
	page, err := store.List(t.Context(), history.ListQuery{Limit: 100})
	if err != nil {
		t.Fatalf("List: %v", err)
	}
	out := map[string]int64{}
	for _, e := range page.Executions {
		out[e.ID] = e.Seq
	}
	return out
}

// object is short for a JSON object.
type object = map[string]any

// sameJSON compares values as JSON, ints included.
func sameJSON(a, b any) bool { return jsonvalue.Equal(a, b) }

// workAll returns graph.WorkAll if a runner performs the runs of others.
func workAll(others bool) graph.Work {
	if others {
		return graph.WorkAll
	}
	return graph.WorkOwn
}
