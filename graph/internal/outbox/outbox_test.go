package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// A process commits runs to a store and has a Box, with a Sender if send is set.
type process struct {
	t     testing.TB
	store history.Store
	box   *Box
	tasks sync.WaitGroup
	stop  context.CancelFunc
}

func startProcess(t testing.TB, store history.Store, targets Targets, send Send) *process {
	ctx, stop := context.WithCancel(context.Background())
	p := &process{t: t, store: store, stop: stop, box: &Box{Targets: targets, Now: time.Now, Redaction: history.DefaultRedaction()}}
	if send != nil {
		p.box.Sender = &Sender{
			Store: store, Targets: targets, Send: send, Process: fmt.Sprintf("process %p", p), Now: time.Now,
			Log: slog.New(slog.DiscardHandler), Go: p.tasks.Go, Context: ctx,
		}
		p.box.Sender.Begin()
	}
	t.Cleanup(p.close)
	return p
}

// close stops the process and returns when its goroutines have ended.
func (p *process) close() {
	p.stop()
	p.tasks.Wait()
}

// commit appends records to a run that notifies targets, with the deliveries of the batch.
func (p *process) commit(x *historytest.Trace, notify []string, run *view.Run, lines ...string) []history.Delivery {
	p.t.Helper()
	before := x.Execution.Phase
	b := x.Batch(lines...)
	x.Execution.Notify = notify
	b.Execution.Notify = notify
	b.Deliveries = p.box.Deliveries(before, &b.Execution, b.Records, func() *view.Run { return run })
	if err := p.store.Append(p.t.Context(), b); err != nil {
		p.t.Fatal(err)
	}
	p.box.Stored(b.Deliveries)
	return b.Deliveries
}

// complete commits a run that has completed.
func (p *process) complete(id string, notify ...string) []history.Delivery {
	p.t.Helper()
	lines := slices.Concat(historytest.Start("w", "in_process"), historytest.End())
	return p.commit(historytest.NewTrace(p.t, id), notify, &view.Run{ExecutionID: id, Status: machine.Completed}, lines...)
}

func (p *process) delivery(id string) history.Delivery {
	p.t.Helper()
	d, err := find(p.t.Context(), p.store, id)
	if err != nil {
		p.t.Fatal(err)
	}
	return d
}

// inbox is a target: it keeps the deliveries sent to it and answers the n-th with the n-th answer, later ones with the last answer.
type inbox struct {
	mu      sync.Mutex
	got     []history.Delivery
	at      []time.Time
	answers []Send
}

func (in *inbox) send(ctx context.Context, d history.Delivery) (history.Receipt, error) {
	in.mu.Lock()
	n := len(in.got)
	in.got, in.at = append(in.got, d), append(in.at, time.Now())
	answer := Send(taken)
	if len(in.answers) > 0 {
		answer = in.answers[min(n, len(in.answers)-1)]
	}
	in.mu.Unlock()
	return answer(ctx, d)
}

func (in *inbox) count() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.got)
}

func taken(context.Context, history.Delivery) (history.Receipt, error) {
	return history.Receipt{Outcome: history.Sent, Status: 200}, nil
}

func hangs(ctx context.Context, _ history.Delivery) (history.Receipt, error) {
	<-ctx.Done()
	return history.Receipt{}, ctx.Err()
}

func answers(outcome history.SendOutcome, status int, retryAfter time.Duration) Send {
	return func(context.Context, history.Delivery) (history.Receipt, error) {
		return history.Receipt{Outcome: outcome, Status: status, RetryAfter: retryAfter}, nil
	}
}

