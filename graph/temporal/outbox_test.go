package temporal

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/internal/outbox"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/config"
)

// mailbox keeps the deliveries that it gets, and answers them in order; the last answer counts for the rest.
type mailbox struct {
	mu      sync.Mutex
	got     []history.Delivery
	answers []history.Receipt
}

func (m *mailbox) deliver(_ context.Context, d history.Delivery) (history.Receipt, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.got = append(m.got, d)
	answer := history.Receipt{Outcome: history.Sent}
	if len(m.answers) > 0 {
		answer, m.answers = m.answers[0], m.answers[1:]
	}
	return answer, nil
}

func (m *mailbox) taken() []history.Delivery {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.got)
}

func TestUnknownTargetsAreRejectedFirst(t *testing.T) {
	t.Parallel()
	e, b := newTestEngine(t, Options{Activities: steps(charged), Webhooks: map[string]graph.Webhook{"desk": {}}})
	_, err := e.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: approval(t), Notify: []string{"desc"}})
	if p := requireCode(t, err, problem.WebhookTargetUnknown); p.Hint == "" || len(b.runs) > 0 {
		t.Errorf("%+v", p)
	}
}

// sendLetter runs the outbox of a letter, and returns the end of each delivery and how long it took.
func sendLetter(t *testing.T, p *performer, l letter) (ends []sent, took time.Duration) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(discard))
	env := suite.NewTestWorkflowEnvironment()
	env.RegisterWorkflow(deliver)
	registerWebhooks(env, p)
	began := env.Now()
	env.ExecuteWorkflow(deliver, l)
	if err := env.GetWorkflowResult(&ends); err != nil {
		t.Fatal(err)
	}
	return ends, env.Now().Sub(began)
}

// TestAnOutboxFollowsTheLadder: a target that fails gets the same body under the same ids after the pauses of the engine, and is given up after
// the last.
func TestAnOutboxFollowsTheLadder(t *testing.T) {
	t.Parallel()
	m := &mailbox{answers: slices.Repeat([]history.Receipt{{Outcome: history.SendAgain, Error: "busy"}}, 100)}
	o, err := Options{Webhooks: map[string]graph.Webhook{"desk": {}}, Deliver: m.deliver}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	exec := history.Execution{ID: "r", Phase: history.PhaseCompleted, DefinitionHash: "h"}
	ends, took := sendLetter(t, newPerformer(&o, nil), letter{
		ExecutionID: "r", Event: history.RunCompleted, EventID: "evt_1", At: time.Now(), Targets: []string{"desk"}, Queue: "q", Lost: time.Minute,
		Run: snapshot{Projection: exec.AppendText(nil)},
	})
	var sum time.Duration
	for _, pause := range outbox.Pauses {
		sum += pause
	}
	if took < sum || took > sum+time.Minute {
		t.Errorf("it took %s, the pauses are %s", took, sum)
	}
	if len(ends) != 1 || ends[0].State != history.DeliveryDead || ends[0].Attempts != len(outbox.Pauses)+1 {
		t.Errorf("%+v", ends)
	}
	got := m.taken()
	for i, d := range got {
		if d.ID != got[0].ID || d.EventID != "evt_1" || string(d.Body) != string(got[0].Body) || d.Attempts != i+1 {
			t.Errorf("attempt %d: %+v", i+1, d)
		}
	}
}

// TestALetterFits: values that Temporal does not carry are left out, and the body says so.
func TestALetterFits(t *testing.T) {
	t.Parallel()
	m := &mailbox{}
	o, err := Options{Webhooks: map[string]graph.Webhook{"desk": {}}, Deliver: m.deliver}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	exec := history.Execution{ID: "r", Phase: history.PhaseCompleted, DefinitionHash: "h"}
	l := letter{
		ExecutionID: "r", Event: history.RunCompleted, EventID: "evt_1", At: time.Now(), Targets: []string{"desk"}, Queue: "q", Lost: time.Minute,
		Run: snapshot{Projection: exec.AppendText(nil), Ending: &view.Ending{Status: machine.Completed, State: map[string]any{"text": strings.Repeat("x", maxValue)}}},
	}
	l.fit(0)
	if l.Truncated {
		t.Error("it is truncated with a side store")
	}
	l.fit(maxValue)
	if ends, _ := sendLetter(t, newPerformer(&o, nil), l); len(ends) != 1 || ends[0].State != history.DeliveryDone {
		t.Errorf("%+v", ends)
	}
	for _, d := range m.taken() {
		if len(d.Body) > maxValue || !strings.Contains(string(d.Body), `"truncated":true`) || !strings.Contains(string(d.Body), `"completed"`) {
			t.Errorf("%.300s", d.Body)
		}
	}
}

