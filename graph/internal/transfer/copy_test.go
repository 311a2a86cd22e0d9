package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/internal/transfer"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/history/historypg"
	"github.com/workflows-engine/workflows-engine/history/historypg/pgtest"
	"github.com/workflows-engine/workflows-engine/history/historysql"
)

// family is a workflow that awaits a subworkflow, which asks.
func family(t *testing.T) (parent *definition.Document, resolve resolver) {
	t.Helper()
	child := workflow(t, "child", []string{startNode(), interrupt("ask"), endNode()}, "s ask", "ask e")
	parent = workflow(t, "parent", []string{startNode(), subworkflow("v", "child"), endNode()}, "s v", "v e")
	return parent, func(string, string) (*definition.Document, error) { return child, nil }
}

// source is a store with a completed run, a cancelled one, one that waits for a host, and a tree that waits for an answer.
func source(t *testing.T, store history.Store) {
	t.Helper()
	parent, resolve := family(t)
	r, err := graph.New(store, graph.Options{Workflows: resolve, DefaultMode: machine.HostMediated})
	if err != nil {
		t.Fatal(err)
	}
	start(t, r, "done", linear(t, "one", "a"), object{"n": 1})
	submit(t, r, "done", "a", object{"r": 1})
	start(t, r, "gone", linear(t, "one", "a"), object{"n": 2})
	if _, err := r.Cancel(t.Context(), graph.CancelRequest{ExecutionID: "gone", Reason: "enough"}); err != nil {
		t.Fatal(err)
	}
	start(t, r, "waits", linear(t, "two", "a", "b"), object{"n": 3})
	submit(t, r, "waits", "a", object{"r": 2})
	start(t, r, "tree", parent, object{})
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

// finish answers what the moved runs wait for, and requires that they complete.
func finish(t *testing.T, store history.Store) {
	t.Helper()
	_, resolve := family(t)
	r := newRunner(t, store, graph.Options{Workflows: resolve, DefaultMode: machine.HostMediated})
	submit(t, r, "waits", "b", object{"r": 3})
	run, err := r.Status(t.Context(), graph.StatusRequest{ExecutionID: "tree:sub:v"})
	if err != nil || len(run.Pending) != 1 {
		t.Fatalf("%+v, %v", run, err)
	}
	if _, err := r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "tree:sub:v", InterruptID: run.Pending[0].ID, Payload: object{"ok": true}}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Recover(t.Context(), graph.RecoverRequest{}); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]history.Phase{
		"done": history.PhaseCompleted, "gone": history.PhaseCancelled, "waits": history.PhaseCompleted, "tree": history.PhaseCompleted, "tree:sub:v": history.PhaseCompleted,
	} {
		if e, err := store.Execution(t.Context(), id); err != nil || e.Phase != want {
			t.Errorf("%s: %s, %v, want %s", id, e.Phase, err, want)
		}
	}
}

func copyRuns(ctx context.Context, from, to history.Store) (*transfer.CopyResult, error) {
	return transfer.Copy(ctx, from, to, transfer.CopyOptions{Target: "elsewhere"})
}

// A copy has every run with its records. Active runs continue in the target and have ended in the source, without an effect on anything outside.
func TestCopy(t *testing.T) {
	t.Parallel()
	from, to := historymem.New(), historymem.New()
	source(t, from)
	before := map[string]int{}
	for _, id := range []string{"done", "gone", "waits", "tree", "tree:sub:v"} {
		before[id] = len(records(t, from, id))
	}
	for round := range 2 {
		res, err := copyRuns(t.Context(), from, to)
		if err != nil || res.Runs != 5 || res.Moved != 3 || len(res.Left)+len(res.Source)+len(res.Target) > 0 || res.Existed != 5*round || res.Definitions != 4*(1-round) {
			t.Fatalf("round %d: %+v, %v", round, res, err)
		}
		for id, n := range before {
			there, here := records(t, to, id), records(t, from, id)
			if len(there) != n {
				t.Errorf("%s has %d records in the target, want %d", id, len(there), n)
			}
			if e := history.Project(id, here); !e.Phase.Terminal() {
				t.Errorf("%s is still %s in the source", id, e.Phase)
			}
			if moved := len(here) > n; moved != (id != "done" && id != "gone") || moved && !strings.Contains(here[n].Payload.Reason, "moved by store copy to elsewhere") {
				t.Errorf("%s: %d records in the source, %d before", id, len(here), n)
			}
		}
	}
	finish(t, to)
	if res, err := copyRuns(t.Context(), from, to); err != nil || res.Existed != 5 || len(res.Left) > 0 {
		t.Errorf("after the runs have continued: %+v, %v", res, err)
	}
}

