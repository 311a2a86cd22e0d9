package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/config/envname"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/runjson"
	"github.com/workflows-engine/workflows-engine/internal/shellword"
)

type recoverOptions struct {
	driveOptions
	folder string
	dryRun bool
	limit  int
}

func newRecover(a *app) *cobra.Command {
	var o recoverOptions
	cmd := &cobra.Command{
		Use:   "recover [ID]",
		Short: "Recover orphaned runs",
		Long: `Claim orphaned runs and runs with a due timer, and drive them until they end or wait for a host, a person or a signal. Like a
worker, the command performs the nodes with an executor here. A run that needs another executor is listed on standard error, and
the exit status is 1. Runs with another owner are listed and not changed. A run that then waits for a time is left to a later
recover, and standard error names the time.

With an ID only that run is driven, its timers included. If it waits for a missing executor, the exit status is 3, as for every
paused run. If it has another owner, the command waits until the owner releases it or until the lease ends, at most 30 seconds
after the owner was killed.

Attempts in flight when a process ended are performed again, with the same idempotency key.

--dry-run changes nothing. It lists the runs to recover with the reason, and on standard error the executors that other runs miss and
the number of runs that wait for a host, a person or a signal. A worker does continuously what recover does once.`,
		Example: `  workflows-engine recover --dry-run
  workflows-engine recover
  workflows-engine recover order-17 --profile demo`,
		Args:              atMostOneID,
		ValidArgsFunction: a.completeIDs(""),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return a.recoverOne(cmd.Context(), args[0], o)
			}
			return a.recoverAll(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "list the runs to recover without recovering them")
	cmd.Flags().IntVar(&o.limit, "limit", 100, "recover at most this `number` of runs")
	registerContinue(cmd.Flags(), &o.driveOptions, &o.folder)
	return cmd
}

// recoverOne continues one run.
func (a *app) recoverOne(ctx context.Context, id string, o recoverOptions) error {
	if o.dryRun {
		return usage("--dry-run and an ID cannot be given together").WithHint("See workflows-engine status %s.", id)
	}
	return a.continued(ctx, id, o.folder, o.driveOptions, false, func(s *session, caller graph.Caller) (*view.Run, error) {
		return s.driver.Drive(ctx, graph.DriveRequest{ExecutionID: id, Caller: caller})
	})
}

// reportNextTimer prints the run whose timer is due next: recover ID waits for the timer, a later recover finds it due.
func (a *app) reportNextTimer(ctx context.Context, s *session) error {
	timers, err := s.store.DueTimers(ctx, a.now().Add(forever), maxLeft)
	for _, next := range timers {
		e, failed := s.store.Execution(ctx, next.ExecutionID)
		if failed != nil || e.Phase != history.PhaseRunning { // the deadline of a host's or a person's work
			err = firstError(err, failed)
			continue
		}
		a.reportTimer(s, history.Root(next.ExecutionID), next.Due)
		break
	}
	return err
}

// reportTimer prints that a run waits for a time, and the command that waits for it.
func (a *app) reportTimer(s *session, id string, due time.Time) {
	a.say("run %s waits until %s: recover it then, or wait with:\n  %s\n", id, timeText(due), s.command("recover", id))
}

// session returns the session of recoverAll. A dry run opens the database read-only.
func (o recoverOptions) session() sessionOptions {
	options := sessionOptions{drives: true, folder: o.folder, store: readOnlyIf(o.dryRun)}
	if !o.dryRun {
		options.display = showLines
	}
	return options
}

// recoverAll claims runs without an owner, fires due timers, and prints the status of each of these runs. Runs without an executor here
// are listed and left to other processes.
func (a *app) recoverAll(ctx context.Context, o recoverOptions) error {
	if o.limit < 1 {
		return usage("--limit must be above 0, found %d", o.limit)
	}
	caller, err := a.caller(o.driveOptions)
	if err != nil {
		return err
	}
	options := o.session()
	if options.display == showLines {
		options.display = showLinesOfRuns
	}
	return a.with(ctx, options, func(s *session) error {
		found, err := a.recoverable(ctx, s, caller, o.limit)
		if err != nil {
			return err
		}
		if len(found.held) > 0 {
			a.say("held by other processes, the first until %s: %s\n", timeText(found.until), strings.Join(found.held, ", "))
		}
		if len(found.ids) == 0 && len(found.held) == 0 && len(found.left) == 0 {
			fmt.Fprintln(a.stderr, "nothing to recover")
			if err := a.reportNextTimer(ctx, s); err != nil {
				return err
			}
		}
		j := newRecoverJSON(o.dryRun, found)
		if o.dryRun {
			a.reportLeft(s, found.left)
			if err := a.writeRecoverable(ctx, s, found, j, o.json); err != nil {
				return err
			}
			return a.writeWaiting(ctx, s)
		}
		d := a.drive(s, o.driveOptions)
		d.caller.Mode, d.caller.Definition = caller.Mode, caller.Definition
		d.leaveTimers = true
		err = d.recover(ctx, found, j)
		a.reportLeft(s, found.left)
		if err == nil && len(found.left) > 0 {
			err = silent{exitFailed}
		}
		if o.json && ctx.Err() == nil {
			err = firstError(writeEncoded(a.stdout, j), err)
		}
		return err
	})
}

