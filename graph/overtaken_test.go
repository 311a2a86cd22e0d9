package graph_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// interposed is a store in which something happens just before a call.
type interposed struct {
	history.Store
	mu             sync.Mutex
	append, locate func() error
}

// once takes a function out and calls it.
func (o *interposed) once(f *func() error) error {
	o.mu.Lock()
	do := *f
	*f = nil
	o.mu.Unlock()
	if do == nil {
		return nil
	}
	return do()
}

func (o *interposed) Append(ctx context.Context, b history.Batch) error {
	if err := o.once(&o.append); err != nil {
		return err
	}
	return o.Store.Append(ctx, b)
}

func (o *interposed) Position(ctx context.Context, id string) (int64, []byte, error) {
	if err := o.once(&o.locate); err != nil {
		return 0, nil, err
	}
	return o.Store.Position(ctx, id)
}

func goOn(t *testing.T, r *graph.Runner, ok bool) {
	t.Helper()
	_, err := r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", Payload: object{"ok": ok}, Caller: graph.Caller{Wait: waitFor(0)}})
	if err != nil {
		t.Fatal(err)
	}
}

// TestAStartThatAnotherProcessOvertakesClaimsNothing has a process begin a run while another one begins it too, and then
// answers it: what follows and is missing there is left to others.
func TestAStartThatAnotherProcessOvertakesClaimsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		d := workflow(t, "w", []string{startNode(), interrupt("i"), step("b", "two"), endNode()}, "s i", "i b", "b e")
		all := newRunner(t, store, equip(t, &script{}, "two"))
		slow := &interposed{Store: store, append: func() error {
			wantStatus(t, start(t, all, "r", d, nil), machine.Interrupted)
			return nil
		}}
		other := newRunner(t, slow, graph.Options{Activities: deficient{&script{}}})
		run, err := other.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: d, AllowExisting: true})
		if err != nil {
			t.Fatal(err)
		}
		wantStatus(t, run, machine.Interrupted)
		goOn(t, other, true)
		wantStatus(t, settled(t, all, "r"), machine.Completed)
	})
}

// TestWhoLoadsARunLearnsThatAnotherProcessHasWritten has another process answer a run in the moment in which the process that
// began it loads it again: what follows and is missing there is left to others.
func TestWhoLoadsARunLearnsThatAnotherProcessHasWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		d := workflow(t, "w", []string{startNode(), interrupt("i"), interrupt("j"), step("b", "two"), endNode()}, "s i", "i j", "j b", "b e")
		slow := &interposed{Store: store}
		first := newRunner(t, slow, graph.Options{Activities: deficient{&script{}}})
		wantStatus(t, start(t, first, "r", d, nil), machine.Interrupted)
		all := newRunner(t, store, equip(t, &script{}, "two"))
		done := make(chan struct{})
		go func() { // keeps what this process knows of the run
			defer close(done)
			_, err := first.Status(t.Context(), graph.StatusRequest{ExecutionID: "r", Wait: lookFor(time.Hour), Since: 1000})
			if err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		slow.append = func() error { return errDisk } // the machine is thrown away
		if _, err := first.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", Payload: object{"ok": true}, Caller: graph.Caller{Wait: waitFor(0)}}); err == nil {
			t.Fatal("recorded on a disk that is gone")
		}
		slow.locate = func() error { goOn(t, all, true); return nil }
		goOn(t, first, false)
		wantStatus(t, settled(t, all, "r"), machine.Completed)
		<-done
	})
}

// TestWhatIsMissingInARunThatWasLostIsLeft has the store fail while it is recorded that a run comes to what is missing where it
// began. The process loses the run; when it takes it over again, as any other might have, it leaves that to others.
func TestWhatIsMissingInARunThatWasLostIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		d := workflow(t, "w", []string{startNode(), fork("f", "all", "a", "b"), step("a", "one"), step("b", "two"), endNode()}, "s f", "f e", "a e", "b e")
		work := &script{answers: answers{"a": after(2*time.Minute, nil)}}
		first := newRunner(t, &flaky{Store: store, fails: 6}, graph.Options{Activities: deficient{work}, Work: graph.WorkAll})
		run, err := first.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: d, Wait: waitFor(time.Minute)})
		if err != nil {
			t.Fatal(err)
		}
		if wantStatus(t, run, machine.Running); work.count() != 2 {
			t.Fatalf("performed %v", work.keys())
		}
		all := newRunner(t, store, equip(t, &script{}, "two"))
		wantStatus(t, settled(t, all, "r"), machine.Completed)
	})
}

// TestADriverSaysWhatIsMissingOnceItIsDone asks a process that performs one branch what it lacks for the other: another process
// may have it, and comes to it when this one is done.
func TestADriverSaysWhatIsMissingOnceItIsDone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		bereft(t, store, besides(t))
		r := newRunner(t, store, equip(t, &script{answers: answers{"a": after(10*time.Minute, nil)}}, "one"))
		time.Sleep(5 * time.Minute)
		if l := status(t, r, "r").Lacks; l != nil {
			t.Errorf("at work, and lacks %+v", l)
		}
		time.Sleep(6 * time.Minute)
		if l := status(t, r, "r").Lacks; l == nil || l.NodeID != "b" {
			t.Errorf("done, and lacks %+v", l)
		}
	})
}

// TestATimerThatHasMovedIsNotFired has a process know the deadline of an attempt as it was before the attempt was performed again,
// by a process that has died since. It sees that the time is not over, and does not keep the run from those who can perform the
// attempt.
func TestATimerThatHasMovedIsNotFired(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		bereft(t, store, workflow(t, "w", []string{startNode(), step("a", "two", `"timeout":"10m"`), endNode()}, "s a", "a e"))
		watched := historytest.NewFaultStore(store)
		lone := newRunner(t, watched, equip(t, &script{}, "one"))
		done := waits(t, lone) // keeps what this process knows of the run
		time.Sleep(10*time.Minute + 20*time.Second)
		mortal := historytest.NewFaultStore(store)
		second := newRunner(t, mortal, equip(t, &script{answers: answers{"a": hang}}, "two"))
		time.Sleep(5 * time.Second)
		owner, err := store.Owner(t.Context(), "r")
		if err != nil || !owner.Live() {
			t.Fatalf("not taken up: %+v, %v", owner, err)
		}
		ends := time.Now().Add(owner.Left)
		kill(t, second, mortal)
		watched.Set(historytest.Fault{Reads: true})
		time.Sleep(time.Until(ends.Add(takeover - time.Second)))
		for range 40 {
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
			if now, err := store.Owner(t.Context(), "r"); err != nil || now.Process != owner.Process {
				t.Fatalf("the owner is %+v, and was %+v, %v", now, owner, err)
			}
		}
		if ws := writes(watched); len(ws) > 0 {
			t.Errorf("writes of a process that has nothing to do: %v", ws)
		}
		cancel(t, lone, "r", "")
		<-done
	})
}
