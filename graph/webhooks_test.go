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
	"github.com/workflows-engine/workflows-engine/graph/internal/outbox"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/history/historytest"
	"github.com/workflows-engine/workflows-engine/internal/runjson"
)

// post is what a receiver got.
type post struct {
	history.Delivery
	at time.Time
}

// receiver takes deliveries, and answers as it is told: the n-th answer for the n-th attempt, then always the last one; none is success.
type receiver struct {
	mu      sync.Mutex
	posts   []post
	answers []func(context.Context) (history.Receipt, error)
}

func (r *receiver) deliver(ctx context.Context, d history.Delivery) (history.Receipt, error) {
	r.mu.Lock()
	n := len(r.posts)
	r.posts = append(r.posts, post{d, time.Now()})
	var answer func(context.Context) (history.Receipt, error)
	if len(r.answers) > 0 {
		answer = r.answers[min(n, len(r.answers)-1)]
	}
	r.mu.Unlock()
	if answer == nil {
		return history.Receipt{Outcome: history.Sent, Status: 200}, nil
	}
	return answer(ctx)
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

func (r *receiver) got() []post {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.posts)
}

func answering(o history.SendOutcome, status int, after time.Duration) func(context.Context) (history.Receipt, error) {
	return func(context.Context) (history.Receipt, error) {
		return history.Receipt{Outcome: o, Status: status, RetryAfter: after, Error: fmt.Sprintf("status %d", status)}, nil
	}
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
			if err := json.Unmarshal(history.DefaultRedaction().Text(runjson.Full(run).Append(nil)), &want); err != nil {
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

// TestWebhookBodyIsBounded: a body that would be too long goes without states first.
func TestWebhookBodyIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var got receiver
		r := newRunner(t, historymem.New(), graph.Options{Deliver: got.deliver, Webhooks: map[string]graph.Webhook{"ops": {}}})
		for id, c := range map[string]struct {
			bytes int
			node  string
		}{
			"fits":  {outbox.MaxBody - 4096, interrupt("i")},
			"state": {outbox.MaxBody, interrupt("i")},
			"schema": {10, fmt.Sprintf(`{"id":"i","type":"interrupt","config":{"prompt":"well?","resume_schema":{"type":"object","description":%q}}}`,
				strings.Repeat("d", outbox.MaxBody))},
		} {
			d := workflow(t, id, []string{startNode(), c.node, endNode()}, "s i", "i e")
			if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: id, Definition: d, Input: object{"s": strings.Repeat("x", c.bytes)}, Notify: []string{"ops"}}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		for _, p := range got.got() {
			var body struct {
				Truncated bool
				Run       struct {
					Phase   string
					State   map[string]any
					Pending []map[string]any
				}
			}
			if err := json.Unmarshal(p.Body, &body); err != nil || len(p.Body) > outbox.MaxBody {
				t.Fatalf("%d bytes, %v", len(p.Body), err)
			}
			if fits := p.ExecutionID == "fits"; body.Truncated == fits || (body.Run.State != nil) != fits || len(body.Run.Pending) != 1 || body.Run.Phase != "interrupted" {
				t.Errorf("%s: %+.300v", p.ExecutionID, body)
			}
		}
		if n := len(got.got()); n != 3 {
			t.Errorf("%d posts", n)
		}
	})
}

