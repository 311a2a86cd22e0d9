package cli

import (
	"context"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/lint"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/config"
)

type runOptions struct {
	driveOptions
	startOptions
	format, id, folder   string
	input                []string
	allowMissing, detach bool
}

func newRun(a *app) *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run FILE|NAME",
		Short: "Run a definition",
		Long: `Run a workflow definition in this process. Nodes are shown on standard error as they complete; the result is printed as JSON.
Every step is stored first, so that the run survives the end of this process.

When the run waits for an answer or a signal, the answers of --resume and --signal are used in order, then the terminal asks.
Without a terminal the command prints how to continue, and exits with status 3.

If an executor, a handler, an agent or a subworkflow is missing, the run is rejected before it starts, with a list, unless
--allow-missing is given or a host performs the activities (--mode host_mediated).

--detach starts the run, prints its id and leaves it to workers, which need the executors then; if no worker serves it, it waits for
one. The command workers lists them.

NAME is a workflow in --workflow-dir, listed by the command catalog; a file with this name has precedence. Subworkflows are found
there by document.name, too, in *.workflow.json and *.workflow.yaml files.`,
		Example: `  workflows-engine run order.workflow.json --input order=17 --input urgent=true
  workflows-engine run order.workflow.json --input @order.json --id order-17
  workflows-engine run examples/lighthouse/lighthouse.workflow.json --profile demo \
      --input '{"ticket_text":"I was charged twice for my invoice"}'
  workflows-engine run refund --workflow-dir ~/workflows --input '{"order":{"id":17}}'
  workflows-engine run gate.workflow.json --signal 'approved={"by":"kim"}' --resume '{"merge":true}'
  workflows-engine run long.workflow.json --wait 10s --json`,
		Args:              exactly("FILE"),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.run(cmd.Context(), args[0], o) },
		ValidArgsFunction: a.completeWorkflows(&o.folder),
	}
	registerInput(cmd.Flags(), &o.input, "run")
	cmd.Flags().StringVar(&o.id, "id", "", "`id` of the run (default a new UUID)")
	o.startOptions.register(a, cmd)
	cmd.Flags().StringVar(&o.format, "format", "", "read the definition as this `format`, json or yaml, whatever the extension")
	cmd.Flags().BoolVar(&o.allowMissing, "allow-missing", false, "start even if an executor is missing; a run that reaches its node fails")
	config.RegisterWorkflowDir(cmd.Flags(), &o.folder, "the directory of FILE")
	registerDrive(cmd.Flags(), &o.driveOptions)
	registerDetach(cmd, &o.detach)
	return cmd
}

// startOptions describe a new run, besides its definition, input and mode.
type startOptions struct {
	title, queue   string
	labels, notify []string
	priority       int
	deadline       time.Duration
}

// register adds the flags, and returns their names.
func (o *startOptions) register(a *app, cmd *cobra.Command) (names []string) {
	set := cmd.Flags()
	set.StringVar(&o.title, "title", "", "one-line `title` of the run in lists")
	registerLabels(set, &o.labels, "label of the run for list --label, as `KEY=VALUE`; may be repeated")
	a.completeLabels(cmd, "label")
	registerNotify(a, cmd, &o.notify)
	set.IntVar(&o.priority, "priority", 0, "priority of a run that waits for a worker, or for a turn: the highest `number` comes first")
	set.StringVar(&o.queue, "queue", "", "`queue` of the run, for workers with --queues (default "+history.DefaultQueue+")")
	set.DurationVar(&o.deadline, "deadline", 0, "longest `time` that the run may take, such as 72h; can only shorten the deadline in FILE")
	return []string{"title", "label", "notify", "priority", "queue", "deadline"}
}