// TestEventsOfABatch: a batch has one event at most, for each target that wants it: the end of a run, and each of its questions. Of
// subworkflows, questions alone are events.
func TestEventsOfABatch(t *testing.T) {
	t.Parallel()
	asks := []string{`C RaiseInterrupt i {"prompt":"?"}`, `E InterruptRaised i {"prompt":"?"}`}
	begin := historytest.Start("w", "in_process")
	cancel := []string{`E ExecutionCancelled {"reason":"enough"}`}
	failed := []string{`C FailNode n {"reason":"r","message":"m"}`, `E ExecutionFailed {"error":"m"}`}
	targets := Targets{"every": {}, "ends": {Events: []history.RunEvent{history.RunCompleted, history.RunFailed}}, "all": {All: true, Events: []history.RunEvent{history.RunInterrupted}}}
	for name, c := range map[string]struct {
		id      string
		batches [][]string
		want    string // of the last batch
	}{
		"begins":                {"r", [][]string{begin}, ""},
		"completes":             {"r", [][]string{begin, historytest.End()}, "run.completed: elsewhere ends every"},
		"fails":                 {"r", [][]string{begin, failed}, "run.failed: elsewhere ends every"},
		"is cancelled":          {"r", [][]string{begin, cancel}, "run.cancelled: elsewhere every"},
		"asks":                  {"r", [][]string{begin, asks}, "run.interrupted: all elsewhere every"},
		"asks again":            {"r", [][]string{begin, asks, {`C RaiseInterrupt j {"prompt":"?"}`, `E InterruptRaised j {"prompt":"?"}`}}, "run.interrupted: all elsewhere every"},
		"is interrupted still":  {"r", [][]string{begin, asks, {"C ScheduleNode n", "E NodeScheduled n"}}, ""},
		"subworkflow completes": {"r:sub:v", [][]string{begin, historytest.End()}, ""},
		"subworkflow asks":      {"r:sub:v", [][]string{begin, asks}, "run.interrupted: all elsewhere every"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startProcess(t, historymem.New(), targets, nil)
			x := historytest.NewTrace(t, c.id)
			var ds []history.Delivery
			for _, lines := range c.batches {
				ds = p.commit(x, []string{"every", "ends", "elsewhere"}, &view.Run{ExecutionID: c.id}, lines...)
			}
			var to []string
			got := ""
			for _, d := range ds {
				got = string(d.Event) + ": "
				to = append(to, d.Target)
				if d.EventID != ds[0].EventID || d.ID == "" || string(d.Body) != string(ds[0].Body) {
					t.Errorf("%+v", d)
				}
			}
			slices.Sort(to)
			if got += strings.Join(to, " "); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// TestBodyIsBounded: a body that would be too long leaves out states, then values, then waits, and says so; it never holds a secret.
func TestBodyIsBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", MaxBody)
	pending := func(p view.Pending) []view.Pending {
		p.NodeID, p.Kind = "n", machine.WaitActivity
		return []view.Pending{p}
	}
	for name, c := range map[string]struct {
		run       view.Run
		truncated bool
		members   string // of the run, without the constant ones
		waits     int
	}{
		"fits":          {view.Run{State: map[string]any{"s": long[:MaxBody-4096], "password": "hunter2"}, Pending: pending(view.Pending{})}, false, "state", 1},
		"long state":    {view.Run{Status: machine.Completed, FinalState: map[string]any{"s": long}, Result: "r", Pending: pending(view.Pending{WaitInfo: machine.WaitInfo{State: map[string]any{"s": long}}})}, true, "result", 1},
		"long config":   {view.Run{Result: long, Pending: pending(view.Pending{Config: map[string]any{"c": long}})}, true, "", 1},
		"many waits":    {view.Run{Pending: slices.Repeat([]view.Pending{{WaitInfo: machine.WaitInfo{Kind: machine.WaitInterrupt, NodeID: "i", Prompt: long[:1024]}}}, 300)}, true, "", 0},
		"a long error":  {view.Run{Status: machine.Failed, Error: long}, true, "last_error", 0},
		"a long reason": {view.Run{Status: machine.Cancelled, Reason: strings.Repeat("é", MaxBody)}, true, "last_error reason", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.run.ExecutionID = "r"
			box := Box{Redaction: history.DefaultRedaction()}
			text := box.Body(Heading{Event: history.RunCompleted, ID: "evt_1", At: historytest.Begin}, &c.run)
			var got struct {
				Truncated bool
				Event     string
				Run       map[string]any
			}
			if err := json.Unmarshal(text, &got); err != nil || len(text) > MaxBody || strings.Contains(string(text), "hunter2") {
				t.Fatalf("%d bytes, %v", len(text), err)
			}
			var members []string
			for _, name := range []string{"state", "result", "last_error", "reason"} {
				if v, has := got.Run[name]; has && v != nil {
					members = append(members, name)
				}
			}
			waits, _ := got.Run["pending"].([]any)
			if got.Truncated != c.truncated || strings.Join(members, " ") != c.members || len(waits) != c.waits || got.Event != "run.completed" {
				t.Errorf("truncated %v, members %v, %d waits", got.Truncated, members, len(waits))
			}
		})
	}
}

// TestHintsOfBodies: hints name options as the glossary does.
func TestHintsOfBodies(t *testing.T) {
	t.Parallel()
	box := Box{Redaction: history.DefaultRedaction(), Glossary: problem.Glossary{"Options.MaxRecords": "--max-records"}}
	text := box.Body(Heading{Event: history.RunCompleted}, &view.Run{Warnings: []view.Warning{{Hint: "Raise Options.MaxRecords."}}})
	if !strings.Contains(string(text), `"hint":"Raise --max-records."`) {
		t.Errorf("%s", text)
	}
}

// TestRetries: an attempt is repeated after the pauses, which Retry-After can lengthen, under the same event id and with the same body, until
// the target takes it or the last attempt has failed.
func TestRetries(t *testing.T) {
	t.Parallel()
	again, refused := answers(history.SendAgain, 503, 0), answers(history.SendRefused, 410, 0)
	for name, c := range map[string]struct {
		answers []Send
		at      []time.Duration
		state   history.DeliveryState
		last    history.SendOutcome
	}{
		"given up":  {[]Send{again}, []time.Duration{0, 10 * time.Second, 70 * time.Second, 370 * time.Second, 2170 * time.Second}, history.DeliveryDead, history.SendAgain},
		"recovered": {[]Send{again, again, taken}, []time.Duration{0, 10 * time.Second, 70 * time.Second}, history.DeliveryDone, history.Sent},
		"gone":      {[]Send{again, refused}, []time.Duration{0, 10 * time.Second}, history.DeliveryDead, history.SendRefused},
		"Retry-After": {[]Send{answers(history.SendAgain, 429, 2*time.Minute), answers(history.SendAgain, 429, time.Second), answers(history.SendAgain, 429, 5*time.Hour), taken},
			[]time.Duration{0, 2 * time.Minute, 3 * time.Minute, time.Hour + 3*time.Minute}, history.DeliveryDone, history.Sent},
		"error": {[]Send{func(context.Context, history.Delivery) (history.Receipt, error) {
			return history.Receipt{}, errors.New("no route")
		}, taken}, []time.Duration{0, 10 * time.Second}, history.DeliveryDone, history.Sent},
		"panic": {[]Send{func(context.Context, history.Delivery) (history.Receipt, error) { panic("a mistake") }, taken},
			[]time.Duration{0, 10 * time.Second}, history.DeliveryDone, history.Sent},
		"no answer": {[]Send{hangs, taken}, []time.Duration{0, 17 * time.Second}, history.DeliveryDone, history.Sent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				in := inbox{answers: c.answers}
				p := startProcess(t, historymem.New(), Targets{"ops": {Timeout: 7 * time.Second}}, in.send)
				id := p.complete("r", "ops")[0].ID
				time.Sleep(8 * time.Hour)
				synctest.Wait()
				if len(in.got) != len(c.at) {
					t.Fatalf("%d attempts, want %d", len(in.got), len(c.at))
				}
				for i, d := range in.got {
					if late := in.at[i].Sub(in.at[0]) - c.at[i]; late < 0 || late > time.Duration(i+1)*time.Second {
						t.Errorf("attempt %d is %v late", i+1, late)
					}
					if d.EventID != in.got[0].EventID || d.Attempts != i+1 || string(d.Body) != string(in.got[0].Body) {
						t.Errorf("attempt %d: %+v", i+1, d)
					}
				}
				d := p.delivery(id)
				if last := d.Tries[len(d.Tries)-1]; d.State != c.state || last.Outcome != c.last || len(d.Tries) != len(c.at) {
					t.Errorf("%+v", d)
				}
				if c.state != history.DeliveryDead {
					return
				}
				in.mu.Lock()
				in.answers = nil
				in.mu.Unlock()
				d, err := p.box.Redeliver(t.Context(), p.store, id)
				if err != nil || d.State != history.DeliveryDone || d.Attempts != len(c.at)+1 || d.EventID != in.got[0].EventID {
					t.Errorf("redelivered: %+v, %v", d, err)
				}
			})
		})
	}
}