// TestEventsOfARunAreSent: the question and the end, each with the run as it was. A target gets the events that it wants.
func TestEventsOfARunAreSent(t *testing.T) {
	t.Parallel()
	m := &mailbox{}
	e, b := newTestEngine(t, Options{Activities: steps(charged), Deliver: m.deliver, Webhooks: map[string]graph.Webhook{
		"desk": {}, "ends": {Events: []history.RunEvent{history.RunCompleted}}, "all": {All: true},
	}})
	start(t, e, graph.StartRequest{ExecutionID: "r", Definition: approval(t), Notify: []string{"desk", "ends"}})
	for n := 0; n < 1000 && len(b.runs["r"].letters) == 0; n++ { // until the outbox has begun
		if err := b.sleep(t.Context(), time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	run, err := e.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", Payload: map[string]any{"approve": true}})
	if err != nil || run.Status != machine.Completed || len(b.runs["r"].letters) != 1 {
		t.Fatalf("%+v %v, %d letters", run, err, len(b.runs["r"].letters))
	}
	asked := b.runs["r"].letters[0]
	x, err := e.look(t.Context(), "r")
	if err != nil {
		t.Fatal(err)
	}
	ended := asked // the environment of the test suite ends with the run, before this one begins
	ended.Event, ended.EventID, ended.Run = history.RunCompleted, "evt_other", *x.snap
	for _, l := range []letter{asked, ended} {
		if ends, _ := sendLetter(t, b.p, l); len(ends) != 3 {
			t.Errorf("%+v", ends)
		}
	}
	var got []string
	events := map[string]history.RunEvent{}
	for _, d := range m.taken() {
		got = append(got, d.Target+" "+string(d.Event))
		events[d.EventID] = d.Event
		for _, want := range []string{`"execution_id":"r"`, d.EventID, map[history.RunEvent]string{history.RunInterrupted: "Publish?", history.RunCompleted: `"status":"completed"`}[d.Event]} {
			if !strings.Contains(string(d.Body), want) {
				t.Errorf("%s lacks %s", d.Body, want)
			}
		}
	}
	slices.Sort(got) // the environment of the run may have sent the question, too
	got = slices.Compact(got)
	if want := []string{"all run.completed", "all run.interrupted", "desk run.completed", "desk run.interrupted", "ends run.completed"}; !slices.Equal(got, want) || len(events) != 2 {
		t.Errorf("%q with %v", got, events)
	}
}

// TestWebhooksOnAServer: the question and the end of a run reach its target, signed, although the run has ended by then.
func TestWebhooksOnAServer(t *testing.T) {
	t.Parallel()
	type arrived struct{ event, id, signature, status string }
	came := make(chan arrived, 10)
	var refused sync.Once
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fail := false
		refused.Do(func() { fail = true })
		if fail {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		var body struct {
			Event   string `json:"event"`
			EventID string `json:"event_id"`
			Run     struct {
				Status string `json:"status"`
			} `json:"run"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		came <- arrived{body.Event, body.EventID, r.Header.Get("Webhook-Signature"), body.Run.Status}
	}))
	t.Cleanup(target.Close)
	hooks := configured(t, config.Environment{Variables: []string{"HOOK=secret of the desk"}}, "--store", "memory", "--webhooks",
		fmt.Sprintf(`{"privateNetworks":["127.0.0.0/8"],"targets":{"desk":{"url":%q,"secretRef":"env:HOOK"}}}`, target.URL))
	e, o := serve(t, Options{Activities: steps(charged), Webhooks: hooks.Webhooks, Deliver: hooks.Deliver})
	id := unique(t)
	run := start(t, e, graph.StartRequest{ExecutionID: id, Definition: approval(t), Notify: []string{"desk"}})
	if run.Status != machine.Interrupted {
		t.Fatalf("%+v", run)
	}
	if _, err := e.Resume(t.Context(), graph.ResumeRequest{ExecutionID: id, Payload: map[string]any{"approve": true}}); err != nil {
		t.Fatal(err)
	}
	seen := map[string]arrived{}
	for range 2 {
		a := <-came
		seen[a.event] = a
		if a.signature == "" || a.id == "" {
			t.Errorf("%+v", a)
		}
	}
	if *update {
		event := seen["run.completed"].id
		if err := o.Client.GetWorkflow(t.Context(), event, "").Get(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		record(t, o.Client, id, "webhooks")
		record(t, o.Client, event, "outbox")
	}
	if seen["run.interrupted"].status != "interrupted" || seen["run.completed"].status != "completed" {
		t.Errorf("%+v", seen)
	}
}
