package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/agentsteps"
	"github.com/workflows-engine/workflows-engine/internal/config"
	"github.com/workflows-engine/workflows-engine/internal/config/envname"
	"github.com/workflows-engine/workflows-engine/internal/fleet"
	"github.com/workflows-engine/workflows-engine/internal/processid"
	"github.com/workflows-engine/workflows-engine/internal/runjson"
	"github.com/workflows-engine/workflows-engine/internal/timeline"
)

func newStatus(a *app) *cobra.Command {
	var asJSON, withState bool
	var folder string
	cmd := &cobra.Command{
		Use:   "status ID",
		Short: "Show the state of a run and its waits",
		Long: `Show the state of a run. For a run that waits, this includes the command that continues it, with an example of the
expected answer. For a run without an owner it includes the executors that this command, with its flags and
variables, lacks to continue it (lacks in the JSON). --state shows the state, too. Subworkflows are below their parent run.
The lines "answered" name who gave the newest three answers to its questions.

--json has the members of the MCP tool workflow_status, the state among them.`,
		Example: `  workflows-engine status order-17
  workflows-engine status order-17 --state
  workflows-engine status order-17 --json | jq '.pending[0].resume_schema'`,
		Args:              exactly("ID"),
		ValidArgsFunction: a.completeIDs(""),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.status(cmd.Context(), args[0], folder, asJSON, withState)
		},
	}
	config.RegisterWorkflowDir(cmd.Flags(), &folder, "none")
	cmd.Flags().BoolVar(&withState, "state", false, "show the state, too")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}

// status prints the state of a run.
func (a *app) status(ctx context.Context, id, folder string, asJSON, withState bool) error {
	return a.with(ctx, sessionOptions{store: readOnlyStore, executors: optionalExecutors, folder: folder}, func(s *session) error {
		run, err := s.engine.Status(ctx, graph.StatusRequest{ExecutionID: id})
		if err != nil {
			return err
		}
		surveyor, _ := s.engine.(graph.Recoverer)
		if surveyor != nil && slices.ContainsFunc(run.Pending, func(p view.Pending) bool { return p.Kind == machine.WaitChild }) {
			// A missing executor of its subworkflow is known once the subworkflow is resolved.
			if _, err := surveyor.Survey(ctx, run.Executions()...); err != nil {
				return err
			}
			if run, err = s.engine.Status(ctx, graph.StatusRequest{ExecutionID: id}); err != nil {
				return err
			}
		}
		if s.without != nil {
			run.Lacks = nil // unknown while the settings cannot be used
		}
		if asJSON {
			return s.writeJSON(a.stdout, runjson.Full(run, envname.Options))
		}
		if err := s.addRequiredFlags(ctx, run); err != nil {
			return err
		}
		requests, err := s.requestsOf(ctx, run)
		if err != nil {
			return err
		}
		owners, err := s.ownersOf(ctx, run)
		if err != nil {
			return err
		}
		own, err := s.store.Execution(ctx, id)
		if err != nil {
			return err
		}
		left, err := history.FindUnattended(ctx, s.store, a.now(), func(id string) bool { return slices.Contains(run.Executions(), id) })
		if err != nil {
			return err
		}
		var f fleet.Fleet
		if len(owners) > 0 {
			if f, err = s.fleet(ctx); err != nil {
				return err
			}
		}
		answers, err := s.answersOf(ctx, &own)
		if err != nil {
			return err
		}
		w := s.config.Masked(a.human)
		if err := writeStatus(w, run, s, a.now(), standing{phaseText(&own), left, requests, owners, f, answers, a.columns()}); err != nil {
			return err
		}
		if err := a.writeBelow(ctx, w, s, id); err != nil || !withState {
			return err
		}
		state := run.State
		if run.Status.Terminal() {
			state = run.FinalState
		}
		fmt.Fprintln(w, "\nstate")
		return writeJSON(w, state)
	})
}

