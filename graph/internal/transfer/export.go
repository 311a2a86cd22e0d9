package transfer

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/internal/library"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/runfile"
)

// ExportOptions configures an export.
type ExportOptions struct {
	// Redact masks the values selected by Redaction; nil means history.DefaultRedaction. A redacted file cannot be imported.
	Redact    bool
	Redaction *history.Redaction
	// Now is the time of the export.
	Now time.Time
	// Move, unless nil, ends the run with its subworkflows where they are: it cancels them with a reason and keeps their tasks at agents. The
	// file then has the runs as they were before.
	Move func(ctx context.Context, reason string) error
	// CheckSteps checks the steps of agents before Move.
	CheckSteps CheckSteps
}

// Source is where Export reads runs. It is a part of history.Store, which documents the methods.
type Source interface {
	Execution(ctx context.Context, executionID string) (history.Execution, error)
	Read(ctx context.Context, executionID string, fromSeq int64, limit int) ([]history.Record, error)
	Handled(ctx context.Context, executionIDs ...string) (map[string]history.Handling, error)
	Definition(ctx context.Context, hash string) (history.StoredDefinition, error)
	DefinitionByName(ctx context.Context, name, version string) (history.StoredDefinition, error)
	Now(ctx context.Context) (time.Time, error)
}

// Keeper is a Source that may have the records of a run that nothing continues there.
type Keeper interface {
	// KeptOnly reports that of a run that was read.
	KeptOnly(executionID string) bool
}

// Export writes a run, its subworkflows and their definitions in the format of package runfile. A run that is still active is written
// as a consistent snapshot: parents are read before their children, so no parent is ahead of its child. It fails with
// EXECUTION_NOT_FOUND or an error of the source or out; the partial output is then useless, and Import rejects it.
func Export(ctx context.Context, from Source, executionID string, o ExportOptions, out io.Writer) error {
	x, err := collect(ctx, from, executionID)
	if err == nil && o.Move != nil {
		x, err = move(ctx, x, o)
	}
	if err != nil {
		return admit.NotFoundAs(err, problem.ExecutionNotFound, executionID)
	}
	w := runfile.NewWriter(out, o.Redact)
	w.Redaction = o.Redaction
	if err := w.Header(executionID, o.Now); err != nil {
		return err
	}
	for _, d := range x.definitions {
		if err := w.Definition(d); err != nil {
			return err
		}
	}
	for _, r := range x.runs {
		if err := w.Run(r); err != nil {
			return err
		}
	}
	return w.Trailer()
}

// collect reads a run with its subworkflows.
func collect(ctx context.Context, from Source, executionID string) (*exporter, error) {
	x := &exporter{Source: from, seen: map[string]bool{}}
	err := x.collect(ctx, executionID)
	if err == nil {
		// If the run is being deleted, only its first records may have been read.
		_, err = from.Execution(ctx, executionID)
	}
	return x, err
}

// MovedToFile is the reason of the cancel that ends a run which moves with a file.
const MovedToFile = "moved by db export"

func isMoveToFile(reason string) bool { return reason == MovedToFile }

// move ends the runs that were read in their source, and returns them as they were before. It first checks that the file can be imported. Runs
// that an earlier export has ended are returned at once, so an export that was interrupted can be repeated.
func move(ctx context.Context, x *exporter, o ExportOptions) (*exporter, error) {
	root := &x.runs[0]
	place := problem.Place{ExecutionID: root.ExecutionID}
	if o.Redact {
		return nil, problem.New(problem.UsageError, "a redacted file cannot be imported, so the run cannot move with it").WithPlace(place).WithHint("Export the run without masks.")
	}
	switch parent := parentID(root); {
	case parent != "":
		return nil, problem.New(problem.UsageError, "run %q is a subworkflow of %q, and moves only with it", root.ExecutionID, parent).WithPlace(place).
			WithHint("Export the root run, which includes its subworkflows.")
	case len(x.open) > 0 && x.open[0] == root.ExecutionID:
		checked, err := checkFile(ctx, x.Source, &runfile.File{ExecutionID: root.ExecutionID, Runs: x.runs, Definitions: x.definitions}, o.CheckSteps, 0)
		if err != nil {
			return nil, err
		}
		for i := range checked.Runs {
			if r := &checked.Runs[i]; len(r.Rest) > 0 {
				return nil, problem.New(problem.HistoryConflict, "run %q computes at the moment", r.ExecutionID).WithPlace(problem.Place{ExecutionID: r.ExecutionID}).
					WithHint("Repeat the export when the run waits.")
			}
		}
		if err := o.Move(ctx, MovedToFile); err != nil {
			return nil, err
		}
		again, err := collect(ctx, x.Source, root.ExecutionID)
		if err != nil {
			return nil, err
		}
		x = again
	}
	if len(x.open) > 0 {
		return nil, problem.New(problem.HistoryConflict, "run %q has not ended yet", x.open[0]).WithPlace(problem.Place{ExecutionID: x.open[0]}).
			WithHint("Repeat the export.")
	}
	if moved, _ := withoutMoves(x.runs, isMoveToFile); moved == 0 {
		return nil, problem.New(problem.CancelNotAllowed, "run %q has ended", x.runs[0].ExecutionID).WithPlace(place).
			WithHint("Only an active run moves. Export it without moving it.")
	}
	return x, nil
}

