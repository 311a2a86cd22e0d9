package transfer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/internal/library"
	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/runfile"
)

// ImportResult is graph.ImportResult, which documents the fields.
type ImportResult struct {
	ExecutionID                        string
	Subworkflows, Records, Definitions int
	Phase                              history.Phase
	Tasks                              int
	NotReplayed                        []NotReplayed
	Existed                            bool
}

// NotReplayed is graph.NotReplayed.
type NotReplayed struct {
	ExecutionID string
	Records     int
}

// Import reads an exported file and adds its runs, all or nothing; the store must be a history.Importer. It first checks the file
// (IMPORT_INVALID with the line), that each run follows its definition up to its end or current position (NONDETERMINISM_DETECTED,
// DEFINITION_REQUIRED), the steps of agents, unless check is nil (AGENT_STEPS_DIFFER), and that subworkflows have their parents.
// Recorded results of activities and people are trusted: a consistent change of a result and everything that follows from it cannot be
// detected. It fails with DUPLICATE_EXECUTION_ID if a run exists with other records.
//
// Imported runs continue with the next answer, or when a process claims them. The caller must make sure that they do not continue in
// their source store too.
func Import(ctx context.Context, store history.Store, in io.Reader, check CheckSteps) (*ImportResult, error) {
	file, err := readFile(in)
	if err != nil {
		return nil, err
	}
	return importFile(ctx, store, file, check)
}

func readFile(in io.Reader) (*runfile.File, error) {
	file, err := runfile.Read(in)
	if err == nil && file.Redacted {
		err = problem.New(problem.ImportInvalid, "a redacted file cannot be imported: masked values cannot be replayed").
			WithPlace(problem.Place{Line: 1, Column: 1}).WithHint("Export the run without ExportOptions.Redact.")
	}
	return file, err
}

// Checked is a file whose runs can be imported.
type Checked struct {
	Result ImportResult
	// Runs are the exported run and its subworkflows, Definitions those of the file.
	Runs        []CheckedRun
	Definitions []history.StoredDefinition
}

// CheckedRun is a run of a checked file.
type CheckedRun struct {
	history.ImportedRun
	// Program is nil for a run of another engine, whose definition is not known. Machine is the run after its last record, nil for one that has
	// ended.
	Program *definition.Program
	Machine *machine.Machine
	// Rest are the records that follow from those of the file, and that the process of the run has not recorded.
	Rest  []history.Record
	tasks int
}

// Check reads a file and checks it as Import does, for a place that is not a store. Each run of the file has its parent in the file. maxVisits is
// that of the machines, now the time.
func Check(ctx context.Context, in io.Reader, checkSteps CheckSteps, maxVisits int, now time.Time) (*Checked, error) {
	file, err := readFile(in)
	if err != nil {
		return nil, err
	}
	return checkFile(ctx, nothing{now}, file, checkSteps, maxVisits)
}

// nothing is a Source without runs and definitions.
type nothing struct{ now time.Time }

func (nothing) Execution(_ context.Context, id string) (history.Execution, error) {
	return history.Execution{}, history.NotFound(id)
}

func (nothing) Read(context.Context, string, int64, int) ([]history.Record, error) { return nil, nil }

func (nothing) Handled(context.Context, ...string) (map[string]history.Handling, error) {
	return nil, nil
}

func (nothing) Definition(context.Context, string) (history.StoredDefinition, error) {
	return history.StoredDefinition{}, problem.DefinitionNotFound
}

func (n nothing) DefinitionByName(ctx context.Context, _, _ string) (history.StoredDefinition, error) {
	return n.Definition(ctx, "")
}

func (n nothing) Now(context.Context) (time.Time, error) { return n.now, nil }

