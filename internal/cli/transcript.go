package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/agentsteps"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/timeline"
)

type transcriptOptions struct {
	node           string
	json, markdown bool
}

func newAgentTranscript(a *app) *cobra.Command {
	var o transcriptOptions
	cmd := &cobra.Command{
		Use:   "transcript ID",
		Short: "Print the transcript of an agent",
		Long: `Print the transcript of the agents of a run, in order and in full: prompts, replies, calls of tools and their results, questions to
people and their answers, and the final answer. Fields that look like secrets are masked. The keys of steps, such as t3.c2 (turn 3,
call 2), are the same as in history. The steps of a sub-agent are indented, after its call.`,
		Example: `  workflows-engine agent transcript order-17
  workflows-engine agent transcript order-17 --json | jq -c 'select(.kind == "result")'`,
		Args:              exactly("ID"),
		PreRunE:           exclusive("json", "markdown"),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.transcript(cmd.Context(), args[0], o) },
		ValidArgsFunction: a.completeIDs(""),
	}
	cmd.Flags().StringVar(&o.node, "node", "", "print only the agent of this `node`")
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON, one step a line")
	cmd.Flags().BoolVar(&o.markdown, "markdown", false, "print Markdown")
	return cmd
}

// transcript prints the journals of a run's agents.
func (a *app) transcript(ctx context.Context, id string, o transcriptOptions) error {
	return a.with(ctx, sessionOptions{store: readOnlyStore, executors: optionalExecutors}, func(s *session) error {
		w := &transcriptWriter{out: s.config.Masked(a.stdout), line: timeline.New(id, oneLine), transcriptOptions: o}
		if !o.json {
			w.out = s.config.Masked(a.human)
		}
		found := false
		err := s.eachRecord(ctx, id, func(r *history.Record) error {
			at := w.line.Record(id, r)
			switch {
			case o.node != "" && r.Payload.NodeID != o.node:
			case at.Entry != nil:
				found = true
				return w.step(r, at)
			case at.Attempt != nil && at.Attempt.EndedSeq == r.Seq && at.Attempt.Journal.Count > 0:
				return w.ended(r, at)
			}
			return nil
		})
		if err != nil {
			return err
		}
		if !found {
			subject := "run " + id + " has"
			if o.node != "" {
				subject = fmt.Sprintf("node %q of run %s has", o.node, id)
			}
			a.say("%s no steps of agents\n", subject)
		}
		return w.open()
	})
}

// transcriptWriter prints journal entries. Agents are told apart by headings.
type transcriptWriter struct {
	transcriptOptions
	out  io.Writer
	line *timeline.Timeline
	last string
}

// ended prints the outcome and the totals of an attempt.
func (w *transcriptWriter) ended(r *history.Record, at timeline.Place) error {
	p := &r.Payload
	if w.json {
		line := w.head(r, at)
		line.Put("kind", "ended")
		if r.Name == history.ActivityCompleted {
			line.Put("result", p.Result.Value)
		} else {
			line.Put("error", map[string]any{"code": p.Code, "message": p.Error})
		}
		line.Object("usage", p.Usage)
		return writeLine(w.out, line)
	}
	text := w.under(at.Attempt, "") + w.heading(2, "ended")
	if r.Name == history.ActivityCompleted {
		text += w.value("answer", p.Result.Value)
	} else {
		text += w.part("failed", strings.TrimSpace(p.Code+" "+p.Error))
	}
	_, err := io.WriteString(w.out, text+w.part("totals", totalsText(p.Usage)))
	return err
}

// open prints the totals so far of attempts without an outcome.
func (w *transcriptWriter) open() error {
	if w.json {
		return nil
	}
	for _, v := range w.line.Root().Visits {
		a := v.Attempt()
		if a == nil || a.Journal.Count == 0 || !a.Ended.IsZero() || w.node != "" && v.Node != w.node {
			continue
		}
		text := w.under(a, "")
		if _, err := io.WriteString(w.out, text+w.heading(2, "still open")+w.part("totals so far", totalsText(a.Journal.Totals))); err != nil {
			return err
		}
	}
	return nil
}

// totalsText describes the totals of an agent.
func totalsText(totals map[string]any) string {
	t := agentsteps.ReadTotals(totals)
	parts := []string{count(int(t.Turns), "turn"), count(int(t.ToolCalls), "tool call")}
	if spent := timeline.SpentText(totals, nil); spent != "" {
		parts = append(parts, spent)
	}
	if t.WorkMS > 0 {
		parts = append(parts, timeline.Elapsed(time.Duration(t.WorkMS)*time.Millisecond)+" of work")
	}
	text := strings.Join(parts, ", ")
	if t.StopReason != "" {
		text += "; ended by " + strings.ReplaceAll(t.StopReason, "_", " ")
	}
	if t.Partial {
		text += ", partial"
	}
	return text
}

// head has the first fields of a line of JSON.
func (w *transcriptWriter) head(r *history.Record, at timeline.Place) jsonvalue.Ordered {
	return jsonvalue.Ordered{
		{"execution_id", at.Run.ID}, {"seq", r.Seq}, {"at", r.CreatedAt.UTC()}, {"node", at.Visit.Node}, {"visit", at.Visit.Number}, {"attempt", at.Attempt.Number},
	}
}

// under returns the heading of an agent, "" if the previous text has the same one.
func (w *transcriptWriter) under(a *timeline.Attempt, key string) string {
	heading := agentHeading(a, key)
	if heading == w.last {
		return ""
	}
	w.last = heading
	return w.heading(1, heading)
}

