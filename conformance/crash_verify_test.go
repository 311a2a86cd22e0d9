package conformance_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// verify checks the store by the rules of the command verify. A store whose process was only killed must have no finding.
func (x *trial) verify(at string) {
	x.t.Helper()
	ctx := context.Background()
	report := func(f history.Finding) {
		x.t.Errorf("%s: %s record %d: %s: %s", at, f.ExecutionID, f.Seq, f.Code, f.Message)
	}
	if v, ok := x.store.(history.Verifier); ok {
		if _, err := v.Verify(ctx, "", false, report); err != nil {
			x.t.Errorf("%s: %v", at, err)
		}
	}
	for id := range x.executions() {
		audit := history.Audit{ExecutionID: id}
		for _, r := range x.records(id) {
			audit.Record(&r, nil)
		}
		findings, err := graph.Inspect(ctx, x.store, id)
		if err != nil {
			x.t.Errorf("%s: %s: %v", at, id, err)
		}
		for _, f := range append(audit.Findings, findings...) {
			report(f)
		}
	}
}

func (x *trial) records(id string) []history.Record {
	rs, err := x.store.Read(context.Background(), id, 1, 0)
	if err != nil {
		x.t.Errorf("Read: %v", err)
	}
	return rs
}

// check checks every run in the store: no gaps, one end, each outcome once.
func (x *trial) check(at string) {
	x.t.Helper()
	for _, w := range x.wrong {
		x.t.Errorf("%s: %s", at, w)
	}
	x.verify(at)
	for id, e := range x.executions() {
		rs := x.records(id)
		ends, once := 0, map[string]bool{}
		for i, r := range rs {
			if r.Seq != int64(i+1) {
				x.t.Errorf("%s: %s: record %d has seq %d", at, id, i+1, r.Seq)
			}
			p := r.Payload
			fact := fmt.Sprintf("%s %s#%d", r.Name, p.NodeID, max(p.Visit, 1))
			if step, kind, n, ok := p.Step(); ok && isOutcome(kind) {
				fact = fmt.Sprintf("%s %s of %s", kind, step, fact)
			} else if ok {
				fact += fmt.Sprint(", step ", n)
			}
			switch r.Name {
			case history.ExecutionCompleted, history.ExecutionFailed, history.ExecutionCancelled:
				ends++
				if i != len(rs)-1 {
					x.t.Errorf("%s: %s: %s is followed by %s", at, id, r.Name, rs[i+1].Name)
				}
				continue
			case history.ActivityRequested, history.ActivityFailed:
				fact += fmt.Sprint(".", max(p.Attempt, 1))
			case history.ActivityCompleted, history.InterruptResumed, history.SignalReceived, history.TimerFired, history.SubworkflowStarted, history.SubworkflowCompleted:
			default:
				continue
			}
			if once[fact] {
				x.t.Errorf("%s: %s: %s is recorded twice", at, id, fact)
			}
			once[fact] = true
		}
		if ends != 1 || !e.Phase.Terminal() || e.Seq != int64(len(rs)) {
			x.t.Errorf("%s: %s has %d ends, phase %s, seq %d of %d", at, id, ends, e.Phase, e.Seq, len(rs))
		}
	}
	if due, err := x.store.DueTimers(context.Background(), time.Now().Add(1e6*time.Hour), 0); err != nil || len(due) > 0 {
		x.t.Errorf("%s: timers remain: %v, %v", at, due, err)
	}
}

func (x *trial) executions() map[string]history.Execution {
	page, err := x.store.List(context.Background(), history.ListQuery{Limit: 100})
	if err != nil {
		x.t.Error(err)
	}
	all := map[string]history.Execution{}
	for _, e := range page.Executions {
		all[e.ID] = e
	}
	return all
}

// compare compares a disturbed run with the undisturbed one.
func (x *trial) compare(want *trial, at string) {
	x.t.Helper()
	if x.run == nil {
		x.t.Errorf("%s: run did not end\n%s", at, x.text(crashRun, ""))
		return
	}
	x.check(at)
	a, b := x.run, want.run
	if a.Status != b.Status || !jsonvalue.Equal(a.FinalState, b.FinalState) || !jsonvalue.Equal(a.Result, b.Result) || a.Error != b.Error || a.ErrorCode != b.ErrorCode {
		x.t.Errorf("%s: ended %s %v %v %q, want %s %v %v %q\n%s", at, a.Status, a.FinalState, a.Result, a.Error, b.Status, b.FinalState, b.Result, b.Error, x.text(crashRun, ""))
	}
	for key := range x.keys {
		if !want.keys[key] {
			x.t.Errorf("%s: performed %s, which was not requested", at, key)
		}
	}
	if len(x.keys) != len(want.keys) && !x.m.cancel { // a cancel may precede attempts that would be performed again
		x.t.Errorf("%s: performed %v, want %v", at, slices.Sorted(maps.Keys(x.keys)), slices.Sorted(maps.Keys(want.keys)))
	}
	runs, wanted := x.executions(), want.executions()
	if !x.m.cancel && !slices.Equal(slices.Sorted(maps.Keys(runs)), slices.Sorted(maps.Keys(wanted))) {
		x.t.Errorf("%s: runs %v, want %v", at, slices.Sorted(maps.Keys(runs)), slices.Sorted(maps.Keys(wanted)))
	}
	for id := range wanted {
		if x.m.cancel { // how far the run has come by then depends on the time
			if e, begun := runs[id]; begun && e.Phase != wanted[id].Phase {
				x.t.Errorf("%s: %s is %s, want %s", at, id, runs[id].Phase, wanted[id].Phase)
			}
			continue
		}
		if got, want := x.text(id, history.Command), want.text(id, history.Command); got != want {
			x.t.Errorf("%s: %s: commands\n%s\nwant\n%s", at, id, got, want)
		}
		got, want := strings.Split(x.text(id, history.Event), "\n"), strings.Split(want.text(id, history.Event), "\n")
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			x.t.Errorf("%s: %s: events\n%s\nwant\n%s", at, id, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// text returns the records of a run, one a line, without what depends on the time.
func (x *trial) text(id string, kind history.Kind) string {
	var lines []string
	for _, r := range x.records(id) {
		if kind != "" && r.Kind != kind {
			continue
		}
		p := r.Payload
		if step, kind, _, ok := p.Step(); ok {
			// Pauses and questions depend on what died.
			if isOutcome(kind) || kind == agentloop.StepBegun {
				lines = append(lines, fmt.Sprintf("%s %s of %s#%d.%d", kind, step, p.NodeID, p.Visit, p.Attempt))
			}
			continue
		}
		lines = append(lines, fmt.Sprintf("%s %s#%d.%d %s%s %v %s", r.Name, p.NodeID, p.Visit, p.Attempt, p.BranchName, p.Reason, p.Winners, p.Code))
	}
	return strings.Join(lines, "\n")
}
