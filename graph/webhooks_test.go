package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/history/historytest"
	"github.com/workflows-engine/workflows-engine/internal/runjson"
)

// receiver accepts deliveries and keeps them.
type receiver struct {
	mu    sync.Mutex
	posts []history.Delivery
}

func (r *receiver) deliver(_ context.Context, d history.Delivery) (history.Receipt, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.posts = append(r.posts, d)
	return history.Receipt{Outcome: history.Sent, Status: 200}, nil
}

// events lists what was got: the run, the event and the target, sorted.
func (r *receiver) events() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, p := range r.posts {
		out = append(out, fmt.Sprintf("%s:%s:%s", p.ExecutionID, strings.TrimPrefix(string(p.Event), "run."), p.Target))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func (r *receiver) got() []history.Delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.posts)
}

func deliveriesOf(t testing.TB, s history.Store, q history.DeliveryQuery) []history.Delivery {
	t.Helper()
	page, err := s.ListDeliveries(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return page.Deliveries
}

func startNotifying(t testing.TB, r *graph.Runner, id string, names ...string) *view.Run {
	t.Helper()
	d := workflow(t, "asks", []string{startNode(), interrupt("i"), interrupt("j"), endNode()}, "s i", "i j", "j e")
	run, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: id, Definition: d, Input: object{"n": 1}, Notify: names})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// TestWebhookEvents: targets are notified of what they want of the runs that name them, of all runs if they want that, and of nothing that
// happens to subworkflows but their questions.
func TestWebhookEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var got receiver
		store := historymem.New()
		r := newRunner(t, store, graph.Options{
			Deliver: got.deliver, Activities: &script{answers: answers{"fail": func(context.Context, activities.Request) (any, error) { return nil, errors.New("no") }}},
			Webhooks: map[string]graph.Webhook{
				"ops": {}, "ends": {Events: []history.RunEvent{history.RunCompleted, history.RunCancelled}}, "all": {All: true, Events: []history.RunEvent{history.RunFailed}},
			},
		})
		register(t, r, "urn:child", linear(t, "child", "c"))
		startNotifying(t, r, "asks", "ops", "ends", "ops")
		for _, id := range []string{"asks:i#1", "asks:j#1"} {
			if _, err := r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "asks", InterruptID: id, Payload: object{"ok": true}}); err != nil {
				t.Fatal(err)
			}
		}
		startNotifying(t, r, "cancelled", "ends")
		if _, err := r.Cancel(t.Context(), graph.CancelRequest{ExecutionID: "cancelled", Reason: "enough"}); err != nil {
			t.Fatal(err)
		}
		start(t, r, "fails", linear(t, "lin", "fail"), nil)
		start(t, r, "silent", linear(t, "lin", "a"), nil)
		parent := workflow(t, "parent", []string{startNode(), subworkflow("v", "urn:child"), endNode()}, "s v", "v e")
		if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "parent", Definition: parent, Notify: []string{"ops"}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		want := "asks:completed:ends asks:completed:ops asks:interrupted:ops asks:interrupted:ops cancelled:cancelled:ends fails:failed:all parent:completed:ops"
		if events := got.events(); events != want {
			t.Errorf("got\n%s\nwant\n%s", events, want)
		}
		ids := map[string]int{}
		for _, p := range got.got() {
			ids[p.EventID]++
			if p.Attempts != 1 || p.CreatedAt.IsZero() {
				t.Errorf("%+v", p)
			}
		}
		if len(ids) != 6 { // the end of "asks" goes to two
			t.Errorf("event ids %v", ids)
		}
		if rec := records(t, store, "asks")[0]; fmt.Sprint(rec.Payload.Notify) != "[ops ends all]" {
			t.Errorf("recorded %v", rec.Payload.Notify)
		}
		for _, d := range deliveriesOf(t, store, history.DeliveryQuery{}) {
			if d.State != history.DeliveryDone || len(d.Tries) != 1 || d.Tries[0].Status != 200 {
				t.Errorf("%+v", d)
			}
		}
	})
}