func checkFile(ctx context.Context, store Source, file *runfile.File, checkSteps CheckSteps, maxVisits int) (*Checked, error) {
	if err := belong(ctx, store, file); err != nil {
		return nil, err
	}
	c := &Checked{
		Result:      ImportResult{ExecutionID: file.ExecutionID, Subworkflows: len(file.Runs) - 1, Definitions: len(file.Definitions)},
		Definitions: file.Definitions,
	}
	for j := range file.Runs {
		r, err := checkRun(ctx, store, file, &file.Runs[j], maxVisits)
		if err != nil {
			return nil, err
		}
		if checkSteps != nil && r.Execution.Mode != "" {
			if err := RecordedSteps(ctx, r.ExecutionID, r.Records, checkSteps); err != nil {
				return nil, err
			}
		}
		c.Runs = append(c.Runs, r)
		c.Result.Tasks += r.tasks
		c.Result.Records += len(r.Records)
		if n := notReplayed(&r.ImportedRun); n > 0 {
			c.Result.NotReplayed = append(c.Result.NotReplayed, NotReplayed{r.ExecutionID, n})
		}
	}
	c.Result.Phase = c.Runs[0].Execution.Phase
	return c, nil
}

// importFile checks runs and stores them in one transaction.
func importFile(ctx context.Context, store history.Store, file *runfile.File, check CheckSteps) (*ImportResult, error) {
	importer, ok := history.As[history.Importer](store)
	if !ok {
		return nil, problem.New(problem.Unsupported, "this store does not support import").
			WithHint("Nothing was done. Import into a store that is a history.Importer.")
	}
	i := history.Import{Definitions: file.Definitions}
	for j := range i.Definitions { // unverified signatures: they leave room for others
		d := &i.Definitions[j]
		d.Signatures = d.Signatures[:min(len(d.Signatures), history.MaxSignatures/2)]
		if stored, err := store.Definition(ctx, d.Hash); err == nil && stored.Signatures != nil {
			d.Signatures = nil
		}
	}
	checked, err := checkFile(ctx, store, file, check, 0)
	if err != nil {
		return nil, err
	}
	res := &checked.Result
	for j := range checked.Runs {
		i.Runs = append(i.Runs, checked.Runs[j].ImportedRun)
	}
	existed, err := existing(ctx, store, file)
	if res.Existed = existed; err != nil || existed {
		return res, err
	}
	if err := sign(ctx, store, &i.Runs[0].Records[0]); err != nil {
		return nil, err
	}
	err = importer.Import(ctx, i)
	if errors.Is(err, problem.DuplicateExecutionID) { // another import was faster
		if existed, looked := existing(ctx, store, file); looked != nil || existed {
			res.Existed, err = existed, looked
		}
	}
	return res, err
}

// notReplayed counts the records of a run that are not compared with its definition.
func notReplayed(r *history.ImportedRun) (n int) {
	if r.Execution.Mode == "" {
		return len(r.Records)
	}
	for i := range r.Records {
		if r.Records[i].Foreign {
			n++
		}
	}
	return n
}

// existing reports whether all runs of a file are stored with the same records. It rejects a run stored with other records.
func existing(ctx context.Context, store history.Store, file *runfile.File) (bool, error) {
	found := 0
	for i := range file.Runs {
		r := &file.Runs[i]
		stored, err := store.Read(ctx, r.ExecutionID, 1, 0)
		if err != nil {
			return false, err
		}
		if len(stored) == 0 {
			continue
		}
		if _, err := store.Execution(ctx, r.ExecutionID); history.IsBeingDeleted(err) {
			return false, err
		}
		found++
		same := 0
		for same < min(len(stored), len(r.Records)) && sameRecord(r.ExecutionID, &stored[same], &r.Records[same]) {
			same++
		}
		if same == len(stored) && same == len(r.Records) {
			continue
		}
		e := problem.New(problem.DuplicateExecutionID, "run %q exists already and differs from record %d on", r.ExecutionID, same+1).
			WithPlace(problem.Place{ExecutionID: r.ExecutionID}).
			WithHint("Import into another database, or delete the run here first.")
		switch {
		case same == len(r.Records):
			e.Message = "run \"" + r.ExecutionID + "\" exists already and has continued since the export"
		case same == len(stored):
			e.Message = "run \"" + r.ExecutionID + "\" exists already in an earlier state than in the file"
		}
		return false, e
	}
	if found > 0 && found < len(file.Runs) {
		return false, problem.New(problem.DuplicateExecutionID, "%d of the %d runs exist already", found, len(file.Runs)).
			WithHint("Import into another database, or delete the runs here first.")
	}
	return found > 0, nil
}

// sameRecord reports whether two records are equal, ignoring who imported their runs.
func sameRecord(id string, a, b *history.Record) bool {
	return a.Kind == b.Kind && a.Name == b.Name && a.CreatedAt.Equal(b.CreatedAt) &&
		bytes.Equal(runfile.OneLine(withoutImporter(a, a.Text(id))), withoutImporter(b, b.Text(id)))
}