// maxBelow limits the subworkflows that the status of a run names.
const maxBelow = 30

// writeBelow prints the subworkflows of a run.
func (a *app) writeBelow(ctx context.Context, w io.Writer, s *session, id string) error {
	execution, err := s.store.Execution(ctx, id)
	if err != nil || execution.ChildExecutionID == "" {
		return err
	}
	found, err := familiesOf(ctx, s.engine, []string{id})
	if err != nil {
		return err
	}
	var rows [][]string
	found.below(id, 0, func(x *history.Execution, depth int) {
		rows = append(rows, []string{
			strings.Repeat("  ", depth) + "└ " + x.ID, dash(x.DefinitionName), phaseText(x), dash(x.CurrentNodeID), age(x.UpdatedAt, a.now()),
		})
	})
	if len(rows) == 0 {
		return nil
	}
	fmt.Fprintf(w, "\n%s\n", count(len(rows), "subworkflow"))
	if err := writeTable(w, rows[:min(len(rows), maxBelow)]); err != nil {
		return err
	}
	if more := len(rows) - maxBelow; more > 0 {
		fmt.Fprintf(w, "… and %d more\n", more)
	}
	return nil
}

// standing holds the facts that status prints about a run besides its view.
type standing struct {
	// phase is the phase of the run itself, without its subworkflows.
	phase string
	// left holds the run and its subworkflows that have no owner.
	left []history.Unattended
	// requests holds the request records of open attempts, by the ids of the waits.
	requests map[string]*history.Record
	// owners holds the owners of the runs whose attempts processes perform.
	owners map[string]history.Owner
	// fleet describes the owners.
	fleet fleet.Fleet
	// answered holds the newest answers to questions of the run.
	answered []answered
	// columns is the width of the output, 0 for no limit.
	columns int
}

