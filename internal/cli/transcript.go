package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

type transcriptOptions struct {
	node           string
	json, markdown bool
}

func newAgentTranscript(a *app) *cobra.Command {
	var o transcriptOptions
	cmd := &cobra.Command{
		Use:   "transcript ID",
		Short: "Print what an agent was told and said, and what its tools gave",
		Long: `Print what the agents of a run were told and said, the tools that they called, and what these gave, in order and in full. Members that
look like secrets are masked. The keys of steps, such as t3.c2, are those of history: turn 3, call 2; those of a sub-agent stand behind
its call.`,
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
				if r.Payload.AgentStep == nil || o.node != "" && r.Payload.NodeID != o.node {
					continue
				}
				found = true
				if err := w.step(r); err != nil {
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
		return nil
	})
}

// transcriptWriter prints steps. Agents are told apart by headings.
type transcriptWriter struct {
	transcriptOptions
	out  io.Writer
	id   string
	last string
}

func (w *transcriptWriter) step(r *history.Record) error {
	p := &r.Payload
	key, kind, n, _ := p.Step()
	body := p.AgentStep
	if w.json {
		line := jsonvalue.Ordered{
			{"execution_id", w.id}, {"seq", r.Seq}, {"at", r.CreatedAt.UTC()}, {"node", p.NodeID}, {"visit", max(p.Visit, 1)}, {"attempt", max(p.Attempt, 1)},
			{"n", n}, {"key", key}, {"kind", kind},
		}
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
	text := ""
	if heading := agentHeading(r, key); heading != w.last {
		w.last = heading
		text = w.heading(1, heading)
	}
	text += w.heading(2, strings.TrimSpace(key+" "+stepTitle(kind)))
	_, err := io.WriteString(w.out, text+w.about(r, kind, body))
	return err
}

// agentHeading names the agent of a step: its node, and behind it the call by which it is a sub-agent.
func agentHeading(r *history.Record, key string) string {
	heading := r.Payload.NodeID
	if v := r.Payload.Visit; v > 1 {
		heading += fmt.Sprintf(", visit %d", v)
	}
	if n := r.Payload.Attempt; n > 1 {
		heading += fmt.Sprintf(", attempt %d", n)
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

// about is what a step says, in full.
func (w *transcriptWriter) about(r *history.Record, kind string, body map[string]any) string {
	word := func(name string) string { text, _ := body[name].(string); return text }
	switch kind {
	case "begun":
		return w.part("system", word("system")) + w.part("task", word("task"))
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
		if failed, ok := body["error"]; ok {
			return w.value(word("tool")+" failed", failed)
		}
		return w.value(word("tool"), body["output"])
	case "tried":
		return w.part(word("code"), word("message"))
	case "question":
		return w.part("asked", r.Payload.Prompt) + w.value("calls", body["calls"])
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
