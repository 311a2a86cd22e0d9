package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/runjson"
	"github.com/workflows-engine/workflows-engine/internal/shellword"
)

// phaseText is the phase of a run as every command shows it, and as list --phase takes it.
func phaseText(x *history.Execution) string { return string(x.Phase) }

// waitsText says in a few words what a run waits for, and whether no process drives it or a subworkflow of it.
func waitsText(x *history.Execution, left []history.Unattended) string {
	var of []history.Unattended
	for _, u := range left {
		if u.ExecutionID == x.ID || x.Parent == "" && history.Root(u.ExecutionID) == x.ID {
			of = append(of, u)
		}
	}
	if len(of) > 0 {
		return unattendedText(of)
	}
	return runjson.WaitsFor(x)
}

// unattendedText says since when a timer is overdue, of several the first, or that a process has gone.
func unattendedText(left []history.Unattended) string {
	for _, u := range left {
		if !u.Due.IsZero() {
			return "timer overdue since " + timeText(u.Due) + ", no process looks after it"
		}
	}
	return "no process goes on with it"
}

// unattended returns which of the rows of a list, and of the subworkflows of those at the root of their tree, no process drives.
func (s *session) unattended(ctx context.Context, now time.Time, rows []listed) ([]history.Unattended, error) {
	shown := map[string]bool{}
	for i := range rows {
		shown[rows[i].ID] = !rows[i].Phase.Terminal()
	}
	return history.FindUnattended(ctx, s.store, now, func(id string) bool { return shown[id] || shown[history.Root(id)] })
}

// writeUnattended says below a list which command goes on with runs that no process drives.
func (a *app) writeUnattended(s *session, left []history.Unattended) {
	roots := map[string]bool{}
	for _, u := range left {
		roots[history.Root(u.ExecutionID)] = true
	}
	switch len(roots) {
	case 0:
	case 1:
		fmt.Fprintf(a.stderr, "no process looks after run %s: %s\n", history.Root(left[0].ExecutionID),
			s.command("recover", history.Root(left[0].ExecutionID)))
	default:
		fmt.Fprintf(a.stderr, "no process looks after %s: %s\n", count(len(roots), "of these run"), shellword.Line(append([]string{program, "recover"}, s.repeat...)...))
	}
}
