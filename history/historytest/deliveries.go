package historytest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// Delivers makes the deliveries of an event, one for each target.
func Delivers(event, body string, at time.Time, targets ...string) (out []history.Delivery) {
	for _, target := range targets {
		out = append(out, history.Delivery{
			ID: event + "-" + target, EventID: event, Event: history.RunCompleted, Target: target, Body: []byte(body), CreatedAt: at, Due: at,
		})
	}
	return out
}

// endsNotifying appends a completed run with deliveries.
func endsNotifying(t *testing.T, s history.Store, id string, ds ...history.Delivery) {
	t.Helper()
	b := NewTrace(t, id).Batch(lines(Start("w", "in_process"), End())...)
	b.Deliveries = ds
	must(t, s.Append(t.Context(), b))
}

// dueIDs lists due deliveries.
func dueIDs(t *testing.T, s history.Store, target string, now time.Time, limit int) string {
	t.Helper()
	var out []string
	for _, d := range got[[]history.Delivery](t)(s.DueDeliveries(t.Context(), target, now, limit)) {
		if d.Body != nil {
			t.Errorf("the list has the body of %s", d.ID)
		}
		out = append(out, fmt.Sprintf("%s/%d", d.ID, d.Attempts))
	}
	return strings.Join(out, " ")
}

func claimDelivery(t *testing.T, s history.Store, id string, attempt int, process string, want bool) history.Delivery {
	t.Helper()
	d, claimed, err := s.ClaimDelivery(t.Context(), history.DeliveryClaim{DeliveryID: id, Attempt: attempt, Process: process, TTL: 10 * time.Second, At: Begin})
	if claimed != want || err != nil {
		t.Errorf("%s claims attempt %d of %s: %t, %v", process, attempt, id, claimed, err)
	}
	return d
}

func oneDelivery(t *testing.T, s history.Store, id string) history.Delivery {
	t.Helper()
	page := got[history.DeliveryPage](t)(s.ListDeliveries(t.Context(), history.DeliveryQuery{DeliveryID: id}))
	if len(page.Deliveries) != 1 {
		t.Fatalf("%d deliveries %s", len(page.Deliveries), id)
	}
	return page.Deliveries[0]
}