func (w *transcriptWriter) step(r *history.Record, at timeline.Place) error {
	p, e := &r.Payload, at.Entry
	if w.json {
		line := w.head(r, at)
		line.Put("n", e.N)
		line.Put("key", e.Key)
		line.Put("kind", e.Kind)
		for _, name := range jsonvalue.Keys(p.AgentStep) {
			if name != "key" && name != "kind" && name != "n" {
				line.Put(name, p.AgentStep[name])
			}
		}
		if p.Prompt != "" {
			line.Put("prompt", p.Prompt)
		}
		if p.SignalPayload != nil {
			line.Put("payload", p.SignalPayload)
		}
		return writeLine(w.out, line)
	}
	if e.Kind == machine.StepWoken || e.Kind == activities.StepPiece {
		return nil // the result includes a preview of its pieces
	}
	text := w.under(at.Attempt, e.Key) + w.heading(2, strings.TrimSpace(e.Key+" "+stepTitle(e.Kind))) + w.about(r)
	if depth := strings.Count(e.Key, "/"); depth > 0 && !w.markdown { // Markdown has headings instead
		text = deeper(text, strings.Repeat("    ", depth))
	}
	_, err := io.WriteString(w.out, text)
	return err
}

// deeper indents the lines of a text that are not empty.
func deeper(text, by string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" {
			b.WriteString(by)
		}
		b.WriteString(line)
	}
	return b.String()
}

// agentHeading names the agent of an entry: its node, and behind it the call of a sub-agent.
func agentHeading(a *timeline.Attempt, key string) string {
	heading := a.Visit.Node
	if n := a.Visit.Number; n > 1 {
		heading += fmt.Sprintf(", visit %d", n)
	}
	if a.Number > 1 {
		heading += fmt.Sprintf(", attempt %d", a.Number)
	}
	if i := strings.LastIndex(key, "/"); i >= 0 {
		heading += ", sub-agent of " + key[:i]
	}
	return heading
}

func stepTitle(kind string) string {
	switch kind {
	case "begun":
		return "begins"
	case "tried":
		return "failed"
	}
	return kind
}

func (w *transcriptWriter) heading(level int, text string) string {
	if w.markdown {
		return strings.Repeat("#", level) + " " + text + "\n\n"
	}
	if level == 1 {
		return "=== " + text + " ===\n"
	}
	return "--- " + text + "\n"
}

// about returns an entry in full.
func (w *transcriptWriter) about(r *history.Record) string {
	p := &r.Payload
	_, kind, _, _ := p.Step()
	switch kind {
	case machine.StepQuestion:
		text := w.part("asked", p.Prompt)
		for _, c := range agentsteps.Approval(p.AgentStep) {
			text += w.value(c.Key+" "+c.Tool, c.Arguments)
		}
		return text
	case machine.StepAnswer:
		return w.value("answered", p.SignalPayload)
	case machine.StepRest:
		return w.part("until", timeText(p.DueAt))
	}
	switch b := agentsteps.Body(p.AgentStep, p.SignalPayload).(type) {
	case *agentsteps.Begun:
		tools := make([]string, len(b.Tools))
		for i, t := range b.Tools {
			tools[i] = t.Name
		}
		return w.part("agent", b.Agent) + w.part("system", b.System) + w.part("tools", strings.Join(tools, ", ")) + w.part("task", b.Task)
	case *agentsteps.Reply:
		text := w.part("", b.Text)
		for i, c := range b.Calls {
			arguments := c.Raw
			if c.Arguments != nil {
				arguments = c.Arguments
			}
			text += w.value(fmt.Sprintf("call %d: %s", i+1, c.Name), arguments)
		}
		return text
	case *agentsteps.Result:
		by, text := "", ""
		if b.By == "person" {
			by = ", by a person"
		}
		if b.Arguments != nil {
			text = w.value("called with (edited by a person)", b.Arguments)
		}
		switch {
		case b.Error != nil:
			return text + w.value(b.Tool+" failed"+by, map[string]any{"code": b.Error.Code, "message": b.Error.Message})
		case b.Large:
			return text + w.part(b.Tool+" returned"+by, b.Preview)
		}
		return text + w.value(b.Tool+" returned"+by, b.Output)
	case *agentsteps.Tried:
		return w.part(b.Code, b.Message)
	case *agentsteps.Compacted:
		if b.Summary != "" {
			return w.part("up to", b.UpTo) + w.part("summary", b.Summary)
		}
		words, _ := timeline.WordsOf(r)
		return w.part("", words.Text)
	case *agentsteps.Resumed, *agentsteps.Changed:
		words, _ := timeline.WordsOf(r)
		return w.part("", words.Text)
	case *agentsteps.Decided:
		return w.part("decision", strings.TrimSpace(b.Decision+" "+b.Reason))
	}
	return "\n"
}

// part returns a text with its name, "" for an empty one.
func (w *transcriptWriter) part(name, text string) string {
	if strings.TrimSpace(text) == "" {
		return ""
	}
	switch {
	case w.markdown && name != "":
		return "**" + name + "**\n\n" + text + "\n\n"
	case name != "":
		name += ": "
	}
	return name + text + "\n\n"
}

// value returns a value as JSON with its name; "" for nil.
func (w *transcriptWriter) value(name string, v any) string {
	if v == nil {
		return ""
	}
	text := string(jsonvalue.Canonical(v))
	if w.markdown {
		fence := "```"
		for strings.Contains(text, fence) {
			fence += "`"
		}
		return "**" + name + "**\n\n" + fence + "json\n" + text + "\n" + fence + "\n\n"
	}
	return name + ": " + text + "\n\n"
}
