package history_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

func TestTimestamp(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("", 2*3600)
	for want, at := range map[string]time.Time{
		"2026-11-21T01:03:46.919Z": time.Date(2026, 11, 21, 3, 3, 46, 919999999, zone),
		"0000-01-01T00:00:00.000Z": time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC),
		"9999-12-31T23:59:59.001Z": time.Date(9999, 12, 31, 23, 59, 59, 1e6, time.UTC),
	} {
		got := history.FormatTimestamp(at)
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		back, err := history.ParseTimestamp(got)
		if err != nil || !back.Equal(at.Truncate(time.Millisecond)) || back.Location() != time.UTC {
			t.Errorf("%s: read %v, %v", got, back, err)
		}
	}
}

func TestCeilMillis(t *testing.T) {
	t.Parallel()
	for nanos, want := range map[int64]int64{0: 0, 1: 1, 999_999: 1, 1e6: 1, 1e6 + 1: 2, -1: 0, -1e6: -1} {
		if got := history.CeilMillis(time.Unix(0, nanos)); got != want {
			t.Errorf("%d ns: got %d, want %d", nanos, got, want)
		}
	}
}

func TestRowVersion(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		stored any
		want   int64
	}{
		{int64(1), 1}, {int64(2), 2}, {int64(0), 1}, {int64(-3), 1}, {nil, 1}, {2.5, 1}, {3.0, 3}, {"2", 1}, {[]byte("2"), 1}, {1e300, 1},
	} {
		if got := history.RowVersion(c.stored); got != c.want {
			t.Errorf("%v: got %d, want %d", c.stored, got, c.want)
		}
		err := history.CheckRowVersion("x", 1, c.stored)
		if refused := errors.Is(err, problem.HistoryNewer); refused != (c.want > 1) {
			t.Errorf("%v: %v", c.stored, err)
		}
	}
}

func TestCursor(t *testing.T) {
	t.Parallel()
	c, err := history.ParseCursor("2026-11-21T01:03:49.562Z|k|3")
	if err != nil || c.ExecutionID != "k|3" || c.String() != "2026-11-21T01:03:49.562Z|k|3" {
		t.Errorf("got %+v, %v", c, err)
	}
	if c, err := history.ParseCursor("oldest|2026-11-21T01:03:49.562Z|k|3"); err != nil || !c.Oldest || c.ExecutionID != "k|3" || c.String() != "oldest|2026-11-21T01:03:49.562Z|k|3" {
		t.Errorf("got %+v, %v", c, err)
	}
	for _, bad := range []string{"oldest|", "oldest|oldest|2026-11-21T01:03:49.562Z|k", "", "abc", "|", "|x", "2026-11-21T01:03:49.562Z|", "2026-11-21T01:03:49.562Z", "zzz|x", "0|x"} {
		if _, err := history.ParseCursor(bad); !errors.Is(err, problem.InvalidListCursor) {
			t.Errorf("%q: got %v", bad, err)
		}
	}
}

// TestW66_ListOrder: newest first, ids bytewise where the times are equal.
func TestW66_ListOrder(t *testing.T) {
	t.Parallel()
	at := func(t time.Time, id string) history.Cursor { return history.Cursor{UpdatedAt: t, ExecutionID: id} }
	want := []history.Cursor{at(someTime.Add(1), "z"), at(someTime, "-"), at(someTime, "1"), at(someTime, "A"), at(someTime, "B"), at(someTime, "_"), at(someTime, "a"), at(someTime, "é")}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, history.Cursor.Compare)
	if !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

func TestPageSize(t *testing.T) {
	t.Parallel()
	for limit, want := range map[int]int{0: 50, 1: 1, 100: 100} {
		if got, err := (&history.ListQuery{Limit: limit}).PageSize(); got != want || err != nil {
			t.Errorf("%d: got %d, %v", limit, got, err)
		}
	}
	for _, limit := range []int{-1, 101} {
		if _, err := (&history.ListQuery{Limit: limit}).PageSize(); !errors.Is(err, problem.ValidationError) {
			t.Errorf("got %v", err)
		}
	}
}