// deliveries: a delivery is stored with its batch or not at all, is returned unchanged, and passes through its states.
func deliveries(t *testing.T, s history.Store, c *clock) {
	ctx := t.Context()
	x := NewTrace(t, "x")
	refused := x.Batch(lines(Start("w", "in_process"), End())...)
	refused.Deliveries = Delivers("e0", "{}", Begin, "ops")
	late := refused
	late.ExpectedSeq, late.Execution.Seq = 5, 5+int64(len(late.Records))
	wantCode(t, s.Append(ctx, late), problem.HistoryConflict)
	if due := dueIDs(t, s, "ops", Begin.Add(time.Hour), 0); due != "" {
		t.Errorf("of a refused batch: %s", due)
	}
	for what, spoil := range map[string]func(d *history.Delivery){
		"no id": func(d *history.Delivery) { d.ID = "" }, "no event": func(d *history.Delivery) { d.EventID = "" },
		"no target": func(d *history.Delivery) { d.Target = "" }, "an attempt's id": func(d *history.Delivery) { d.ID = "a.1" },
		"no UTF-8": func(d *history.Delivery) { d.Body = []byte("\xff") },
	} {
		bad := refused
		bad.Deliveries = slices.Clone(refused.Deliveries)
		spoil(&bad.Deliveries[0])
		if err := s.Append(ctx, bad); err == nil {
			t.Errorf("%s: stored", what)
		}
	}
	body := []byte(`{"event":"ü"}`)
	ds := Delivers("e1", string(body), Begin.Add(time.Microsecond), "ops", "crm")
	b := refused
	b.Deliveries = ds
	must(t, s.Append(ctx, b))
	clear(ds[0].Body) // the caller may change its values
	at := Begin.Add(time.Millisecond)
	if due := dueIDs(t, s, "ops", Begin, 0) + dueIDs(t, s, "ops", at, 0); due != "e1-ops/0" {
		t.Errorf("due: %s", due)
	}
	d := claimDelivery(t, s, "e1-ops", 1, "p", true)
	if !bytes.Equal(d.Body, body) || d.EventID != "e1" || d.ExecutionID != "x" || d.Seq != int64(len(b.Records)) || d.Event != history.RunCompleted ||
		d.Target != "ops" || d.Attempts != 1 || d.State != history.DeliveryPending || !d.CreatedAt.Equal(Begin) {
		t.Errorf("claimed %+v, %s", d, d.Body)
	}
	clear(d.Body)
	settle := func(attempt int, outcome history.SendOutcome, state history.DeliveryState, due time.Time, step int) {
		t.Helper()
		must(t, s.SettleDelivery(ctx, history.Settlement{
			DeliveryID: "e1-ops", Attempt: attempt, At: Begin.Add(time.Second), State: state, Due: due, Step: step,
			Receipt: history.Receipt{Outcome: outcome, Status: 503, Error: "the answer is 503"},
		}))
	}
	settle(1, history.SendAgain, history.DeliveryPending, Begin.Add(10*time.Second), 1)
	if due := dueIDs(t, s, "ops", Begin.Add(9*time.Second), 0); due != "" {
		t.Errorf("due before its time: %s", due)
	}
	if d := claimDelivery(t, s, "e1-ops", 2, "q", true); !bytes.Equal(d.Body, body) || d.Step != 1 {
		t.Errorf("claimed again %+v, %s", d, d.Body)
	}
	settle(2, history.SendRefused, history.DeliveryDead, Begin, 1)
	claimDelivery(t, s, "e1-ops", 3, "p", false)
	if d := oneDelivery(t, s, "e1-ops"); d.State != history.DeliveryDead || len(d.Tries) != 2 || d.Tries[1].Outcome != history.SendRefused || d.Tries[0].Process != "p" ||
		d.Tries[1].Number != 2 || d.Tries[0].Status != 503 || d.Tries[0].Error != "the answer is 503" || !d.Tries[0].EndedAt.Equal(Begin.Add(time.Second)) || d.Body != nil {
		t.Errorf("listed %+v", d)
	}
	must(t, s.RequeueDelivery(ctx, "e1-ops", Begin.Add(20*time.Second)))
	if d := oneDelivery(t, s, "e1-ops"); d.State != history.DeliveryPending || d.Step != 0 || d.Attempts != 2 || !d.Due.Equal(Begin.Add(20*time.Second)) {
		t.Errorf("made anew %+v", d)
	}
	claimDelivery(t, s, "e1-ops", 3, "p", true)
	settle(3, history.Sent, history.DeliveryDone, Begin, 0)
	if due := dueIDs(t, s, "ops", Begin.Add(time.Hour), 0); due != "" {
		t.Errorf("delivered, and due: %s", due)
	}
	if due := dueIDs(t, s, "crm", at, 0); due != "e1-crm/0" {
		t.Errorf("the other target: %s", due)
	}
	wantCode(t, s.RequeueDelivery(ctx, "unknown", Begin), problem.DeliveryNotFound)
	wantCode(t, s.SettleDelivery(ctx, history.Settlement{DeliveryID: "unknown", Attempt: 1, State: history.DeliveryDone}), problem.DeliveryNotFound)
	claimDelivery(t, s, "unknown", 1, "p", false)
}

