package timeline_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/timeline"
)

type payload = history.Payload

// told reads records, one a second, of a run with this definition.
func told(t *testing.T, text string, records ...history.Record) *timeline.Timeline {
	t.Helper()
	line := timeline.New("r", oneLine)
	if text != "" {
		program, findings := definition.Compile(enginetest.Define(t, text), definition.Options{AllowInterruptInBranch: true})
		if program == nil {
			t.Fatal(findings)
		}
		line.Define("r", program)
	}
	for i, rec := range records {
		if rec.Kind == "" {
			rec.Kind = rec.Name.Kind()
		}
		rec.Seq, rec.CreatedAt = int64(i+1), time.Unix(int64(i), 0)
		line.Record("r", &rec)
	}
	return line
}

func of(name history.Name, p payload) history.Record { return history.Record{Name: name, Payload: p} }

// states describes the visits of a run: their branch or item, how each ended, and how long it took.
func states(r *timeline.Run) string {
	names := map[timeline.State]string{
		timeline.Working: "works", timeline.Asking: "asks", timeline.Retrying: "retries", timeline.Sleeping: "sleeps", timeline.Succeeded: "done", timeline.Failed: "failed",
		timeline.Dropped: "dropped",
	}
	var b strings.Builder
	for _, v := range r.Visits {
		where := ""
		if block := v.Block(); block != nil {
			for _, branch := range block.Branches {
				for _, other := range branch.Visits {
					if other == v {
						where = branch.Name + "/"
					}
				}
			}
		}
		if index, of := v.Item(); of != 0 {
			where += fmt.Sprintf("%d of %d/", index, of)
		}
		fmt.Fprintf(&b, "%s%s %s %v", where, v.Node, names[v.State], v.Took(v.Ended))
		if v.Next != "" {
			b.WriteString(" → " + v.Next)
		}
		b.WriteString("\n")
	}
	return b.String()
}

const blocks = `
document: { schema: s, name: w, version: 1.0.0 }
state_schema: { type: object }
x-workflows-engine: { uses: [catch, map] }
nodes:
  - { id: begin, type: start }
  - { id: outer, type: parallel, catch: [{ codes: ["*"], target: sorry }], config: { join: all, branches: [{ name: a, entry: wait }, { name: b, entry: inner }] } }
  - { id: wait, type: wait, config: { kind: duration, duration_ms: 9000 } }
  - { id: inner, type: parallel, config: { join: all, branches: [{ name: c, entry: each }, { name: d, entry: ask }] } }
  - { id: each, type: step, config: { handler: h }, map: { items: "[1,2]", concurrency: 2, collect: all } }
  - { id: ask, type: interrupt, config: { prompt: "?", resume_schema: { type: object } } }
  - { id: sorry, type: step, config: { handler: h } }
  - { id: finish, type: end }
edges:
  - { source: __start__, target: begin }
  - { source: begin, target: outer }
  - { source: outer, target: finish }
  - { source: wait, target: finish }
  - { source: inner, target: finish }
  - { source: each, target: finish }
  - { source: ask, target: finish }
  - { source: sorry, target: finish }
`

// TestHeldBackBranches: in a branch whose script is held back, the number of a map's items, the end of the map and the branches of a block are
// recorded after the items and the visits inside. They are shown where they belong from the first record on.
func TestHeldBackBranches(t *testing.T) {
	t.Parallel()
	records := []history.Record{
		of(history.NodeScheduled, payload{NodeID: "outer"}),
		of(history.NodeScheduled, payload{NodeID: "wait"}),
		of(history.NodeScheduled, payload{NodeID: "inner"}),
		of(history.NodeScheduled, payload{NodeID: "each"}),
		of(history.NodeScheduled, payload{NodeID: "each", Visit: 2}),
		of(history.ActivityRequested, payload{NodeID: "each", Visit: 2}),
		of(history.NodeScheduled, payload{NodeID: "each", Visit: 3}),
		of(history.ActivityRequested, payload{NodeID: "each", Visit: 3}),
		of(history.NodeScheduled, payload{NodeID: "ask"}),
		of(history.InterruptRaised, payload{NodeID: "ask", Prompt: "?"}),
		of(history.ActivityCompleted, payload{NodeID: "each", Visit: 3}),
	}
	if got, want := states(told(t, blocks, records...).Root()), `outer works 0s
a/wait works 0s
b/inner works 0s
c/each works 0s
0 of -1/each works 0s
1 of -1/each done 4s
d/ask asks 0s
`; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	records = append(records,
		of(history.ActivityCompleted, payload{NodeID: "each", Visit: 2}),
		of(history.MapStarted, payload{NodeID: "each", Items: history.Some(2.0)}),
		of(history.CompleteNode, payload{NodeID: "each"}),
	)
	if got := states(told(t, blocks, records...).Root()); !strings.Contains(got, "c/each done 9s\n0 of 2/each done 7s\n1 of 2/each done 4s\n") {
		t.Errorf("got\n%s", got)
	}
}