// TestWebhookLadder: an attempt is repeated after its pauses, which Retry-After stretches, under the same event id, until it is taken or
// given up.
func TestWebhookLadder(t *testing.T) {
	t.Parallel()
	again, refused := answering(history.SendAgain, 503, 0), answering(history.SendRefused, 410, 0)
	for name, c := range map[string]struct {
		answers []func(context.Context) (history.Receipt, error)
		at      []time.Duration
		state   history.DeliveryState
		last    history.SendOutcome
	}{
		"given up":  {[]func(context.Context) (history.Receipt, error){again}, []time.Duration{0, 10 * time.Second, 70 * time.Second, 370 * time.Second, 2170 * time.Second}, history.DeliveryDead, history.SendAgain},
		"recovered": {[]func(context.Context) (history.Receipt, error){again, again, nil}, []time.Duration{0, 10 * time.Second, 70 * time.Second}, history.DeliveryDone, history.Sent},
		"gone":      {[]func(context.Context) (history.Receipt, error){again, refused}, []time.Duration{0, 10 * time.Second}, history.DeliveryDead, history.SendRefused},
		"asked to wait": {[]func(context.Context) (history.Receipt, error){answering(history.SendAgain, 429, 2*time.Minute), answering(history.SendAgain, 429, time.Second), answering(history.SendAgain, 429, 5*time.Hour), nil},
			[]time.Duration{0, 2 * time.Minute, 3 * time.Minute, time.Hour + 3*time.Minute}, history.DeliveryDone, history.Sent},
		"error": {[]func(context.Context) (history.Receipt, error){func(context.Context) (history.Receipt, error) { return history.Receipt{}, errors.New("no route") }, nil},
			[]time.Duration{0, 10 * time.Second}, history.DeliveryDone, history.Sent},
		"panic": {[]func(context.Context) (history.Receipt, error){func(context.Context) (history.Receipt, error) { panic("a mistake") }, nil},
			[]time.Duration{0, 10 * time.Second}, history.DeliveryDone, history.Sent},
		"hangs": {[]func(context.Context) (history.Receipt, error){func(ctx context.Context) (history.Receipt, error) {
			<-ctx.Done()
			return history.Receipt{}, ctx.Err()
		}, nil}, []time.Duration{0, 17 * time.Second}, history.DeliveryDone, history.Sent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				got := receiver{answers: c.answers}
				store := historymem.New()
				r := newRunner(t, store, graph.Options{Deliver: got.deliver, Webhooks: map[string]graph.Webhook{"ops": {Timeout: 7 * time.Second}}})
				if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: linearEmpty(t), Notify: []string{"ops"}}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(8 * time.Hour)
				posts := got.got()
				if len(posts) != len(c.at) {
					t.Fatalf("%d attempts, want %d", len(posts), len(c.at))
				}
				for i, p := range posts {
					if late := p.at.Sub(posts[0].at) - c.at[i]; late < 0 || late > time.Duration(i+1)*time.Second {
						t.Errorf("attempt %d is %v late", i+1, late)
					}
					if p.EventID != posts[0].EventID || p.Attempts != i+1 || string(p.Body) != string(posts[0].Body) {
						t.Errorf("attempt %d: %+v", i+1, p.Delivery)
					}
				}
				d := deliveriesOf(t, store, history.DeliveryQuery{ExecutionID: "r"})[0]
				if last := d.Tries[len(d.Tries)-1]; d.State != c.state || last.Outcome != c.last || len(d.Tries) != len(c.at) {
					t.Errorf("%+v", d)
				}
				if c.state != history.DeliveryDead {
					return
				}
				// By hand, from the first step on.
				got.mu.Lock()
				got.answers = nil
				got.mu.Unlock()
				d, err := r.Redeliver(t.Context(), history.AttemptID(d.ID, 1))
				if err != nil || d.State != history.DeliveryDone || d.Attempts != len(c.at)+1 || d.EventID != posts[0].EventID {
					t.Errorf("by hand: %+v, %v", d, err)
				}
			})
		})
	}
}

func linearEmpty(t testing.TB) *definition.Document {
	return workflow(t, "short", []string{startNode(), endNode()}, "s e")
}

