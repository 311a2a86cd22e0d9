package work_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// executor performs activities with a function.
type executor func(ctx context.Context, req activities.Request) (activities.Result, error)

func (e executor) Execute(ctx context.Context, req activities.Request) (activities.Result, error) {
	return e(ctx, req)
}

// instant is an executor that answers at once for nodes whose id begins with "i".
type instant struct{ executor }

func (instant) Capabilities(n activities.Node) activities.Capabilities {
	return activities.Capabilities{Immediate: strings.HasPrefix(n.ID, "i")}
}

// runs notes what a Performer tells the runs of its attempts.
type runs struct {
	work.Runs
	mu    sync.Mutex
	beats []work.Heartbeat
}

func (r *runs) Alive(h work.Heartbeat) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beats = append(r.beats, h)
}

func newPerformer(t *testing.T, e activities.Executor) (*work.Performer, *runs) {
	r := &runs{}
	env := work.Env{Now: time.Now, Log: slog.New(slog.DiscardHandler), Go: func(f func()) { go f() }, Context: t.Context()}
	return &work.Performer{Env: env, Activities: e, MaxBytes: 1000, Runs: r, Turns: work.NewQueue(env, nil, 0), InFlight: work.InFlight{Log: env.Log}}, r
}

// attempt is an attempt of a tool_call node.
func attempt(ctx context.Context, node string, change ...func(*machine.ActivityEffect)) *work.Attempt {
	e := &machine.ActivityEffect{
		EffectBase: machine.EffectBase{EffectKey: node + "#1.1", NodeID: node, Visit: 1, Attempt: 1, State: map[string]any{"n": 1.0}},
		NodeType:   "tool_call", Config: map[string]any{"server": "x", "tool": node},
	}
	for _, c := range change {
		c(e)
	}
	return work.NewAttempt(ctx, e, machine.Config{}, false)
}

// TestWhatAnExecutorReturnsBecomesAnOutcome, under the key of its attempt: also a panic, and what cannot be recorded.
func TestWhatAnExecutorReturnsBecomesAnOutcome(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		executor executor
		ok       bool
		code     problem.Code
		contains string
	}{
		"a result": {func(context.Context, activities.Request) (activities.Result, error) {
			return activities.Result{Output: map[string]any{"x": 1}}, nil
		}, true, "", ""},
		"a failure": {func(context.Context, activities.Request) (activities.Result, error) {
			return activities.Result{}, &activities.Failure{Code: "BROKEN", Message: "no luck"}
		}, false, "BROKEN", "no luck"},
		"an error": {func(context.Context, activities.Request) (activities.Result, error) {
			return activities.Result{}, errors.New("no luck")
		}, false, "", "no luck"},
		"a panic": {func(context.Context, activities.Request) (activities.Result, error) { panic("oh") }, false, "", "oh"},
		"no JSON": {func(context.Context, activities.Request) (activities.Result, error) {
			return activities.Result{Output: map[string]any{"x": make(chan int)}}, nil
		}, false, problem.ActivityOutputInvalid, ""},
		"a large output": {func(context.Context, activities.Request) (activities.Result, error) {
			return activities.Result{Output: map[string]any{"x": strings.Repeat("x", 2000)}}, nil
		}, false, problem.ActivityOutputTooLarge, "1000"},
		"a changed state": {func(_ context.Context, r activities.Request) (activities.Result, error) {
			r.State()["n"] = 2.0
			return activities.Result{Output: r.State()}, nil
		}, true, "", ""},
	} {
		p, _ := newPerformer(t, c.executor)
		a := attempt(t.Context(), "a")
		in, ok := p.Perform("r", a)
		out, is := in.(machine.Outcome)
		if !ok || !is || out.Key != a.Key || out.OK != c.ok || c.code != "" && out.Code != string(c.code) || !strings.Contains(out.Error, c.contains) {
			t.Errorf("%s: %+v, %v", name, in, ok)
		}
		if n := a.Effect.(*machine.ActivityEffect).State["n"]; n != 1.0 {
			t.Errorf("%s: an executor has changed the state of the run to %v", name, n)
		}
	}
	p, _ := newPerformer(t, nil)
	if in, _ := p.Perform("r", attempt(t.Context(), "a")); in.(machine.Outcome).Code != string(problem.ExecutorNotConfigured) {
		t.Errorf("without an executor: %+v", in)
	}
}

// TestAnUnwantedFailureIsDropped; a result that comes all the same is not. At the deadline the executor's context ends with a TIMEOUT.
func TestAnUnwantedFailureIsDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		result := activities.Result{}
		p, _ := newPerformer(t, executor(func(ctx context.Context, _ activities.Request) (activities.Result, error) {
			<-ctx.Done()
			if result.Output != nil {
				return result, nil
			}
			return result, context.Cause(ctx)
		}))
		for _, output := range []any{nil, map[string]any{"x": true}} {
			result.Output = output
			a := attempt(t.Context(), "a")
			time.AfterFunc(time.Second, func() { a.Cancel(work.ErrUnwanted) })
			if in, ok := p.Perform("r", a); ok != (output != nil) {
				t.Errorf("output %v: %+v", output, in)
			}
		}
		result.Output = nil
		begun := time.Now()
		late := attempt(t.Context(), "a", func(e *machine.ActivityEffect) { e.Deadline = begun.Add(time.Minute) })
		in, ok := p.Perform("r", late)
		if out, _ := in.(machine.Outcome); !ok || out.Code != string(problem.Timeout) || time.Since(begun) != time.Minute || !late.Late(time.Now()) {
			t.Errorf("after %v: %+v", time.Since(begun), in)
		}
	})
}