// writeStatus prints a run for people.
func writeStatus(w io.Writer, run *view.Run, s *session, now time.Time, at standing) error {
	rows := [][]string{
		{"run", run.ExecutionID},
		{"workflow", strings.TrimSpace(run.DefinitionName + " " + run.DefinitionVersion)},
		{"phase", at.phase},
	}
	if run.Title != "" {
		rows = slices.Insert(rows, 1, []string{"title", run.Title})
	}
	add := func(name, value string) {
		if value != "" {
			rows = append(rows, []string{name, value})
		}
	}
	recover := "" // the command that continues a run without an owner
	if !run.Status.Terminal() {
		add("node", run.CurrentNodeID)
	}
	if len(run.Pending) == 0 && len(at.left) > 0 || slices.ContainsFunc(at.left, func(u history.Unattended) bool { return !u.Due.IsZero() }) {
		add("process", unattendedText(at.left))
		recover = "continue with:\n  " + s.goesOn(run.ExecutionID)
	}
	if run.Ready != nil {
		add("waits for", fleet.ReadyText(run.Ready))
	}
	add("failed at", run.ErrorNodeID)
	add("error", strings.TrimSpace(run.ErrorCode+" "+run.Error))
	add("data", errorData(run))
	add("reason", run.Reason)
	add("parent", run.ParentExecutionID)
	if f := run.ForkedFrom; f.ExecutionID != "" {
		add("forked from", fmt.Sprintf("%s at record %d", f.ExecutionID, f.Seq))
	}
	add("retry of", run.Lineage.RetryOf)
	for _, r := range run.Lineage.Retries {
		add("retried by", fmt.Sprintf("%s (%s)", r.To, cmp.Or(string(r.Phase), "deleted")))
	}
	add("handled", handledText(run.Lineage.Handled, now))
	var labels []string
	for _, name := range slices.Sorted(maps.Keys(run.Labels)) {
		labels = append(labels, strings.TrimSuffix(name+"="+run.Labels[name], "="))
	}
	add("labels", strings.Join(labels, ", "))
	add("mode", string(run.Mode))
	add("started", timeText(run.CreatedAt)+" ("+age(run.CreatedAt, now)+" ago)")
	add("changed", timeText(run.UpdatedAt)+" ("+age(run.UpdatedAt, now)+" ago)")
	add("visits", fmt.Sprintf("%d of %d", run.NodeVisits, run.MaxVisits))
	for _, answer := range at.answered {
		add("answered", answer.text(now))
	}
	for _, p := range run.Maps {
		add("items of "+p.NodeID, fmt.Sprintf("%d of %d, %d failed, %d running", p.Succeeded+p.Failed, p.Items, p.Failed, p.Running))
	}
	for _, k := range run.KeptSignals {
		add("signals kept", fmt.Sprintf("%d of %s", k.Count, k.Name))
	}
	for _, p := range run.Rollbacks {
		add("rollback", rollbackText(p))
	}
	if run.Compensated > 0 {
		add("rollback", rolledBackText(run))
	}
	if run.Status == machine.Completed {
		add("result", short(run.Result, 200))
	}
	if err := writeTable(w, foldedRows(rows, at.columns)); err != nil {
		return err
	}
	say := func(format string, values ...any) { fmt.Fprint(w, wrapped(fmt.Sprintf(format, values...), at.columns)) }
	if recover != "" {
		say("%s\n", recover)
	}
	for _, l := range run.Warnings {
		say("\nwarning: %s (%s)\n  %s\n", l.Message, l.Code, commandHint(l.Hint, run.ExecutionID))
	}
	for _, p := range run.Pending {
		if err := writePending(w, run, &p, s, now, at.columns); err != nil {
			return err
		}
		if owner, ok := at.owners[p.ExecutionID]; ok && byProcess(&p) && (run.Lacks == nil || !blocks(run.Lacks, &p)) {
			say("  %s\n", ownerText(owner, at.fleet.NameOf(owner.Process), s.goesOn(run.ExecutionID)))
		}
		if r := at.requests[p.ID]; r != nil {
			fmt.Fprintf(w, "  sent: %s\n", cut(requestText(r.Payload.Request, detailWidth), detailWidth))
			say("  all of it:\n    %s\n", s.reading("history", p.ExecutionID, "--from", fmt.Sprint(r.Seq), "--limit", "1", "--full"))
		}
	}
	if l := run.Lacks; l != nil && !slices.ContainsFunc(run.Pending, func(p view.Pending) bool { return blocks(l, &p) }) {
		say("\n%s\n", lackText(l, s.config.Located))
	}
	if run.Status == machine.Failed && run.Lineage.Handled == nil && run.Lineage.Live == "" {
		if goesOn := run.GoesOn.String(); agentsteps.Spent(run.ErrorCode) {
			say("\nraise the agent's budget; then this command %s:\n  %s\n", cmp.Or(plainCell(goesOn), "continues"), s.command("retry", run.ExecutionID, currentConfig...))
		} else if goesOn != "" {
			say("\nthis command %s:\n  %s\n", plainCell(goesOn), s.command("retry", run.ExecutionID))
		} else {
			say("\nretry from before the failure with:\n  %s\n", s.command("retry", run.ExecutionID))
		}
	}
	return nil
}

// handledText describes why a run is handled.
func handledText(h *history.Handling, now time.Time) string {
	if h == nil {
		return ""
	}
	text := h.Note
	if h.Retry != "" {
		text = "run " + h.Retry + ", a retry, has completed"
	}
	if h.Actor != "" {
		text += " (" + h.Actor + ")"
	}
	return plainCell(text) + ", " + age(h.At, now) + " ago"
}

// rolledBackText describes the rollback of a run that has ended.
func rolledBackText(run *view.Run) string {
	return "finished, " + count(run.Compensated, "compensation") + " made"
}

// rollbackText describes the progress of a rollback and its reason.
func rollbackText(p machine.RollbackProgress) string {
	text := fmt.Sprintf("%d of %d undone, undoing %s", p.Undone, p.Total, p.Undoing)
	if p.Reason == machine.RollbackCancel {
		return text + ", because the run was cancelled"
	}
	return text + ", because " + strings.TrimSpace(p.NodeID+" failed "+p.Code)
}

