package graph_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// TestBlocksOfOlderReleasesGoOn: runs of releases in which a failed branch waited for the branches before it. A step has failed beside
// a question that is listed before it. They are verified without a finding, and go on as they began, also in a fork.
func TestBlocksOfOlderReleasesGoOn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		waiting bool
		warned  bool
		caught  bool
	}{
		"plain-waiting": {waiting: true, warned: true},
		"sign-waiting":  {waiting: true, caught: true},
		"plain-ended":   {},
		"sign-ended":    {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, err := os.ReadFile("testdata/joins/" + name + ".jsonl")
			if err != nil {
				t.Fatal(err)
			}
			store := historymem.New()
			imported, err := graph.Import(t.Context(), store, bytes.NewReader(file))
			if err != nil {
				t.Fatal(err)
			}
			id := imported.ExecutionID
			r := newRunner(t, store, graph.Options{DefaultMode: machine.HostMediated})
			verify := func() {
				t.Helper()
				if _, err := r.Verify(t.Context(), "", false, func(f history.Finding) { t.Errorf("verify: %+v", f) }); err != nil {
					t.Fatal(err)
				}
			}
			verify()
			if !c.waiting {
				return
			}
			run := status(t, r, id)
			wantStatus(t, run, machine.Interrupted)
			if warned(run, problem.RunWillFail) != "" != c.warned {
				t.Errorf("warnings %v", run.Warnings)
			}
			fork, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: id, NewExecutionID: "fork", Seq: run.Seq})
			if err != nil {
				t.Fatal(err)
			}
			for _, run := range []*graph.Run{run, fork} {
				id := run.ExecutionID
				run, err := r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: id, Payload: map[string]any{"ok": true}})
				if err != nil {
					t.Fatal(err)
				}
				if !c.caught {
					if run.Status != machine.Failed || run.ErrorCode != "FRAUD" {
						t.Errorf("%s: %s %s", id, run.Status, run.ErrorCode)
					}
					continue
				}
				wantStatus(t, run, machine.AwaitingActivity)
				wantStatus(t, submit(t, r, id, "repair", nil), machine.Completed)
			}
			verify()
		})
	}
}
