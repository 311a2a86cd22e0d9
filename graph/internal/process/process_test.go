package process_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/internal/library"
	"github.com/workflows-engine/workflows-engine/graph/internal/process"
	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// executor performs activities. A node that hangs does so until its context ends.
type executor struct {
	hang  bool
	mu    sync.Mutex
	calls []string
}

func (e *executor) Execute(ctx context.Context, req activities.Request) (activities.Result, error) {
	e.mu.Lock()
	e.calls = append(e.calls, req.IdempotencyKey)
	e.mu.Unlock()
	if e.hang {
		<-ctx.Done()
		return activities.Result{}, context.Cause(ctx)
	}
	return activities.Result{Output: map[string]any{req.NodeID: true}}, nil
}

// configure changes a Config.
type configure func(*process.Config)

func performing(e activities.Executor) configure {
	return func(c *process.Config) { c.Activities = e }
}

// newProcess makes a process that is closed with the test.
func newProcess(t *testing.T, store history.Store, changes ...configure) *process.Process {
	t.Helper()
	p := open(store, changes...)
	t.Cleanup(func() {
		if err := p.Close(process.Closing{Limit: time.Minute}); err != nil {
			t.Error(err)
		}
	})
	return p
}

func open(store history.Store, changes ...configure) *process.Process {
	c := process.Config{
		Store: store, Log: slog.New(slog.DiscardHandler), Library: library.Options{MaxBytes: 1 << 20}, Requests: work.Requests{Omit: true},
		Limits: machine.Limits{MaxRecords: 1000, MaxBytes: 1 << 20, MaxPending: 100}, Tree: run.TreeLimits{}.WithDefaults(run.TreeLimits{}),
		MaxVisits: 1000, MaxDocumentBytes: 1 << 20, MaxDepth: 4, DefaultMode: machine.InProcess, LeaseTTL: 30 * time.Second,
	}
	for _, change := range changes {
		change(&c)
	}
	return process.New(c)
}

// begin starts a run of nodes and edges ("source target"), with a start node s and an end node e, as a call that has not been answered.
func begin(t *testing.T, p *process.Process, id string, mode machine.Mode, limit time.Duration, nodes []string, edges ...string) (*process.Call, *run.Run) {
	t.Helper()
	text := `{"document":{"schema":"urn:test","name":"w","version":"1"},"state_schema":{"type":"object"},"nodes":[{"id":"s","type":"start"},` +
		strings.Join(append(nodes, `{"id":"e","type":"end","config":{"output_mapping":"."}}`), ",") + `],"edges":[{"source":"__start__","target":"s"}`
	for _, e := range edges {
		from, to, _ := strings.Cut(e, " ")
		text += `,{"source":"` + from + `","target":"` + to + `"}`
	}
	doc, err := definition.Parse([]byte(text + "]}"))
	if err != nil {
		t.Fatal(err)
	}
	prog, err := p.Library.Admit(doc)
	if err != nil {
		t.Fatal(err)
	}
	x := p.Runs.Hold(id)
	t.Cleanup(func() { p.Runs.Drop(x) })
	c := p.Call(x, process.Wait{Limit: limit})
	err = c.Apply(t.Context(), func(w *run.Work) (bool, error) {
		config := machine.Config{ExecutionID: id, Mode: mode, Branches: machine.Concurrent, MaxVisits: 1000}
		return true, x.Begin(t.Context(), run.Beginning{Program: prog, Config: config, Input: map[string]any{}, StartedHere: true}, w)
	})
	if err != nil {
		t.Fatal(err)
	}
	return c, x
}

func tool(id string) string {
	return `{"id":"` + id + `","type":"tool_call","config":{"server":"x","tool":"` + id + `"}}`
}

// TestACallIsAnsweredOnceTheRunRests: what an outcome leads to is performed in the background, and the call waits for it.
func TestACallIsAnsweredOnceTheRunRests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &executor{}
		c, _ := begin(t, newProcess(t, historymem.New(), performing(e)), "r", machine.InProcess, time.Minute, []string{tool("a"), tool("b")}, "s a", "a b", "b e")
		v, err := c.Answer(t.Context())
		if err != nil || v.Status != machine.Completed || !slices.Equal(e.calls, []string{"r:a#1.1", "r:b#1.1"}) {
			t.Errorf("%+v, %v after %v", v, err, e.calls)
		}
	})
}