// TestWebhookOfASubworkflow: what a subworkflow asks, the targets of the root are notified of, also where the parent was loaded again
// before the subworkflow began.
func TestWebhookOfASubworkflow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var got receiver
		store := historymem.New()
		options := graph.Options{Deliver: got.deliver, Webhooks: map[string]graph.Webhook{"ops": {}, "all": {All: true, Events: []history.RunEvent{history.RunInterrupted}}}}
		r := newRunner(t, store, options)
		child := workflow(t, "child", []string{startNode(), interrupt("j"), endNode()}, "s j", "j e")
		parent := workflow(t, "parent", []string{startNode(), interrupt("i"), subworkflow("v", "urn:child"), endNode()}, "s i", "i v", "v e")
		register(t, r, "urn:child", child)
		if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "p", Definition: parent, Title: "named", Notify: []string{"ops"}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		closeRunner(t, r)
		r = newRunner(t, store, options)
		register(t, r, "urn:child", child)
		for _, id := range []string{"p", "p:sub:v"} {
			if _, err := r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: id, Payload: object{"ok": true}}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		want := "p:completed:ops p:interrupted:all p:interrupted:ops p:sub:v:interrupted:all p:sub:v:interrupted:ops"
		if events := got.events(); events != want {
			t.Errorf("got\n%s\nwant\n%s", events, want)
		}
		for _, p := range got.got() {
			var body struct {
				Root string `json:"root_execution_id"`
				Run  struct {
					ID      string `json:"execution_id"`
					Title   string
					Pending []any
				}
			}
			if err := json.Unmarshal(p.Body, &body); err != nil || body.Run.ID != p.ExecutionID || (body.Root == "p") != (p.ExecutionID == "p:sub:v") ||
				(len(body.Run.Pending) == 1) != (p.Event == history.RunInterrupted) || body.Run.Title != "named" {
				t.Errorf("%s, %v", p.Body, err)
			}
		}
	})
}

// TestWebhookBody is where the run stands, as status has it, without what is secret.
func TestWebhookBody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var got receiver
		r := newRunner(t, historymem.New(), graph.Options{Deliver: got.deliver, Webhooks: map[string]graph.Webhook{"ops": {}}})
		d := workflow(t, "asks", []string{startNode(), interrupt("i"), endNode()}, "s i", "i e")
		run, err := r.Start(t.Context(), graph.StartRequest{
			ExecutionID: "r", Definition: d, Input: object{"password": "hunter2", "n": 1}, Notify: []string{"ops"}, Title: "A title", Labels: map[string]string{"a": "b"},
		})
		if err != nil {
			t.Fatal(err)
		}
		wantBody := func(i int, event string, run *view.Run) {
			t.Helper()
			synctest.Wait()
			p := got.got()[i]
			var body map[string]any
			if err := json.Unmarshal(p.Body, &body); err != nil {
				t.Fatal(err)
			}
			want := map[string]any{}
			if err := json.Unmarshal(history.DefaultRedaction().Text(runjson.Full(run, nil).Append(nil)), &want); err != nil {
				t.Fatal(err)
			}
			said := body["run"].(map[string]any)
			for _, m := range []map[string]any{said, want} {
				delete(m, "now")
			}
			if !sameJSON(said, want) {
				t.Errorf("got\n%v\nwant\n%v", said, want)
			}
			if body["event"] != event || body["event_id"] != p.EventID || body["truncated"] != nil || body["created_at"] == nil || len(body) != 4 {
				t.Errorf("the body is %s", p.Body)
			}
			if strings.Contains(string(p.Body), "hunter2") {
				t.Error("the body holds a password")
			}
		}
		wantBody(0, "run.interrupted", run)
		if run, err = r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", Payload: object{"ok": true}}); err != nil {
			t.Fatal(err)
		}
		wantBody(1, "run.completed", run)
	})
}

func linearEmpty(t testing.TB) *definition.Document {
	return workflow(t, "short", []string{startNode(), endNode()}, "s e")
}