// recoverable holds the runs that recover claims, with the reasons, those that it leaves to others, and those owned by others, with
// the end of the first of their leases.
type recoverable struct {
	ids   []string
	why   map[string]string
	left  []leftRun
	held  []string
	until time.Time
}

// leftRun is a run for other processes, with its missing executor, or why the executor is not known.
type leftRun struct {
	id string
	graph.LeftRun
}

func (r *recoverable) add(id, why string) {
	if r.why[id] == "" {
		r.ids = append(r.ids, id)
		r.why[id] = why
	}
}

// recoverable asks the engine which runs it would claim, and which of them for a timer. For subworkflows it returns the
// root runs.
func (a *app) recoverable(ctx context.Context, s *session, caller graph.Caller, limit int) (*recoverable, error) {
	found, err := s.driver.Recover(ctx, graph.RecoverRequest{DryRun: true, Limit: limit})
	if err != nil {
		return nil, err
	}
	r := &recoverable{why: map[string]string{}}
	for _, id := range found.ExecutionIDs {
		r.add(found.Root(id), "its owner is gone"+ofChild(found.Root(id), id))
	}
	for _, t := range found.Due {
		root := found.Root(t.ExecutionID)
		r.add(root, "a timer was due "+timeText(t.Due)+ofChild(root, t.ExecutionID))
	}
	for _, l := range found.Left {
		root := found.Root(l.ExecutionID)
		if caller.Definition != nil && errors.Is(l.Err, problem.DefinitionNotFound) {
			r.add(root, "its owner is gone")
		}
		l.Err = explainDefinition(l.Err)
		if r.why[root] == "" { // the missing executor of a claimed run is reported with its status
			r.left = append(r.left, leftRun{root, l})
		}
	}
	for _, o := range found.Elsewhere {
		if r.why[o.ExecutionID] != "" {
			continue
		}
		r.held = append(r.held, o.ExecutionID)
		if until := a.now().Add(o.Owner.Left); r.until.IsZero() || until.Before(r.until) {
			r.until = until
		}
	}
	return r, nil
}

// maxLeft limits the named runs that are left to others.
const maxLeft = 20

// reportLeft prints the missing executors of runs for other processes.
func (a *app) reportLeft(s *session, left []leftRun) {
	for i, l := range left {
		if i == maxLeft {
			a.say("%s %s\n", a.paint.wait("left"), count(len(left)-i, "more run"))
			return
		}
		if l.Lack != nil {
			a.reportSkipped(s, l.id, l.Lack)
			continue
		}
		a.say("%s run %s:\n", a.paint.wait("left"), l.id)
		a.printError(l.Err)
	}
}

// reportSkipped prints the missing executors of one run.
func (a *app) reportSkipped(s *session, id string, l *view.Lack) {
	a.say("%s run %s%s: %s\n", a.paint.wait("left"), id, ofChild(id, l.ExecutionID), lackText(l, s.config.Located))
}

// ofChild names the subworkflow id of a run top; "" for the run itself.
func ofChild(top, id string) string {
	if top == id {
		return ""
	}
	return " (subworkflow " + id + ")"
}

// writeRecoverable prints the runs that recover would claim.
func (a *app) writeRecoverable(ctx context.Context, s *session, found *recoverable, j *recoverJSON, asJSON bool) error {
	rows := [][]string{{"ID", "NAME", "NODE", "WHY"}}
	for _, id := range found.ids {
		execution, err := s.store.Execution(ctx, id)
		if err != nil {
			return err
		}
		rows = append(rows, []string{id, dash(execution.DefinitionName), dash(execution.CurrentNodeID), found.why[id]})
		row := runjson.FullRow(&execution)
		row.Put("why", found.why[id])
		j.Executions = append(j.Executions, row)
	}
	switch {
	case asJSON:
		return writeEncoded(a.stdout, j)
	case len(found.ids) > 0:
		return writeTable(a.human, rows)
	}
	return nil
}