// TestTargetsAreIndependent: a target that does not answer delays neither another target nor the end of the process, and the next process
// sends to it at once.
func TestTargetsAreIndependent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var in, next inbox
		store := historymem.New()
		p := startProcess(t, store, Targets{"hangs": {}, "ops": {}}, func(ctx context.Context, d history.Delivery) (history.Receipt, error) {
			if d.Target == "hangs" {
				return hangs(ctx, d)
			}
			return in.send(ctx, d)
		})
		var ids []string
		for i := range 10 {
			ids = append(ids, p.complete(fmt.Sprint(i), "hangs", "ops")[0].ID)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n := in.count(); n != 10 {
			t.Errorf("%d of 10", n)
		}
		began := time.Now()
		p.close()
		if took := time.Since(began); took > time.Second {
			t.Errorf("the process stopped after %v", took)
		}
		stopped := 0
		for _, id := range ids {
			d := p.delivery(id)
			if d.State != history.DeliveryPending || d.Step != 0 {
				t.Errorf("%+v", d)
			}
			for _, a := range d.Tries {
				if a.Outcome == history.SendStopped {
					stopped++
				}
			}
		}
		if stopped < 1 || stopped > atOnce {
			t.Errorf("%d attempts were stopped", stopped)
		}
		startProcess(t, store, Targets{"hangs": {}}, next.send)
		time.Sleep(time.Second)
		synctest.Wait()
		if n := next.count(); n != 10 {
			t.Errorf("the next process sends %d of 10", n)
		}
	})
}

