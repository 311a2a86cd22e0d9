package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/buildstamp"
	"github.com/workflows-engine/workflows-engine/internal/calls"
	"github.com/workflows-engine/workflows-engine/internal/config"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver/frame"
)

// settings are all flags and variables of the command.
type settings struct {
	*config.Config
	maxMessageBytes int
	// exposeWorkflows makes each definition of the workflow directory a tool.
	exposeWorkflows bool
	answerBytes     int
	tools           mcpserver.Tools
	clients         listenOptions
	// pageOrigin returns the origin of the page that answers link to, "" without one. It is set once the transport is open; nil means no links.
	pageOrigin func(context.Context) string
	// work tells which runs the server performs.
	work graph.Work
	// outliveParent keeps the server running after the process that started it has ended.
	outliveParent bool
	// trouble is the error of the settings. Only the log settings are then set, if they are valid.
	trouble error
}

// errAnswered means that the command only printed its help or version.
var errAnswered = errors.New("answered")

// answered is errAnswered, or why the answer could not be written.
func answered(_ int, err error) error {
	if err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return errAnswered
}

const usage = `Usage: workflows-engine-mcp [flags]

Serves the workflow engine to one MCP host over standard input and output. Hosts start it themselves; docs/install.md
describes how to register it. It ends when its input ends, and keeps every run. With --transport http it serves clients that connect
to an address, until it is stopped; --page adds the web page for people.

Flags (--flag value or --flag=value; a flag wins over its variable):
`

// parse reads flags and environment. A flag that is unknown or cannot be read is an error: a misspelt one would silently choose
// another store. Other invalid settings are the settings' trouble.
func parse(args []string, stdout io.Writer) (*settings, error) {
	set := pflag.NewFlagSet("workflows-engine-mcp", pflag.ContinueOnError)
	set.SortFlags = false
	set.SetOutput(io.Discard) // errors are printed once, by run
	set.Usage = func() {}
	flags := config.RegisterServer(set)
	c := &settings{}
	set.BoolVar(&c.exposeWorkflows, "expose-workflows", false, "make each definition in --workflow-dir a tool; for more than 25, two tools find and run them")
	set.IntVar(&c.maxMessageBytes, "max-message-bytes", frame.DefaultMaxMessageBytes, "longest accepted message in `bytes`")
	set.IntVar(&c.answerBytes, "answer-bytes", mcpserver.DefaultAnswerBytes, "size of an answer's structured content in `bytes`, unless a call sets answer_bytes")
	fullAnswers := set.Bool("full-answers", false, "return whole runs in answers, whatever their size")
	tools := set.String("tools", mcpserver.AllTools, "offered tools: all, core (the protocol's), or a `list` of names with commas")
	work := set.String("work", string(graph.WorkAll), "runs that this server performs: own, all (also runs of other processes) or none (workers perform them)")
	set.BoolVar(&c.outliveParent, "outlive-parent", false, "keep running after the process that started the server has ended")
	c.clients.register(set)
	help := set.BoolP("help", "h", false, "print this help")
	printVersion := set.Bool("version", false, "print version, commit and date")
	err := set.Parse(args)
	switch {
	case errors.Is(err, pflag.ErrHelp), err == nil && *help:
		return nil, answered(fmt.Fprint(stdout, usage+set.FlagUsages()))
	case err != nil:
		return nil, config.FlagError(err).WithHint("See workflows-engine-mcp --help.")
	case *printVersion:
		return nil, answered(fmt.Fprintln(stdout, "workflows-engine-mcp", buildstamp.Read()))
	case set.NArg() > 0:
		return nil, problem.New(problem.UsageError, "unexpected argument %q", set.Arg(0)).
			WithHint("Write flags only; see workflows-engine-mcp --help.")
	case c.maxMessageBytes < 1:
		return nil, problem.New(problem.UsageError, "--max-message-bytes must be at least 1")
	case c.answerBytes < mcpserver.MinAnswerBytes:
		return nil, problem.New(problem.UsageError, "--answer-bytes must be at least %d", mcpserver.MinAnswerBytes)
	}
	if c.tools, err = mcpserver.ParseTools(*tools); err != nil {
		return nil, err
	}
	if c.work, err = config.ParseWork(*work); err != nil {
		return nil, err
	}
	if err := c.clients.check(set); err != nil {
		return nil, err
	}
	if *fullAnswers {
		c.answerBytes = mcpserver.FullAnswers
	}
	c.Config, c.trouble = flags.Load(config.System())
	if c.trouble != nil {
		// Report it in the log format of the flags, if that is valid.
		c.Config, _ = flags.LoadLog(config.System())
		return c, nil
	}
	if c.work == graph.WorkNone && c.Store == config.Memory {
		c.trouble = problem.New(problem.UsageError, "--work none requires a database, but --store is memory").
			WithHint("Name a file with --db: workers perform the runs in it.")
	}
	if c.exposeWorkflows && c.WorkflowDir == "" {
		c.trouble = problem.New(problem.UsageError, "--expose-workflows requires --workflow-dir").
			WithHint("Name the directory of the definitions with --workflow-dir, or leave --expose-workflows out.")
	}
	if c.exposeWorkflows && !c.tools.Offers("workflow_start") {
		c.Warnings = append(c.Warnings, "--tools leaves out workflow_start, but --expose-workflows adds tools that start runs; leave out --expose-workflows to keep models from starting runs")
	}
	if c.WaitLimit > calls.MaxWait {
		c.trouble = problem.New(problem.UsageError, "the wait limit must be at most %v, found %v", calls.MaxWait, c.WaitLimit).
			WithHint("Correct --wait-limit or WORKFLOW_ENGINE_WAIT_LIMIT.")
	}
	return c, nil
}
