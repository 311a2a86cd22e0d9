package temporal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/internal/transfer"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

var _ graph.Exporter = (*Engine)(nil)

// Export writes a run with its subworkflows and their definitions to a file, which a database can import; see graph.Runner.Export. A run that has
// continued as new needs an Archive: without it the error is UNSUPPORTED_BY_BACKEND. With ExportOptions.Move, a run that performs an attempt is
// not moved: the error is CANCEL_NOT_ALLOWED.
func (e *Engine) Export(ctx context.Context, executionID string, o graph.ExportOptions, out io.Writer) error {
	if err := e.enter(ctx); err != nil {
		return err
	}
	if o.Redaction == nil {
		o.Redaction = e.o.Redaction
	}
	options := transfer.ExportOptions{Redact: o.Redact, Redaction: o.Redaction, Now: o.Now}
	if o.Move {
		options.Move = func(ctx context.Context, reason string) error {
			n, err := e.tree(ctx, executionID)
			if err == nil {
				err = n.rests()
			}
			if err != nil {
				return err
			}
			_, err = e.Cancel(ctx, graph.CancelRequest{ExecutionID: executionID, Reason: reason, KeepTasks: true})
			return err
		}
	}
	from := runSource{past{e, true}, map[string]history.StoredDefinition{}, map[string]bool{}}
	return transfer.Export(ctx, from, executionID, options, out)
}

// rests returns an error if a run or a subworkflow that it waits for performs an attempt, which a move would have to wait for.
func (n *node) rests() error {
	if n.m != nil {
		for _, effect := range n.m.InFlight() {
			if _, ok := effect.(*machine.ChildEffect); !ok {
				return attemptUnderWay(n.exec.ID).WithPlace(problem.Place{ExecutionID: n.exec.ID, NodeID: effect.Base().NodeID})
			}
		}
	}
	for _, child := range n.children {
		if child == nil {
			continue
		}
		if err := child.rests(); err != nil {
			return err
		}
	}
	return nil
}

// attemptUnderWay is the error of a run that cannot move at the moment.
func attemptUnderWay(id string) *problem.Error {
	return problem.New(problem.CancelNotAllowed, "run %q performs an attempt, whose outcome would be lost", id).WithPlace(problem.Place{ExecutionID: id}).
		WithHint("Nothing was changed. Wait until the run waits for an answer, a signal or a time, then repeat the call.")
}

// runSource is a transfer.Source over an engine.
type runSource struct {
	past
	// definitions are those that the runs read so far are bound to, by hash.
	definitions map[string]history.StoredDefinition
	// kept are the runs that only the archive has.
	kept map[string]bool
}

var _ transfer.Keeper = runSource{}

// KeptOnly implements transfer.Keeper.
func (r runSource) KeptOnly(id string) bool { return r.kept[id] }

func (r runSource) Execution(ctx context.Context, id string) (history.Execution, error) {
	s, err := r.look(ctx, id)
	switch {
	case errors.Is(err, problem.ExecutionNotFound) && r.o.Archive != nil:
		// A subworkflow that was moved here after its end, or whose retention period is over.
		records, failed := r.o.Archive.Archived(ctx, id, 1, 0)
		if failed != nil {
			return history.Execution{}, failed
		}
		if len(records) == 0 || records[0].Seq != 1 {
			return history.Execution{}, err
		}
		r.kept[id] = true
		return history.Project(id, records), nil
	case err != nil:
		return history.Execution{}, err
	case s.lack != nil:
		return history.Execution{}, problem.New(problem.StoreUnavailable, "no worker answers for run %q", id).WithPlace(problem.Place{ExecutionID: id}).
			WithHint("Start %s.", s.lack.Missing)
	case s.snap == nil:
		return history.Execution{}, unsupported("Temporal ended run %q, so it has no records", id).WithPlace(problem.Place{ExecutionID: id})
	}
	var bound map[string]source
	if _, err := r.b.query(ctx, id, queryLibrary, nil, &bound); err != nil {
		return history.Execution{}, failureOf(ctx, err, r.o.Address, id)
	}
	for hash, d := range bound {
		stored := d.stored(hash)
		document, err := definition.Parse(stored.Text) // payloads in JSON do not keep a text byte by byte
		if err != nil {
			return history.Execution{}, err
		}
		stored.Text = document.Canonical()
		r.definitions[hash] = stored
	}
	return s.exec, nil
}

