package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
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
	"github.com/workflows-engine/workflows-engine/history/historytest"
	"github.com/workflows-engine/workflows-engine/internal/processid"
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
	before, sum := map[string]int{}, 0
	for _, id := range []string{"done", "gone", "waits", "tree", "tree:sub:v"} {
		before[id] = len(records(t, from, id))
		sum += before[id]
	}
	for round := range 2 {
		res, err := copyRuns(t.Context(), from, to)
		all := transfer.CopyCounts{Runs: 5, Records: sum, Definitions: 4}
		want := transfer.CopyResult{Copied: all, Moved: 3}
		if round > 0 {
			want = transfer.CopyResult{Existed: all}
		}
		if err != nil || !reflect.DeepEqual(*res, want) {
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
			if moved := len(here) > n; moved != (id != "done" && id != "gone") || moved && !strings.Contains(here[n].Payload.Reason, "moved by db copy to elsewhere") {
				t.Errorf("%s: %d records in the source, %d before", id, len(here), n)
			}
		}
	}
	finish(t, to)
	if res, err := copyRuns(t.Context(), from, to); err != nil || res.Existed.Runs != 5 || res.Copied.Runs != 0 || len(res.Left) > 0 {
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
			if err != nil || res.Copied.Runs+res.Existed.Runs != 5 || len(res.Left)+len(res.Source)+len(res.Target) > 0 {
				t.Fatalf("write %d, after %v: %+v, %v", n, after, res, err)
			}
			finish(t, to)
		}
	}
}