// TestAFailureEndsTheBlocksAroundIt up to the one that catches it, and drops what still works in them. Commands that follow for what was
// dropped belong to it.
func TestAFailureEndsTheBlocksAroundIt(t *testing.T) {
	t.Parallel()
	line := told(t, blocks,
		of(history.NodeScheduled, payload{NodeID: "outer"}),
		of(history.NodeScheduled, payload{NodeID: "wait"}),
		of(history.NodeScheduled, payload{NodeID: "inner"}),
		of(history.NodeScheduled, payload{NodeID: "each"}),
		of(history.NodeScheduled, payload{NodeID: "ask"}),
		of(history.InterruptRaised, payload{NodeID: "ask", Prompt: "?"}),
		of(history.TimerFired, payload{NodeID: "ask", TimerKind: "deadline"}),
		of(history.FailNode, payload{NodeID: "ask", Visit: 1, Code: "TIMEOUT", Message: "too late", CaughtBy: "outer", Target: "sorry"}),
		of(history.NodeScheduled, payload{NodeID: "sorry"}),
	)
	if got, want := states(line.Root()), `outer failed 7s → sorry
a/wait dropped 6s
b/inner failed 5s
c/each dropped 4s
d/ask failed 2s
sorry works 0s
`; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if sorry := line.Root().Visits[5]; sorry.From == nil || sorry.From.Node != "outer" || sorry.From.Text != "TIMEOUT too late" {
		t.Errorf("led here: %+v", sorry.From)
	}
}

// TestWaits: each wait has its time, and an answer the one who gave it.
func TestWaits(t *testing.T) {
	t.Parallel()
	kim := &history.Actor{Name: "kim"}
	line := told(t, "",
		of(history.NodeScheduled, payload{NodeID: "ask"}),
		of(history.InterruptRaised, payload{NodeID: "ask", Prompt: "Ship it?"}),
		of(history.InterruptResumed, payload{NodeID: "ask", SignalPayload: object{"ok": true}, Actor: kim}),
		of(history.NodeScheduled, payload{NodeID: "pay", Queued: true}),
		of(history.ActivityRequested, payload{NodeID: "pay"}),
		of(history.ActivityFailed, payload{NodeID: "pay", WillRetry: true, RetryAt: time.Unix(8, 0)}),
		of(history.ActivityRequested, payload{NodeID: "pay", Attempt: 2}),
		of(history.ActivityCompleted, payload{NodeID: "pay", Attempt: 2}),
		of(history.NodeScheduled, payload{NodeID: "nap"}),
		of(history.TimerStarted, payload{NodeID: "nap", DueAt: time.Unix(20, 0)}),
	)
	var got []string
	for _, v := range line.Root().Visits {
		for _, w := range v.Waits {
			by := ""
			if w.By != nil {
				by = " by " + w.By.Name
			}
			ended := int64(-1)
			if !w.Ended.IsZero() {
				ended = w.Ended.Unix()
			}
			got = append(got, fmt.Sprintf("%s %d %d-%d %s%s", v.Node, w.Kind, w.Began.Unix(), ended, w.Answer, by))
		}
	}
	want := fmt.Sprintf(`ask %d 1-2 {"ok":true} by kim, pay %d 3-4 , pay %d 5-6 , nap %d 9--1 `, timeline.Asking, timeline.Queued, timeline.Retrying, timeline.Sleeping)
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	if pay := line.Root().Visits[1]; len(pay.Attempts) != 2 || pay.Attempts[0].Outcome != timeline.Retried || pay.Attempts[1].Outcome != timeline.Completed {
		t.Errorf("%+v", pay.Attempts)
	}
}

// TestSubworkflows make a tree, whatever is recorded, and a run that was forgotten starts anew.
func TestSubworkflows(t *testing.T) {
	t.Parallel()
	line := told(t, "", of(history.ExecutionStarted, payload{}), of(history.NodeScheduled, payload{NodeID: "sub"}))
	for _, child := range []string{"c", "c", "r"} {
		rec := of(history.SubworkflowStarted, payload{NodeID: "sub", ChildExecutionID: child})
		line.Record("r", &rec)
	}
	sub := line.Root().Visits[0]
	if sub.Child != line.Run("c") || line.Run("c").Parent != sub || line.Root().Parent != nil || strings.Join(line.Open(), " ") != "c r" {
		t.Errorf("child %v, open %v", sub.Child, line.Open())
	}
	line.Forget("c")
	line.Forget("r")
	if line.Run("c") != nil || line.Run("r") == nil {
		t.Error("Forget drops subworkflows and keeps the root")
	}
}
