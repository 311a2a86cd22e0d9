package conformance_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// forkSource is the id of the run that is forked.
const forkSource = "source"

// TestForkAtEveryRecord runs every workflow undisturbed, then forks that run at each of its records and drives the fork to
// its end. The fork ends alike, with the same commands, and the source does not change. The short form takes a sample of the
// records; `make soak` forks at every one.
func TestForkAtEveryRecord(t *testing.T) {
	t.Parallel()
	var points tally
	t.Run("workflows", func(t *testing.T) {
		for _, c := range crashCases(t) {
			if c.name == "subworkflow.wrong_pin" || c.name == "subworkflow.unknown_reference" {
				continue // a fork waits for a process that knows the subworkflow instead of failing
			}
			if c.team != nil && c.team.before != nil {
				continue // a fork from before the agent had today's configuration fails as the first run did
			}
			for _, m := range c.modes(crashModes[:2]) {
				points.offered++
				t.Run(fmt.Sprintf("%s/%s", c.name, m.mode), func(t *testing.T) {
					points.taken.Add(1)
					t.Parallel()
					c := c.staffed(t)
					inBubble(t, func(t *testing.T) {
						want := newTrial(t, c, m, historymem.New())
						want.undisturbed()
						records := want.records(crashRun)
						if len(records) == 0 {
							return
						}
						step := 7 // with the request of trip-booking whose arguments cannot be filled in
						switch {
						case soak.On():
							step = 1
						case soak.UnderRace || !c.example && c.team == nil:
							step = max(1, len(records)/2)
						}
						for seq := 1; seq <= len(records); seq += step {
							forkAt(t, want, int64(seq))
							points.n.Add(1)
						}
					})
				})
			}
		}
	})
	t.Logf("%d forks", points.n.Load())
	if points.short(int64(soak.Size(100, 50, 100))) {
		t.Errorf("only %d forks", points.n.Load())
	}
}

// forkAt forks the run of a trial at a record.
func forkAt(t *testing.T, want *trial, seq int64) {
	t.Helper()
	at := fmt.Sprintf("record %d of %d (%s)", seq, len(want.records(crashRun)), want.records(crashRun)[seq-1].Name)
	x := newTrial(t, want.c, want.m, historymem.New())
	source := renamed(t, want, x.store)
	r := x.runner(x.store)
	run, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: forkSource, Seq: seq, NewExecutionID: crashRun})
	if err != nil {
		t.Errorf("%s: %v", at, err)
		x.close(r)
		return
	}
	if run.ForkedFrom != (history.ForkOrigin{ExecutionID: forkSource, Seq: seq}) {
		t.Errorf("%s: forked from %+v", at, run.ForkedFrom)
	}
	x.run, err = x.drive(r)
	x.close(r)
	if err != nil {
		t.Errorf("%s: %v\n%s", at, err, x.text(crashRun, ""))
		return
	}
	x.check(at)
	if x.c.team != nil {
		x.checkFork(at, seq)
	}
	a, b := x.run, want.run
	if a.Status != b.Status || !jsonvalue.Equal(a.FinalState, b.FinalState) || !jsonvalue.Equal(a.Result, b.Result) ||
		strings.ReplaceAll(a.Error, forkSource, crashRun) != b.Error || a.ErrorCode != b.ErrorCode {
		t.Errorf("%s: ended %s %v %v %q, want %s %v %v %q", at, a.Status, a.FinalState, a.Result, a.Error, b.Status, b.FinalState, b.Result, b.Error)
	}
	if got, want := x.text(crashRun, history.Command), want.text(crashRun, history.Command); got != want {
		t.Errorf("%s: commands\n%s\nwant\n%s", at, got, want)
	}
	if got := dump(x.records(forkSource)); got != source {
		t.Errorf("%s: the source has changed", at)
	}
}

// renamed copies the trial's run to another store under the source's id, and returns its text.
func renamed(t *testing.T, want *trial, into history.Store) string {
	t.Helper()
	var records []history.Record
	for _, r := range want.records(crashRun) {
		raw := bytes.ReplaceAll(r.Text(crashRun), []byte(`"`+crashRun+`:`), []byte(`"`+forkSource+`:`))
		raw = bytes.ReplaceAll(raw, []byte(`"parentExecutionId":"`+crashRun+`"`), []byte(`"parentExecutionId":"`+forkSource+`"`))
		p, err := history.DecodePayload(r.Name, raw)
		if err != nil {
			t.Fatal(err)
		}
		r.Payload, r.Raw = p, nil
		records = append(records, r)
	}
	d, err := want.store.Definition(t.Context(), want.run.DefinitionHash)
	if err != nil {
		t.Fatal(err)
	}
	b := history.Batch{ExecutionID: forkSource, Records: records, Execution: history.Project(forkSource, records), Definition: &d}
	if err := into.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	stored, err := into.Read(t.Context(), forkSource, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	return dump(stored)
}

func dump(records []history.Record) string {
	var b strings.Builder
	for _, r := range records {
		fmt.Fprintf(&b, "%d %s %s %s %s\n", r.Seq, r.Kind, r.Name, r.CreatedAt, r.Text(forkSource))
	}
	return b.String()
}