// A copy that fails at any write, before it or after it, is completed by the next one: each run is active in one store at most, and none is lost.
func TestCopyThatIsInterruptedAnywhere(t *testing.T) {
	t.Parallel()
	memory := func(*testing.T) history.Store { return historymem.New() }
	for name, tt := range map[string]struct {
		from, to func(*testing.T) history.Store
		// step is the distance of the writes that fail.
		step int
	}{
		"in memory":               {memory, memory, 1},
		"from file to server":     {inFile, onServer, 4},
		"from server to file":     {onServer, inFile, 4},
		"from file to file":       {inFile, inFile, 5},
		"from a server to itself": {onServer, onServer, 7},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			interruptCopies(t, tt.from, tt.to, tt.step)
		})
	}
}

func inFile(t *testing.T) history.Store {
	t.Helper()
	s, err := historysql.Open(t.Context(), filepath.Join(t.TempDir(), "runs.db"), historysql.Options{})
	return closing(t, s, err)
}

func onServer(t *testing.T) history.Store {
	t.Helper()
	s, err := historypg.Open(t.Context(), pgtest.Shared(t).URL(), historypg.Options{Schema: pgtest.Schema(t), Conns: 3, NoNotify: true})
	return closing(t, s, err)
}

func closing[S history.Store](t *testing.T, s S, err error) history.Store {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func interruptCopies(t *testing.T, openFrom, openTo func(*testing.T) history.Store, step int) {
	for _, after := range []bool{false, true} {
		for n := 1; ; n += step {
			from, to := openFrom(t), openTo(t)
			source(t, from)
			c := &breaks{at: n, after: after}
			_, err := copyRuns(t.Context(), breaking{from, c}, breaking{to, c})
			for _, id := range []string{"waits", "tree", "tree:sub:v"} {
				here, err := from.Execution(t.Context(), id)
				there, missing := to.Execution(t.Context(), id)
				if err != nil || !here.Phase.Terminal() && missing == nil && !there.Phase.Terminal() {
					t.Fatalf("write %d, after %v: %s is active in both stores (%v)", n, after, id, err)
				}
			}
			if err == nil {
				if n < 12 {
					t.Errorf("a copy has fewer than %d writes", n)
				}
				break
			}
			if !errors.Is(err, errBroken) {
				t.Fatalf("write %d, after %v: %v", n, after, err)
			}
			res, err := copyRuns(t.Context(), from, to)
			if err != nil || res.Runs != 5 || res.Moved != 3 || len(res.Left)+len(res.Source)+len(res.Target) > 0 {
				t.Fatalf("write %d, after %v: %+v, %v", n, after, res, err)
			}
			finish(t, to)
		}
	}
}

// Shared limits are copied, and those of the target stay.
func TestCopyOfSharedLimits(t *testing.T) {
	t.Parallel()
	from, to := historymem.New(), historymem.New()
	set := func(s history.Limiter, limits ...history.SharedLimit) {
		if err := s.SetLimits(t.Context(), limits...); err != nil {
			t.Fatal(err)
		}
	}
	set(from, history.SharedLimit{Class: "step", Concurrent: 3}, history.SharedLimit{Class: "llm_call", PerSecond: 150})
	set(to, history.SharedLimit{Class: "step", Concurrent: 5})
	if res, err := copyRuns(t.Context(), from, to); err != nil || len(res.Left) > 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	limits, err := to.SharedLimits(t.Context())
	if err != nil || len(limits) != 2 || limits[0].PerSecond != 150 || limits[1].Concurrent != 5 {
		t.Errorf("%+v, %v", limits, err)
	}
}

// Runs that a live process drives are left as they are, and so are runs that differ from the target's.
func TestCopyLeavesRuns(t *testing.T) {
	t.Parallel()
	from, to := historymem.New(), historymem.New()
	source(t, from)
	if err := from.Renew(t.Context(), "worker", time.Minute); err != nil {
		t.Fatal(err)
	}
	if claimed, err := from.Claim(t.Context(), "worker", "tree:sub:v"); err != nil || len(claimed) != 1 {
		t.Fatal(claimed, err)
	}
	start(t, newRunner(t, to, graph.Options{DefaultMode: machine.HostMediated}), "waits", linear(t, "one", "a"), object{})
	before := len(records(t, from, "waits"))
	res, err := copyRuns(t.Context(), from, to)
	if err != nil || res.Runs != 2 || res.Moved != 0 || len(res.Left) != 2 {
		t.Fatalf("%+v, %v", res, err)
	}
	for _, l := range res.Left {
		want := problem.LeaseHeld
		if l.ExecutionID == "waits" {
			want = problem.DuplicateExecutionID
		}
		if !errors.Is(l.Err, want) {
			t.Errorf("%s: %v, want %s", l.ExecutionID, l.Err, want)
		}
	}
	if n := len(records(t, from, "waits")); n != before {
		t.Errorf("the source has %d records, %d before", n, before)
	}
	if o, err := from.Owner(t.Context(), "tree"); err != nil || o.Process != "" {
		t.Errorf("the rest of the tree is owned: %+v, %v", o, err)
	}
}

// An active run continues in exactly one store: a copy to a second target leaves the runs that have moved to the first one, a copy back leaves
// those that came from there, and a store that is source and target stays as it is.
func TestCopyContinuesARunOnce(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) history.Store{
		"memory": func(*testing.T) history.Store { return historymem.New() }, "file": inFile, "server": onServer,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, second, third := open(t), open(t), open(t)
			source(t, first)
			active := func(s history.Store) (n int) {
				for _, id := range []string{"waits", "tree", "tree:sub:v"} {
					if e, err := s.Execution(t.Context(), id); err == nil && !e.Phase.Terminal() {
						n++
					}
				}
				return n
			}
			into := func(from, to history.Store, target string, left int) {
				t.Helper()
				res, err := transfer.Copy(t.Context(), from, to, transfer.CopyOptions{Target: target})
				if err != nil || len(res.Left) != left || len(res.Source)+len(res.Target) > 0 {
					t.Fatalf("%+v, %v", res, err)
				}
				for _, l := range res.Left {
					if !errors.Is(l.Err, problem.DuplicateExecutionID) || !strings.Contains(l.Err.Error(), "moved by store copy to second") {
						t.Errorf("%s: %v", l.ExecutionID, l.Err)
					}
				}
			}
			if _, err := transfer.Copy(t.Context(), first, first, transfer.CopyOptions{Target: "itself"}); !errors.Is(err, problem.UsageError) || active(first) != 3 {
				t.Fatalf("to itself: %v, %d runs are active", err, active(first))
			}
			into(first, second, "second", 0)
			into(first, second, "second by another name", 0)
			into(first, third, "third", 2)
			into(second, first, "first", 2)
			if a, b, c := active(first), active(second), active(third); a != 0 || b != 3 || c != 0 {
				t.Errorf("%d, %d and %d runs are active", a, b, c)
			}
			finish(t, second)
		})
	}
}