// deliveryClaims: an attempt excludes others until its lease ends by the store's clock. A superseded attempt changes nothing, unless
// it has delivered.
func deliveryClaims(t *testing.T, s history.Store, c *clock) {
	ctx := t.Context()
	endsNotifying(t, s, "x", Delivers("e", "{}", Begin, "a", "b")...)
	claimDelivery(t, s, "e-a", 1, "p", true)
	claimDelivery(t, s, "e-a", 2, "q", false)
	claimDelivery(t, s, "e-a", 1, "q", false)
	if due := dueIDs(t, s, "a", Begin.Add(time.Hour), 0); due != "" {
		t.Errorf("due while it is sent: %s", due)
	}
	c.pass(10*time.Second - time.Millisecond)
	claimDelivery(t, s, "e-a", 2, "q", false)
	c.pass(time.Millisecond)
	if due := dueIDs(t, s, "a", Begin, 0); due != "e-a/1" {
		t.Errorf("after a death: %s", due)
	}
	claimDelivery(t, s, "e-a", 1, "q", false) // a process that listed it before the first attempt
	claimDelivery(t, s, "e-a", 2, "q", true)
	late := history.Settlement{
		DeliveryID: "e-a", Attempt: 1, At: Begin, Receipt: history.Receipt{Outcome: history.SendAgain}, State: history.DeliveryDead, Due: Begin, Step: 7,
	}
	must(t, s.SettleDelivery(ctx, late))
	claimDelivery(t, s, "e-a", 3, "p", false)
	if d := oneDelivery(t, s, "e-a"); d.State != history.DeliveryPending || d.Step != 0 || d.Tries[0].Outcome != history.SendAgain || d.Tries[1].Outcome != "" || !d.Tries[1].EndedAt.IsZero() {
		t.Errorf("an attempt that was overtaken makes it %+v", d)
	}
	late.Outcome, late.State = history.Sent, history.DeliveryDone
	must(t, s.SettleDelivery(ctx, late))
	must(t, s.SettleDelivery(ctx, history.Settlement{
		DeliveryID: "e-a", Attempt: 2, At: Begin, Receipt: history.Receipt{Outcome: history.SendAgain}, State: history.DeliveryPending, Due: Begin, Step: 1,
	}))
	if d := oneDelivery(t, s, "e-a"); d.State != history.DeliveryDone {
		t.Errorf("delivered late: %+v", d)
	}
	// The clock is set back two days: earlier leases no longer count.
	claimDelivery(t, s, "e-b", 1, "p", true)
	c.pass(-48 * time.Hour)
	got[time.Time](t)(s.Now(ctx))
	must(t, s.Renew(ctx, "p", time.Second))
	claimDelivery(t, s, "e-b", 2, "q", true)
}

// oneSenderWins: only one of many concurrent claims of an attempt succeeds.
func oneSenderWins(t *testing.T, s history.Store, c *clock) {
	endsNotifying(t, s, "x", Delivers("e", "{}", Begin, "a")...)
	var won atomic.Int32
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			_, claimed, err := s.ClaimDelivery(t.Context(), history.DeliveryClaim{DeliveryID: "e-a", Attempt: 1, Process: fmt.Sprint(i), TTL: time.Minute, At: Begin})
			if err != nil {
				t.Error(err)
			}
			if claimed {
				won.Add(1)
			}
		})
	}
	wg.Wait()
	if n := won.Load(); n != 1 {
		t.Errorf("%d processes send it", n)
	}
}

