package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history/runfile"
	"github.com/workflows-engine/workflows-engine/internal/config"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/shellword"
)

func newImport(a *app) *cobra.Command {
	var o importOptions
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Import a run, or the runs of the npm engine",
		Long: `Read a run with its subworkflows and definitions from a file, or from standard input with -. All of it is checked
before anything is written, and it is written in one transaction: a file that is truncated or changed, or whose history
does not follow its definition, leaves nothing behind.

The run continues at the same place: it waits for the same answer, its timers are set again, and attempts in flight are performed
again with the same idempotency key, once a process recovers the run (recover, a worker, a server). Its tasks at agents belong to it
now: a run that was exported without --move still has them, so end it with cancel --keep-tasks.

A run whose id exists is refused, unless it is the same, record for record; then nothing is changed, and import says so.

FILE may also be a database of the npm engine. It is read as of one moment and stays as it is, also while it is in use. Each
run is imported with its subworkflows in one transaction. A run that is rejected, because its records are damaged for
instance, keeps no other run out. That engine stores no definitions: name the definitions of open runs with --definition or
--workflow-dir. An ended run is imported without its definition, and not checked; import it again to add the definition.`,
		Example: `  workflows-engine db import run.jsonl
  workflows-engine db import run.jsonl --json | jq -r .execution_id
  ssh there workflows-engine db export order-17 | workflows-engine db import -
  workflows-engine db import history.sqlite --definition order.workflow.json`,
		Args: exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.importFile(cmd.Context(), args[0], o) },
	}
	set := cmd.Flags()
	set.BoolVar(&o.json, "json", false, "print as JSON")
	set.StringArrayVar(&o.definitions, flagDefinition, nil, "`file` of a definition of runs of the npm engine; may be repeated")
	config.RegisterWorkflowDir(set, &o.folder, "none")
	set.StringVar(&o.mode, flagMode, "", "`mode` of activities for runs of the npm engine: host_mediated (default) or in_process")
	return cmd
}

type importOptions struct {
	json         bool
	definitions  []string
	folder, mode string
}

// importFile imports a run file or a database.
func (a *app) importFile(ctx context.Context, file string, o importOptions) error {
	if file != standardInput && isDatabase(a.path(file)) {
		if a.backend != nil {
			return problem.New(problem.Unsupported, "%s imports no databases", program).WithHint("Nothing was changed. Import it into a database of %s, then move its active runs with db export --move.", engineProgram)
		}
		return a.importDatabase(ctx, a.path(file), o)
	}
	if len(o.definitions) > 0 || o.folder != "" || o.mode != "" {
		return usage("--%s, --%s and --%s require a database of the npm engine", flagDefinition, config.FlagWorkflowDir, flagMode).
			WithHint("Leave them out: a run file has its definitions.")
	}
	return imported(a.importRun(ctx, file, o.json))
}

// imported adds to the hint of a rejected file that the database is as it was.
func imported(err error) error {
	p, ok := problem.As(err)
	if !ok || p.Code != problem.ImportInvalid && p.Code != problem.DuplicateExecutionID {
		return err
	}
	said := *p
	said.Hint = strings.TrimSpace("Nothing was imported. " + p.Hint)
	return &said
}

// importRun imports a run file.
func (a *app) importRun(ctx context.Context, file string, asJSON bool) error {
	_, text, err := a.readRun(file)
	if err != nil {
		return err
	}
	if a.backend == nil {
		if err := a.rehearseImport(ctx, text); err != nil {
			return err
		}
	}
	return a.with(ctx, sessionOptions{store: createStore, executors: noExecutors}, func(s *session) error {
		importer, err := graph.Need[graph.Exporter](s.engine, "db import")
		if err != nil {
			return err
		}
		res, err := importer.Import(ctx, bytes.NewReader(text))
		if err != nil {
			return err
		}
		if asJSON {
			return writeEncoded(a.stdout, importedJSON(res))
		}
		a.writeImported(a.human, res)
		return nil
	})
}

func importedJSON(res *graph.ImportResult) jsonvalue.Ordered {
	out := jsonvalue.Ordered{
		{"execution_id", res.ExecutionID}, {"phase", string(res.Phase)}, {"subworkflows", res.Subworkflows}, {"records", res.Records},
		{"definitions", res.Definitions},
		{"tasks", res.Tasks},       // on which agents work for the run
		{"unchanged", res.Existed}, // the run was here already, record for record
	}
	if len(res.NotReplayed) > 0 { // records of another engine
		runs := map[string]any{}
		for _, r := range res.NotReplayed {
			runs[r.ExecutionID] = float64(r.Records)
		}
		out.Object("not_replayed", runs)
	}
	return out
}

// readRun reads and checks an exported run, and returns its text, too. Another file is rejected at its first invalid line.
func (a *app) readRun(file string) (run *runfile.File, text []byte, err error) {
	var kept bytes.Buffer
	err = a.reading(file, func(in io.Reader) (err error) {
		run, err = runfile.Read(io.TeeReader(in, &kept))
		return err
	})
	return run, kept.Bytes(), err
}

// rehearseImport rejects an invalid file before a database is created for it.
func (a *app) rehearseImport(ctx context.Context, text []byte) error {
	c, err := a.flags.LoadStore(a.env)
	if err != nil || !c.MakesStore() {
		return err
	}
	// There is no database to check against in this case.
	c.Store = config.Memory
	empty, err := c.OpenStore(ctx)
	if err != nil {
		return err
	}
	runner, err := graph.New(empty, c.RunnerOptions(config.Executors{}, nil))
	if err == nil {
		_, err = runner.Import(ctx, bytes.NewReader(text))
		err = firstError(err, runner.Close())
	}
	return firstError(err, empty.Close())
}

func (a *app) writeImported(w io.Writer, res *graph.ImportResult) {
	what := fmt.Sprintf("run %s (%s) with %s, %s", res.ExecutionID, res.Phase, count(res.Subworkflows, "subworkflow"), count(res.Records, "record"))
	if res.Existed {
		fmt.Fprintf(w, "unchanged: %s exists with the same records\n", what)
		return
	}
	fmt.Fprintf(w, "imported %s\n", what)
	for _, r := range res.NotReplayed {
		a.say("%s run %s has %s of another engine; they are not replayed, so changes to them cannot be detected\n",
			a.paint.wait("warning:"), plainCell(r.ExecutionID), count(r.Records, "record"))
	}
	if !res.Phase.Terminal() {
		a.say("show its status with:\n  %s\n", shellword.Command([]string{program, "status"}, []string{res.ExecutionID}, a.flags.Given()...))
	}
	if res.Tasks > 0 {
		a.say("%s agents work on %s of the run, and a plain cancel of the old run would end them; unless it was moved, cancel it with:\n  %s\n",
			a.paint.wait("warning:"), count(res.Tasks, "task"), shellword.Command([]string{program, "cancel"}, []string{res.ExecutionID}, "--keep-tasks"))
	}
}