// request returns the start of a run with the options.
func (o *startOptions) request(d *definition.Document, input map[string]any, mode machine.Mode) (graph.StartRequest, error) {
	labels, err := parseLabels(o.labels)
	return graph.StartRequest{
		Definition: d, Input: input, Mode: mode, Priority: o.priority, Queue: o.queue, Deadline: o.deadline, Title: o.title, Labels: labels, Notify: o.notify,
	}, err
}

// readStartable reads a definition and prints its findings. The error is silent if no run can start with it.
func (a *app) readStartable(file, format string) (c checked, err error) {
	source, err := a.readSource(file, format)
	if err != nil {
		return c, err
	}
	c = source.check(lint.Options{})
	a.printError(c.err)
	writeFindings(a.stderr, a.paint, c)
	switch {
	case c.unreadable:
		return c, silent{exitUsage}
	case !c.valid(false):
		return c, silent{exitFailed}
	}
	return c, nil
}

// run starts a run and drives it.
func (a *app) run(ctx context.Context, file string, o runOptions) error {
	file, err := a.definitionFile(file, o.folder)
	if err != nil {
		return err
	}
	c, err := a.readStartable(file, o.format)
	if err != nil {
		return err
	}
	input, err := a.readInput(o.input, stateSchema(c.document.Value()))
	if err != nil {
		return err
	}
	mode, err := parseMode(o.mode)
	if err != nil {
		return err
	}
	req, err := o.request(c.document, input, mode)
	if err != nil {
		return err
	}
	if err := firstError(o.answers.read(a), o.answers.awaited(c.program)); err != nil {
		return err
	}
	folder := o.folder
	if a.workflowDir(folder) == "" && c.hasSubworkflow() && file != standardInput {
		folder = filepath.Dir(file)
	}
	use := sessionOptions{store: createStore, display: showTree, drives: true, folder: folder}
	if o.detach {
		use.detach()
	}
	return a.with(ctx, use, func(s *session) error {
		a.announce(s, mode)
		if missing := s.missing(ctx, c.document); o.allowMissing && !o.detach && len(missing) > 0 && mode != machine.HostMediated {
			a.say("%s missing executor for %s; a run that reaches such a node fails\n",
				a.paint.wait("warning:"), problem.AndList(missing))
		}
		d := a.drive(s, o.driveOptions)
		d.ownWords = true
		req.ExecutionID, req.Wait, req.RequireCapable = o.id, d.caller.Wait, !o.allowMissing && !o.detach
		run, err := s.engine.Start(ctx, req)
		if s.elsewhere {
			return d.startedElsewhere(ctx, run, err, o.detach)
		}
		if o.detach && err == nil {
			return d.detached(run)
		}
		return d.from(ctx, run, explainMissing(err, ", or let a host perform it with --mode host_mediated", func() string { return s.misspeltAgent(ctx, c.document) }))
	})
}

// announce prints the store of the run, unless it is the default one, and whether stubs replace missing executors.
func (a *app) announce(s *session, mode machine.Mode) {
	if s.config.Profile == config.Demo && mode != machine.HostMediated {
		a.say("%s\n", a.paint.faint("demo profile: stubs answer for missing executors, with metadata.demo_output"))
	}
	if s.config.StoreGiven() || s.config.Store == config.Memory {
		a.say("%s\n", a.paint.faint(s.config.StoreLine()))
	}
}

// hasSubworkflow reports whether a run of the definition may look for others.
func (c checked) hasSubworkflow() bool {
	for _, n := range c.program.Nodes {
		if n.Subworkflow != nil {
			return true
		}
	}
	return false
}

// startedElsewhere goes on after the start of a run that workers perform.
func (d *drive) startedElsewhere(ctx context.Context, run *view.Run, err error, detach bool) error {
	if err != nil {
		if e, ok := problem.As(err); ok && e.Code == problem.ExecutorNotConfigured {
			err = e.WithHint("Nothing was started. Start a worker that has it, or start anyway with --allow-missing: the run waits there.")
		}
		return err
	}
	if detach {
		return d.detached(run)
	}
	return d.from(ctx, run, nil)
}
