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

// ExportOptions say how a run is exported.
type ExportOptions struct {
	// Redact masks what Redaction hides, nil being history.DefaultRedaction. The file can then be read, and not be imported.
	Redact    bool
	Redaction *history.Redaction
	// Now is the time of the export.
	Now time.Time
}

// Export writes a run with its subworkflows and their definitions in the form of package runfile. Of a run that goes on,
// what is written is a state in which it has been: each history is read as of one moment, a parent's before its
// children's, so that no parent knows more than its child. The error is EXECUTION_NOT_FOUND or the store's or out's; what
// has been written then is of no use, and Import notices.
func Export(ctx context.Context, store history.Store, executionID string, o ExportOptions, out io.Writer) error {
	x := exporter{Store: store, seen: map[string]bool{}}
	err := x.collect(ctx, executionID)
	if err == nil {
		// Of a run that is being deleted, only the first records may have been there still.
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

// collect reads a run, and then the subworkflows that it has started.
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
		// One that was only about to be started is started by whoever takes the run over.
		if err := x.collect(ctx, child); err != nil && !errors.Is(err, problem.ExecutionNotFound) {
			return err
		}
	}
	return nil
}

// define adds a definition, and with ahead those of the subworkflows that a run of it may still start, as far as they are
// stored.
func (x *exporter) define(ctx context.Context, hash string, ahead bool) error {
	if hash == "" || x.seen[hash] {
		return nil
	}
	d, err := x.Definition(ctx, hash)
	if errors.Is(err, problem.DefinitionNotFound) {
		return nil // a run of another engine, whose caller has it
	}
	if err != nil {
		return err
	}
	prog, err := library.CompileStored(d)
	if err != nil {
		return err // nobody could import it
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
