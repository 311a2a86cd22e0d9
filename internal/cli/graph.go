package cli

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/lint"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/config"
	"github.com/workflows-engine/workflows-engine/internal/picture"
	"github.com/workflows-engine/workflows-engine/internal/timeline"
)

type graphOptions struct{ format, output, folder string }

// pictures are the formats of graph.
var pictures = map[string]func(*definition.Program, *timeline.Run) string{
	"text": picture.Text, "mermaid": picture.Mermaid, "svg": picture.SVG,
}

// maxDrawn is the largest number of nodes in a drawing; text leaves out the rest.
const maxDrawn = 1000

func newGraph(a *app) *cobra.Command {
	var o graphOptions
	cmd := &cobra.Command{
		Use:   "graph FILE|NAME|RUN-ID",
		Short: "Draw a definition or a run",
		Long: `Draw a definition: its nodes, the edges of switches with their conditions, and the edges of caught failures, dashed, with their codes.
Of a run, each node has its state (done, failed, stopped, or now if the run is there), how often it was visited and how long that took
together, and the edges that the run took are thick. An edge counts as taken if the next node of the run, or of the branch, was its target.

The argument is a file, else a workflow of --workflow-dir, else the id of a run or its beginning.`,
		Example: `  workflows-engine graph order.workflow.json
  workflows-engine graph order.workflow.json --format mermaid
  workflows-engine graph order-17 --format svg -o order-17.svg`,
		Args:              exactly("FILE, NAME or RUN-ID"),
		ValidArgsFunction: a.completeWorkflows(&o.folder),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.graph(cmd, args, o) },
	}
	config.RegisterWorkflowDir(cmd.Flags(), &o.folder, "none")
	cmd.Flags().StringVar(&o.format, "format", "text", "output `format`: text, mermaid or svg")
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "write to this `file` instead of standard output")
	return cmd
}

// graph draws the definition or run that the argument names.
func (a *app) graph(cmd *cobra.Command, args []string, o graphOptions) error {
	draw, ok := pictures[o.format]
	if !ok {
		return usage("invalid value %q for --format", o.format).WithHint("Use text, mermaid or svg.")
	}
	var program *definition.Program
	var run *timeline.Run
	file, err := a.definitionFile(args[0], o.folder)
	if err == nil {
		program, err = a.drawnFile(file)
	} else {
		program, run, err = a.drawnRun(cmd, args, err)
	}
	if err != nil {
		return err
	}
	if n := len(program.Nodes); o.format != "text" && n > maxDrawn {
		return usage("a drawing must have at most %d nodes, found %d", maxDrawn, n).WithHint("Use --format text.")
	}
	text := draw(program, run)
	if o.format == "text" && o.output == "" {
		text = wrapped(text, a.columns())
	}
	if o.output != "" {
		if err := os.WriteFile(a.path(o.output), []byte(text), 0o644); err != nil {
			return usage("--output: cannot write the file").WithCause(err)
		}
		return nil
	}
	_, err = a.stdout.Write([]byte(text))
	return err
}

func (a *app) drawnFile(file string) (*definition.Program, error) {
	s, err := a.readSource(file, "")
	if err != nil {
		return nil, err
	}
	c := s.check(lint.Options{})
	if c.program == nil {
		a.printError(c.err)
		writeFindings(a.stderr, a.paint, c)
		if c.unreadable {
			return nil, silent{exitUsage}
		}
		return nil, silent{exitFailed}
	}
	return c.program, nil
}

// drawnRun reads a run. notFile is the error of reading the argument as a definition, which is reported if it is not a run either.
func (a *app) drawnRun(cmd *cobra.Command, args []string, notFile error) (program *definition.Program, run *timeline.Run, err error) {
	if err := a.completeShortID(cmd, args); err != nil {
		return nil, nil, err
	}
	err = a.with(cmd.Context(), sessionOptions{store: readOnlyStore, executors: noExecutors}, func(s *session) error {
		program, run, err = s.drawn(cmd.Context(), args[0])
		return err
	})
	if e, ok := problem.As(err); ok && e.Code == problem.ExecutionNotFound {
		return nil, nil, usage("%q is not a file, workflow or run", args[0]).WithCause(notFile).
			WithHint("Name a file, a workflow of --workflow-dir, or a run that list shows.")
	}
	return program, run, err
}

func (s *session) drawn(ctx context.Context, id string) (*definition.Program, *timeline.Run, error) {
	execution, err := s.store.Execution(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	document, err := storedDefinition(ctx, s.store, execution.DefinitionHash)
	if err != nil {
		return nil, nil, err
	}
	program, findings := compileStored(document)
	if program == nil {
		return nil, nil, problem.New(problem.ValidationError, "the definition of the run does not compile: %s", findings[0].Message)
	}
	line := timeline.New(id, s.oneLine)
	line.Define(id, program)
	return program, line.Root(), s.eachRecord(ctx, id, func(r *history.Record) error { line.Record(id, r); return nil })
}

// eachRecord calls a function with the records of a run, until it returns an error.
func (s *session) eachRecord(ctx context.Context, id string, each func(*history.Record) error) error {
	for next := int64(1); ; {
		records, err := s.engine.History(ctx, graph.HistoryRequest{ExecutionID: id, FromSeq: next, Limit: recordPage})
		if err != nil || len(records) == 0 {
			return err
		}
		for i := range records {
			if err := each(&records[i]); err != nil {
				return err
			}
		}
		next = records[len(records)-1].Seq + 1
	}
}