// TestWebhookOfAnotherProcess: what a process without targets writes, one with them sends, and it knows what the target wants.
func TestWebhookOfAnotherProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var got receiver
		store := historymem.New()
		targets := map[string]graph.Webhook{"ops": {Events: []history.RunEvent{history.RunCancelled}}}
		first := newRunner(t, store, graph.Options{Webhooks: targets}) // it knows the target, and sends nothing
		startNotifying(t, first, "r", "ops")
		startNotifying(t, first, "q", "ops")
		closeRunner(t, first)
		second := newRunner(t, store, graph.Options{})
		if _, err := second.Cancel(t.Context(), graph.CancelRequest{ExecutionID: "r"}); err != nil {
			t.Fatal(err)
		}
		if _, err := second.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "q", Payload: object{"ok": true}}); err != nil {
			t.Fatal(err)
		}
		if _, err := second.Start(t.Context(), graph.StartRequest{ExecutionID: "x", Definition: linearEmpty(t), Notify: []string{"ops"}}); !errors.Is(err, problem.WebhookTargetUnknown) {
			t.Errorf("a target that is not there: %v", err)
		}
		pruned, err := second.Prune(t.Context(), history.PruneQuery{})
		if err != nil || len(pruned.Trees) != 0 {
			t.Errorf("deleted %+v, %v", pruned, err)
		}
		newRunner(t, store, graph.Options{Webhooks: targets, Deliver: got.deliver})
		time.Sleep(2 * time.Second)
		if events := got.events(); events != "r:cancelled:ops" {
			t.Errorf("got %s", events)
		}
		states := map[history.DeliveryState]int{}
		for _, d := range deliveriesOf(t, store, history.DeliveryQuery{}) {
			states[d.State]++
		}
		if want := (map[history.DeliveryState]int{history.DeliveryDone: 1, history.DeliveryUnwanted: 1}); !maps.Equal(states, want) {
			t.Errorf("%v, want %v", states, want)
		}
	})
}

// TestWebhookTargetNames: a start with an unknown target starts nothing.
func TestWebhookTargetNames(t *testing.T) {
	t.Parallel()
	r := newRunner(t, historymem.New(), graph.Options{Webhooks: map[string]graph.Webhook{"billing": {}, "ops": {}}})
	if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: linearEmpty(t), Notify: []string{"ops", "unknown"}}); !errors.Is(err, problem.WebhookTargetUnknown) {
		t.Errorf("an unknown target: %v", err)
	}
	if _, err := r.Status(t.Context(), graph.StatusRequest{ExecutionID: "r"}); !errors.Is(err, problem.ExecutionNotFound) {
		t.Errorf("a refused start: %v", err)
	}
	if _, err := r.Redeliver(t.Context(), "dlv_none"); !errors.Is(err, problem.DeliveryNotFound) {
		t.Errorf("no delivery: %v", err)
	}
}

// TestWebhookCloseWaits: a process that ends at once has sent what it has written, or leaves it to others after a limit.
func TestWebhookCloseWaits(t *testing.T) {
	t.Parallel()
	for _, takes := range []time.Duration{3 * time.Second, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			store := historymem.New()
			r, err := graph.New(store, graph.Options{DeliverLimit: 10 * time.Second, Webhooks: map[string]graph.Webhook{"ops": {}}, Deliver: func(ctx context.Context, _ history.Delivery) (history.Receipt, error) {
				select {
				case <-time.After(takes):
					return history.Receipt{Outcome: history.Sent}, nil
				case <-ctx.Done():
					return history.Receipt{}, ctx.Err()
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: linearEmpty(t), Notify: []string{"ops"}}); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			closeRunner(t, r)
			if took := time.Since(began); took != min(takes, 10*time.Second) {
				t.Errorf("Close took %v", took)
			}
			if d := deliveriesOf(t, store, history.DeliveryQuery{})[0]; (d.State == history.DeliveryDone) != (takes < 10*time.Second) {
				t.Errorf("%+v", d)
			}
		})
	}
}

