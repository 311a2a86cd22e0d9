package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

type agentRunOptions struct {
	notify []string
	driveOptions
	input  []string
	id     string
	detach bool
}

func newAgentRun(a *app) *cobra.Command {
	var o agentRunOptions
	cmd := &cobra.Command{
		Use:   "run NAME [TASK]",
		Short: "Run an agent",
		Long: `Run an agent in this process, in a workflow with the agent as its only activity. The task is TASK, - for standard input, or the field
task of --input; the agent receives the other fields as JSON. The answer is printed as JSON.

When the agent asks a person, the answers of --resume are used in order, then the terminal asks, with the arguments of calls:
approve, deny, edit, respond or stop. Without a terminal the command prints how to continue, and exits with status 3. Every step is
stored: after a crash, recover continues the run. --detach prints the id of the run, and leaves it to workers; if none has the agent, the run waits for one.`,
		Example: `  workflows-engine agent run researcher 'Which customers pay late?' --agents agents.json
  workflows-engine agent run researcher - < letter.txt
  workflows-engine agent run researcher --input '{"task":"Sum up","rows":[1,2]}' --id sums-1`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > 2 {
				return exactly("NAME and at most one TASK")(cmd, args)
			}
			return nil
		},
		RunE:              func(cmd *cobra.Command, args []string) error { return a.runAgent(cmd.Context(), args, o) },
		ValidArgsFunction: a.completeAgents,
	}
	registerInput(cmd.Flags(), &o.input, "agent")
	cmd.Flags().StringVar(&o.id, "id", "", "`id` of the run (default a new UUID)")
	registerNotify(a, cmd, &o.notify)
	o.answers.register(cmd.Flags())
	registerWait(cmd.Flags(), &o.wait)
	registerStream(cmd.Flags(), &o.driveOptions)
	cmd.Flags().BoolVar(&o.json, "json", false, "print the status of the run as JSON")
	registerDetach(cmd, &o.detach)
	return cmd
}

// runAgent starts a run of an agent alone and drives it.
func (a *app) runAgent(ctx context.Context, args []string, o agentRunOptions) error {
	name := args[0]
	c, err := a.loadAgents(a.flags.Load)
	if err != nil {
		return err
	}
	if _, ok := c.Agents.Agents[name]; !ok {
		return noAgent(c, name)
	}
	input, err := a.readInput(o.input, map[string]any{"properties": map[string]any{"task": map[string]any{"type": "string"}}})
	if err != nil {
		return err
	}
	if len(args) == 2 {
		if _, both := input["task"]; both {
			return usage("TASK and the field task of --input cannot be given together").WithHint("Leave one of them out.")
		}
		if input["task"], err = a.task(args[1], o.input); err != nil {
			return err
		}
	}
	if len(input) == 0 {
		return usage("missing task").WithHint("Write the task after the name, or as the field task of --input.")
	}
	document, err := agentWorkflow(name, input)
	if err != nil {
		return err
	}
	if err := o.answers.read(a); err != nil {
		return err
	}
	use := sessionOptions{store: createStore, display: showTree, drives: true}
	if o.detach {
		use.detach()
	}
	return a.with(ctx, use, func(s *session) error {
		a.announce(s, "")
		d := a.drive(s, o.driveOptions)
		d.ownWords = true
		run, err := s.engine.Start(ctx, graph.StartRequest{
			ExecutionID: o.id, Definition: document, Input: map[string]any{agentInput: input}, Title: cut("agent "+name, 200), Wait: d.caller.Wait,
			Notify: o.notify, RequireCapable: !o.detach,
		})
		if o.detach && err == nil {
			return d.detached(run)
		}
		return d.from(ctx, run, err)
	})
}

// task returns the task of an agent from the command line.
func (a *app) task(argument string, input []string) (string, error) {
	if argument != standardInput {
		return argument, nil
	}
	if slices.Contains(input, standardInput) {
		return "", usage("TASK and --input cannot both be standard input")
	}
	text, err := a.readAll(standardInput)
	if err != nil {
		return "", err
	}
	if !utf8.Valid(text) || strings.TrimSpace(string(text)) == "" {
		return "", usage("standard input must be a task in UTF-8 text")
	}
	return strings.TrimSpace(string(text)), nil
}

// agentInput is the field of the state with the input of the agent, so that the rest of the state is its answer.
const agentInput = "agent_input"