// blocks reports whether the missing executor is the one for an entry.
func blocks(l *view.Lack, p *view.Pending) bool {
	return !l.Host && l.ExecutionID == p.ExecutionID && l.NodeID == p.NodeID
}

// writePending prints one wait of a run.
func writePending(w io.Writer, run *view.Run, p *view.Pending, s *session, now time.Time, columns int) error {
	say := func(format string, values ...any) { fmt.Fprint(w, wrapped(fmt.Sprintf(format, values...), columns)) }
	say("\n%s waits for %s\n", waiterText(p), waitText(p, run.Ready != nil))
	if p.Kind == machine.WaitInterrupt {
		say("  %s\n", strings.Join(strings.Fields(p.Prompt+" "+p.PromptRef), " "))
		if calls := agentsteps.Approval(p.Show); calls != nil {
			writeCalls(w, calls, "    ")
			say("  decisions: %s\n", problem.OrList(agentsteps.Decisions))
		} else {
			if shows(p) {
				say("%s\n", indented(shownText(p), "    "))
			}
			if err := writeTable(w, foldedRows(describeFields(p.ResumeSchema), columns)); err != nil {
				return err
			}
		}
	}
	if p.Steps > 0 {
		say("  %s\n", stepsText(p))
	}
	if p.LastError != "" {
		say("  the previous attempt failed: %s\n", strings.TrimSpace(p.LastCode+" "+p.LastError))
	}
	if l := run.Lacks; l != nil && blocks(l, p) {
		say("  %s\n  %scontinue with:\n    %s\n", lackText(l, s.config.Located), s.before(l), s.goesOn(run.ExecutionID))
	}
	if !p.Deadline.IsZero() {
		say("  %s\n", deadlineText(p, now))
	}
	if !p.BlockDeadline.IsZero() {
		say("  its parallel block until %s at the latest\n", timeText(p.BlockDeadline))
	}
	if p.NeedsInput() {
		if p.Kind == machine.WaitSignal {
			say("  %s\n", payloadText)
		}
		say("  continue with:\n    %s\n", s.continuation(run, p))
	}
	return nil
}

// stepsText is the number of journal entries of an attempt, with their totals.
func stepsText(p *view.Pending) string {
	if agent, ok := agentsteps.StatusOf(p.FirstStep, p.Reconfigured, p.NewestStep, p.Totals); ok {
		return agentText(p, agent)
	}
	text := count(p.Steps, "step") + " recorded"
	var totals []string
	for _, name := range slices.Sorted(maps.Keys(p.Totals)) {
		totals = append(totals, name+" "+short(p.Totals[name], detailWidth))
	}
	if len(totals) > 0 {
		text += ": " + strings.Join(totals, ", ")
	}
	return text
}

// agentText describes the progress of an agent and its use of budgets.
func agentText(p *view.Pending, agent agentsteps.Status) string {
	text := fmt.Sprintf("agent %s in turn %d", plainCell(agent.Name), agent.Turn)
	if agent.Path != "" {
		text += " (sub-agent of " + plainCell(agent.Path) + ")"
	}
	var taken []string
	if most, ok := agent.Budgets["turns"].(float64); ok {
		turns, _ := agent.Totals["turns"].(float64) // with those of sub-agents, unlike the number of the turn
		taken = append(taken, fmt.Sprintf("%v of %v turns", turns, most))
	}
	if calls, _ := agent.Totals["tool_calls"].(float64); calls > 0 {
		taken = append(taken, count(int(calls), "tool call"))
	}
	if spent := timeline.SpentText(agent.Totals, agent.Budgets); spent != "" {
		taken = append(taken, spent)
	}
	return text + ": " + strings.Join(append(taken, count(p.Steps, "step")+" recorded"), ", ")
}