// Shared limits are copied, and those of the target stay.
// TestAKilledCopyIsRepeated: a copy that was killed while it held the runs of a tree does not keep the next one from them.
func TestAKilledCopyIsRepeated(t *testing.T) {
	t.Parallel()
	ended := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	own := processid.Own()
	if own == "" {
		t.Skip("this system does not tell which processes have ended")
	}
	gone := strings.Replace(own, fmt.Sprintf("p%d.", os.Getpid()), fmt.Sprintf("p%d.", ended.Process.Pid), 1)
	from, to := historymem.New(), historymem.New()
	source(t, from)
	killed := "store-copy-x/" + gone
	if err := from.Renew(t.Context(), killed, time.Hour); err != nil {
		t.Fatal(err)
	}
	if claimed, err := from.Claim(t.Context(), killed, "waits", "tree", "tree:sub:v"); err != nil || len(claimed) != 3 {
		t.Fatal(claimed, err)
	}
	if res, err := copyRuns(t.Context(), from, to); err != nil || len(res.Left) > 0 || res.Moved != 3 {
		t.Errorf("%+v, %v", res, err)
	}
	finish(t, to)
}

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
	for round := range 2 {
		res, err := copyRuns(t.Context(), from, to)
		if err != nil || res.Copied.Limits != 1-round || res.Existed.Limits != round || !slices.Equal(res.KeptLimits, []string{"step"}) {
			t.Fatalf("round %d: %+v, %v", round, res, err)
		}
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
	if err != nil || res.Copied.Runs != 2 || res.Moved != 0 || len(res.Left) != 2 {
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
					if !errors.Is(l.Err, problem.DuplicateExecutionID) || !strings.Contains(l.Err.Error(), "moved by db copy to second") {
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

// attachments is a store with a failed run, its retry, which has completed, a mark, keys, and deliveries that were sent, wait and are being sent.
func attachments(t *testing.T, store history.Store) {
	t.Helper()
	fails := historytest.NewTrace(t, "fails")
	const begun = `E ExecutionStarted {"workflowName":"w"}` // of another engine: there is no definition to compare it with
	fails.Append(store, begun)
	end := fails.Batch(`E ExecutionFailed {"error":"x","code":"X"}`)
	end.Deliveries = historytest.Delivers("evt", `{"n":1}`, historytest.Begin, "sent", "waits", "begun")
	retry := historytest.NewTrace(t, "retry").Batch(`E ExecutionStarted {"workflowName":"w","forkedFrom":{"executionId":"fails","seq":1}}`, "E ExecutionCompleted")
	retry.Link = &history.Link{From: "fails", To: "retry", Kind: history.Retried, Seq: 2, Actor: "kim", At: historytest.Begin}
	marked := historytest.NewTrace(t, "marked")
	marked.Append(store, begun, `E ExecutionFailed {"error":"x","code":"X"}`)
	claim := func(id string, attempt int) history.DeliveryClaim {
		return history.DeliveryClaim{DeliveryID: id, Attempt: attempt, Process: "p", TTL: time.Hour, At: historytest.Begin}
	}
	settle := func(id string, outcome history.SendOutcome, state history.DeliveryState, step int) error {
		if _, _, err := store.ClaimDelivery(t.Context(), claim(id, 1)); err != nil {
			return err
		}
		return store.SettleDelivery(t.Context(), history.Settlement{DeliveryID: id, Attempt: 1, At: historytest.Begin, Receipt: history.Receipt{Outcome: outcome}, State: state, Due: historytest.Begin, Step: step})
	}
	_, keyErr := store.(history.Keyring).Key(t.Context(), "elicit")
	for _, err := range []error{
		store.Append(t.Context(), end), store.Append(t.Context(), retry), keyErr,
		store.Handle(t.Context(), history.Handling{ExecutionID: "marked", Note: "seen", Actor: "kim", At: historytest.Begin}),
		settle("evt-sent", history.Sent, history.DeliveryDone, 0), settle("evt-waits", history.SendAgain, history.DeliveryPending, 1),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, claimed, err := store.ClaimDelivery(t.Context(), claim("evt-begun", 1)); err != nil || !claimed {
		t.Fatal(claimed, err)
	}
}

// states lists deliveries with their states and attempts.
func states(t *testing.T, store history.Store) map[string]string {
	t.Helper()
	page, err := store.ListDeliveries(t.Context(), history.DeliveryQuery{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, d := range page.Deliveries {
		out[d.ID] = fmt.Sprintf("%s %d/%d", d.State, d.Attempts, len(d.Tries))
	}
	return out
}

// TestCopyOfWhatBelongsToRuns: links, marks, keys and deliveries are copied. A pending delivery is sent by the target alone, one that a process of
// the source sends by that process alone.
func TestCopyOfWhatBelongsToRuns(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) history.Store{
		"memory": func(*testing.T) history.Store { return historymem.New() }, "file": inFile, "server": onServer,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, to := open(t), open(t)
			attachments(t, from)
			all := transfer.CopyCounts{Runs: 3, Records: 6, Deliveries: 2, Links: 1, Keys: 1}
			for round, want := range []transfer.CopyResult{{Copied: all, PendingDeliveries: 1}, {Existed: all, PendingDeliveries: 1}} {
				res, err := copyRuns(t.Context(), from, to)
				if err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(*res, want) {
					t.Fatalf("round %d: %+v, want %+v", round, res, want)
				}
			}
			if here, want := states(t, from), map[string]string{"evt-sent": "delivered 1/1", "evt-waits": "moved 2/2", "evt-begun": "pending 1/1"}; !maps.Equal(here, want) {
				t.Errorf("the source has %v, want %v", here, want)
			}
			if there, want := states(t, to), map[string]string{"evt-sent": "delivered 1/1", "evt-waits": "pending 1/1"}; !maps.Equal(there, want) {
				t.Errorf("the target has %v, want %v", there, want)
			}
			links, err := to.Links(t.Context(), "fails")
			if err != nil || len(links) != 1 || links[0].To != "retry" || links[0].Actor != "kim" || links[0].Phase != history.PhaseCompleted {
				t.Errorf("links %+v, %v", links, err)
			}
			marks, err := to.Handled(t.Context(), "fails", "marked")
			if err != nil || marks["fails"].Retry != "retry" || marks["marked"].Note != "seen" {
				t.Errorf("marks %+v, %v", marks, err)
			}
			a, errA := from.(history.Keyring).Key(t.Context(), "elicit")
			b, errB := to.(history.Keyring).Key(t.Context(), "elicit")
			if !bytes.Equal(a, b) || errA != nil || errB != nil {
				t.Errorf("keys %x and %x, %v, %v", a, b, errA, errB)
			}
			third := open(t)
			if _, err := transfer.Copy(t.Context(), from, third, transfer.CopyOptions{Target: "third"}); err != nil {
				t.Fatal(err)
			}
			if got := states(t, third)["evt-waits"]; got != "moved 2/2" {
				t.Errorf("a third store has it as %s", got)
			}
			if _, err := transfer.Copy(t.Context(), to, from, transfer.CopyOptions{Target: "back"}); err != nil {
				t.Fatal(err)
			}
			if got := states(t, to)["evt-waits"]; got != "pending 1/1" {
				t.Errorf("after a copy back the target has it as %s", got)
			}
		})
	}
}

// TestCopyOfDeliveriesThatIsInterruptedAnywhere: a delivery is pending in one store at most, and the next copy completes what is missing.
func TestCopyOfDeliveriesThatIsInterruptedAnywhere(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		for n := 1; ; n++ {
			from, to := historymem.New(), historymem.New()
			attachments(t, from)
			c := &breaks{at: n, after: after}
			_, err := copyRuns(t.Context(), breaking{from, c}, breaking{to, c})
			if here, there := states(t, from)["evt-waits"], states(t, to)["evt-waits"]; strings.HasPrefix(here, "pending") == strings.HasPrefix(there, "pending") && there != "" {
				t.Fatalf("write %d, after %v: %s in the source, %s in the target", n, after, here, there)
			}
			if err == nil {
				break
			}
			// What the killed copy has claimed is free again after a while.
			if d := states(t, from)["evt-waits"]; d == "pending 2/2" {
				continue
			}
			if res, err := copyRuns(t.Context(), from, to); err != nil || len(res.Left) > 0 {
				t.Fatalf("write %d, after %v: %+v, %v", n, after, res, err)
			}
			if got := states(t, to)["evt-waits"]; got != "pending 1/1" {
				t.Fatalf("write %d, after %v: the target has it as %q", n, after, got)
			}
			if links, err := to.Links(t.Context(), "fails"); err != nil || len(links) != 1 {
				t.Fatalf("write %d, after %v: links %+v, %v", n, after, links, err)
			}
		}
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

func (b breaking) Attach(ctx context.Context, a history.Attachments) (added history.Attached, err error) {
	err = b.write(func() (err error) { added, err = b.Store.(history.Attacher).Attach(ctx, a); return err })
	return added, err
}

func (b breaking) Keys(ctx context.Context) (map[string][]byte, error) {
	return b.Store.(history.Attacher).Keys(ctx)
}

func (b breaking) ClaimDelivery(ctx context.Context, c history.DeliveryClaim) (d history.Delivery, claimed bool, err error) {
	err = b.write(func() (err error) { d, claimed, err = b.Store.ClaimDelivery(ctx, c); return err })
	return d, claimed, err
}

func (b breaking) SettleDelivery(ctx context.Context, s history.Settlement) error {
	return b.write(func() error { return b.Store.SettleDelivery(ctx, s) })
}