// checkRun checks a run of a file and derives the data stored with it.
func checkRun(ctx context.Context, store Source, file *runfile.File, r *runfile.Run, maxVisits int) (out CheckedRun, err error) {
	out.ImportedRun = history.ImportedRun{ExecutionID: r.ExecutionID, Records: r.Records, Execution: history.Project(r.ExecutionID, r.Records), Handled: r.Handled}
	e := &out.Execution
	if e.Mode == "" { // another engine recorded it, and its definition was not given
		if e.Phase.Terminal() {
			return out, nil
		}
		return out, rejected(r.ExecutionID, problem.ImportInvalid, "Import the database that the run comes from.", "is open and has neither a mode nor a definition")
	}
	document, err := importedDefinition(ctx, store, file, e.DefinitionHash)
	if err != nil {
		return out, err
	}
	prog, findings := definition.Compile(document, definition.Options{AllowInterruptInBranch: true, Stored: true})
	if prog == nil {
		return out, definition.Refusal(findings)
	}
	out.Program = prog
	if e.Phase.Terminal() {
		differences, err := ProveEnded(prog, r.ExecutionID, r.Records)
		if err == nil && len(differences) > 0 {
			err = DifferenceError(differences)
		}
		return out, hinted(r.ExecutionID, err)
	}
	m, b, differences, err := Replay(prog, r.ExecutionID, r.Records, nil, maxVisits, e.UpdatedAt)
	if err == nil && len(differences) > 0 {
		err = DifferenceError(differences)
	}
	if err != nil {
		return out, hinted(r.ExecutionID, err)
	}
	out.Machine, out.Rest = m, b.Records
	out.Timers = run.StoredTimers(r.ExecutionID, out.Machine.Timers())
	for _, w := range out.Machine.Pending() {
		if w.Task != nil {
			out.tasks++
		}
	}
	return out, nil
}

// hinted adds the run to an error about its history, and a hint.
func hinted(executionID string, err error) error {
	p, ok := problem.As(err)
	if !ok {
		return err
	}
	named := *p
	named.Message, named.At.ExecutionID = problem.Format("run %q: ", executionID)+p.Message, executionID
	if p.Hint == "" {
		named.Hint = "Export the run again, and move the file as it is."
	}
	return &named
}

// maxAhead is how far the clock of the source may be ahead of the store's clock.
const maxAhead = 24 * time.Hour

// belong rejects runs that do not form one tree, runs without their parent, and records with a time in the future.
func belong(ctx context.Context, store Source, file *runfile.File) error {
	now, err := store.Now(ctx)
	if err != nil {
		return err
	}
	known := map[string]*parentRun{}
	for i := range file.Runs {
		r := &file.Runs[i]
		refuse := func(hint, format string, args ...any) error {
			return problem.New(problem.ImportInvalid, "run %q "+format, append([]any{r.ExecutionID}, args...)...).
				WithPlace(problem.Place{ExecutionID: r.ExecutionID}).WithHint("%s", hint)
		}
		for j := range r.Records {
			if at := r.Records[j].CreatedAt; at.Sub(now) > maxAhead {
				return refuse("Set the clock of this machine, or of the one where the run was recorded.", "has record %d of %s, but the time here is %s",
					r.Records[j].Seq, history.FormatTimestamp(at), history.FormatTimestamp(now))
			}
		}
		if first := &r.Records[0]; first.Name != history.ExecutionStarted && !first.Foreign {
			return refuse("Export the run again.", "begins with %s, but must begin with %s", first.Name, history.ExecutionStarted)
		}
		e := history.Project(r.ExecutionID, r.Records)
		known[r.ExecutionID] = parentOf(&e, r.Records)
		if e.Parent == "" && strings.Contains(r.ExecutionID, history.ChildMark) {
			if of := history.Ancestors(r.ExecutionID); e.Mode != "" || !slices.ContainsFunc(of, func(id string) bool { return known[id] != nil }) {
				return refuse("Export the root run, which includes its subworkflows.", "has the id of a subworkflow but no parent")
			}
		}
		if e.Mode == "" || e.Parent == "" {
			continue
		}
		parent := known[e.Parent]
		if parent == nil {
			stored, err := store.Execution(ctx, e.Parent)
			if errors.Is(err, problem.ExecutionNotFound) {
				return refuse("Export the root run, which includes its subworkflows.", "is a subworkflow of %q, which is neither in the file nor stored", e.Parent)
			}
			if err != nil {
				return err
			}
			records, err := store.Read(ctx, e.Parent, 1, 0)
			if err != nil {
				return err
			}
			parent = parentOf(&stored, records)
			known[e.Parent] = parent
		}
		if e.Depth != 0 && e.Depth != parent.depth+1 { // early releases recorded no depth
			return refuse("Export the run again.", "is a subworkflow at depth %d, but its parent is at depth %d", e.Depth, parent.depth)
		}
		about := parent.children[e.ID]
		if len(about) == 0 {
			return refuse("Export the run again.", "names %q as its parent, which has no record of it", e.Parent)
		}
		for _, rec := range about {
			if rec.Seq <= parent.copied {
				continue
			}
			if why := ChildDiffers(rec, &e, &r.Records[len(r.Records)-1]); why != "" {
				return refuse("Export the run again.", "differs from record %d of %q: %s", rec.Seq, e.Parent, why)
			}
		}
	}
	return nil
}

