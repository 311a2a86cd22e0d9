package historytest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

func timers(t *testing.T, s history.Store) {
	ctx := t.Context()
	at := func(seconds int) time.Time { return Begin.Add(time.Duration(seconds) * time.Second) }
	due := func(now time.Time, limit int) string {
		t.Helper()
		var out []string
		for _, k := range got[[]history.Timer](t)(s.DueTimers(ctx, now, limit)) {
			if k.Due.Location() != time.UTC {
				t.Errorf("%s is due at %v", k.Key, k.Due)
			}
			out = append(out, fmt.Sprintf("%s/%s@%g", k.ExecutionID, k.Key, k.Due.Sub(Begin).Seconds()))
		}
		return fmt.Sprint(out)
	}
	want := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %s, want %s", what, got, want)
		}
	}
	next := func() string {
		t.Helper()
		at := overview(t, s, "").NextTimer
		if at.IsZero() {
			return "none"
		}
		if at.Location() != time.UTC {
			t.Errorf("the next timer is due at %v", at)
		}
		return fmt.Sprint(at.Sub(Begin).Seconds())
	}
	x, y := NewTrace(t, "x"), NewTrace(t, "y")
	set := func(x *Trace, line string, timers ...history.Timer) {
		t.Helper()
		b := x.Batch(line)
		b.SetTimers, b.Timers = true, timers
		must(t, s.Append(ctx, b))
	}
	want("no timers", next()+due(at(99), 0), "none[]")

	set(x, "E ExecutionStarted", history.Timer{Key: "a", Due: at(30)}, history.Timer{Key: "b", Due: at(10)})
	set(y, "E ExecutionStarted", history.Timer{ExecutionID: "ignored", Key: "a", Due: at(10)})
	want("three timers", next()+due(at(99), 0), "10[x/b@10 y/a@10 x/a@30]")
	want("not yet", due(at(9), 0), "[]")
	want("exactly", due(at(10), 0), "[x/b@10 y/a@10]")
	want("limit", due(at(99), 2), "[x/b@10 y/a@10]")

	x.Append(s, "C ScheduleNode n")
	want("kept", due(at(99), 0), "[x/b@10 y/a@10 x/a@30]")
	// A fraction of a millisecond counts as a whole one.
	set(x, "C ScheduleNode n", history.Timer{Key: "a", Due: at(5)}, history.Timer{Key: "\"\x00c", Due: at(50).Add(time.Microsecond)})
	want("replaced", next()+due(at(99), 0), "5[x/a@5 y/a@10 x/\"\x00c@50.001]")

	moved := history.Batch{
		ExecutionID: "x", ExpectedSeq: x.Execution.Seq, Execution: x.Execution, Position: []byte("p"),
		SetTimers: true, Timers: []history.Timer{{Key: "a", Due: at(7)}},
	}
	must(t, s.Append(ctx, moved))
	want("moved without a record", next()+due(at(99), 0), "7[x/a@7 y/a@10]")
	wantPosition(t, s, "x", x.Execution.Seq, "p")
	late := moved
	late.ExpectedSeq--
	late.Execution.Seq--
	wantCode(t, s.Append(ctx, late), problem.HistoryConflict)
	for what, spoil := range map[string]func(b *history.Batch){
		"timers kept":  func(b *history.Batch) { b.SetTimers = false },
		"an owner":     func(b *history.Batch) { b.Owner = "me" },
		"a definition": func(b *history.Batch) { b.Definition = &history.StoredDefinition{Hash: "h", Text: []byte("{}")} },
	} {
		b := moved
		spoil(&b)
		if err := s.Append(ctx, b); !errors.Is(err, problem.Internal) {
			t.Errorf("a batch without records, with %s: %v", what, err)
		}
	}
	want("kept by refusals", next()+due(at(99), 0), "7[x/a@7 y/a@10]")

	set(x, "C ScheduleNode n")
	set(y, "C ScheduleNode n")
	want("emptied", next()+due(at(99), 0), "none[]")
}

// endDropsTimers: the end of a run drops its timers and its position.
func endDropsTimers(t *testing.T, s history.Store) {
	ctx := t.Context()
	x := NewTrace(t, "x")
	b := x.Batch(Start("w", "in_process")...)
	fill(&b)
	must(t, s.Append(ctx, b))
	x.Append(s, End()...)
	if due := got[[]history.Timer](t)(s.DueTimers(ctx, Begin.Add(time.Hour), 0)); len(due) != 0 {
		t.Errorf("timers of a run that has ended: %v", due)
	}
	wantPosition(t, s, "x", 0, "")
}
