package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/agentsteps"
	"github.com/workflows-engine/workflows-engine/internal/agentview"
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
		Short: "Print what an agent was told and said, and what its tools returned",
		Long: `Print what the agents of a run were told and said, the tools that they called, what these returned, what people were asked and
answered, and what it all came to, in order and in full. Members that look like secrets are masked. The keys of steps, such as t3.c2, are
those of history: turn 3, call 2; those of a sub-agent stand behind its call, and are indented.`,
		Example: `  workflows-engine agent transcript order-17
  workflows-engine agent transcript order-17 --node research --json | jq -c 'select(.kind == "result")'`,
		Args:              exactly("ID"),
		PreRunE:           exclusive("json", "markdown"),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.transcript(cmd.Context(), args[0], o) },
		ValidArgsFunction: a.completeIDs(""),
	}
	cmd.Flags().StringVar(&o.node, "node", "", "only the agent of this `node`")
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON, one step a line")
	cmd.Flags().BoolVar(&o.markdown, "markdown", false, "print Markdown")
	return cmd
}

// transcript prints the steps of a run's agents.
func (a *app) transcript(ctx context.Context, id string, o transcriptOptions) error {
	return a.with(ctx, sessionOptions{lenient: true, read: true}, func(s *session) error {
		w := &transcriptWriter{out: s.config.Masked(a.stdout), id: id, transcriptOptions: o}
		if !o.json {
			w.out = s.config.Masked(a.human)
		}
		found := false
		for next := int64(1); ; {
			records, err := s.engine.History(ctx, graph.HistoryRequest{ExecutionID: id, FromSeq: next, Limit: recordPage})
			if err != nil {
				return err
			}
			if len(records) == 0 {
				break
			}
			for i := range records {
				r := &records[i]
				switch {
				case o.node != "" && r.Payload.NodeID != o.node:
				case r.Payload.AgentStep != nil:
					found = true
					err = w.step(r)
				case r.Name == history.ActivityCompleted || r.Name == history.ActivityFailed:
					err = w.ended(r)
				}
				if err != nil {
					return err
				}
			}
			next = records[len(records)-1].Seq + 1
		}
		if !found {
			what := "run " + id + " has"
			if o.node != "" {
				what = fmt.Sprintf("node %q of run %s has", o.node, id)
			}
			fmt.Fprintf(a.stderr, "%s no steps of agents\n", what)
		}
		return w.open()
	})
}

// transcriptWriter prints steps. Agents are told apart by headings.
type transcriptWriter struct {
	transcriptOptions
	out  io.Writer
	id   string
	last string
	// going are the attempts that have not ended, in the order of their first steps.
	going []*transcribed
}

// transcribed is an attempt whose steps are printed.
type transcribed struct {
	node           string
	visit, attempt int
	totals         map[string]any
}

// of is the attempt of a record; nil if none of its steps has been printed.
func (w *transcriptWriter) of(r *history.Record) *transcribed {
	for _, t := range w.going {
		if t.node == r.Payload.NodeID && t.visit == max(r.Payload.Visit, 1) && t.attempt == max(r.Payload.Attempt, 1) {
			return t
		}
	}
	return nil
}

// ended prints how an attempt with steps has ended, and what it came to.
func (w *transcriptWriter) ended(r *history.Record) error {
	t := w.of(r)
	if t == nil {
		return nil
	}
	w.going = slices.DeleteFunc(w.going, func(other *transcribed) bool { return other == t })
	p := &r.Payload
	if w.json {
		line := w.head(r)
		line.Put("kind", "ended")
		if r.Name == history.ActivityCompleted {
			line.Put("result", p.Result.Value)
		} else {
			line.Put("error", map[string]any{"code": p.Code, "message": p.Error})
		}
		line.Object("usage", p.Usage)
		return writeLine(w.out, line)
	}
	text := w.under(r, "") + w.heading(2, "ended")
	if r.Name == history.ActivityCompleted {
		text += w.value("answer", p.Result.Value)
	} else {
		text += w.part("failed", strings.TrimSpace(p.Code+" "+p.Error))
	}
	_, err := io.WriteString(w.out, text+w.part("totals", totalsText(p.Usage)))
	return err
}

// open prints what attempts that have not ended come to so far.
func (w *transcriptWriter) open() error {
	if w.json {
		return nil
	}
	for _, t := range w.going {
		heading := attemptHeading(t.node, t.visit, t.attempt)
		text := ""
		if heading != w.last {
			w.last, text = heading, w.heading(1, heading)
		}
		if _, err := io.WriteString(w.out, text+w.heading(2, "has not ended")+w.part("totals so far", totalsText(t.totals))); err != nil {
			return err
		}
	}
	return nil
}

// totalsText is what an agent has taken.
func totalsText(totals map[string]any) string {
	number := func(name string) int { n, _ := totals[name].(float64); return int(n) }
	parts := []string{count(number("turns"), "turn"), count(number("tool_calls"), "tool call")}
	if spent := agentview.SpentText(totals, nil); spent != "" {
		parts = append(parts, spent)
	}
	if ms := number("work_ms"); ms > 0 {
		parts = append(parts, timeline.Elapsed(time.Duration(ms)*time.Millisecond)+" of work")
	}
	text := strings.Join(parts, ", ")
	if why, _ := totals["stop_reason"].(string); why != "" {
		text += "; ended by " + strings.ReplaceAll(why, "_", " ")
	}
	if totals["partial"] == true {
		text += ", partial"
	}
	return text
}