func TestOrphaned(t *testing.T) {
	t.Parallel()
	phases := map[string]history.Phase{"x:sub:run": history.PhaseAwaitingActivity, "x:sub:done": history.PhaseCompleted, "here": history.PhaseRunning, "gone": history.PhaseCancelled}
	lookup := func(id string) (history.Phase, bool) { p, ok := phases[id]; return p, ok }
	const ours = `E ExecutionStarted {"workflowName":"w","activityExecutionMode":"in_process"}`
	childOf := func(parent string) string {
		return `E ExecutionStarted {"workflowName":"w","activityExecutionMode":"host_mediated","parentExecutionId":"` + parent + `"}`
	}
	for _, c := range []struct {
		name  string
		lines []string
		want  bool
	}{
		{"in the middle of its walk", []string{ours, "C ScheduleNode a"}, true},
		{"another engine's", []string{"E ExecutionStarted", "C ScheduleNode a"}, false},
		{"another engine's activity", []string{"E ExecutionStarted", "E ActivityRequested a"}, false},
		{"an activity in process", []string{ours, "E ActivityRequested a"}, true},
		{"another engine's run, continued in process", []string{"E ExecutionStarted", `E ActivityRequested a {"activityExecutionMode":"in_process"}`}, true},
		{"a host's activity", []string{ours, `E ActivityRequested a {"activityExecutionMode":"host_mediated"}`}, false},
		{"a back-off", []string{ours, "E ActivityRequested a", `E ActivityFailed a {"willRetry":true}`}, false},
		{"a signal and an activity in process", []string{ours, "E SignalWaitStarted s", "E ActivityRequested a"}, true},
		{"a signal and an attempt in the queue", []string{ours, "E SignalWaitStarted s", `E NodeScheduled a {"queued":true}`}, true},
		{"an attempt in the queue that failed before its request", []string{ours, "E SignalWaitStarted s", `E NodeScheduled a {"queued":true}`, "C FailNode a"}, false},
		{"a subworkflow under way", []string{ours, `E SubworkflowStarted v {"childExecutionId":"x:sub:run"}`}, false},
		{"a subworkflow that has ended", []string{ours, `E SubworkflowStarted v {"childExecutionId":"x:sub:done"}`, "E SignalWaitStarted s"}, true},
		{"a subworkflow that was never begun", []string{ours, `E SubworkflowStarted v {"childExecutionId":"x:sub:none"}`}, true},
		{"a subworkflow that waits for a host", []string{childOf("here"), `E ActivityRequested a {"activityExecutionMode":"host_mediated"}`}, false},
		{"a subworkflow that outlives its parent", []string{childOf("gone"), `E ActivityRequested a {"activityExecutionMode":"host_mediated"}`}, true},
		{"a subworkflow that has ended with its parent", []string{childOf("gone"), "E ExecutionCancelled"}, false},
		{"a subworkflow whose parent is deleted", []string{childOf("none"), "E SignalWaitStarted s"}, false},
		{"ended", []string{ours, "E ActivityRequested a", "E ExecutionFailed"}, false},
	} {
		e := history.Execution{ID: "x"}
		for _, line := range c.lines {
			e.Apply(parseRecord(t, line, e.Seq+1))
		}
		if got := e.Orphaned(lookup); got != c.want {
			t.Errorf("%s: orphaned %t", c.name, got)
		}
	}
}

// TestFamily: a subworkflow's run names itself and its parent; only runs of the reference tell it by their id.
func TestFamily(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ id, started, child, parent string }{
		{"a:sub:b:sub:c", `E ExecutionStarted`, "a:sub:b:sub:c", "a:sub:b"},
		{":sub:b", `E ExecutionStarted`, "", ""},
		{"user:sub:thing", `E ExecutionStarted {"activityExecutionMode":"in_process"}`, "", ""},
		{"a:sub:b#2", `E ExecutionStarted {"activityExecutionMode":"in_process","parentExecutionId":"a","depth":1}`, "a:sub:b#2", "a"},
	} {
		e := history.Project(c.id, []history.Record{parseRecord(t, c.started, 1)})
		if e.ChildExecutionID != c.child || e.ChildParentID != c.parent {
			t.Errorf("%s: got %q of %q", c.id, e.ChildExecutionID, e.ChildParentID)
		}
	}
}

