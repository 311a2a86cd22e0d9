package historymem_test

import (
	"slices"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// TestUnattended: a run is unattended while its timer is overdue and no live process owns it, and so is one that stopped in the middle.
func TestUnattended(t *testing.T) {
	t.Parallel()
	ctx, now := t.Context(), historytest.Begin
	s := historymem.NewWith(historymem.Options{Now: func() time.Time { return now }})
	due := now.Add(time.Minute)
	for _, id := range []string{"owned", "left", "later"} {
		x := historytest.NewTrace(t, id)
		b := x.Batch(append(historytest.Start("w", "in_process"), `E TimerStarted nap {}`)...)
		b.SetTimers, b.Timers = true, []history.Timer{{Key: "deadline", Due: due.Add(time.Second)}, {Key: "nap#1", Due: due}}
		if id == "later" {
			b.Timers[0].Due, b.Timers[1].Due = due.Add(time.Hour), due.Add(time.Hour)
		}
		if err := s.Append(ctx, b); err != nil {
			t.Fatal(err)
		}
	}
	historytest.NewTrace(t, "orphan").Append(s, historytest.Start("w", "in_process")...)
	if err := s.Renew(ctx, "p", 2*time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Claim(ctx, "p", "owned"); err != nil {
		t.Fatal(err)
	}
	orphan, left, owned := history.Unattended{ExecutionID: "orphan"}, history.Unattended{ExecutionID: "left", Due: due}, history.Unattended{ExecutionID: "owned", Due: due}
	for _, step := range []struct {
		at    time.Time
		keeps func(string) bool
		want  []history.Unattended
	}{
		{due.Add(-time.Second), nil, []history.Unattended{orphan}},
		{due.Add(history.UnattendedGrace - 1), nil, []history.Unattended{orphan}},
		{due.Add(history.UnattendedGrace), nil, []history.Unattended{left, orphan}},
		{due.Add(history.UnattendedGrace), func(id string) bool { return id == "owned" }, nil},
		{due.Add(5 * time.Minute), func(id string) bool { return id == "owned" }, []history.Unattended{owned}}, // the lease is over
	} {
		now = step.at
		got, err := history.FindUnattended(ctx, s, now, step.keeps)
		if err != nil || !slices.Equal(got, step.want) {
			t.Errorf("at %v: %+v, %v, want %+v", step.at, got, err, step.want)
		}
	}
}