// deliveriesAndPruning: a pending delivery keeps its run and the run's data; other deliveries are deleted with the run.
func deliveriesAndPruning(t *testing.T, s history.Store) {
	pruner(t, s)
	ctx := t.Context()
	endsNotifying(t, s, "x", Delivers("e", "{}", Begin, "a", "b")...)
	ended(t, s, "x:sub:v", "child", "ExecutionCompleted", 0)
	claimDelivery(t, s, "e-a", 1, "p", true)
	must(t, s.SettleDelivery(ctx, history.Settlement{DeliveryID: "e-a", Attempt: 1, State: history.DeliveryDead, Due: Begin, At: Begin}))
	if ids, _ := prune(t, s, history.PruneQuery{DryRun: true}); len(ids) > 0 {
		t.Errorf("would delete %v", ids)
	}
	if ids, _ := prune(t, s, history.PruneQuery{}); len(ids) > 0 {
		t.Errorf("deleted %v, of which a target has yet to be notified", ids)
	}
	claimDelivery(t, s, "e-b", 1, "p", true)
	must(t, s.SettleDelivery(ctx, history.Settlement{DeliveryID: "e-b", Attempt: 1, State: history.DeliveryDone, Due: Begin, At: Begin}))
	if ids, _ := prune(t, s, history.PruneQuery{}); !slices.Equal(ids, []string{"x"}) {
		t.Errorf("deleted %v", ids)
	}
	if page := got[history.DeliveryPage](t)(s.ListDeliveries(ctx, history.DeliveryQuery{})); len(page.Deliveries) > 0 {
		t.Errorf("left %+v", page.Deliveries)
	}
	// A new run with the same id, and an event with the same id.
	endsNotifying(t, s, "x", Delivers("e", "new", Begin, "a")...)
	if d := claimDelivery(t, s, "e-a", 1, "p", true); string(d.Body) != "new" {
		t.Errorf("sends %s", d.Body)
	}
	if d := oneDelivery(t, s, "e-a"); len(d.Tries) != 1 {
		t.Errorf("the new one has %+v", d.Tries)
	}
}

func deliveryPages(t *testing.T, s history.Store) {
	ctx := t.Context()
	for i := range 7 {
		endsNotifying(t, s, fmt.Sprintf("x%d", i), Delivers(fmt.Sprintf("e%d", i), "{}", Begin.Add(time.Duration(-i)*time.Second), "a", "b")...)
	}
	if due := dueIDs(t, s, "a", Begin, 3); due != "e6-a/0 e5-a/0 e4-a/0" {
		t.Errorf("due longest: %s", due)
	}
	claimDelivery(t, s, "e3-b", 1, "p", true)
	must(t, s.SettleDelivery(ctx, history.Settlement{DeliveryID: "e3-b", Attempt: 1, State: history.DeliveryDead, Due: Begin, At: Begin}))
	pages := func(q history.DeliveryQuery) string {
		t.Helper()
		var out []string
		for {
			page := got[history.DeliveryPage](t)(s.ListDeliveries(ctx, q))
			var ids []string
			for _, d := range page.Deliveries {
				ids = append(ids, d.ID)
			}
			out = append(out, strings.Join(ids, " "))
			if q.Cursor = page.NextCursor; q.Cursor == "" {
				return strings.Join(out, " | ")
			}
		}
	}
	for _, c := range []struct {
		q    history.DeliveryQuery
		want string
	}{
		{history.DeliveryQuery{Limit: 4, Target: "a"}, "e6-a e5-a e4-a e3-a | e2-a e1-a e0-a"},
		{history.DeliveryQuery{ExecutionID: "x2"}, "e2-b e2-a"},
		{history.DeliveryQuery{ExecutionID: "x2", Limit: 1}, "e2-b | e2-a"},
		{history.DeliveryQuery{States: []history.DeliveryState{history.DeliveryDead}}, "e3-b"},
		{history.DeliveryQuery{States: []history.DeliveryState{history.DeliveryDead, history.DeliveryPending}, ExecutionID: "x3"}, "e3-b e3-a"},
		{history.DeliveryQuery{DeliveryID: "e1-a"}, "e1-a"},
		{history.DeliveryQuery{DeliveryID: "e1-a", ExecutionID: "x2"}, ""},
		{history.DeliveryQuery{ExecutionID: "nobody"}, ""},
	} {
		if got := pages(c.q); got != c.want {
			t.Errorf("%+v: got %s, want %s", c.q, got, c.want)
		}
	}
	wantRefusal(t, problem.InvalidListCursor)(s.ListDeliveries(ctx, history.DeliveryQuery{Cursor: "x"}))
	wantRefusal(t, problem.ValidationError)(s.ListDeliveries(ctx, history.DeliveryQuery{Limit: -1}))
}
