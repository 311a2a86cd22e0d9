package cli

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/manifest"
)

func newTryStepCommand(a *app) *cobra.Command {
	var state, config string
	cmd := &cobra.Command{
		Use:   "try FILE HANDLER",
		Short: "Run the program of a handler once",
		Long: `Run the program of a handler once, as a step node does, and print its output. The standard error of the program
is shown, too.`,
		Example: `  workflows-engine tool try steps.json urn:example:total --state '{"items": [{"price": 2}]}'`,
		Args:    exactly("FILE", "HANDLER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			commands, err := readOperatorFile(a, args[0], manifest.ParseStepCommands)
			if err != nil {
				return err
			}
			request := activities.Request{
				ExecutionID: "try", NodeID: "try", NodeType: "step", Visit: 1, Attempt: 1, IdempotencyKey: "try:try#1.1",
				Heartbeat: func(map[string]any) {},
			}
			if request.Config, err = a.readObject("--config", config); err != nil {
				return err
			}
			given, err := a.readObject("--state", state)
			if err != nil {
				return err
			}
			request.Config["handler"], request.State = args[1], func() map[string]any { return given }
			return a.tryStepCommand(cmd.Context(), args[0], commands, request)
		},
	}
	cmd.Flags().StringVar(&state, "state", "", "state of the run: `JSON`, @file, or - for standard input (default {})")
	cmd.Flags().StringVar(&config, "config", "", "further fields of the node's config: `JSON`, @file, or -")
	return cmd
}

func (a *app) tryStepCommand(ctx context.Context, file string, list map[string]manifest.StepCommand, request activities.Request) error {
	name, _ := request.Config["handler"].(string)
	if list[name].Command == "" {
		names := slices.Sorted(maps.Keys(list))
		return usage("handler %q not found", name).WithHint("Use %s.", problem.OrList(names))
	}
	c, err := a.flags.LoadLog(a.env)
	if err != nil {
		return err
	}
	c.Log = slog.New(slog.NewTextHandler(a.stderr, nil))
	tried := map[string]manifest.StepCommand{name: list[name]} // the programs of the others may be missing here
	commands, err := c.Commands(tried, file)
	if err != nil {
		return err
	}
	result, err := commands.Execute(ctx, request)
	if err = firstError(err, commands.Close()); err != nil {
		if failure, ok := errors.AsType[*activities.Failure](err); ok {
			a.say("%s %s: %v\n", a.paint.bad("error:"), failure.Code, failure)
			return silent{exitFailed}
		}
		return err
	}
	return writeJSON(a.stdout, result.Output)
}