// TestHeartbeatsReachTheRun: with the place of the attempt, and with details that the executor may change afterwards.
func TestHeartbeatsReachTheRun(t *testing.T) {
	t.Parallel()
	p, r := newPerformer(t, executor(func(_ context.Context, req activities.Request) (activities.Result, error) {
		details := map[string]any{"done": 1}
		req.Heartbeat(details)
		details["done"] = 2
		return activities.Result{Output: map[string]any{}}, nil
	}))
	p.Perform("r", attempt(t.Context(), "a"))
	if len(r.beats) != 1 || r.beats[0].ExecutionID != "r" || r.beats[0].NodeID != "a" || r.beats[0].Attempt != 1 || r.beats[0].Details["done"] != 1 {
		t.Errorf("%+v", r.beats)
	}
}

// TestAnExecutorThatLacksANodeIsNotCalledForAWhile: its answer is not recorded in a run that was not started here, and the node counts as
// missing until the pause is over.
func TestAnExecutorThatLacksANodeIsNotCalledForAWhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, _ := newPerformer(t, executor(func(context.Context, activities.Request) (activities.Result, error) { return activities.Result{}, nil }))
		lacks := machine.Outcome{Code: string(problem.HandlerNotFound)}
		here := attempt(t.Context(), "a")
		here.StartedHere = true
		if p.LeftToOthers("r", here, lacks) {
			t.Error("a run that was started here has to hear of it")
		}
		if p.LeftToOthers("r", attempt(t.Context(), "a"), machine.Outcome{Code: "OTHER"}) || !p.LeftToOthers("r", attempt(t.Context(), "a"), lacks) {
			t.Error("only an outcome that says that the executor lacks the node is left to others")
		}
	})
}

// poolRun is the run of a Pool. It notes who performs what at the same time.
type poolRun struct {
	performer *work.Performer
	mu        sync.Mutex
	held      int
	done      []string
	next      map[string][]*work.Attempt
}

func (r *poolRun) Hold() (drop func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held++
	return func() { r.mu.Lock(); defer r.mu.Unlock(); r.held-- }
}

func (r *poolRun) Perform(a *work.Attempt) []*work.Attempt {
	_, ok := r.performer.Perform("r", a)
	return r.end(a, fmt.Sprintf("%s %v", a.Key, ok))
}

func (r *poolRun) Exited(a *work.Attempt) []*work.Attempt { return r.end(a, a.Key+" exited") }

func (r *poolRun) end(a *work.Attempt, what string) []*work.Attempt {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done = append(r.done, what)
	return r.next[a.Key]
}

// TestAPoolPerformsInOrderWhatIsAnsweredAtOnce, beside what takes time, and goes on after an executor that has ended its goroutine. The run is
// held until all is done.
func TestAPoolPerformsInOrderWhatIsAnsweredAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, _ := newPerformer(t, instant{func(_ context.Context, req activities.Request) (activities.Result, error) {
			switch req.NodeID {
			case "slow":
				time.Sleep(time.Second)
			case "exits":
				time.Sleep(2 * time.Second)
				runtime.Goexit()
			}
			return activities.Result{Output: map[string]any{}}, nil
		}})
		r := &poolRun{performer: p, next: map[string][]*work.Attempt{
			"i2#1.1":    {attempt(t.Context(), "i4")},
			"exits#1.1": {attempt(t.Context(), "i5")},
		}}
		pool := &work.Pool{Performer: p, ExecutionID: "r", Run: r}
		pool.Begin([]*work.Attempt{attempt(t.Context(), "exits"), attempt(t.Context(), "slow"), attempt(t.Context(), "i1"), attempt(t.Context(), "i2"), attempt(t.Context(), "i3")})
		time.Sleep(time.Minute)
		synctest.Wait()
		want := []string{"i1#1.1 true", "i2#1.1 true", "i3#1.1 true", "i4#1.1 true", "slow#1.1 true", "exits#1.1 exited", "i5#1.1 true"}
		if !slices.Equal(r.done, want) || r.held != 0 {
			t.Errorf("%q, want %q; held %d times", r.done, want, r.held)
		}
	})
}

// TestADrainedProcessBeginsNothing: the channel is closed once the last attempt has ended; what hangs is named.
func TestADrainedProcessBeginsNothing(t *testing.T) {
	t.Parallel()
	p, _ := newPerformer(t, nil)
	a := attempt(t.Context(), "a")
	if !p.InFlight.Begin("r", a) {
		t.Fatal("not begun")
	}
	drained := p.InFlight.Drain()
	if p.InFlight.Begin("r", attempt(t.Context(), "b")) || !p.InFlight.Draining() {
		t.Error("a process that drains begins an attempt")
	}
	if err := p.InFlight.Hanging(time.Second); !errors.Is(err, problem.RunnerClosed) || !strings.Contains(err.Error(), `run "r" node "a" attempt 1`) {
		t.Errorf("%v", err)
	}
	select {
	case <-drained:
		t.Error("drained while an attempt is in flight")
	default:
	}
	p.InFlight.End(a)
	<-drained
}