// TestAttemptsToOneTarget: up to four attempts to a target run at the same time, so that one without an answer does not delay the others.
func TestAttemptsToOneTarget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var in inbox
		began := time.Now()
		p := startProcess(t, historymem.New(), Targets{"ops": {}}, func(ctx context.Context, d history.Delivery) (history.Receipt, error) {
			if strings.HasPrefix(d.ExecutionID, "hangs") {
				return hangs(ctx, d)
			}
			return in.send(ctx, d)
		})
		complete := func(id string) { p.complete(id, "ops"); synctest.Wait() }
		for i := range 4 {
			if i > 0 {
				complete(fmt.Sprint("hangs", i))
			}
			for j := range 3 {
				complete(fmt.Sprintf("r%d.%d", i, j))
			}
			if n, took := in.count(), time.Since(began); n != 3*(i+1) || took != 0 {
				t.Fatalf("with %d that hang, %d are delivered after %v", i, n, took)
			}
		}
		complete("hangs4")
		complete("late")
		time.Sleep(DefaultTimeout - 1)
		if n := in.count(); n != 12 {
			t.Errorf("%d are delivered while four hang", n)
		}
		time.Sleep(2 * time.Nanosecond)
		synctest.Wait()
		if n := in.count(); n != 13 {
			t.Errorf("%d are delivered after the timeout", n)
		}
	})
}