// agentWorkflow is a workflow of a start, an agent and an end.
func agentWorkflow(name string, input map[string]any) (*definition.Document, error) {
	mapping := map[string]any{}
	for _, member := range jsonvalue.Keys(input) {
		mapping[member] = map[string]any{"jq": fmt.Sprintf(".%s[%s]", agentInput, jsonvalue.AppendString(nil, member))}
	}
	return definition.Parse(jsonvalue.Canonical(map[string]any{
		"document":     map[string]any{"schema": "https://agent-workflow.dev/schemas/workflow-definition.json", "name": "agent", "version": "1.0.0"},
		"state_schema": map[string]any{"type": "object"},
		"nodes": []any{
			map[string]any{"id": "begin", "type": "start"},
			map[string]any{"id": "agent", "type": "agent_delegate", "config": map[string]any{"agent_id": name, "protocol": "sdk", "input_mapping": mapping}},
			map[string]any{"id": "finish", "type": "end", "config": map[string]any{"output_mapping": "del(." + agentInput + ")"}},
		},
		"edges": []any{
			map[string]any{"source": "__start__", "target": "begin"}, map[string]any{"source": "begin", "target": "agent"},
			map[string]any{"source": "agent", "target": "finish"},
		},
	}))
}

// replyPrinter streams the answers of models to a terminal, line by line, without breaking other output such as the tree of the run. Long
// lines are broken between words.
type replyPrinter struct {
	out io.Writer
	// clean masks secrets in a line and makes it safe for a terminal.
	clean   func(string) string
	paint   palette
	columns func() int

	mu sync.Mutex
	// replies holds the arriving replies by their node.
	replies map[replyPlace]*arrivingReply
}

// replyPlace is where a reply arrives.
type replyPlace struct{ run, node, branch, key string }

// arrivingReply is the received part of a reply.
type arrivingReply struct {
	agent   string
	seen    int // its characters
	pending string
}

// progress is graph.Wait.Progress.
func (v *replyPrinter) progress(p graph.Progress) {
	v.mu.Lock()
	defer v.mu.Unlock()
	key, _ := p.Detail["key"].(string)
	text, _ := p.Detail[activities.HeartbeatText].(string)
	at := replyPlace{p.ExecutionID, p.NodeID, p.Branch, key}
	for other := range v.replies {
		sameNode := other.run == at.run && other.node == at.node && other.branch == at.branch
		if sameNode && (p.Kind != graph.ExecutorAlive || parentOf(other.key) == parentOf(key) && (other != at || text == "")) {
			v.finish(other) // its agent, or the node, has continued
		}
	}
	if p.Kind != graph.ExecutorAlive || text == "" || p.Detail["activity"] != "model" { // summaries are the engine's
		return
	}
	r := v.replies[at]
	if r == nil {
		r = &arrivingReply{}
		r.agent, _ = p.Detail["agent"].(string)
		if v.replies == nil {
			v.replies = map[replyPlace]*arrivingReply{}
		}
		v.replies[at] = r
	}
	received, _ := p.Detail["received_chars"].(int)
	if received-utf8.RuneCountInString(text) > r.seen {
		r.pending += "… " // a piece is missing
	}
	r.seen = received
	r.pending += text
	v.print(r)
}

// parentOf returns the prefix of the keys of an agent's turns.
func parentOf(key string) string { return key[:strings.LastIndex(key, "/")+1] }

// print prints the lines of a reply that are complete or as wide as the terminal.
func (v *replyPrinter) print(r *arrivingReply) {
	for {
		line, rest, whole := strings.Cut(r.pending, "\n")
		if width := v.width(r); utf8.RuneCountInString(line) > width {
			at := len(string([]rune(line)[:width]))
			if space := strings.LastIndexByte(line[:at], ' '); space > 0 {
				at = space + 1
			}
			v.line(r, line[:at])
			r.pending = r.pending[at:]
			continue
		}
		if !whole {
			return
		}
		v.line(r, line)
		r.pending = rest
	}
}

// width returns how many characters of a reply fit into a line.
func (v *replyPrinter) width(r *arrivingReply) int {
	const least, border = 20, 4 // " │ ", and a column that stays free
	return max(v.columns()-utf8.RuneCountInString(r.agent)-border, least)
}

func (v *replyPrinter) line(r *arrivingReply, text string) {
	if text = v.clean(text); text != "" {
		fmt.Fprintf(v.out, "%s %s\n", v.paint.faint(plainCell(r.agent)+" │"), text)
	}
}

// finish prints the rest of a reply.
func (v *replyPrinter) finish(at replyPlace) {
	v.line(v.replies[at], v.replies[at].pending)
	delete(v.replies, at)
}

// end prints the rest of all replies.
func (v *replyPrinter) end() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for at := range v.replies {
		v.finish(at)
	}
}