// parentRun holds the records of a run about its subworkflows.
type parentRun struct {
	depth int
	// copied is the seq of the last record copied by a fork: up to it, records are about the subworkflows of the other run.
	copied int64
	// children holds the records about each subworkflow, by its id.
	children map[string][]*history.Record
}

func parentOf(e *history.Execution, records []history.Record) *parentRun {
	p := &parentRun{depth: e.Depth, copied: e.ForkedFrom.Seq, children: map[string][]*history.Record{}}
	for i := range records {
		if child := records[i].Payload.ChildExecutionID; child != "" {
			p.children[child] = append(p.children[child], &records[i])
		}
	}
	return p
}

// importedDefinition finds a definition in the file, or else in the store.
func importedDefinition(ctx context.Context, store Source, file *runfile.File, hash string) (*definition.Document, error) {
	for i := range file.Definitions {
		if file.Definitions[i].Hash == hash {
			return definition.Parse(file.Definitions[i].Text)
		}
	}
	d, err := store.Definition(ctx, hash)
	if errors.Is(err, problem.DefinitionNotFound) {
		return nil, problem.New(problem.DefinitionNotFound, "definition %s of the run is neither in the file nor stored", hash).
			WithHint("Export the run where its definition is stored.")
	}
	if err != nil {
		return nil, err
	}
	return library.ReadStored(d)
}

// sign records the importer and the time in the first record of a run, replacing an earlier importer. Without an actor the record
// stays unchanged. The rest of its text is not written again: it may be from another engine.
func sign(ctx context.Context, store history.Store, first *history.Record) error {
	by := run.ActorOf(ctx)
	if by == nil {
		return nil
	}
	now, err := store.Now(ctx)
	if err != nil {
		return err
	}
	text := withoutImporter(first, first.Raw)
	if p, err := history.DecodePayload(first.Name, text); err != nil || p.ImportedBy != nil || !p.ImportedAt.IsZero() {
		return problem.New(problem.ImportInvalid, "the first record of the run has an importer in an unknown form").WithCause(err).
			WithHint("Export the run again from the database where it is.")
	}
	first.Payload.ImportedBy, first.Payload.ImportedAt = by, now.UTC().Truncate(time.Millisecond)
	first.Raw = slices.Concat(bytes.TrimSuffix(text, []byte("}")), importer(&first.Payload))
	return nil
}

// withoutImporter returns the text of a record without trailing importer fields.
func withoutImporter(r *history.Record, text []byte) []byte {
	if r.Payload.ImportedBy == nil {
		return text
	}
	rest, found := bytes.CutSuffix(text, importer(&r.Payload))
	if !found {
		return text
	}
	return append(bytes.Clone(rest), '}')
}

// importer returns the end of a record's text that names the importer.
func importer(p *history.Payload) []byte {
	r := history.Record{Payload: history.Payload{ImportedAt: p.ImportedAt, ImportedBy: p.ImportedBy}}
	return bytes.TrimPrefix(r.AppendPayload(nil, ""), []byte(`{"executionId":""`))
}