// TestDrain: a process waits for the first attempt of the deliveries that it has written, up to a limit.
func TestDrain(t *testing.T) {
	t.Parallel()
	for _, takes := range []time.Duration{0, 3 * time.Second, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			p := startProcess(t, historymem.New(), Targets{"ops": {}}, func(ctx context.Context, d history.Delivery) (history.Receipt, error) {
				time.Sleep(takes)
				return taken(ctx, d)
			})
			id := p.complete("r", "ops")[0].ID
			began := time.Now()
			left := p.box.Sender.Drain(10 * time.Second)
			if took, done := time.Since(began), takes < 10*time.Second; took != min(takes, 10*time.Second) || (left == 0) != done || (p.delivery(id).State == history.DeliveryDone) != done {
				t.Errorf("after %v: %d are left, %+v", took, left, p.delivery(id))
			}
		})
	}
}

// TestDeliveriesOfAnotherProcess: a process with a target sends the deliveries that other processes wrote for it, and marks those as unwanted
// whose event the target does not want.
func TestDeliveriesOfAnotherProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var in inbox
		store := historymem.New()
		writer := startProcess(t, store, nil, nil)
		unwanted := writer.complete("r", "ops")[0].ID
		cancelled := writer.commit(historytest.NewTrace(t, "q"), []string{"ops"}, &view.Run{ExecutionID: "q"}, append(historytest.Start("w", "in_process"), `E ExecutionCancelled {"reason":"enough"}`)...)[0].ID
		elsewhere := writer.complete("x", "crm")[0].ID
		startProcess(t, store, Targets{"ops": {Events: []history.RunEvent{history.RunCancelled}}}, in.send)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		for id, want := range map[string]history.DeliveryState{unwanted: history.DeliveryUnwanted, cancelled: history.DeliveryDone, elsewhere: history.DeliveryPending} {
			if d := writer.delivery(id); d.State != want {
				t.Errorf("%s is %s, want %s", d.ExecutionID, d.State, want)
			}
		}
		if n := in.count(); n != 1 {
			t.Errorf("%d are sent", n)
		}
		// Without a Sender, a delivery is made pending again and left to the process with the target.
		if d, err := writer.box.Redeliver(t.Context(), store, cancelled); err != nil || d.State != history.DeliveryPending {
			t.Errorf("%+v, %v", d, err)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if d := writer.delivery(cancelled); d.State != history.DeliveryDone || in.count() != 2 {
			t.Errorf("%+v", d)
		}
		if _, err := writer.box.Redeliver(t.Context(), store, "dlv_unknown"); !errors.Is(err, problem.DeliveryNotFound) {
			t.Error(err)
		}
	})
}

// TestAdmit: a run keeps the names it gives, each once, and those of the targets of all runs. An unknown name is an error with the nearest one.
func TestAdmit(t *testing.T) {
	t.Parallel()
	targets := Targets{"billing": {}, "ops": {}, "all": {All: true}}
	if names, err := targets.Admit([]string{"ops", "billing", "ops"}); err != nil || strings.Join(names, " ") != "ops billing all" {
		t.Errorf("%v, %v", names, err)
	}
	for name, hint := range map[string]string{"biling": `Did you mean "billing"?`, "nothing like it": "Use all, billing or ops."} {
		_, err := targets.Admit([]string{"ops", name})
		if p, ok := problem.As(err); !ok || p.Code != problem.WebhookTargetUnknown || p.Hint != hint {
			t.Errorf("%s: %v, %+v", name, err, p)
		}
	}
	if _, err := (Targets)(nil).Admit([]string{"ops"}); !errors.Is(err, problem.WebhookTargetUnknown) {
		t.Error(err)
	}
	if _, err := targets.Admit(slices.Repeat([]string{"ops"}, MaxTargets+1)); !errors.Is(err, problem.ValidationError) {
		t.Errorf("too many: %v", err)
	}
}