// writeWaiting prints how many runs wait for a host, a person or a signal.
func (a *app) writeWaiting(ctx context.Context, s *session) error {
	waiting, atLeast := 0, ""
	for _, phase := range []history.Phase{history.PhaseAwaitingActivity, history.PhaseInterrupted, history.PhaseAwaitingSignal} {
		page, err := s.engine.List(ctx, history.ListQuery{Phase: phase, Limit: 100})
		if err != nil {
			return err
		}
		waiting += len(page.Executions)
		if page.NextCursor != "" {
			atLeast = "at least "
		}
	}
	if waiting > 0 {
		a.say("left to a host, a person or a signal: %s%s; see %s\n", atLeast, count(waiting, "run"),
			shellword.Line(append([]string{program, "list"}, s.sameStore...)...))
	}
	return nil
}

// recover drives all found runs at once, and waits for one after another.
func (d *drive) recover(ctx context.Context, found *recoverable, j *recoverJSON) error {
	var runs []*view.Run
	var left error
	for _, id := range found.ids {
		run, err := d.continueFor(ctx, id, 0, graph.DriveRequest{StopAtTimer: true})
		if err != nil && ctx.Err() == nil {
			d.session.view.flush()
			d.app.say("%s run %s:\n", d.app.paint.wait("skipped"), id)
			err = explainDefinition(err)
			d.app.printError(err)
			j.leave(id, err)
			left = silent{exitFailed}
			continue
		}
		if err != nil {
			return d.stopped(ctx, run, err)
		}
		runs = append(runs, run)
	}
	for _, run := range runs {
		next, err := d.finishBranches(ctx, run)
		if ctx.Err() != nil {
			return d.stopped(ctx, run, err)
		}
		d.session.view.flush()
		if err != nil {
			d.app.printError(err)
			j.leave(run.ExecutionID, err)
			left = silent{exitFailed}
			continue
		}
		j.Executions = append(j.Executions, runjson.Full(next, envname.Options))
		if !d.json {
			own, err := d.session.store.Execution(ctx, next.ExecutionID)
			if err != nil {
				return err
			}
			fmt.Fprintf(d.app.human, "%s %s\n", own.ID, phaseText(&own))
		}
		if l := next.Lacks; l != nil && !l.Host {
			d.app.reportSkipped(d.session, next.ExecutionID, l)
			left = silent{exitFailed}
		} else if next.Status == machine.AwaitingTimer {
			if due := nextDue(next); !due.IsZero() {
				d.app.reportTimer(d.session, next.ExecutionID, due)
			}
		}
	}
	return left
}

// recoverJSON is the output of recover --json for all runs.
type recoverJSON struct {
	DryRun bool `json:"dry_run,omitempty"`
	// Executions holds the recovered runs in the form of status --json, or with --dry-run the runs that would be
	// claimed in the form of list --json, with the reason.
	Executions []jsonvalue.Ordered `json:"executions"`
	// Left holds the runs that are left to others, and those that could not be continued.
	Left []jsonvalue.Ordered `json:"left,omitempty"`
	// Held holds the runs that other processes own. HeldUntil is the end of the first of their leases.
	Held      []string  `json:"held,omitempty"`
	HeldUntil time.Time `json:"held_until,omitzero"`
}

func newRecoverJSON(dryRun bool, found *recoverable) *recoverJSON {
	j := &recoverJSON{DryRun: dryRun, Executions: []jsonvalue.Ordered{}, Held: found.held, HeldUntil: found.until}
	for _, l := range found.left {
		if l.Lack != nil {
			j.Left = append(j.Left, jsonvalue.Ordered{{"execution_id", l.id}, {"lacks", runjson.Lack(l.Lack, envname.Options)}})
		} else {
			j.leave(l.id, l.Err)
		}
	}
	return j
}

// leave adds a run that could not be continued.
func (j *recoverJSON) leave(id string, err error) {
	l := jsonvalue.Ordered{{"execution_id", id}, {"error", err.Error()}}
	if e, ok := problem.As(err); ok {
		l.Text("code", string(e.Code))
		l.Text("hint", commandHint(e.Hint, e.At.ExecutionID))
	}
	j.Left = append(j.Left, l)
}