// TestWebhookCrashAtEveryOperation stops the process at each call of the store in turn, before and after its effect, and lets another one
// go on: every event is delivered, under one id, and no more often than once for each process.
func TestWebhookCrashAtEveryOperation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		play := func(r *graph.Runner) error {
			d := workflow(t, "asks", []string{startNode(), interrupt("i"), endNode()}, "s i", "i e")
			_, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: d, Notify: []string{"ops", "crm"}, AllowExisting: true})
			if err == nil {
				_, err = r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", Payload: object{"ok": true}})
			}
			time.Sleep(5 * time.Second)
			return err
		}
		options := func(got *receiver) graph.Options {
			return graph.Options{Deliver: got.deliver, Webhooks: map[string]graph.Webhook{"ops": {}, "crm": {}}, WaitLimit: -1}
		}
		struck := 0
		for n := 1; ; n++ {
			any := false
			for _, late := range []bool{false, true} {
				var got receiver
				store := historymem.New()
				faulty := historytest.NewFaultStore(store)
				r, err := graph.New(faulty, options(&got))
				if err != nil {
					t.Fatal(err)
				}
				faulty.Set(historytest.Fault{At: n, Reads: true, Dead: true, AfterCommit: late})
				_ = play(r)
				hit := faulty.Struck()
				calls := faulty.Calls()
				_ = r.Close() // the dead process says nothing any more
				time.Sleep(2 * time.Minute)
				next, err := graph.New(store, options(&got))
				if err != nil {
					t.Fatal(err)
				}
				if err := play(next); err != nil && !errors.Is(err, problem.InvalidResumePayload) {
					t.Fatalf("call %d: %v", n, err)
				}
				time.Sleep(2 * time.Minute)
				run, err := next.Status(t.Context(), graph.StatusRequest{ExecutionID: "r"})
				if err != nil || run.Status != machine.Completed {
					t.Fatalf("call %d: %+v, %v", n, run, err)
				}
				closeRunner(t, next)
				at := "none"
				if hit {
					any, at = true, calls[len(calls)-1]
					struck++
				}
				wantOncePerLife(t, fmt.Sprintf("call %d (%s), late %v", n, at, late), got.got(), deliveriesOf(t, store, history.DeliveryQuery{}), hit)
			}
			if !any {
				break
			}
		}
		t.Logf("%d deaths", struck)
		if struck < 30 {
			t.Errorf("only %d deaths", struck)
		}
	})
}

// wantOncePerLife holds what a receiver got against what is stored.
func wantOncePerLife(t *testing.T, at string, posts []history.Delivery, stored []history.Delivery, died bool) {
	t.Helper()
	seen, byTarget := map[string]int{}, map[string]string{}
	for _, p := range posts {
		seen[p.ID]++
		if id := byTarget[string(p.Event)]; id != "" && id != p.EventID {
			t.Errorf("%s: %s has the ids %s and %s", at, p.Event, id, p.EventID)
		}
		byTarget[string(p.Event)] = p.EventID
	}
	most := 1
	if died {
		most = 2
	}
	if len(stored) != 4 { // two events, two targets
		t.Errorf("%s: %d deliveries are stored", at, len(stored))
	}
	for _, d := range stored {
		if n := seen[d.ID]; n < 1 || n > most || d.State != history.DeliveryDone {
			t.Errorf("%s: %s to %s was sent %d times and is %s", at, d.Event, d.Target, n, d.State)
		}
	}
}

func BenchmarkCommitWithDelivery(b *testing.B) {
	for _, names := range [][]string{nil, {"ops"}} {
		b.Run(fmt.Sprintf("targets=%d", len(names)), func(b *testing.B) {
			store := open(b, filepath.Join(b.TempDir(), "runs.db"), historysql.Full)
			r := newRunner(b, store, graph.Options{Webhooks: map[string]graph.Webhook{"ops": {}}})
			d := linearEmpty(b)
			for i := 0; b.Loop(); i++ {
				if _, err := r.Start(b.Context(), graph.StartRequest{ExecutionID: fmt.Sprint(i), Definition: d, Notify: names}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
