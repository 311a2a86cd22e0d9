// Command workflows-engine-temporal runs workflow definitions inside Temporal: it is a worker, an MCP server and the commands about runs. See
// "workflows-engine-temporal --help" and docs/scaling.md.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/internal/childprocess"
	"github.com/workflows-engine/workflows-engine/internal/cli"
	"github.com/workflows-engine/workflows-engine/internal/config"
)

func main() {
	childprocess.HideEnvironment()
	// A disconnected host must not end a server in the middle of its work: writes fail instead.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal stops the work in order; after it, a second one ends the process as usual.
	context.AfterFunc(ctx, stop)
	// Standard output belongs to results and the protocol. Other output, of a library or a forgotten line, goes to standard error.
	stdout := os.Stdout
	os.Stdout = os.Stderr
	os.Exit(cli.MainOver(ctx, backend(stdout), os.Args[1:], os.Stdin, stdout, os.Stderr))
}

// program is the name of this program.
const program = "workflows-engine-temporal"

// backend makes the commands of this program.
func backend(stdout *os.File) *cli.Backend {
	s := &service{env: config.System()}
	return &cli.Backend{
		Program: program,
		Short:   "Run agent workflows inside Temporal",
		Long: `workflows-engine-temporal runs workflow definitions of the Agent Workflow Protocol inside Temporal. Each run is a Temporal workflow.
Workers perform the runs; the other commands start, answer and show them, and need no executors.

doctor shows whether a namespace is ready for runs, and the commands that make it so. What Temporal does not offer is rejected with
UNSUPPORTED_BY_BACKEND. A key of the service comes from a file or a variable, never from the command line.`,
		Texts: map[string][]string{
			"run": {"Run a definition", `Start a run of a workflow definition and follow it. Workers perform its nodes, which are shown on standard error as they complete; the
result is printed as JSON. The run continues after this command ends.

When the run waits for an answer or a signal, the answers of --resume and --signal are used in order, then the terminal asks.
Without a terminal the command prints how to continue, and exits with status 3.

If no worker performs a kind of node, the run is rejected before it starts, unless --allow-missing is given or a host performs the
activities (--mode host_mediated). --detach starts the run and prints its id.`},
			"serve": {"Serve the HTTP API and the page", `Serve the HTTP API for programs until stopped: start, answer, follow and read runs. GET /openapi.json describes it, and
docs/http-api.md shows how it is used. GET /healthz answers without a token. Workers perform the runs. An operation that runs on
Temporal do not have is answered with status 501 and UNSUPPORTED_BY_BACKEND.

Each request has a bearer token. --token-file names a file with one token, or a list of tokens in JSON
(schemas/tokens.schema.json); WORKFLOW_ENGINE_HTTP_TOKEN is one token itself. Without a token every program of this machine may
connect, and the address must be of this machine. With --page the same address has the web page of ui. The API is plain HTTP: put a
proxy with TLS in front of it for other machines.

Exit status: 0 stopped by a signal; 1 the service does not answer; 2 wrong usage or settings.`},
			"ui": {"Show runs in a web browser", `Serve a web page with the runs of a namespace, and open it in the browser: questions with their forms, the graph and the visits of
each run, and the workflows that can be started. With an ID the page of that run opens. Ctrl-C stops it. Workers perform the runs.

The page is served on this machine alone. The printed link lets one browser in, once, within ten minutes. docs/page.md describes
what protects the page, which leaves out what runs on Temporal do not have.`},
			"db": {"Move runs", "Move runs to and from databases of workflows-engine: export a run to a file, and import it from one."},
			"db export": {"Export a run", `Write a run with its subworkflows and their definitions to standard output, one JSON object a line, for db import.

--move ends the run here and writes the file as it was before, for a run that continues where the file is imported. Workflows of
the run end as cancelled, and agents keep its tasks. A run that performs an attempt is not moved: wait until it waits. Repeat the command if
it was interrupted, or if a subworkflow has not ended its attempt; Temporal keeps ended runs for the retention period of the namespace.

A run that has continued as new can be exported if --temporal-archive has its earlier records. --redact masks the values of fields that
look like secrets, for a file to read; it cannot be imported.`,
				`  workflows-engine db export order-17 --move > run.jsonl
  workflows-engine db export order-17 --redact | jq -c 'select(.type == "record")'`},
			"db import": {"Import a run", `Read a run with its subworkflows and definitions from a file, or from standard input with -, and start it where it was. All of
it is checked before anything starts: a file that is truncated or changed, or whose history does not follow its definition, starts
nothing.

The run waits for the same answer, its timers are set again, and attempts in flight are performed again with the same idempotency
key. Its earlier records go to --temporal-archive, which must be that of the workers: agents continue from them. A run that has
ended is rejected, and so is an id that Temporal still knows, unless the same file was imported before.`,
				`  workflows-engine db import run.jsonl --temporal-archive /var/lib/workflows/archive
  workflows-engine db import run.jsonl --temporal-archive /var/lib/workflows/archive --json`},
			"doctor": {"Check settings, service and workers", `Check the settings, and whether the namespace is ready for runs: that it can be reached, its search attributes with the command that
creates those that are missing, its limits, and the workers on each task queue with the versions of their walks.

Exit status: 0 without problems, 1 with problems. Warnings do not count.`},
		},
		Register: s.register, Engine: s.engine, Diagnose: s.diagnose,
		Commands: func(flags *config.Flags) []*cobra.Command {
			return []*cobra.Command{newWorker(s, flags), newMCP(s, flags, stdout)}
		},
	}
}
