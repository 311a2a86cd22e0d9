package cli

import (
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
	"github.com/workflows-engine/workflows-engine/internal/config"
	"github.com/workflows-engine/workflows-engine/internal/runjson"
)

func newStatus(a *app) *cobra.Command {
	var asJSON bool
	var folder string
	cmd := &cobra.Command{
		Use:   "status ID",
		Short: "Show where a run stands, and what it waits for",
		Long: `Show where a run stands. For a run that waits, this includes the command that continues it, with an example of the
expected answer. For a run without an owner it includes what is missing here to continue it (lacks in the JSON), as
judged by the flags and variables of this call. --json has the members of the MCP tool workflow_status.`,
		Example: `  workflows-engine status order-17
  workflows-engine status order-17 --json | jq '.pending[0].resume_schema'`,
		Args:              exactly("ID"),
		ValidArgsFunction: a.completeIDs(""),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.status(cmd.Context(), args[0], folder, asJSON) },
	}
	config.RegisterWorkflowDir(cmd.Flags(), &folder, "none")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}

// status prints where a run stands.
func (a *app) status(ctx context.Context, id, folder string, asJSON bool) error {
	return a.with(ctx, sessionOptions{read: true, lenient: true, folder: folder}, func(s *session) error {
		run, err := s.engine.Status(ctx, graph.StatusRequest{ExecutionID: id})
		if err != nil {
			return err
		}
		surveyor, _ := s.engine.(graph.Recoverer)
		if surveyor != nil && slices.ContainsFunc(run.Pending, func(p graph.Pending) bool { return p.Kind == machine.WaitChild }) {
			// Whether its subworkflow can be begun here is known once it has been looked for.
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
			return s.writeJSON(a.stdout, runjson.Full(run))
		}
		if err := s.addRequiredFlags(ctx, run); err != nil {
			return err
		}
		return writeStatus(s.config.Masked(a.human), run, s, a.now())
	})
}

// writeStatus prints a run for people.
func writeStatus(w io.Writer, run *graph.Run, s *session, now time.Time) error {
	rows := [][]string{
		{"run", run.ExecutionID},
		{"workflow", strings.TrimSpace(run.DefinitionName + " " + run.DefinitionVersion)},
		{"status", string(run.Status)},
	}
	if run.Title != "" {
		rows = slices.Insert(rows, 1, []string{"title", run.Title})
	}
	add := func(name, value string) {
		if value != "" {
			rows = append(rows, []string{name, value})
		}
	}
	if !run.Status.Terminal() {
		add("node", run.CurrentNodeID)
	}
	add("failed at", run.ErrorNodeID)
	add("error", strings.TrimSpace(run.ErrorCode+" "+run.Error))
	add("reason", run.Reason)
	add("parent", run.Parent)
	if f := run.ForkedFrom; f.ExecutionID != "" {
		add("forked from", fmt.Sprintf("%s at record %d", f.ExecutionID, f.Seq))
	}
	var labels []string
	for _, name := range slices.Sorted(maps.Keys(run.Labels)) {
		labels = append(labels, strings.TrimSuffix(name+"="+run.Labels[name], "="))
	}
	add("labels", strings.Join(labels, ", "))
	add("mode", string(run.Mode))
	add("began", timeText(run.CreatedAt)+" ("+age(run.CreatedAt, now)+" ago)")
	add("changed", timeText(run.UpdatedAt)+" ("+age(run.UpdatedAt, now)+" ago)")
	add("visits", fmt.Sprintf("%d of %d", run.NodeVisits, run.MaxVisits))
	for _, p := range run.Maps {
		add("items of "+p.NodeID, fmt.Sprintf("%d of %d, %d failed, %d under way", p.Succeeded+p.Failed, p.Items, p.Failed, p.Running))
	}
	for _, k := range run.KeptSignals {
		add("signals kept", fmt.Sprintf("%d of %s", k.Count, k.Name))
	}
	if run.Status == machine.Completed {
		add("result", short(run.Result, 200))
	}
	if err := writeTable(w, rows); err != nil {
		return err
	}
	for _, l := range run.Warnings {
		fmt.Fprintf(w, "\nwarning: %s (%s)\n  %s\n", l.Message, l.Code, commandHint(l.Hint, run.ExecutionID))
	}
	for _, p := range run.Pending {
		if err := writePending(w, run, &p, s, now); err != nil {
			return err
		}
	}
	if l := run.Lacks; l != nil && !slices.ContainsFunc(run.Pending, func(p graph.Pending) bool { return blocks(l, &p) }) {
		fmt.Fprintf(w, "\n%s\n", lackText(l))
	}
	return nil
}

// blocks reports whether what is missing is what an entry waits for.
func blocks(l *graph.Lack, p *graph.Pending) bool {
	return !l.Host && l.ExecutionID == p.ExecutionID && l.NodeID == p.NodeID
}

// writePending prints one thing that a run waits for.
func writePending(w io.Writer, run *graph.Run, p *graph.Pending, s *session, now time.Time) error {
	fmt.Fprintf(w, "\n%s waits for %s\n", p.NodeID, waitText(p))
	if p.Kind == machine.WaitInterrupt {
		fmt.Fprintf(w, "  %s\n", strings.Join(strings.Fields(p.Prompt+" "+p.PromptRef), " "))
		if p.Show != nil {
			fmt.Fprintf(w, "%s\n", indented(shownText(p), "    "))
		}
		if err := writeTable(w, describeMembers(p.ResumeSchema)); err != nil {
			return err
		}
	}
	if p.LastError != "" {
		fmt.Fprintf(w, "  the attempt before failed: %s\n", strings.TrimSpace(p.LastCode+" "+p.LastError))
	}
	if l := run.Lacks; l != nil && blocks(l, p) {
		fmt.Fprintf(w, "  %s\n", lackText(l))
	}
	if !p.Deadline.IsZero() {
		fmt.Fprintf(w, "  %s\n", deadlineText(p, now))
	}
	if !p.BlockDeadline.IsZero() {
		fmt.Fprintf(w, "  its parallel block until %s at the latest\n", timeText(p.BlockDeadline))
	}
	if p.Kind == machine.WaitInterrupt || p.Kind == machine.WaitSignal || p.Host {
		words := continuation(run, p)
		fmt.Fprintf(w, "  continue with: %s\n", s.command(words[0], words[1:]...))
	}
	return nil
}

// deadlineText says until when something is waited for. Once that time is over it may be that there is no process to notice;
// and the timeout of an attempt that nobody performs restarts when a process claims it.
func deadlineText(p *graph.Pending, now time.Time) string {
	attempt := (p.Kind == machine.WaitActivity || p.Kind == machine.WaitDelegate) && !p.Host && p.ExternalTaskID == ""
	switch at := timeText(p.Deadline); {
	case p.Deadline.After(now):
		return "until " + at + " at the latest"
	case attempt:
		return "its time was over at " + at + "; the timeout restarts when a process claims it"
	default:
		return "its time was over at " + at + "; the next server, worker or recover ends it"
	}
}

// waitText says what kind of wait it is.
func waitText(p *graph.Pending) string {
	if p.Queued {
		return fmt.Sprintf("the turn of attempt %d (queued by --limits)", p.Attempt)
	}
	switch p.Kind {
	case machine.WaitInterrupt:
		return "an answer"
	case machine.WaitSignal:
		return fmt.Sprintf("the signal %q", p.SignalName)
	case machine.WaitTimer:
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
	return "its executor"
}