type exporter struct {
	Source
	runs        []runfile.Run
	definitions []history.StoredDefinition
	seen        map[string]bool // hashes
	// open are the runs that have not ended.
	open []string
}

// collect reads a run and then the subworkflows it started.
func (x *exporter) collect(ctx context.Context, id string) error {
	exec, err := x.Execution(ctx, id)
	if err != nil {
		return err
	}
	records, err := x.Read(ctx, id, 1, 0)
	if err != nil {
		return err
	}
	run := runfile.Run{ExecutionID: id, Records: records}
	if p := exec.Phase; p == history.PhaseFailed || p == history.PhaseCancelled {
		marks, err := x.Handled(ctx, id)
		if h, ok := marks[id]; ok && h.ExecutionID == id {
			run.Handled = &h
		}
		if err != nil {
			return err
		}
	}
	x.runs = append(x.runs, run)
	active := !exec.Phase.Terminal()
	if kept, ok := x.Source.(Keeper); active && !(ok && kept.KeptOnly(id)) {
		x.open = append(x.open, id)
	}
	active = active || slices.ContainsFunc(records, func(r history.Record) bool {
		return r.Name == history.CancelExecution && isMoveToFile(r.Payload.Reason)
	})
	if err := x.define(ctx, exec.DefinitionHash, active); err != nil {
		return err
	}
	if active {
		for _, ref := range slices.Sorted(maps.Keys(exec.Subworkflows)) {
			if err := x.define(ctx, exec.Subworkflows[ref], true); err != nil {
				return err
			}
		}
	}
	begun := map[string]bool{}
	for i := range records {
		p := &records[i].Payload
		child := p.ChildExecutionID
		if records[i].Name != history.SubworkflowStarted || begun[child] || !history.Descends(child, id) {
			continue
		}
		begun[child] = true
		// A child that is not stored yet is started by the next driver of its parent.
		if err := x.collect(ctx, child); err != nil && !errors.Is(err, problem.ExecutionNotFound) {
			return err
		}
	}
	return nil
}

// define adds a definition; with ahead, also the stored definitions of the subworkflows that the run may still start.
func (x *exporter) define(ctx context.Context, hash string, ahead bool) error {
	if hash == "" || x.seen[hash] {
		return nil
	}
	d, err := x.Definition(ctx, hash)
	if errors.Is(err, problem.DefinitionNotFound) {
		return nil // a run of another engine: its caller has the definition
	}
	if err != nil {
		return err
	}
	prog, err := library.CompileStored(d)
	if err != nil {
		return err // the file could not be imported
	}
	x.seen[hash] = true
	x.definitions = append(x.definitions, d)
	if !ahead || prog == nil {
		return nil
	}
	for _, n := range prog.Nodes {
		if n.Subworkflow == nil {
			continue
		}
		next := n.Subworkflow.VersionPin
		if next == "" {
			named, err := x.DefinitionByName(ctx, n.Subworkflow.WorkflowRef, "")
			if err != nil && !errors.Is(err, problem.DefinitionNotFound) {
				return err
			}
			next = named.Hash
		}
		if err := x.define(ctx, next, true); err != nil {
			return err
		}
	}
	return nil
}
