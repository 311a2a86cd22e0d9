package run_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/internal/library"
	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// performs is an executor for activities of some nodes. Packages above this one call it; here it only says what it performs.
type performs []string

func (p performs) Capabilities(n activities.Node) (c activities.Capabilities) {
	if name, _ := n.Config["tool"].(string); !slices.Contains(p, name) {
		c.Missing = activities.MissingTarget
	}
	return c
}

func (performs) Execute(context.Context, activities.Request) (activities.Result, error) {
	return activities.Result{}, errors.New("not called by a run")
}

// process is a process in which runs are applied by hand. It keeps what they tell it.
type process struct {
	*run.Table
	programs *library.Library
	store    *historytest.FaultStore
	name     string
	owned    map[string]bool
	log      strings.Builder
}

func newProcess(t *testing.T, name string, store history.Store, executes ...string) *process {
	t.Helper()
	p := &process{name: name, store: historytest.NewFaultStore(store), owned: map[string]bool{}}
	env := work.Env{Store: p.store, Now: func() time.Time { return time.Now().UTC() }, Log: slog.New(slog.NewTextHandler(&p.log, nil)), Go: func(f func()) { go f() }, Context: t.Context()}
	p.programs = library.New(library.Options{Store: p.store, MaxBytes: 1 << 20, Log: env.Log})
	limits := machine.Limits{MaxRecords: 1000, MaxBytes: 1 << 20, MaxPending: 100}
	p.Table = run.NewTable(&run.Environment{
		Env: env, Process: p, Programs: p.programs, Outbox: noWebhooks{}, KeepRecords: true, MaxVisits: 1000, MaxDocumentBytes: 1 << 20, Limits: limits,
		Performer: &work.Performer{Env: env, Activities: performs(executes), MaxBytes: 1 << 20, Turns: work.NewQueue(env, nil, 0), Requests: work.Requests{Omit: true}},
		Tree:      &run.TreeBudget{Env: env, Limits: run.TreeLimits{}.WithDefaults(run.TreeLimits{}), Depth: 4},
	})
	return p
}

func (p *process) Hold(ctx context.Context) (string, error) {
	return p.name, p.store.Renew(ctx, p.name, 30*time.Second)
}
func (p *process) Alive(string) context.Context         { return context.Background() }
func (p *process) Owns(x *run.Run, _ string, owns bool) { p.owned[x.ID()] = owns }
func (p *process) PresentSince() time.Time              { return time.Time{} }
func (p *process) Recorded(*run.Run, []history.Record)  {}
func (p *process) Changed(*run.Run)                     {}
func (p *process) Timers(*run.Run, []machine.Timer)     {}

type noWebhooks struct{}

func (noWebhooks) Deliveries(history.Phase, *history.Execution, []history.Record, func() *view.Run) []history.Delivery {
	return nil
}
func (noWebhooks) Stored([]history.Delivery) {}

// begin starts a run of tool calls, one after the other, and returns it locked.
func (p *process) begin(t *testing.T, id string, mode machine.Mode, tools ...string) (*run.Run, *run.Work) {
	t.Helper()
	doc, err := definition.Parse([]byte(document(tools...)))
	if err != nil {
		t.Fatal(err)
	}
	prog, err := p.programs.Admit(doc)
	if err != nil {
		t.Fatal(err)
	}
	x, w := p.hold(id), &run.Work{}
	config := machine.Config{ExecutionID: id, Mode: mode, Branches: machine.Concurrent, MaxVisits: 1000}
	if err := x.Begin(t.Context(), run.Beginning{Program: prog, Config: config, Input: map[string]any{}, StartedHere: true}, w); err != nil {
		t.Fatal(err)
	}
	return x, w
}

// hold returns a run locked.
func (p *process) hold(id string) *run.Run {
	x := p.Table.Hold(id)
	x.Lock()
	return x
}

