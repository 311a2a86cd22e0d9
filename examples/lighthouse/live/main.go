// Command live runs the lighthouse example over HTTP and stdio: with a scripted model behind an endpoint, and with a tool server.
//
//	go run ./examples/lighthouse/live
//	go run ./examples/lighthouse/live -ticket "The app crashes with error 17 when I sync"
//	go run ./examples/lighthouse/live -ticket "Hello?" -intent other
//
// It serves chat completions on a free port of this computer, and starts itself again as an MCP server over stdio. Both
// answer by fixed rules, so that no account and no network is needed. Then it calls workflows-engine as an operator
// would: run on a SQLite file, with the nodes shown live, and its history, with the duration of each activity.
//
// With OPENAI_API_KEY or OPENAI_BASE_URL set it asks that endpoint instead, for the model OPENAI_MODEL. Without a key
// none is sent, as servers like Ollama have it.
package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/workflows-engine/workflows-engine/examples/lighthouse"
	"github.com/workflows-engine/workflows-engine/internal/cli"
)

// helpdeskArgument makes this program the tool server.
const helpdeskArgument = "serve-helpdesk"

// statusPaused is the exit status of a run that waits for an answer, without a person at the terminal to give it.
const statusPaused = 3

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	if len(os.Args) == 2 && os.Args[1] == helpdeskArgument {
		if err := serveHelpdesk(ctx); err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "helpdesk:", err)
			os.Exit(1)
		}
		return
	}
	var o options
	flag.StringVar(&o.ticket, "ticket", "I was charged twice for my invoice", "the customer's `text`")
	flag.StringVar(&o.intent, "intent", "", "the answer in case that a person is asked: billing, technical or other")
	flag.StringVar(&o.database, "db", "", "SQLite `file` (default one in a new temporary folder, which is kept)")
	flag.Parse()
	status, err := o.run(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "live:", err)
		status = 1
	}
	os.Exit(status)
}

type options struct{ ticket, intent, database string }

// run starts the servers, calls the two commands, and returns the exit status.
func (o options) run(ctx context.Context) (int, error) {
	folder, err := os.MkdirTemp("", "lighthouse-live-")
	if err != nil {
		return 1, err
	}
	database := cmp.Or(o.database, filepath.Join(folder, "runs.db"))
	model, stop, err := modelEndpoint()
	if err != nil {
		return 1, err
	}
	defer stop()
	manifest := filepath.Join(folder, "mcp.json")
	if err := writeManifest(manifest); err != nil {
		return 1, err
	}
	definition := filepath.Join(folder, "lighthouse.workflow.json")
	if err := os.WriteFile(definition, model.in(lighthouse.Definition), 0o600); err != nil {
		return 1, err
	}
	input, err := json.Marshal(map[string]string{"ticket_text": o.ticket})
	if err != nil {
		return 1, err
	}
	for name, value := range map[string]string{"WORKFLOW_ENGINE_LLM_CONFIG": model.config, "WORKFLOW_ENGINE_MCP_CONFIG": manifest} {
		if err := os.Setenv(name, value); err != nil {
			return 1, err
		}
	}
	fmt.Fprintf(os.Stderr, "models  %s\ntools   helpdesk, an MCP server over stdio: this program, started again\n", model.said)
	id := "live-" + strings.ToLower(rand.Text()[:8])
	run := []string{"run", definition, "--store-path", database, "--id", id, "--input", string(input)}
	if o.intent != "" {
		answer, err := json.Marshal(map[string]string{"intent": o.intent})
		if err != nil {
			return 1, err
		}
		run = append(run, "--resume", string(answer))
	}
	// The history is worth a look above all when the run has failed.
	worst := 0
	for _, command := range [][]string{run, {"history", id, "--store-path", database}} {
		fmt.Fprintf(os.Stderr, "\n$ workflows-engine %s\n", strings.Join(quoted(command), " "))
		status := cli.Main(ctx, command, os.Stdin, os.Stdout, os.Stderr)
		worst = max(worst, status)
	}
	if worst == statusPaused {
		fmt.Fprintln(os.Stderr, "\nThe servers end with this program: answer in the same call, with -intent billing, technical or other.")
	}
	return worst, nil
}

// writeManifest says how the engine gets the helpdesk's tools. Hosts and operators write such a file by hand.
func writeManifest(path string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(map[string]any{
		"mcpServers": map[string]any{"helpdesk": map[string]any{"command": program, "args": []string{helpdeskArgument}}},
	}, "", "  ")
	if err != nil {
		return err
	}
	// The engine starts only commands that the operator allows.
	if err := os.Setenv("WORKFLOW_ENGINE_MCP_ALLOW_COMMANDS", program); err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o600)
}

// in puts the model's name into the definition, where the user has an endpoint of their own.
func (m model) in(definition []byte) []byte {
	if m.name == "" {
		return definition
	}
	name, err := json.Marshal(m.name)
	if err != nil {
		return definition
	}
	return bytes.ReplaceAll(definition, []byte(`"small-and-fast"`), name)
}

// quoted shows arguments as a shell takes them.
func quoted(args []string) []string {
	out := make([]string, len(args))
	for i, a := range args {
		if out[i] = a; strings.ContainsAny(a, " {}\"'") {
			out[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
	}
	return out
}
