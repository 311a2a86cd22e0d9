package transfer

import (
	"context"
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/runfile"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Database is a snapshot of a database of the npm engine.
type Database interface {
	// Runs returns the ids of all runs, including subworkflows, in order.
	Runs() ([]string, error)
	// Records returns all records of a run, with their texts in Raw and Foreign set.
	Records(executionID string) ([]history.Record, error)
}

// DatabaseOptions is graph.DatabaseOptions, which documents the fields.
type DatabaseOptions struct {
	Definitions []*definition.Document
	Mode        machine.Mode
}

// DatabaseRun is the result for one run with its subworkflows.
type DatabaseRun struct {
	ExecutionID string
	// Result is nil if the run was rejected with Err.
	Result *ImportResult
	Err    error
}

// ImportDatabase imports the runs of a database. Each root and its subworkflows share a transaction. A rejected run does not affect
// the others. Any other error is from the database or the store; runs imported before it remain.
func ImportDatabase(ctx context.Context, store history.Store, from Database, o DatabaseOptions) ([]DatabaseRun, error) {
	d := databaseImport{store: store, from: from, mode: o.Mode}
	if d.mode == "" {
		d.mode = machine.HostMediated
	}
	for _, document := range o.Definitions {
		prog, findings := definition.Compile(document, definition.Options{AllowInterruptInBranch: true, Stored: true})
		if prog == nil {
			return nil, definition.Refusal(findings)
		}
		d.programs = append(d.programs, prog)
	}
	ids, err := from.Runs()
	if err != nil {
		return nil, err
	}
	var out []DatabaseRun
	for _, tree := range trees(ids) {
		r := DatabaseRun{ExecutionID: tree[0]}
		if r.Result, r.Err = d.tree(ctx, tree); r.Err != nil && !rejectsRun(r.Err) {
			return out, r.Err
		}
		out = append(out, r)
	}
	return out, nil
}

// trees groups ids, in order, by their topmost run in the list. The id of a subworkflow starts with the id of its parent.
func trees(ids []string) (out [][]string) {
	index := map[string]int{}
	for _, id := range ids {
		top := id
		for _, above := range history.Ancestors(id) {
			if _, ok := index[above]; ok {
				top = above
			}
		}
		if top == id {
			index[id] = len(out)
			out = append(out, nil)
		}
		at := index[top]
		out[at] = append(out[at], id)
	}
	return out
}

// rejectsRun reports whether an error concerns one run, rather than the database, the store or the call.
func rejectsRun(err error) bool {
	p, ok := problem.As(err)
	if !ok {
		return false
	}
	switch p.Code {
	case problem.HistoryCorrupt, problem.HistoryNewer, problem.DefinitionNotFound, problem.DeletionUnfinished:
		return true
	}
	return admit.IsRefusal(err) && p.Code != problem.Unsupported
}

type databaseImport struct {
	store    history.Store
	from     Database
	programs []*definition.Program
	mode     machine.Mode
}

// tree imports a run with its subworkflows. ids lists parents before their subworkflows.
func (d *databaseImport) tree(ctx context.Context, ids []string) (*ImportResult, error) {
	file := &runfile.File{ExecutionID: ids[0]}
	stored := 0
	for _, id := range ids {
		records, err := d.from.Records(id)
		if err != nil {
			return nil, err
		}
		if first := &records[0]; first.Name != history.ExecutionStarted {
			return nil, rejected(id, problem.ImportInvalid, "Only records that follow it can be continued.", "begins with %s, not with %s", first.Name, history.ExecutionStarted)
		}
		found, err := d.stored(ctx, id, records)
		if err != nil {
			return nil, err
		}
		if found {
			stored++
		}
		file.Runs = append(file.Runs, runfile.Run{ExecutionID: id, Records: records})
	}
	switch stored {
	case 0:
	case len(ids):
		return d.existing(ctx, file)
	default:
		return nil, rejected(ids[0], problem.DuplicateExecutionID, "Import into another database, or delete the run here first.", "has %d of its %d runs here already", stored, len(ids))
	}
	used := map[string]bool{}
	for i := range file.Runs {
		prog, err := d.adopt(&file.Runs[i], parentIn(file.Runs[:i], file.Runs[i].ExecutionID))
		if err != nil {
			return nil, err
		}
		if prog != nil && !used[prog.Hash] {
			used[prog.Hash] = true
			file.Definitions = append(file.Definitions, *admit.StoredForm(prog))
		}
	}
	return importFile(ctx, d.store, file, nil)
}

// parentIn returns the nearest ancestor of a run in runs, or nil.
func parentIn(runs []runfile.Run, id string) *runfile.Run {
	for _, above := range history.Ancestors(id) {
		if i := slices.IndexFunc(runs, func(r runfile.Run) bool { return r.ExecutionID == above }); i >= 0 {
			return &runs[i]
		}
	}
	return nil
}

// stored reports whether an earlier import stored the records of a run; the run may have continued here since. It fails with
// DUPLICATE_EXECUTION_ID if the run has other records.
func (d *databaseImport) stored(ctx context.Context, id string, records []history.Record) (bool, error) {
	stored, err := d.store.Read(ctx, id, 1, 0)
	if err != nil || len(stored) == 0 {
		return false, err
	}
	if _, err := d.store.Execution(ctx, id); err != nil {
		return false, err
	}
	// An import adds fields to the first record.
	same := 0
	if a, b := &stored[0], &records[0]; a.Name == b.Name && a.CreatedAt.Equal(b.CreatedAt) && a.Payload.WorkflowName == b.Payload.WorkflowName {
		for same = 1; same < min(len(stored), len(records)) && sameRecord(id, &stored[same], &records[same]); same++ {
		}
	}
	switch {
	case same == len(records):
		return true, nil
	case same == len(stored):
		return false, rejected(id, problem.DuplicateExecutionID, "Delete the run here to import it anew.", "continued in the other database after it was imported")
	}
	return false, rejected(id, problem.DuplicateExecutionID, "Import into another database, or delete the run here first.", "exists here already, and differs from record %d on", same+1)
}

// existing returns the result for runs that are already stored.
func (d *databaseImport) existing(ctx context.Context, file *runfile.File) (*ImportResult, error) {
	e, err := d.store.Execution(ctx, file.ExecutionID)
	res := &ImportResult{ExecutionID: file.ExecutionID, Subworkflows: len(file.Runs) - 1, Phase: e.Phase, Existed: true}
	for i := range file.Runs {
		res.Records += len(file.Runs[i].Records)
	}
	return res, err
}

// adopt adds the start fields of this engine to the first record of a run, and returns the run's definition. A completed run without a
// given definition stays unchanged.
func (d *databaseImport) adopt(r *runfile.Run, parent *runfile.Run) (*definition.Program, error) {
	first := &r.Records[0]
	e := history.Project(r.ExecutionID, r.Records)
	if parent != nil {
		p := &parent.Records[0].Payload
		first.Payload.ParentExecutionID, first.Payload.Depth = parent.ExecutionID, p.Depth+1
	}
	original := first.Payload
	candidates := slices.Collect(func(yield func(*definition.Program) bool) {
		for _, prog := range d.programs {
			if prog.Name == original.WorkflowName && prog.Version == original.WorkflowVersion && (e.DefinitionHash == "" || e.DefinitionHash == prog.Hash) && !yield(prog) {
				return
			}
		}
	})
	err := rejected(r.ExecutionID, problem.DefinitionNotFound, "Import again with the definition: DatabaseOptions.Definitions.",
		"is open and follows the workflow %q, version %q, whose definition was not given", original.WorkflowName, original.WorkflowVersion)
	for i, prog := range candidates {
		first.Payload = original
		if err = d.start(&first.Payload, r, prog); err == nil && i < len(candidates)-1 {
			err = follows(prog, r, e.Phase)
		}
		if err == nil {
			first.Raw = first.AppendPayload(nil, r.ExecutionID)
			return prog, nil
		}
	}
	first.Payload = original
	first.Raw = first.AppendPayload(nil, r.ExecutionID)
	if e.Phase.Terminal() {
		return nil, nil
	}
	return nil, err
}

// start sets the fields of an ExecutionStarted.
func (d *databaseImport) start(p *history.Payload, r *runfile.Run, prog *definition.Program) error {
	input, ok := recordedInput(prog, r.Records)
	if !ok {
		return rejected(r.ExecutionID, problem.DefinitionNotFound, "Start it here anew with its input.", "stopped before its input was recorded")
	}
	p.Mode, p.Branches = string(d.mode), string(machine.Sequential)
	p.DefinitionHash, p.Input, p.InputHash = prog.Hash, input, jsonvalue.Hash(input)
	return nil
}

// follows checks that the records of a run follow its definition.
func follows(prog *definition.Program, r *runfile.Run, phase history.Phase) error {
	if phase.Terminal() {
		differences, err := ProveEnded(prog, r.ExecutionID, r.Records)
		if err == nil && len(differences) > 0 {
			err = DifferenceError(differences)
		}
		return hinted(r.ExecutionID, err)
	}
	_, err := Prove(prog, r.ExecutionID, r.Records, nil, 0, r.Records[len(r.Records)-1].CreatedAt)
	return hinted(r.ExecutionID, err)
}

// recordedInput derives the input of a run from its first state: the input merged with the output of the entry node. ok is false if
// the entry node replaced part of the input, or if the run stopped before.
func recordedInput(prog *definition.Program, records []history.Record) (input map[string]any, ok bool) {
	keys := records[0].Payload.InputKeys
	if len(keys) == 0 {
		return map[string]any{}, true
	}
	i := slices.IndexFunc(records, isState)
	if i < 0 {
		return nil, false
	}
	state, output := records[i].Payload.State, map[string]any{}
	for j := range records[:i] {
		if r := &records[j]; r.Name == history.CompleteNode && r.Payload.NodeID == prog.Entry.ID {
			output = r.Payload.Output
		}
	}
	input = map[string]any{}
	for _, key := range keys {
		value, there := state[key]
		if _, replaced := output[key]; !there || replaced {
			return nil, false
		}
		input[key] = value
	}
	return input, true
}

// rejected returns the error for a run of a database.
func rejected(id string, code problem.Code, hint, format string, args ...any) error {
	return problem.New(code, "run %q "+format, append([]any{id}, args...)...).WithPlace(problem.Place{ExecutionID: id}).WithHint("%s", hint)
}