func TestBatchCheck(t *testing.T) {
	t.Parallel()
	record := history.Record{Kind: history.Event, Name: history.NodeScheduled, CreatedAt: someTime}
	good := history.Batch{ExecutionID: "x", ExpectedSeq: 3, Records: []history.Record{record}, Execution: history.Execution{ID: "x", Seq: 4}}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(b *history.Batch){
		"no id":              func(b *history.Batch) { b.ExecutionID = "" },
		"negative seq":       func(b *history.Batch) { b.ExpectedSeq = -1 },
		"no records":         func(b *history.Batch) { b.Records = nil },
		"other projection":   func(b *history.Batch) { b.Execution.ID = "y" },
		"old projection":     func(b *history.Batch) { b.Execution.Seq = 3 },
		"no time":            func(b *history.Batch) { b.Records[0].CreatedAt = time.Time{} },
		"wrong kind":         func(b *history.Batch) { b.Records[0].Kind = history.Command },
		"disowned by nobody": func(b *history.Batch) { b.Disown = true },
		"only an owner": func(b *history.Batch) {
			b.Records, b.Execution.Seq, b.SetTimers, b.Owner = nil, 3, true, "p"
		},
		"unknown name": func(b *history.Batch) { b.Records[0].Name = "EmitSignal" },
	} {
		b := good
		b.Records = slices.Clone(good.Records)
		spoil(&b)
		if err := b.Check(); !errors.Is(err, problem.Internal) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestParseExecutionRefusesGarbage(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{"", "[]", "{", "null"} {
		if _, err := history.ParseExecution("x", []byte(raw)); !errors.Is(err, problem.HistoryCorrupt) {
			t.Errorf("%q: got %v", raw, err)
		}
	}
}

func BenchmarkApply(b *testing.B) {
	lines := []string{"E ActivityCompleted a", "C CompleteNode a", "E StateUpdated a", "C ScheduleNode b", "E NodeScheduled b", "E ActivityRequested b"}
	records := make([]history.Record, len(lines))
	for i, line := range lines {
		records[i] = parseRecord(b, line, 0)
	}
	e := history.Execution{ID: "x"}
	b.ReportAllocs()
	for b.Loop() {
		for i := range records {
			e.Apply(records[i])
		}
	}
}

func BenchmarkProjectionText(b *testing.B) {
	e := history.Execution{ID: "x"}
	for _, line := range []string{
		`E ExecutionStarted {"workflowName":"w","workflowVersion":"1.0.0","definitionHash":"015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862","inputHash":"015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862","activityExecutionMode":"in_process"}`,
		"C ScheduleNode a", "E ActivityRequested a",
	} {
		e.Apply(parseRecord(b, line, 0))
	}
	text := e.AppendText(nil)
	b.Run("write", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			text = e.AppendText(text[:0])
		}
	})
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := history.ParseExecution("x", text); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// TestRepeatedOutcomesEndNoWait: a replay of the reference engine writes outcomes of earlier visits once more; what the
// run waits for is still to come.
func TestRepeatedOutcomesEndNoWait(t *testing.T) {
	t.Parallel()
	for requested, outcome := range map[string]string{
		"E ActivityRequested a":                                 `E ActivityCompleted a {"result":{"x":1},"replayed":true}`,
		`E SubworkflowStarted a {"childExecutionId":"x:sub:a"}`: `E SubworkflowCompleted a {"childExecutionId":"x:sub:a","replayed":true}`,
	} {
		e := history.Execution{ID: "x"}
		for _, line := range []string{"E ExecutionStarted", "C ScheduleNode a", requested, outcome} {
			e.Apply(parseRecord(t, line, e.Seq+1))
		}
		if len(e.Waits) != 1 {
			t.Errorf("after %s: waits %+v", outcome, e.Waits)
		}
		e.Apply(parseRecord(t, strings.Replace(outcome, `,"replayed":true`, "", 1), e.Seq+1))
		if len(e.Waits) != 0 {
			t.Errorf("after the outcome itself: waits %+v", e.Waits)
		}
	}
}