func document(tools ...string) string {
	nodes, edges, last := `{"id":"s","type":"start"}`, `{"source":"__start__","target":"s"}`, "s"
	for _, tool := range tools {
		nodes += `,{"id":"` + tool + `","type":"tool_call","config":{"server":"x","tool":"` + tool + `"}}`
		edges += `,{"source":"` + last + `","target":"` + tool + `"}`
		last = tool
	}
	return `{"document":{"schema":"urn:test","name":"w","version":"1"},"state_schema":{"type":"object"},"nodes":[` + nodes +
		`,{"id":"e","type":"end","config":{"output_mapping":"."}}],"edges":[` + edges + `,{"source":"` + last + `","target":"e"}]}`
}

func outcome(node string) run.Input {
	return run.Input{Input: machine.Outcome{NodeID: node, Host: true, OK: true, Output: map[string]any{node: true}}}
}

func stored(t *testing.T, store history.Store, id string) history.Execution {
	t.Helper()
	e, err := store.Execution(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestAnInputIsOneCommitAndNoRead: a loaded run takes an input with one append, and asks the store nothing.
func TestAnInputIsOneCommitAndNoRead(t *testing.T) {
	t.Parallel()
	p := newProcess(t, "p", historymem.New())
	x, w := p.begin(t, "r", machine.HostMediated, "a", "b")
	if len(w.Begin) > 0 || x.Owned() {
		t.Errorf("a host's run begins %d attempts here, and is owned: %v", len(w.Begin), x.Owned())
	}
	p.store.Set(historytest.Fault{Reads: true}) // count all calls
	if err := x.Apply(t.Context(), outcome("a"), w); err != nil {
		t.Fatal(err)
	}
	if made := p.store.Calls(); !slices.Equal(made, []string{"Append"}) {
		t.Errorf("calls of the store: %v", made)
	}
	if e := stored(t, p.store, "r"); e.Seq != x.Seq() || e.Phase != history.PhaseAwaitingActivity {
		t.Errorf("stored %d %s, known here %d", e.Seq, e.Phase, x.Seq())
	}
}

// TestARejectedInputLeavesNoRow: neither the store nor the machine changes.
func TestARejectedInputLeavesNoRow(t *testing.T) {
	t.Parallel()
	p := newProcess(t, "p", historymem.New())
	x, w := p.begin(t, "r", machine.HostMediated, "a")
	seq := x.Seq()
	if err := x.Apply(t.Context(), outcome("b"), w); !errors.Is(err, problem.SubmitNodeMismatch) {
		t.Errorf("rejected with %v", err)
	}
	if e := stored(t, p.store, "r"); e.Seq != seq {
		t.Errorf("%d records, want %d", e.Seq, seq)
	}
	if err := x.Apply(t.Context(), outcome("a"), w); err != nil || !x.Ended() {
		t.Errorf("the run has ended: %v, %v", x.Ended(), err)
	}
}

// TestAnInputIsDecidedAgainAfterAConflict: a process whose machine is older than the history takes the input on the newest one, or rejects it.
func TestAnInputIsDecidedAgainAfterAConflict(t *testing.T) {
	t.Parallel()
	store := historymem.New()
	first, second := newProcess(t, "p1", store), newProcess(t, "p2", store)
	x, w := first.begin(t, "r", machine.HostMediated, "a", "b")
	y := second.hold("r")
	if err := y.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := x.Apply(t.Context(), outcome("a"), w); err != nil {
		t.Fatal(err)
	}
	if err := y.Apply(t.Context(), outcome("a"), &run.Work{}); !errors.Is(err, problem.SubmitNodeMismatch) {
		t.Errorf("the same outcome from the other process: %v", err)
	}
	if err := y.Apply(t.Context(), outcome("b"), &run.Work{}); err != nil || !y.Ended() {
		t.Errorf("the next outcome: %v", err)
	}
	if err := x.Apply(t.Context(), outcome("b"), w); !errors.Is(err, problem.SubmitNotAwaiting) || !x.Ended() {
		t.Errorf("the end is known to the first process, too: %v", err)
	}
}

// TestAFailedAppendChangesNothing: the machine is ahead of the history then, so it is dropped. An append whose answer was lost is found.
func TestAFailedAppendChangesNothing(t *testing.T) {
	t.Parallel()
	for _, committed := range []bool{false, true} {
		p := newProcess(t, "p", historymem.New())
		x, w := p.begin(t, "r", machine.HostMediated, "a")
		p.store.Set(historytest.Fault{At: 1, AfterCommit: committed})
		if err := x.Apply(t.Context(), outcome("a"), w); err == nil || x.Machine() != nil {
			t.Errorf("committed %v: %v, and the machine is kept: %v", committed, err, x.Machine() != nil)
		}
		p.store.Revive()
		err := x.Apply(t.Context(), outcome("a"), w)
		if committed != errors.Is(err, problem.SubmitNotAwaiting) || !committed && err != nil {
			t.Errorf("committed %v, sent again: %v", committed, err)
		}
		if e := stored(t, p.store, "r"); e.Phase != history.PhaseCompleted {
			t.Errorf("committed %v: %s", committed, e.Phase)
		}
	}
}

// TestARunIsOwnedWhileAnAttemptIsInFlight: the process becomes the owner with the commit of the request, and is the owner no more with that
// of the last outcome.
func TestARunIsOwnedWhileAnAttemptIsInFlight(t *testing.T) {
	t.Parallel()
	p := newProcess(t, "p", historymem.New(), "a")
	x, w := p.begin(t, "r", machine.InProcess, "a")
	if len(w.Begin) != 1 || !p.owned["r"] {
		t.Fatalf("%d attempts, owned: %v", len(w.Begin), p.owned["r"])
	}
	if owner, err := p.store.Owner(t.Context(), "r"); err != nil || owner.Process != "p" || !owner.Live() {
		t.Errorf("owner %+v, %v", owner, err)
	}
	a := w.Begin[0]
	in := machine.Outcome{Key: a.Key, OK: true, Output: map[string]any{}}
	if err := x.Finish(t.Context(), a, in, w); err != nil || !x.Ended() || p.owned["r"] {
		t.Errorf("ended %v, owned %v: %v", x.Ended(), p.owned["r"], err)
	}
	if err := x.Finish(t.Context(), a, in, w); !errors.Is(err, work.ErrUnwanted) {
		t.Errorf("a second outcome: %v", err)
	}
}

// TestACancelEndsTheAttempts: their contexts end with work.ErrUnwanted, and outcomes that come later are dropped.
func TestACancelEndsTheAttempts(t *testing.T) {
	t.Parallel()
	p := newProcess(t, "p", historymem.New(), "a")
	x, w := p.begin(t, "r", machine.InProcess, "a")
	a := w.Begin[0]
	if err := x.Cancel(t.Context(), machine.Cancel{Reason: "enough"}, w); err != nil {
		t.Fatal(err)
	}
	if cause := context.Cause(a.Context); !errors.Is(cause, work.ErrUnwanted) {
		t.Errorf("the context ended with %v", cause)
	}
	if err := x.Finish(t.Context(), a, machine.Outcome{Key: a.Key, OK: true}, w); !errors.Is(err, work.ErrUnwanted) {
		t.Errorf("a late outcome: %v", err)
	}
	if e := stored(t, p.store, "r"); e.Phase != history.PhaseCancelled {
		t.Errorf("%s", e.Phase)
	}
}

// TestAPreviewIsATakeoverWithoutWrites: of a run whose owner is gone, a process that performs what is in flight says that it would act, and
// then does; one that lacks the executor names it, and claims nothing. A live owner keeps both away.
func TestAPreviewIsATakeoverWithoutWrites(t *testing.T) {
	t.Parallel()
	store := historymem.New()
	gone := newProcess(t, "gone", store, "a")
	gone.begin(t, "r", machine.InProcess, "a")
	for _, c := range []struct {
		name     string
		executes []string
		acts     bool
	}{{"without the executor", nil, false}, {"with it", []string{"a"}, true}} {
		p := newProcess(t, c.name, store, c.executes...)
		x := p.hold("r")
		released := c.acts
		if released {
			if won, err := x.TakeOrphan(t.Context(), false, &run.Work{}); won || err != nil {
				t.Errorf("%s, while the owner lives: %v, %v", c.name, won, err)
			}
			if err := store.Release(t.Context(), "gone"); err != nil {
				t.Fatal(err)
			}
		}
		p.store.Set(historytest.Fault{Reads: true})
		preview, err := x.Preview(t.Context(), true)
		if err != nil || preview.Acts != c.acts || !c.acts && released && preview.Lack == nil {
			t.Errorf("%s: %+v, %v", c.name, preview, err)
		}
		if made := p.store.Calls(); slices.Contains(made, "Append") || slices.Contains(made, "Claim") || !slices.Contains(made, "Execution") {
			t.Errorf("%s: the preview makes the calls %v", c.name, made)
		}
		w := &run.Work{}
		won, err := x.TakeOrphan(t.Context(), false, w)
		if won != c.acts || (len(w.Begin) == 1) != c.acts || x.Owned() != c.acts {
			t.Errorf("%s: taken %v, %d attempts, %v", c.name, won, len(w.Begin), err)
		}
		if !c.acts && !errors.Is(err, problem.ExecutorNotConfigured) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestCommitsAreToldInTheirOrder: whoever tells first tells all that there is, also what is committed meanwhile; a second one does not wait.
func TestCommitsAreToldInTheirOrder(t *testing.T) {
	t.Parallel()
	p := newProcess(t, "p", historymem.New())
	x, w := p.begin(t, "r", machine.HostMediated, "a", "b")
	var seqs []int64
	nested := 0
	note := func(told run.News) {
		for _, r := range told.Records {
			seqs = append(seqs, r.Seq)
		}
	}
	x.Tell(func(told run.News) {
		if nested++; nested == 1 {
			if err := x.Apply(t.Context(), outcome("a"), w); err != nil {
				t.Error(err)
			}
			x.Tell(func(run.News) { t.Error("told by two at a time") })
		}
		note(told)
	})
	if err := x.Apply(t.Context(), outcome("b"), w); err != nil {
		t.Fatal(err)
	}
	var lines []string
	x.Tell(func(told run.News) {
		note(told)
		for _, l := range told.Lines {
			lines = append(lines, l.Message)
		}
	})
	want := make([]int64, x.Seq())
	for i := range want {
		want[i] = int64(i + 1)
	}
	if !slices.Equal(seqs, want) || nested != 2 {
		t.Errorf("told %v in %d commits, want %v", seqs, nested, want)
	}
	if !slices.Equal(lines, []string{run.LogRunEnded}) {
		t.Errorf("lines %q", lines)
	}
}

// TestATreeHasItsLimits: a subworkflow beyond the limit of runs, or nested too deep, is not begun; one that was not begun after all does not
// count.
func TestATreeHasItsLimits(t *testing.T) {
	t.Parallel()
	env := work.Env{Store: historymem.New(), Now: time.Now, Log: slog.New(slog.DiscardHandler)}
	b := &run.TreeBudget{Env: env, Limits: run.TreeLimits{Runs: 2}.WithDefaults(run.TreeLimits{}), Depth: 2}
	done, err := b.Begin(t.Context(), "r:sub:a", 0)
	if err != nil {
		t.Fatal(err)
	}
	other, err := b.Begin(t.Context(), "r:sub:b", 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Begin(t.Context(), "r:sub:c", 0); !errors.Is(err, problem.TreeLimitExceeded) {
		t.Errorf("a third: %v", err)
	}
	if _, err := b.Begin(t.Context(), "q:sub:c", 2); !errors.Is(err, problem.SubworkflowDepthExceeded) {
		t.Errorf("too deep: %v", err)
	}
	done()
	if again, err := b.Begin(t.Context(), "r:sub:c", 0); err != nil {
		t.Errorf("after one was not begun: %v", err)
	} else {
		again()
	}
	other()
}
