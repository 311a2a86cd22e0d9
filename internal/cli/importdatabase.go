package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/regularfile"
)

// isDatabase reports whether a file begins as SQLite files do.
func isDatabase(path string) bool {
	const magic = "SQLite format 3\x00"
	f, _, err := regularfile.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, len(magic))
	_, err = io.ReadFull(f, head)
	return err == nil && string(head) == magic
}

// importDatabase imports the runs of a database of the npm engine.
func (a *app) importDatabase(ctx context.Context, path string, o importOptions) error {
	mode, err := parseMode(o.mode)
	if err != nil {
		return err
	}
	definitions, err := a.importDefinitions(o)
	if err != nil {
		return err
	}
	from, err := historysql.OpenEngineFile(ctx, path)
	if err != nil {
		return err
	}
	err = a.with(ctx, sessionOptions{store: createStore, executors: noExecutors}, func(s *session) error {
		runs, err := graph.ImportDatabase(ctx, s.store, from, graph.DatabaseOptions{Definitions: definitions, Mode: mode})
		return firstError(a.writeDatabaseRuns(path, runs, o.json), err)
	})
	return firstError(err, from.Close())
}

// importDefinitions reads the definitions that the flags name. Other files of the directory are ignored.
func (a *app) importDefinitions(o importOptions) (out []*definition.Document, err error) {
	for _, file := range o.definitions {
		document, err := a.readDefinition(file)
		if err != nil {
			return nil, err
		}
		out = append(out, document)
	}
	if o.folder == "" {
		return out, nil
	}
	folder := a.path(o.folder)
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, usage("cannot read directory %s", o.folder).WithCause(unnamed(err))
	}
	for _, entry := range entries {
		if name := entry.Name(); strings.HasSuffix(name, ".json") || strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml") {
			document, err := a.readDefinition(filepath.Join(folder, name))
			if err != nil {
				continue
			}
			if prog, _ := compileStored(document); prog != nil {
				out = append(out, document)
			}
		}
	}
	return out, nil
}

// writeDatabaseRuns prints the result for each run. The error counts the rejected ones.
func (a *app) writeDatabaseRuns(path string, runs []graph.DatabaseRun, asJSON bool) error {
	rejected := slices.Collect(func(yield func(graph.DatabaseRun) bool) {
		for _, r := range runs {
			if r.Err != nil && !yield(r) {
				return
			}
		}
	})
	if asJSON {
		imported := []any{}
		failed := []any{}
		for _, r := range runs {
			if p, ok := problem.As(r.Err); ok {
				failed = append(failed, jsonvalue.Ordered{{"execution_id", r.ExecutionID}, {"code", string(p.Code)}, {"message", p.Message}, {"hint", commandHint(p.Hint, r.ExecutionID, a.flags.Given()...)}})
			} else {
				imported = append(imported, importedJSON(r.Result))
			}
		}
		if err := writeEncoded(a.stdout, jsonvalue.Ordered{{"runs", imported}, {"rejected", failed}}); err != nil {
			return err
		}
	} else {
		for _, r := range runs {
			if r.Err == nil {
				a.writeDatabaseRun(r.Result)
			}
		}
		for _, r := range rejected {
			p, _ := problem.As(r.Err)
			a.say("%s %s: %s\n", a.paint.wait("rejected:"), p.Code, plainCell(strings.TrimSpace(p.Message+". "+commandHint(p.Hint, r.ExecutionID, a.flags.Given()...))))
		}
	}
	if len(rejected) == 0 {
		return nil
	}
	p, _ := problem.As(rejected[0].Err)
	return problem.New(p.Code, "%d of %s in %s were not imported", len(rejected), count(len(runs), "run"), path).
		WithHint("Correct the rejected runs and import again; the other runs are imported.")
}

func (a *app) writeDatabaseRun(res *graph.ImportResult) {
	verb, rest := "imported", ""
	switch {
	case res.Existed:
		verb, rest = "unchanged:", ", imported before"
	case !res.Phase.Terminal():
	case res.Definitions == 0:
		rest = ", kept without a definition"
	}
	fmt.Fprintf(a.human, "%s run %s (%s) with %s, %s%s\n", verb, plainCell(res.ExecutionID), res.Phase, count(res.Subworkflows, "subworkflow"), count(res.Records, "record"), rest)
}
