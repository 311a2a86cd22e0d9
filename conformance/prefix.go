package conformance

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/runfile"
	"github.com/workflows-engine/workflows-engine/internal/jsonobject"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// readPrefix reads historyPrefix: rows as an engine stores them, without seq, time and execution id.
func readPrefix(o *jsonobject.Object) []history.Record {
	rows := o.Get("historyPrefix").Elements()
	records := make([]history.Record, 0, len(rows))
	for _, v := range rows {
		row := v.Object()
		r := history.Record{
			Kind: history.Kind(row.Require("kind").Choice(string(history.Command), string(history.Event))),
			Name: history.Name(row.Require("name").NonBlank()),
		}
		payload, err := history.DecodePayload(r.Name, jsonvalue.Canonical(orEmpty(row.Get("payload").Map())))
		if err != nil {
			row.Get("payload").Fail("profile", "cannot be read: %v", err)
		}
		r.Payload = payload
		row.Close()
		records = append(records, r)
	}
	return records
}

// importPrefix stores the prefix as the history of a run, like an import. A prefix without an order of branches has that of the npm
// engine.
func (r *replayRun) importPrefix(ctx context.Context) error {
	if len(r.prefix) == 0 {
		return nil
	}
	importer, ok := history.As[history.Importer](r.store)
	if !ok {
		return errors.New("the store cannot import runs")
	}
	prog, records, err := r.recorded(time.Now().UTC().Truncate(time.Millisecond))
	if err != nil {
		return err
	}
	return importer.Import(ctx, history.Import{
		Definitions: []history.StoredDefinition{storedForm(prog)},
		Runs:        []history.ImportedRun{{ExecutionID: r.id, Records: records, Execution: history.Project(r.id, records)}},
	})
}

// importInto imports the prefix into an engine, as a file.
func (r *replayRun) importInto(ctx context.Context, e graph.Engine) error {
	if len(r.prefix) == 0 {
		return nil
	}
	importer, err := graph.Need[graph.Exporter](e, "the import of a run")
	if err != nil {
		return err
	}
	prog, records, err := r.recorded(r.recordedAt())
	if err != nil {
		return err
	}
	var file bytes.Buffer
	w := runfile.NewWriter(&file, false)
	err = errors.Join(w.Header(r.id, time.Now()), w.Definition(storedForm(prog)), w.Run(runfile.Run{ExecutionID: r.id, Records: records}), w.Trailer())
	if err == nil {
		_, err = importer.Import(ctx, &file)
	}
	return err
}

func storedForm(prog *definition.Program) history.StoredDefinition {
	return history.StoredDefinition{Hash: prog.Hash, Name: prog.Name, Version: prog.Version, Text: prog.Document.Canonical()}
}

// recordedAt returns a time of the prefix: now, or before the times in it, as a file must have it.
func (r *replayRun) recordedAt() time.Time {
	at := time.Now().UTC().Truncate(time.Millisecond)
	for i := range r.prefix {
		p := &r.prefix[i].Payload
		for _, due := range []time.Time{p.DueAt, p.DeadlineAt, p.RetryAt} {
			if !due.IsZero() && due.Before(at) {
				at = due
			}
		}
	}
	return at
}

// recorded returns the prefix as the records of a run at a time, and its definition.
func (r *replayRun) recorded(at time.Time) (*definition.Program, []history.Record, error) {
	prog, findings := definition.Compile(r.trial.definition, definition.Options{AllowInterruptInBranch: true, Stored: true})
	if prog == nil {
		return nil, nil, definition.Refusal(findings)
	}
	records := slices.Clone(r.prefix)
	own := slices.ContainsFunc(records, func(rec history.Record) bool { return rec.Payload.Branches != "" })
	for i := range records {
		rec := &records[i]
		rec.Seq, rec.CreatedAt, rec.Foreign = int64(i+1), at, !own
		if p := &rec.Payload; rec.Name == history.ExecutionStarted {
			input := orEmpty(r.input)
			p.Mode, p.Branches = cmp.Or(p.Mode, string(r.mode)), cmp.Or(p.Branches, string(machine.Sequential))
			p.DefinitionHash, p.Input, p.InputHash = prog.Hash, input, jsonvalue.Hash(input)
		}
		rec.Raw = rec.AppendPayload(nil, r.id)
	}
	return prog, records, nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