// TestACallThatLeadsToNothingLocksItsRunOnce: the answer is made where the input was applied, so it does not wait for who has the run next.
func TestACallThatLeadsToNothingLocksItsRunOnce(t *testing.T) {
	t.Parallel()
	store := historytest.NewFaultStore(historymem.New())
	c, x := begin(t, newProcess(t, store), "r", machine.HostMediated, time.Minute, []string{tool("a")}, "s a", "a e")
	x.Lock()
	defer x.Unlock()
	store.Set(historytest.Fault{Reads: true}) // count all calls
	v, err := c.Answer(t.Context())
	if err != nil || v.Status != machine.AwaitingActivity || len(v.Pending) != 1 || v.Pending[0].NodeID != "a" {
		t.Errorf("%+v, %v", v, err)
	}
	if made := store.Calls(); len(made) > 0 {
		t.Errorf("the answer takes %v of the store", made)
	}
}

// TestRecordsAreHandedOnInTheOrderOfTheRun: from several goroutines, and to a hook that uses the run itself. A panic in the hook is not the run's.
func TestRecordsAreHandedOnInTheOrderOfTheRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var p *process.Process
		var mu sync.Mutex
		var seqs []int64
		hook := func(c *process.Config) {
			c.OnRecord = func(id string, records []history.Record) {
				for _, r := range records {
					mu.Lock()
					seqs = append(seqs, r.Seq)
					mu.Unlock()
				}
				x := p.Runs.Hold(id)
				defer p.Runs.Drop(x)
				if _, err := p.View(context.Background(), x); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Millisecond)
				panic("the hook is at fault")
			}
		}
		p = newProcess(t, historymem.New(), performing(&executor{}), hook)
		nodes, edges := []string{`{"id":"f","type":"parallel","config":{"join":"all","branches":[{"name":"a","entry":"a"},{"name":"b","entry":"b"},{"name":"c","entry":"c"}]}}`}, []string{"s f", "f e"}
		for _, id := range []string{"a", "b", "c"} {
			nodes, edges = append(nodes, tool(id)), append(edges, id+" e")
		}
		c, x := begin(t, p, "r", machine.InProcess, time.Minute, nodes, edges...)
		if v, err := c.Answer(t.Context()); err != nil || v.Status != machine.Completed {
			t.Fatalf("%+v, %v", v, err)
		}
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if !slices.IsSorted(seqs) || int64(len(seqs)) != x.Seq() {
			t.Errorf("handed on %v of %d records", seqs, x.Seq())
		}
	})
}

// TestARunIsRecoveredByAnotherProcess: the survey of a process says what its recovery does, and writes nothing. An attempt is repeated under
// its key; a closed process leaves its runs at once.
func TestARunIsRecoveredByAnotherProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mem := historymem.New()
		first := newProcess(t, mem, performing(&executor{hang: true}))
		begin(t, first, "r", machine.InProcess, -1, []string{tool("a")}, "s a", "a e")
		synctest.Wait()
		store, e := historytest.NewFaultStore(mem), &executor{}
		second := newProcess(t, store, performing(e))
		found, err := second.SurveyAll(t.Context(), 10, true)
		if err != nil || len(found.ExecutionIDs) > 0 || len(found.Elsewhere) != 1 || found.Elsewhere[0].ExecutionID != "r" {
			t.Errorf("while the owner lives: %+v, %v", found, err)
		}
		if err := first.Close(process.Closing{Limit: time.Minute}); err != nil {
			t.Fatal(err)
		}
		if err := first.Enter(t.Context()); !errors.Is(err, problem.RunnerClosed) {
			t.Errorf("a call of the closed process: %v", err)
		}
		store.Set(historytest.Fault{Reads: true})
		for _, survey := range []func() (*process.SurveyResult, error){
			func() (*process.SurveyResult, error) { return second.SurveyAll(t.Context(), 10, true) },
			func() (*process.SurveyResult, error) { return second.SurveyRuns(t.Context(), "r", "unknown") },
		} {
			if found, err := survey(); err != nil || !slices.Equal(found.ExecutionIDs, []string{"r"}) {
				t.Errorf("%+v, %v", found, err)
			}
		}
		if made := store.Calls(); slices.Contains(made, "Append") || slices.Contains(made, "Claim") || !slices.Contains(made, "Execution") {
			t.Errorf("the surveys make the calls %v", made)
		}
		if found, err = second.Recover(t.Context(), 10); err != nil || !slices.Equal(found.ExecutionIDs, []string{"r"}) {
			t.Errorf("recovered %+v, %v", found, err)
		}
		synctest.Wait()
		if exec, err := mem.Execution(t.Context(), "r"); err != nil || exec.Phase != history.PhaseCompleted || !slices.Equal(e.calls, []string{"r:a#1.1"}) {
			t.Errorf("%s, %v after %v", exec.Phase, err, e.calls)
		}
	})
}

