package main

import (
	"context"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/temporal"
	"github.com/workflows-engine/workflows-engine/internal/config"
)

func newWorker(s *service, flags *config.Flags) *cobra.Command {
	var folder string
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Run a worker",
		Long: `Perform runs until stopped: their workflows, and the nodes whose executors this process has (--profile, --mcp-config, --agents,
WORKFLOW_ENGINE_LLM_CONFIG, …). Any number of workers may share the runs of a namespace; each kind of executor has a task queue.
--capacity limits the attempts in flight on each task queue, --queues the queues that the worker serves.

SIGTERM and Ctrl-C stop it in order: attempts in flight have 30 s to end, then another worker gets them. A worker that is killed
loses nothing: others continue its runs, and perform its attempts again under the same keys.

Exit status: 0 stopped by a signal; 1 the service does not answer; 2 wrong usage or settings.`,
		Example: `  workflows-engine-temporal worker --temporal-address temporal.example.com:7233 --mcp-config mcp.json
  workflows-engine-temporal worker --profile demo --queues gpu --capacity 2`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return s.work(cmd.Context(), flags, folder) },
	}
	config.RegisterWorkflowDir(cmd.Flags(), &folder, "none")
	return cmd
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return problem.New(problem.UsageError, "unexpected argument %q", args[0]).WithHint("See %s --help.", cmd.CommandPath())
	}
	return nil
}

// work performs runs until ctx ends.
func (s *service) work(ctx context.Context, flags *config.Flags, folder string) error {
	c, executors, err := performers(flags, slog.LevelInfo)
	if err != nil {
		return err
	}
	defer func() { _ = executors.Close() }()
	budget := c.MemoryBudget()
	if folder == "" {
		folder = c.WorkflowDir
	}
	o := c.RunnerOptions(executors.Within(budget), c.Log)
	o.Workflows = c.Workflows(c.Catalog(folder, c.Log))
	t, err := s.dial(ctx, c)
	if err != nil {
		return err
	}
	defer t.Close()
	w, err := temporal.NewWorker(s.adapt(c, o, t))
	if err != nil {
		return err
	}
	if err := w.Start(); err != nil {
		return err
	}
	c.Log.Info("worker ready", "service", s.value(address), "namespace", s.value(namespace), "task_queues", strings.Join(w.TaskQueues(), ","),
		slog.GroupAttrs("routing", executors.Routes()...))
	<-ctx.Done()
	c.Log.Info("worker stopping")
	w.Stop()
	c.Log.Info("worker stopped")
	return nil
}

// performers loads the settings of this process and makes its executors. level is the lowest logged one by default.
func performers(flags *config.Flags, level slog.Level) (*config.Config, config.Executors, error) {
	c, err := flags.Load(config.System())
	if err != nil {
		return nil, config.Executors{}, err
	}
	if !c.LogLevelGiven {
		c.LogLevel = level
	}
	c.Log = c.Logger(os.Stderr)
	slog.SetDefault(c.Log)
	for _, warning := range c.Warnings {
		c.Log.Warn("setting questionable", "warning", warning)
	}
	executors, err := c.Executors()
	return c, executors, err
}
