package graph_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/processid"
)

// TestARunOfAnEndedProcess: a run of a process of this machine goes on when the process has ended, by a call or an answer, though its lease
// lasts for an hour. An engine that only reads does not release the lease. That of a process of which nothing is known holds.
func TestARunOfAnEndedProcess(t *testing.T) {
	t.Parallel()
	id := strings.Split(processid.Own(), ".")
	if len(id) != 3 {
		t.Skip("this system does not tell which process has ended")
	}
	for _, c := range []struct {
		owner string
		ended bool
	}{{"worker/host:1/A/p999999999.1." + id[2], true}, {"worker/host:1/A/p999999999.1.another", false}} {
		synctest.Test(t, func(t *testing.T) {
			store := historymem.New()
			begin := newRunner(t, store, graph.Options{Activities: &script{answers: answers{"a": after(time.Hour, nil)}}})
			if _, err := begin.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: linear(t, "one", "a"), Wait: waitFor(0)}); err != nil {
				t.Fatal(err)
			}
			if _, err := begin.Start(t.Context(), graph.StartRequest{ExecutionID: "asked", Definition: asks(t, "asks"), Wait: waitFor(0)}); err != nil {
				t.Fatal(err)
			}
			if err := begin.Close(); err != nil {
				t.Fatal(err)
			}
			lives := func() bool {
				live, err := store.Processes(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return len(live) > 0 && live[len(live)-1].Name == c.owner
			}
			own := func() {
				if err := store.Renew(t.Context(), c.owner, time.Hour); err != nil {
					t.Fatal(err)
				}
				if claimed, err := store.Claim(t.Context(), c.owner, "r", "asked"); err != nil || len(claimed) == 0 {
					t.Fatal(claimed, err)
				}
			}
			own()
			reader := newRunner(t, store, graph.Options{Activities: &script{}, ReadOnly: true})
			found, err := reader.Survey(t.Context(), "r")
			if err != nil {
				t.Fatal(err)
			}
			if orphan := len(found.ExecutionIDs) == 1; orphan != c.ended || !lives() {
				t.Errorf("%s, read only: an orphan: %v, lease held: %v", c.owner, orphan, lives())
			}
			r := newRunner(t, store, graph.Options{Activities: &script{}})
			run, err := r.Drive(t.Context(), graph.DriveRequest{ExecutionID: "r", Caller: graph.Caller{Wait: waitFor(time.Minute)}})
			if err != nil || (run.Status == machine.Completed) != c.ended || lives() == c.ended {
				t.Errorf("%s: %v, %v; lease held: %v", c.owner, run.Status, err, lives())
			}
			own()
			run, err = r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "asked", Payload: object{"ok": true}})
			if err != nil || (run.Status == machine.Completed) != c.ended {
				t.Errorf("%s, an answer: %v, %v", c.owner, run.Status, err)
			}
		})
	}
}