// head is what a line of JSON begins with.
func (w *transcriptWriter) head(r *history.Record) jsonvalue.Ordered {
	p := &r.Payload
	return jsonvalue.Ordered{
		{"execution_id", w.id}, {"seq", r.Seq}, {"at", r.CreatedAt.UTC()}, {"node", p.NodeID}, {"visit", max(p.Visit, 1)}, {"attempt", max(p.Attempt, 1)},
	}
}

// under is the heading of an agent, "" if what is printed last is of the same.
func (w *transcriptWriter) under(r *history.Record, key string) string {
	heading := agentHeading(r, key)
	if heading == w.last {
		return ""
	}
	w.last = heading
	return w.heading(1, heading)
}

func (w *transcriptWriter) step(r *history.Record) error {
	p := &r.Payload
	key, kind, n, _ := p.Step()
	body := p.AgentStep
	t := w.of(r)
	if t == nil {
		t = &transcribed{node: p.NodeID, visit: max(p.Visit, 1), attempt: max(p.Attempt, 1)}
		w.going = append(w.going, t)
	}
	if totals, ok := body["totals"].(map[string]any); ok {
		t.totals = totals
	}
	if w.json {
		line := w.head(r)
		line.Put("n", n)
		line.Put("key", key)
		line.Put("kind", kind)
		for _, name := range jsonvalue.Keys(body) {
			if name != "key" && name != "kind" && name != "n" {
				line.Put(name, body[name])
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
	if kind == machine.StepWoken || kind == activities.StepPiece {
		return nil // which says no more than that the agent goes on; the result has a preview of its pieces
	}
	text := w.under(r, key) + w.heading(2, strings.TrimSpace(key+" "+stepTitle(kind))) + w.about(r, kind, body)
	if depth := strings.Count(key, "/"); depth > 0 && !w.markdown { // the headings of Markdown say it
		text = deeper(text, strings.Repeat("    ", depth))
	}
	_, err := io.WriteString(w.out, text)
	return err
}

// deeper indents the lines of a text that have anything.
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

// agentHeading names the agent of a step: its node, and behind it the call by which it is a sub-agent.
func agentHeading(r *history.Record, key string) string {
	heading := attemptHeading(r.Payload.NodeID, r.Payload.Visit, r.Payload.Attempt)
	if i := strings.LastIndex(key, "/"); i >= 0 {
		heading += ", sub-agent of " + key[:i]
	}
	return heading
}

func attemptHeading(node string, visit, attempt int) string {
	heading := node
	if visit > 1 {
		heading += fmt.Sprintf(", visit %d", visit)
	}
	if attempt > 1 {
		heading += fmt.Sprintf(", attempt %d", attempt)
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

// about is what a step says, in full.
func (w *transcriptWriter) about(r *history.Record, kind string, body map[string]any) string {
	word := func(name string) string { text, _ := body[name].(string); return text }
	switch kind {
	case "begun":
		var tools []string
		list, _ := body["tools"].([]any)
		for _, v := range list {
			tool, _ := v.(map[string]any)
			name, _ := tool["name"].(string)
			tools = append(tools, name)
		}
		return w.part("agent", word("agent")) + w.part("system", word("system")) + w.part("tools", strings.Join(tools, ", ")) + w.part("task", word("task"))
	case "reply":
		text := w.part("", word("text"))
		calls, _ := body["calls"].([]any)
		for i, c := range calls {
			call, _ := c.(map[string]any)
			arguments, given := call["arguments"]
			if !given {
				arguments = call["raw"]
			}
			name, _ := call["name"].(string)
			text += w.value(fmt.Sprintf("call %d: %s", i+1, name), arguments)
		}
		return text
	case "result":
		by := ""
		if word("by") == "person" {
			by = ", by a person"
		}
		edited := w.value("called with, as a person has edited it", body["arguments"])
		if failed, ok := body["error"]; ok {
			return edited + w.value(word("tool")+" failed"+by, failed)
		}
		if ref, ok := body["outputRef"].(map[string]any); ok { // of a large result
			preview, _ := ref["preview"].(string)
			return edited + w.part(word("tool")+" returned"+by, preview)
		}
		return edited + w.value(word("tool")+" returned"+by, body["output"])
	case "tried":
		return w.part(word("code"), word("message"))
	case "question":
		text := w.part("asked", r.Payload.Prompt)
		if calls := agentview.Approval(body); calls != nil {
			for _, c := range calls {
				text += w.value(c.Key+" "+c.Tool, c.Arguments)
			}
		}
		return text
	case "compacted":
		if line, ok := agentview.LineOf(r); ok && word("summary") == "" {
			return w.part("", line.Text)
		}
		return w.part("up to", word("upto")) + w.part("summary", word("summary"))
	case agentsteps.Continued, agentsteps.Reconfigured:
		line, _ := agentview.LineOf(r)
		return w.part("", line.Text)
	case "answer":
		return w.value("answered", r.Payload.SignalPayload)
	case "rest":
		return w.part("until", timeText(r.Payload.DueAt))
	case "decided":
		return w.part("decision", strings.TrimSpace(word("decision")+" "+word("reason")))
	}
	return "\n"
}

// part is a text with its name, "" for an empty one.
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

// value is a value as JSON with its name; "" for none.
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