func (r runSource) Read(ctx context.Context, id string, from int64, limit int) ([]history.Record, error) {
	if r.kept[id] {
		return r.o.Archive.Archived(ctx, id, from, limit)
	}
	records, err := r.past.Read(ctx, id, from, limit)
	if err == nil && (len(records) == 0 || records[0].Seq > from) { // Export asks for records that the run has
		err = problem.New(problem.Unsupported, "records of run %q from before it continued as new are in no archive", id).WithPlace(problem.Place{ExecutionID: id}).
			WithHint("Nothing was changed. Name the archive of the workers.")
	}
	return records, err
}

// Handled implements transfer.Source: runs on Temporal cannot be marked as handled.
func (runSource) Handled(context.Context, ...string) (map[string]history.Handling, error) {
	return nil, nil
}

// Definition implements transfer.Source. It does not search other runs, whose workers may not answer.
func (r runSource) Definition(_ context.Context, hash string) (history.StoredDefinition, error) {
	d, ok := r.definitions[hash]
	if !ok {
		return d, errUnknownDefinition()
	}
	return d, nil
}

func (r runSource) DefinitionByName(_ context.Context, name, version string) (history.StoredDefinition, error) {
	for _, hash := range slices.Sorted(maps.Keys(r.definitions)) {
		if d := r.definitions[hash]; d.Name == name && (version == "" || d.Version == version) {
			return d, nil
		}
	}
	return history.StoredDefinition{}, errUnknownDefinition()
}

func (r runSource) Now(context.Context) (time.Time, error) { return r.b.now(), nil }

// Import starts the runs of a file that Export or a database has written, where they were: the run as a workflow, its subworkflows as its children.
// Records go to the Archive, which must be that of the workers. The file is checked as graph.Import checks it. Attempts under way are performed again
// with the same idempotency keys.
//
// Errors: those of graph.Import; DUPLICATE_EXECUTION_ID if a workflow has the id, also one that has ended and that Temporal still keeps, unless it
// was imported from the same file; UNSUPPORTED_BY_BACKEND without an Archive, for a run that has ended, and for one that needs what Temporal lacks.
func (e *Engine) Import(ctx context.Context, in io.Reader) (*graph.ImportResult, error) {
	if err := e.enter(ctx); err != nil {
		return nil, err
	}
	checked, err := transfer.Check(ctx, in, nil, e.o.MaxVisits, e.b.now())
	if err != nil {
		return nil, err
	}
	m := mover{Engine: e, file: checked, digest: digestOf(checked)}
	input, err := m.root(ctx)
	if err != nil {
		return nil, err
	}
	c := &checked.Result
	res := &graph.ImportResult{
		ExecutionID: c.ExecutionID, Subworkflows: c.Subworkflows, Records: c.Records, Definitions: c.Definitions, Phase: c.Phase, Tasks: c.Tasks,
	}
	if res.Existed, err = m.exists(ctx); err != nil {
		return nil, err
	}
	if err := m.archive(ctx); err != nil || res.Existed {
		return res, err
	}
	prog := checked.Runs[0].Program
	_, err = e.b.start(ctx, *input, startOptions{prog, input.Layout.workflows(input.Queue), input.priority(e.o.FairLabel)}, 0)
	if errors.Is(err, errStarted) { // another import was faster
		res.Existed, err = m.exists(ctx)
	}
	if err != nil {
		return nil, failureOf(ctx, err, e.o.Address, c.ExecutionID)
	}
	return res, nil
}

// mover moves the runs of a file to Temporal.
type mover struct {
	*Engine
	file *transfer.Checked
	// digest identifies the records of the file.
	digest string
}