// deadlineText describes a deadline. A deadline that has passed may be unnoticed without a process, and the timeout of an attempt without a process and without
// journal entries restarts when a process claims it.
func deadlineText(p *view.Pending, now time.Time) string {
	attempt := (p.Kind == machine.WaitActivity || p.Kind == machine.WaitDelegate) && !p.Host && p.ExternalTaskID == "" && p.Steps == 0
	switch at := timeText(p.Deadline); {
	case p.Deadline.After(now) && attempt:
		return "until " + at + " at the latest"
	case p.Deadline.After(now):
		return "until " + at + " at the latest; then a server, worker or recover times it out"
	case attempt:
		return "its deadline was " + at + "; the timeout restarts when a process claims the run"
	default:
		return "its deadline was " + at + "; the next server, worker or recover times it out"
	}
}

// byProcess reports whether an entry waits for an attempt that a process performs.
func byProcess(p *view.Pending) bool {
	return (p.Kind == machine.WaitActivity || p.Kind == machine.WaitDelegate) && !p.Host && !p.Queued && p.ExternalTaskID == ""
}

// ownersOf returns the owners of the runs whose attempts processes perform.
func (s *session) ownersOf(ctx context.Context, run *view.Run) (map[string]history.Owner, error) {
	owners := map[string]history.Owner{}
	if s.elsewhere {
		return owners, nil
	}
	for i := range run.Pending {
		p := &run.Pending[i]
		if _, known := owners[p.ExecutionID]; known || !byProcess(p) {
			continue
		}
		owner, err := s.store.Owner(ctx, p.ExecutionID)
		if err != nil {
			return nil, err
		}
		owners[p.ExecutionID] = owner
	}
	return owners, nil
}

// ownerText names the process that performs an attempt, or without one the command that continues the run.
func ownerText(owner history.Owner, name, recover string) string {
	if owner.Live() && !processid.Gone(owner.Process) {
		return fmt.Sprintf("process %s performs it; its lease ends in %s unless it renews it", name, timeline.Seconds(owner.Left))
	}
	return "no process performs it: start a server or worker, or run\n    " + recover
}

// waitText describes a wait of a run, which is ready or not.
func waitText(p *view.Pending, ready bool) string {
	if p.Limit != nil {
		return fmt.Sprintf("%s, for attempt %d", fleet.LimitText(p.Limit), p.Attempt)
	}
	if p.Queued && ready {
		return fmt.Sprintf("a worker, for attempt %d", p.Attempt)
	}
	if p.Queued && p.Steps > 0 { // it was answered or its rest has ended: it waits for a process or for its turn
		return fmt.Sprintf("a process that continues attempt %d, or for its turn (--capacity, --limits)", p.Attempt)
	}
	if p.Queued {
		return fmt.Sprintf("the turn of attempt %d (queued by --capacity or --limits)", p.Attempt)
	}
	switch p.Kind {
	case machine.WaitInterrupt:
		return "an answer"
	case machine.WaitSignal:
		return fmt.Sprintf("the signal %q", p.SignalName)
	case machine.WaitTimer:
		if p.Steps > 0 {
			return "the time " + timeText(p.Due) + " (its attempt rests until then)"
		}
		return "the time " + timeText(p.Due)
	case machine.WaitBackoff:
		return fmt.Sprintf("attempt %d, due %s", p.Attempt, timeText(p.Due))
	case machine.WaitChild:
		return "the subworkflow " + p.ChildExecutionID
	case machine.WaitDelegate:
		if p.ExternalTaskID != "" {
			return fmt.Sprintf("task %s of agent %s (%s)", p.ExternalTaskID, p.AgentID, p.Protocol)
		}
		return fmt.Sprintf("agent %s (%s)", p.AgentID, p.Protocol)
	}
	if p.Host {
		return "the host to perform it"
	}
	return fmt.Sprintf("the outcome of attempt %d", max(p.Attempt, 1))
}