// TestWebhookTargetsHangAlone: a target that does not answer holds up no other one, nor does it stop the process.
func TestWebhookTargetsHangAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var got receiver
		store := historymem.New()
		r, err := graph.New(store, graph.Options{Webhooks: map[string]graph.Webhook{"hangs": {}, "ops": {}}, Deliver: func(ctx context.Context, d history.Delivery) (history.Receipt, error) {
			if d.Target == "hangs" {
				<-ctx.Done()
				return history.Receipt{}, ctx.Err()
			}
			return got.deliver(ctx, d)
		}})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: fmt.Sprint(i), Definition: linearEmpty(t), Notify: []string{"hangs", "ops"}}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		if n := len(got.got()); n != 10 {
			t.Errorf("%d of 10", n)
		}
		began := time.Now()
		closeRunner(t, r)
		if took := time.Since(began); took > time.Second {
			t.Errorf("Close took %v", took)
		}
		stopped := 0
		for _, d := range deliveriesOf(t, store, history.DeliveryQuery{Target: "hangs"}) {
			if d.State != history.DeliveryPending || d.Step != 0 {
				t.Errorf("%+v", d)
			}
			for _, a := range d.Tries {
				if a.Outcome == history.SendStopped {
					stopped++
				}
			}
		}
		if stopped < 1 || stopped > 4 { // as many as were due when it looked for them
			t.Errorf("%d attempts were stopped", stopped)
		}
		var next receiver // the next process need not wait for a lease
		newRunner(t, store, graph.Options{Webhooks: map[string]graph.Webhook{"hangs": {}}, Deliver: next.deliver})
		time.Sleep(time.Second)
		if n := len(next.got()); n != 10 {
			t.Errorf("the next process sends %d of 10", n)
		}
	})
}

// TestWebhookDeliveriesHangAlone: a delivery that gets no answer holds up no other one to the same target, as long as there are places.
func TestWebhookDeliveriesHangAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var got receiver
		began := time.Now()
		r := newRunner(t, historymem.New(), graph.Options{Webhooks: map[string]graph.Webhook{"ops": {}}, Deliver: func(ctx context.Context, d history.Delivery) (history.Receipt, error) {
			if strings.HasPrefix(d.ExecutionID, "hangs") {
				<-ctx.Done()
				return history.Receipt{}, ctx.Err()
			}
			return got.deliver(ctx, d)
		}})
		start := func(id string) {
			if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: id, Definition: linearEmpty(t), Notify: []string{"ops"}}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		for i := range 4 {
			if i > 0 {
				start(fmt.Sprint("hangs", i))
			}
			for j := range 3 {
				start(fmt.Sprintf("r%d.%d", i, j))
			}
			if n, took := len(got.got()), time.Since(began); n != 3*(i+1) || took != 0 {
				t.Fatalf("with %d that hang, %d are delivered after %v", i, n, took)
			}
		}
		start("hangs4")
		start("late")
		time.Sleep(30*time.Second - 1)
		if n := len(got.got()); n != 12 {
			t.Errorf("%d are delivered while all places are taken", n)
		}
		time.Sleep(2 * time.Nanosecond)
		synctest.Wait()
		if n := len(got.got()); n != 13 {
			t.Errorf("%d are delivered after the time-out", n)
		}
	})
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

// TestWebhookTargetNames: a target that is not configured is refused, with the nearest, and nothing is begun.
func TestWebhookTargetNames(t *testing.T) {
	t.Parallel()
	r := newRunner(t, historymem.New(), graph.Options{Webhooks: map[string]graph.Webhook{"billing": {}, "ops": {}}})
	for name, hint := range map[string]string{"biling": `Did you mean "billing"?`, "nothing like it": "There is billing and ops."} {
		_, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: linearEmpty(t), Notify: []string{"ops", name}})
		if p, ok := problem.As(err); !ok || p.Code != problem.WebhookTargetUnknown || p.Hint != hint {
			t.Errorf("%s: %v, %+v", name, err, p)
		}
	}
	many := make([]string, outbox.MaxTargets+1)
	for i := range many {
		many[i] = "ops"
	}
	if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: linearEmpty(t), Notify: many}); !errors.Is(err, problem.ValidationError) {
		t.Errorf("too many: %v", err)
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
func wantOncePerLife(t *testing.T, at string, posts []post, stored []history.Delivery, died bool) {
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