var errBroken = errors.New("broken")

// breaks fails one write, before or after it is done, and all that follow: the process was killed.
type breaks struct {
	n, at int
	after bool
}

func (b *breaks) write(do func() error) error {
	b.n++
	switch {
	case b.n < b.at:
		return do()
	case b.n == b.at && b.after:
		if err := do(); err != nil {
			return err
		}
	}
	return fmt.Errorf("write %d: %w", b.n, errBroken)
}

type breaking struct {
	history.Store
	*breaks
}

func (b breaking) Append(ctx context.Context, batch history.Batch) error {
	return b.write(func() error { return b.Store.Append(ctx, batch) })
}

func (b breaking) PutDefinition(ctx context.Context, d history.StoredDefinition) error {
	return b.write(func() error { return b.Store.PutDefinition(ctx, d) })
}

func (b breaking) Renew(ctx context.Context, process string, ttl time.Duration) error {
	return b.write(func() error { return b.Store.Renew(ctx, process, ttl) })
}

func (b breaking) Claim(ctx context.Context, process string, ids ...string) (claimed []string, err error) {
	err = b.write(func() (err error) { claimed, err = b.Store.Claim(ctx, process, ids...); return err })
	return claimed, err
}

func (b breaking) Import(ctx context.Context, in history.Import) error {
	return b.write(func() error { return b.Store.(history.Importer).Import(ctx, in) })
}
