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
}

// Export writes a run, its subworkflows and their definitions in the format of package runfile. A run that is still active is written
// as a consistent snapshot: parents are read before their children, so no parent is ahead of its child. It fails with
// EXECUTION_NOT_FOUND or an error of the store or out; the partial output is then useless, and Import rejects it.
func Export(ctx context.Context, store history.Store, executionID string, o ExportOptions, out io.Writer) error {
	x := exporter{Store: store, seen: map[string]bool{}}
	err := x.collect(ctx, executionID)
	if err == nil {
		// If the run is being deleted, only its first records may have been read.
		_, err = store.Execution(ctx, executionID)
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

type exporter struct {
	history.Store
	runs        []runfile.Run
	definitions []history.StoredDefinition
	seen        map[string]bool // hashes
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
	if err := x.define(ctx, exec.DefinitionHash, !exec.Phase.Terminal()); err != nil {
		return err
	}
	if !exec.Phase.Terminal() {
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
