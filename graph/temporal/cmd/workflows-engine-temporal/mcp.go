package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/temporal"
	"github.com/workflows-engine/workflows-engine/internal/buildstamp"
	"github.com/workflows-engine/workflows-engine/internal/cli"
	"github.com/workflows-engine/workflows-engine/internal/config"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver/frame"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver/stdio"
)

type mcpOptions struct {
	tools  string
	answer int
	expose bool
}

func newMCP(s *service, flags *config.Flags, stdout io.Writer) *cobra.Command {
	var o mcpOptions
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve an MCP host over standard input and output",
		Long: `Serve the tools of workflows-engine-mcp to one MCP host over standard input and output, for runs inside Temporal. The server performs
nothing: workers do. It answers the host also while the service is away; calls are answered with STORE_UNAVAILABLE then.`,
		Example: `  workflows-engine-temporal mcp --temporal-address temporal.example.com:7233 --workflow-dir ~/workflows`,
		Args:    noArguments,
	}
	own := flags.Server(cmd.Flags())
	cmd.Flags().StringVar(&o.tools, "tools", mcpserver.AllTools, "offered tools: all, core (the protocol's), or a `list` of names with commas")
	cmd.Flags().IntVar(&o.answer, "answer-bytes", mcpserver.DefaultAnswerBytes, "size of an answer's structured content in `bytes`, unless a call sets answer_bytes")
	cmd.Flags().BoolVar(&o.expose, "expose-workflows", false, "make each definition in --workflow-dir a tool; for more than 25, two tools find and run them")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return s.serve(cmd.Context(), own, o, os.Stdin, stdout) }
	return cmd
}

// serve serves one host until its input ends or ctx does.
func (s *service) serve(ctx context.Context, flags *config.Flags, o mcpOptions, stdin io.Reader, stdout io.Writer) (err error) {
	c, executors, err := performers(flags, slog.LevelWarn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, executors.Close()) }()
	tools, err := mcpserver.ParseTools(o.tools)
	if err != nil {
		return err
	}
	options, err := s.options(ctx, c)
	if err != nil {
		return err
	}
	t, err := client.NewLazyClient(options)
	if err != nil {
		return s.unreachable(err)
	}
	defer t.Close()
	budget, known := c.MemoryBudget(), c.Catalog(c.WorkflowDir, c.Log)
	ro := c.RunnerOptions(config.Executors{}, c.Log)
	ro.Workflows, ro.DefaultMode = c.Workflows(known), machine.InProcess
	e, err := temporal.New(s.adapt(c, ro, t))
	if err != nil {
		return err
	}
	if known != nil && o.expose {
		go known.Watch(ctx)
	}
	server := mcpserver.New(e, mcpserver.Options{
		Version: buildstamp.Read().Version, DefaultMode: machine.InProcess, Definitions: cli.Definitions(e), Logger: c.Log,
		Redaction: c.AnswerRedaction(), Admit: budget.Admit, AnswerBytes: o.answer, Tools: tools, Catalog: known, ExposeWorkflows: o.expose,
		Elicit: c.Elicit, StoreFlags: c.StoreFlags(), WaitLimit: cmp.Or(c.WaitLimit, -1),
	})
	err = mcpserver.Serve(ctx, server, &stdio.Transport{In: stdin, Out: stdout, MaxMessageBytes: frame.DefaultMaxMessageBytes, Logger: c.Log})
	return errors.Join(err, e.Close())
}