// TestATimerFiresInTheProcessThatSetIt: once it is due, without a call.
func TestATimerFiresInTheProcessThatSetIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t, historymem.New())
		c, x := begin(t, p, "r", machine.InProcess, time.Second, []string{`{"id":"w","type":"wait","config":{"kind":"duration","duration":"1h"}}`}, "s w", "w e")
		if v, err := c.Answer(t.Context()); err != nil || v.Status != machine.AwaitingTimer {
			t.Fatalf("%+v, %v", v, err)
		}
		time.Sleep(time.Hour + time.Second)
		synctest.Wait()
		if x.Lock(); !x.Ended() {
			t.Error("the run has not ended")
		}
		x.Unlock()
	})
}

// logHandler handles log records with a function.
type logHandler func(slog.Record)

func (f logHandler) Enabled(context.Context, slog.Level) bool { return true }
func (f logHandler) WithAttrs([]slog.Attr) slog.Handler       { return f }
func (f logHandler) WithGroup(string) slog.Handler            { return f }

func (f logHandler) Handle(_ context.Context, r slog.Record) error {
	f(r)
	return nil
}

// TestALogHandlerMayUseTheRun: the lines of failed attempts and of the end of a run are written outside of all locks, once each.
func TestALogHandlerMayUseTheRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var p *process.Process
		var lines []string
		log := func(c *process.Config) {
			c.Log = slog.New(logHandler(func(r slog.Record) {
				if r.Message == run.LogAttemptFailed || r.Message == run.LogRunEnded {
					lines = append(lines, r.Message)
					x := p.Runs.Hold("r")
					defer p.Runs.Drop(x)
					if _, err := p.View(context.Background(), x); err != nil {
						t.Error(err)
					}
				}
			}))
		}
		p = newProcess(t, historymem.New(), log, performing(failing{}))
		c, _ := begin(t, p, "r", machine.InProcess, time.Minute, []string{tool("a")}, "s a", "a e")
		if v, err := c.Answer(t.Context()); err != nil || v.Status != machine.Failed {
			t.Errorf("%+v, %v", v, err)
		}
		synctest.Wait()
		if want := []string{run.LogAttemptFailed, run.LogRunEnded}; !slices.Equal(lines, want) {
			t.Errorf("%q, want %q", lines, want)
		}
	})
}

// failing fails each attempt.
type failing struct{}

func (failing) Execute(context.Context, activities.Request) (activities.Result, error) {
	return activities.Result{}, errors.New("no luck")
}

// deaf does not stop when its context ends.
type deaf struct{}

func (deaf) Execute(context.Context, activities.Request) (activities.Result, error) {
	time.Sleep(time.Hour)
	return activities.Result{}, nil
}

// TestACloseThatTimesOutNamesTheAttempts by run and node, and no more than ten of them.
func TestACloseThatTimesOutNamesTheAttempts(t *testing.T) {
	t.Parallel()
	for _, runs := range []int{1, 25} {
		synctest.Test(t, func(t *testing.T) {
			p := open(historymem.New(), performing(deaf{}))
			for i := range runs {
				begin(t, p, fmt.Sprint("r", i), machine.InProcess, -1, []string{tool("a")}, "s a", "a e")
			}
			synctest.Wait()
			begun := time.Now()
			err := p.Close(process.Closing{Drain: 5 * time.Second, Limit: 10 * time.Second})
			if took := time.Since(begun); !errors.Is(err, problem.RunnerClosed) || took != 15*time.Second {
				t.Fatalf("after %v: %v", took, err)
			}
			text := err.Error()
			if named := strings.Count(text, "run \"r"); !strings.Contains(text, `run "r0" node "a" attempt 1`) || named != min(runs, 10) || strings.Contains(text, "and 15 more") != (runs == 25) {
				t.Error(text)
			}
			time.Sleep(2 * time.Hour)
		})
	}
}