func digestOf(c *transfer.Checked) string {
	sum := sha256.New()
	for i := range c.Runs {
		for j := range c.Runs[i].Records {
			r := &c.Runs[i].Records[j]
			fmt.Fprintf(sum, "%s %d %s %s\n", c.Runs[i].ExecutionID, r.Seq, r.Name, r.Text(c.Runs[i].ExecutionID))
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// root returns the input of the workflow of the root run.
func (m *mover) root(ctx context.Context) (*runInput, error) {
	root := &m.file.Runs[0]
	place := problem.Place{ExecutionID: root.ExecutionID}
	if m.o.Archive == nil {
		return nil, problem.New(problem.Unsupported, "an import needs an archive for the records of the run, which agents continue from").WithPlace(place).
			WithHint("Nothing was changed. Name the archive of the workers.")
	}
	if root.Machine == nil {
		return nil, unsupported("run %q has ended, and Temporal takes only runs that continue", root.ExecutionID).WithPlace(place)
	}
	library := map[string]source{}
	for i := range m.file.Definitions {
		d := m.file.Definitions[i]
		library[d.Hash] = sourceOf(&d)
		m.definitions.put(d)
	}
	for i := range m.file.Runs {
		x := &m.file.Runs[i]
		if x.Machine == nil {
			continue
		}
		for hash, s := range bind(ctx, m.library, x.Program, x.Execution.Subworkflows) {
			library[hash] = s
		}
	}
	in, err := m.input(root)
	if err != nil {
		return nil, err
	}
	in.Walk, in.Library, in.Limits, in.Layout, in.Continued.Imported = machine.WalkVersion, library, m.o.limits(), m.o.layout(), m.digest
	if m.o.SideStore != nil {
		return in, nil
	}
	text, err := json.Marshal(in)
	if err == nil && len(text) > maxStart {
		err = unsupported("the run and its definitions have %d bytes, and a start on Temporal carries at most %d without a side store", len(text), maxStart).WithPlace(place)
	}
	return in, err
}

// input returns the input of the workflow of a run that continues, without the parts that subworkflows have from their root.
func (m *mover) input(x *transfer.CheckedRun) (*runInput, error) {
	place := problem.Place{ExecutionID: x.ExecutionID}
	if err := m.supports(x.Program); err != nil {
		return nil, err
	}
	if m.o.VerifyDefinition != nil {
		for i := range m.file.Definitions {
			if d := &m.file.Definitions[i]; d.Hash == x.Program.Hash {
				if err := m.library.Trust(*d); err != nil {
					return nil, err
				}
			}
		}
	}
	now := m.b.now()
	for _, effect := range x.Machine.InFlight() {
		x.Machine.Restart(effect.Key(), now)
	}
	position := x.Machine.Position()
	ends := x.Machine.Status().Terminal()
	if position == nil && !ends {
		return nil, problem.New(problem.Unsupported, "run %q was exported while it computed", x.ExecutionID).WithPlace(place).
			WithHint("Nothing was changed. Let a process of its database continue the run, and export it when it waits.")
	}
	children := map[string]*runInput{}
	for _, w := range x.Machine.Pending() {
		if w.Kind != machine.WaitChild {
			continue
		}
		child, err := m.child(w.ChildExecutionID)
		if err != nil {
			return nil, err
		}
		if child != nil {
			children[w.ChildExecutionID] = child
		}
	}
	e := &x.Execution
	var at int64
	if !ends {
		at = machine.PositionStateSeq(position)
	}
	c := &continued{Position: position, Projection: e.AppendText(nil), StateSeq: at, Children: children}
	for i := range x.Records {
		c.Bytes += int64(x.Records[i].Weigh(maxWeight))
	}
	for i := range x.Rest {
		c.Rest = append(c.Rest, x.Rest[i].Row(x.ExecutionID))
	}
	switch n := int64(len(x.Records)); {
	case at > n:
		c.State = x.Rest[at-1-n].Payload.State
	case at > 0:
		c.State = x.Records[at-1].Payload.State
	}
	if n := jsonvalue.Size(x.Machine.State(), maxValue); m.o.SideStore == nil && n > maxValue {
		return nil, unsupported("the state has more than %d bytes, which needs a side store", maxValue).WithPlace(place)
	}
	in := &runInput{
		Definition: x.Program.Hash, Config: x.Machine.Config(), Title: e.Title, Labels: e.Labels, Notify: e.Notify, Queue: e.Queue, Continued: c,
	}
	if ends {
		end := view.EndingOf(x.Machine, x.Program.Hash)
		in.Ended = &end
	}
	return in, nil
}

// child returns the input of a subworkflow that its parent waits for, nil for one that has not begun.
func (m *mover) child(id string) (*runInput, error) {
	for i := range m.file.Runs {
		x := &m.file.Runs[i]
		switch {
		case x.ExecutionID != id:
			continue
		case x.Machine != nil:
			return m.input(x)
		}
		end := view.Ending{Status: view.StatusOf(x.Execution.Phase), DefinitionHash: x.Execution.DefinitionHash, State: map[string]any{}}
		end.TakeRecords(x.Records)
		for j := range x.Records {
			if s := x.Records[j].Payload.State; s != nil {
				end.State = s
			}
		}
		return &runInput{Ended: &end}, nil
	}
	return nil, nil
}

// exists reports whether the file was imported before. It rejects the id of another workflow.
func (m *mover) exists(ctx context.Context) (bool, error) {
	id := m.file.Result.ExecutionID
	c, err := m.b.end(ctx, id)
	switch {
	case err != nil && notFound(err):
		return false, nil
	case err != nil:
		return false, failureOf(ctx, err, m.o.Address, id)
	}
	if c.result != nil && c.result.Ending != nil && c.result.Ending.Reason == transfer.MovedToFile { // another program's workflow has no ending
		return false, problem.New(problem.DuplicateExecutionID, "run %q was here and has moved elsewhere", id).WithPlace(problem.Place{ExecutionID: id}).
			WithHint("Import into another namespace, or once the retention period of the ended run is over.")
	}
	var imported string
	if p := c.info.GetMemo().GetFields()[memoImport]; p != nil && m.o.Converter.FromPayload(p, &imported) == nil && imported == m.digest {
		return true, nil
	}
	return false, problem.New(problem.DuplicateExecutionID, "a workflow has the id of run %q", id).WithPlace(problem.Place{ExecutionID: id}).
		WithHint("Import into another namespace. Temporal keeps the id of a run that has ended until the retention period is over.")
}

// archive stores the records of the runs.
func (m *mover) archive(ctx context.Context) error {
	for i := range m.file.Runs {
		x := &m.file.Runs[i]
		d := history.StoredDefinition{Hash: x.Execution.DefinitionHash}
		for _, known := range m.file.Definitions {
			if known.Hash == d.Hash {
				d = known
			}
		}
		if err := m.same(ctx, x, false); err != nil {
			return err
		}
		if err := m.o.Archive.Archive(ctx, x.ExecutionID, d, x.Records); err != nil {
			return err
		}
		if err := m.same(ctx, x, true); err != nil {
			return err
		}
	}
	return nil
}

// same compares the records of a run with those in the archive, of which all must be there if whole.
func (m *mover) same(ctx context.Context, x *transfer.CheckedRun, whole bool) error {
	stored, err := m.o.Archive.Archived(ctx, x.ExecutionID, 1, len(x.Records))
	if err != nil {
		return err
	}
	for i := range stored {
		if stored[i].Seq != x.Records[i].Seq || !bytes.Equal(stored[i].Text(x.ExecutionID), x.Records[i].Text(x.ExecutionID)) {
			return problem.New(problem.DuplicateExecutionID, "the archive has another run %q, which differs from record %d on", x.ExecutionID, i+1).
				WithPlace(problem.Place{ExecutionID: x.ExecutionID}).WithHint("Use an archive of its own for each namespace.")
		}
	}
	if whole && len(stored) < len(x.Records) {
		return problem.New(problem.StoreUnavailable, "the archive has %d of %d records of run %q", len(stored), len(x.Records), x.ExecutionID).
			WithPlace(problem.Place{ExecutionID: x.ExecutionID}).WithHint("Repeat the import.")
	}
	return nil
}
