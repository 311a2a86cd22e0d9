package temporal

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/internal/library"
	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/arrival"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Engine makes the calls of graph.Engine to runs in Temporal. It needs no executors: workers perform the runs. With executors of its own it can
// tell at a start which of them are missing.
type Engine struct {
	o           Options // with defaults
	b           backend
	library     *library.Library
	definitions *definitions
	performer   *performer
	answers     arrival.Answers
	// seen holds when task queues were last seen to be polled.
	seen   sync.Map
	closed atomic.Bool
}

var (
	_ graph.Engine      = (*Engine)(nil)
	_ graph.Peeker      = (*Engine)(nil)
	_ graph.Counter     = (*Engine)(nil)
	_ graph.Definitions = (*Engine)(nil)
)

// New returns an engine. The caller closes the client after Engine.Close.
func New(o Options) (*Engine, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if o.Client == nil {
		return nil, problem.New(problem.UsageError, "an Engine needs a client").WithHint("Connect to the Temporal service first.")
	}
	return newEngine(o, clientBackend{&o}), nil
}

func newEngine(o Options, b backend) *Engine {
	d := newDefinitions(&o, b)
	l := o.library(d)
	return &Engine{o: o, b: b, library: l, definitions: d, performer: newPerformer(&o, l)}
}

// Close rejects further calls. Runs continue on their workers.
func (e *Engine) Close() error {
	e.closed.Store(true)
	return nil
}

// enter rejects a call after Close or the end of its context.
func (e *Engine) enter(ctx context.Context) error {
	if e.closed.Load() {
		return problem.New(problem.RunnerClosed, "the engine is closed")
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// ReadDefinition reads the text of a definition; see graph.Runner.
func (e *Engine) ReadDefinition(text []byte) (*definition.Document, error) {
	return e.library.Read(text)
}

// Program checks a definition as Start does; see graph.Runner.
func (e *Engine) Program(d *definition.Document) (*definition.Program, error) {
	return e.library.Admit(d)
}

// RegisterWorkflow registers a definition under a workflow_ref for the runs that this engine starts.
func (e *Engine) RegisterWorkflow(ref string, d *definition.Document) error {
	return e.library.Register(ref, d)
}

// Start starts a run; see graph.Runner.Start. Title and Labels become the memo and the search attribute AwpLabels, Priority and the label
// Options.FairLabel the priority and the fairness key. Definitions that need more than Temporal offers are UNSUPPORTED_BY_BACKEND.
func (e *Engine) Start(ctx context.Context, req graph.StartRequest) (*view.Run, error) {
	return e.start(ctx, req, nil)
}

// start is Start with a signal that the run must accept, unless that is nil. The signal is part of the start, so that neither exists without the
// other.
func (e *Engine) start(ctx context.Context, req graph.StartRequest, signal *machine.Signal) (*view.Run, error) {
	if err := e.enter(ctx); err != nil {
		return nil, err
	}
	if err := cmp.Or(admit.Mode(req.Mode, problem.ValidationError), admit.Branches(req.Branches, problem.ValidationError), admit.ExecutionID(req.ExecutionID), history.CheckCaption(req.Title, req.Labels), admit.Queue(req.Queue, problem.ValidationError), admit.Deadline(req.Deadline, problem.ValidationError)); err != nil {
		return nil, err
	}
	asked := req.Mode
	req.Mode, req.Branches = cmp.Or(req.Mode, e.o.DefaultMode), cmp.Or(req.Branches, e.o.Branches)
	if strings.TrimSpace(req.ExecutionID) == "" {
		req.ExecutionID = e.o.NewID()
	}
	if req.AllowExisting {
		switch _, err := e.look(ctx, req.ExecutionID); {
		case err == nil:
			return e.startExisting(ctx, req, asked)
		case !errors.Is(err, problem.ExecutionNotFound):
			return nil, err
		}
	}
	notify, err := e.notifies(req.Notify)
	if err != nil {
		return nil, err
	}
	prog, input, err := e.checkStart(ctx, req)
	if err != nil {
		return nil, err
	}
	req.Queue = cmp.Or(req.Queue, prog.Queue)
	warning, err := e.lacking(ctx, prog, req)
	if err != nil {
		return nil, err
	}
	in := runInput{
		Walk: machine.WalkVersion, Definition: prog.Hash, Library: bind(ctx, e.library, prog, nil), Title: req.Title, Labels: req.Labels, Notify: notify, Queue: req.Queue,
		Deadline: req.Deadline,
		Input:    input, Actor: run.ActorOf(ctx), Limits: e.o.limits(), Layout: e.o.layout(),
		Config: machine.Config{
			ExecutionID: req.ExecutionID, Mode: req.Mode, Branches: req.Branches, MaxVisits: e.o.MaxVisits, TraceParent: work.TraceParent(ctx),
			Attempts: e.o.Attempts, Priority: req.Priority,
		},
	}
	in.Config.Subworkflows = in.Library[prog.Hash].Subworkflows
	if err := e.fits(&in); err != nil {
		return nil, err
	}
	if signal != nil {
		in.Signal = signal
		config, now := in.Config, e.b.now()
		config.Limits = in.Limits.machine()
		config.Limits.StretchUnits = math.MaxInt
		if err := machine.Start(prog, config, input, now).Check(*signal, now); err != nil {
			return nil, run.NotStarted(err)
		}
	}
	e.definitions.put(*admit.StoredForm(prog))
	w, stop := e.waiting(ctx, req.Wait)
	defer stop()
	_, err = e.b.start(w.ctx, in, startOptions{prog, in.Layout.workflows(req.Queue), in.priority(e.o.FairLabel)}, w.inUpdate())
	switch {
	case errors.Is(err, errStarted) && req.AllowExisting:
		return e.startExisting(ctx, req, asked)
	case errors.Is(err, errStarted):
		return nil, problem.New(problem.DuplicateExecutionID, "execution id %q is already in use", req.ExecutionID).
			WithPlace(problem.Place{ExecutionID: req.ExecutionID}).
			WithHint("Choose another id, ask Runner.Status for that run, or let the existing run answer (StartRequest.AllowExisting).")
	case err != nil && w.ctx.Err() == nil:
		return nil, failureOf(ctx, err, e.o.Address, req.ExecutionID)
	}
	w.apply()
	v, err := e.answer(ctx, req.ExecutionID, w)
	if v != nil && warning != nil {
		v.Warnings = append(v.Warnings, *warning)
	}
	return v, err
}

// checkStart returns the definition and the checked input of a new run.
func (e *Engine) checkStart(ctx context.Context, req graph.StartRequest) (*definition.Program, map[string]any, error) {
	var prog *definition.Program
	var err error
	if req.Definition != nil || req.DefinitionRef == "" {
		prog, err = e.library.Admit(req.Definition)
	} else {
		prog, err = e.library.Find(ctx, req.DefinitionRef)
	}
	if err != nil {
		return nil, nil, err
	}
	input, err := admit.Object("input", req.Input, e.o.MaxDocumentBytes, problem.ValidationError)
	if err == nil {
		err = admit.Input(prog, input)
	}
	if err == nil {
		err = e.supports(prog)
	}
	return prog, input, err
}

// fits rejects a start that Temporal cannot carry without a side store.
func (e *Engine) fits(in *runInput) error {
	if e.o.SideStore != nil {
		return nil
	}
	size := jsonvalue.Size(in.Input, 0)
	for _, s := range in.Library {
		size += len(s.Text)
	}
	if size <= maxStart {
		return nil
	}
	return unsupported("the input and the definitions have %d bytes, and a start on Temporal carries at most %d without a side store", size, maxStart)
}

// supports rejects a definition with a node that runs on Temporal cannot perform.
func (e *Engine) supports(prog *definition.Program) error {
	for _, n := range prog.Nodes {
		if e.o.SideStore == nil && e.keepsJournal(n) {
			return unsupported("node %q is performed by an agent with a journal, which needs a side store on Temporal", n.ID).
				WithPlace(problem.Place{NodeID: n.ID})
		}
	}
	return nil
}

// keepsJournal reports whether the executor of a node keeps a journal. Without executors here, agents count as such.
func (e *Engine) keepsJournal(n *definition.Node) bool {
	executor := e.o.Activities
	node := activities.Node{ID: n.ID, Type: string(n.Type), Config: n.Config}
	agent := n.Type.Info().Performer.Noun == "agent" && node.Config[n.Type.Info().Performer.Field] != nil
	if n.Delegate != nil {
		executor, node.Config = e.o.Delegates, nil
		node.Protocol, node.AgentID = n.Delegate.Protocol, n.Delegate.AgentID
		agent = node.Protocol == "sdk"
	} else if !n.Type.IsActivity() {
		return false
	}
	if executor == nil {
		return agent
	}
	return activities.CapabilitiesOf(executor, node).Work != nil
}

// lacking rejects a run that no worker can perform, if required; otherwise it returns a warning.
func (e *Engine) lacking(ctx context.Context, prog *definition.Program, req graph.StartRequest) (*view.Warning, error) {
	if req.Mode == machine.HostMediated {
		return nil, nil
	}
	if e.o.Activities != nil || e.o.Delegates != nil {
		warning, err := e.library.Lacking(ctx, prog, e.performer.missing, req.Mode, req.RequireCapable)
		if warning != nil {
			warning.Hint = "The run waits at such a node until a worker performs it."
		}
		return warning, err
	}
	l := e.o.layout()
	var missing []string
	seen := map[string]bool{}
	for _, n := range prog.Nodes {
		needs := work.Needs(n)
		queue := l.taskQueue(cmp.Or(n.Queue, req.Queue), needs)
		if needs == "" || seen[queue] {
			continue
		}
		seen[queue] = true
		polled, err := e.polled(ctx, queue)
		if err != nil {
			return nil, failureOf(ctx, err, e.o.Address, "")
		}
		if !polled {
			missing = append(missing, problem.Format("%s (node %q)", queue, n.ID))
		}
	}
	if len(missing) == 0 {
		return nil, nil
	}
	text := "no worker polls the task queue " + strings.Join(missing, ", ")
	if req.RequireCapable {
		return nil, problem.New(problem.ExecutorNotConfigured, "%s", text).WithHint("Nothing was started. Start a worker for it.")
	}
	return &view.Warning{Code: problem.ExecutorNotConfigured, Message: text, Hint: "The run waits at such a node until a worker performs it."}, nil
}

// pollersKept is how long the engine remembers that a task queue is polled.
const pollersKept = 10 * time.Second

// polled reports whether a worker polls a task queue.
func (e *Engine) polled(ctx context.Context, queue string) (bool, error) {
	if at, ok := e.seen.Load(queue); ok && time.Since(at.(time.Time)) < pollersKept {
		return true, nil
	}
	polled, err := e.b.pollers(ctx, queue)
	if polled {
		e.seen.Store(queue, time.Now())
	}
	return polled, err
}

// startExisting returns the status of an existing run.
func (e *Engine) startExisting(ctx context.Context, req graph.StartRequest, asked machine.Mode) (*view.Run, error) {
	given := req.Definition
	if given == nil && req.DefinitionRef != "" {
		prog, err := e.library.Find(ctx, req.DefinitionRef)
		if err != nil {
			return nil, err
		}
		given = prog.Document
	}
	s, err := e.look(ctx, req.ExecutionID)
	if err != nil {
		return nil, err
	}
	caller := admit.Caller{Definition: given, Input: req.Input, InputSet: req.Input != nil}
	if view.OtherVersion(&s.exec, given) {
		caller.Definition = nil // a repeated start, after a deployment of a new version
	}
	if err := e.admit(&s.exec, caller, problem.SubmitValidationError); err != nil {
		if p, ok := problem.As(err); ok && p.Code == problem.SubmitValidationError {
			return nil, p.WithReason(problem.DuplicateExecutionID)
		}
		return nil, err
	}
	w, stop := e.waiting(ctx, req.Wait)
	defer stop()
	v, err := e.answer(ctx, req.ExecutionID, w)
	view.ModeKept(v, asked)
	view.DefinitionKept(v, &s.exec, given)
	return v, err
}

// Status returns the status of a run; see graph.Runner.Status.
func (e *Engine) Status(ctx context.Context, req graph.StatusRequest) (*view.Run, error) {
	if err := e.enter(ctx); err != nil {
		return nil, err
	}
	wait := graph.Wait{Limit: graph.NoWait}
	if req.Wait != nil {
		wait = *req.Wait
	}
	w, stop := e.waiting(ctx, wait)
	defer stop()
	w.anyChange = req.Since > 0
	w.until = func(was, now *standing) bool {
		if was == nil {
			return req.Since > 0 && now.seq > req.Since
		}
		return now.status != was.status || req.Since > 0 && now.sum != was.sum
	}
	return e.answer(ctx, req.ExecutionID, w)
}

// Cancel cancels a run; see graph.Runner.Cancel. With KeepTasks, a run that performs an attempt is not cancelled: the error is CANCEL_NOT_ALLOWED.
// Its subworkflows end once their attempts have.
func (e *Engine) Cancel(ctx context.Context, req graph.CancelRequest) (*view.Run, error) {
	if err := e.enter(ctx); err != nil {
		return nil, err
	}
	if strings.TrimSpace(req.ExecutionID) == "" {
		return nil, problem.New(problem.CancelValidationError, "execution id is missing")
	}
	in := machine.Cancel{Reason: problem.Excerpt(strings.TrimSpace(req.Reason), problem.MaxText), KeepTasks: req.KeepTasks}
	before, err := e.tree(ctx, req.ExecutionID)
	if err != nil {
		return nil, err
	}
	if err := e.apply(ctx, req.ExecutionID, call{Cancel: &in, Actor: run.ActorOf(ctx)}, nil); err != nil && !e.isCancelled(ctx, req.ExecutionID, err) {
		return nil, err
	}
	left, err := e.awaitCancelled(ctx, before.children)
	if err != nil {
		return nil, err
	}
	n, err := e.tree(work.Detached(ctx), req.ExecutionID)
	if err != nil {
		return nil, err
	}
	v, err := e.view(n)
	if left && n.exec.Phase.Terminal() {
		view.CancelGoesOn(v)
	}
	return v, err
}

// cancelTime is how long a cancel waits for the subworkflows, which Temporal cancels after their parent.
const cancelTime = 2 * time.Second

// awaitCancelled waits for the end of subworkflows of a cancelled run. left reports that some have not ended.
func (e *Engine) awaitCancelled(ctx context.Context, children []*node) (left bool, err error) {
	began, pause := e.b.now(), firstLook
	for _, c := range children {
		for c != nil && c.ending == nil {
			if len(c.children) > 0 {
				if left, err = e.awaitCancelled(ctx, c.children); left || err != nil {
					return left, err
				}
			}
			if e.b.now().Sub(began) > cancelTime || e.b.sleep(ctx, pause) != nil {
				return true, nil
			}
			pause = min(2*pause, lastLook)
			if c.sight, err = e.look(work.Detached(ctx), c.exec.ID); err != nil {
				return false, err
			}
			if c.m != nil && len(c.m.Rollbacks()) > 0 {
				break // it ends later
			}
		}
	}
	return left, nil
}

// isCancelled reports whether a cancel was rejected because the run is cancelled.
func (e *Engine) isCancelled(ctx context.Context, id string, err error) bool {
	if !errors.Is(err, problem.CancelNotAllowed) {
		return false
	}
	s, failed := e.look(ctx, id)
	return failed == nil && s.exec.Phase == history.PhaseCancelled
}

// apply makes a call to one run.
func (e *Engine) apply(ctx context.Context, id string, c call, accepted func()) error {
	_, err := e.b.update(ctx, id, c, accepted)
	if err == nil {
		return nil
	}
	if p := carried(err); p != nil {
		return p
	}
	if notFound(err) {
		s, failed := e.look(ctx, id)
		if failed != nil {
			return failed
		}
		if s.exec.Phase.Terminal() {
			return admit.Ended(&s.exec, c.input())
		}
	}
	return failureOf(ctx, err, e.o.Address, id)
}

// Peek returns the projection of a run; see graph.Peeker.
func (e *Engine) Peek(ctx context.Context, executionID string) (history.Execution, error) {
	if err := e.enter(ctx); err != nil {
		return history.Execution{}, err
	}
	s, err := e.look(ctx, executionID)
	if err != nil {
		return history.Execution{}, err
	}
	return s.exec, nil
}

// Definition returns the definition of a run that has its hash.
func (e *Engine) Definition(ctx context.Context, hash string) (*definition.Document, error) {
	if err := e.enter(ctx); err != nil {
		return nil, err
	}
	return e.library.Document(ctx, hash)
}

// maxDefinitionPages bounds the lists of runs that Definitions reads for a page.
const maxDefinitionPages = 10

// Definitions returns a page of the definitions of runs, that of the run started last first; see graph.Definitions. A definition may be on several
// pages.
func (e *Engine) Definitions(ctx context.Context, cursor string, limit int) (page history.DefinitionPage, err error) {
	if limit, err = history.PageSize(limit); err != nil {
		return page, err
	}
	seen := map[string]bool{}
	q := history.ListQuery{Limit: 100, Cursor: cursor}
	for range maxDefinitionPages {
		found, err := e.List(ctx, q)
		if err != nil {
			return page, err
		}
		for i := range found.Executions {
			x := &found.Executions[i]
			if seen[x.DefinitionHash] {
				continue
			}
			seen[x.DefinitionHash] = true
			page.Definitions = append(page.Definitions, history.DefinitionEntry{
				Hash: x.DefinitionHash, Name: x.DefinitionName, Version: x.DefinitionVersion, StoredAt: x.CreatedAt,
			})
		}
		if page.NextCursor, q.Cursor = found.NextCursor, found.NextCursor; q.Cursor == "" || len(page.Definitions) >= limit {
			break
		}
	}
	return page, nil
}

// History returns records of a run; see graph.Runner.History. Records from before the run continued as new come from the archive; without one
// the list begins with the first record that the workflow holds.
func (e *Engine) History(ctx context.Context, req graph.HistoryRequest) ([]history.Record, error) {
	if err := e.enter(ctx); err != nil {
		return nil, err
	}
	if req.Limit < 0 {
		return nil, problem.New(problem.ValidationError, "limit must not be negative, found %d", req.Limit)
	}
	records, err := e.read(ctx, req.ExecutionID, max(req.FromSeq, 1), req.Limit, false)
	if err != nil {
		return nil, err
	}
	for i := range records {
		if !req.Reveal && err == nil {
			err = records[i].Redact(e.o.Redaction)
		}
	}
	return records, err
}

// read reads records of a run. With whole, records that the run has archived, and that the archive here lacks, are an error.
func (e *Engine) read(ctx context.Context, id string, from int64, limit int, whole bool) (records []history.Record, err error) {
	for limit <= 0 || len(records) < limit {
		left := 0
		if limit > 0 {
			left = limit - len(records)
		}
		var page recordsPage
		if _, err := e.b.query(ctx, id, queryRecords, recordsQuery{From: from, Limit: left}, &page); err != nil {
			return nil, failureOf(ctx, err, e.o.Address, id)
		}
		if from < page.First && e.o.Archive != nil {
			older, err := e.o.Archive.Archived(ctx, id, from, left)
			if err != nil {
				return nil, err
			}
			older = slices.DeleteFunc(older, func(r history.Record) bool { return r.Seq >= page.First })
			if len(older) > 0 && older[0].Seq == from {
				records = append(records, older...)
				from = older[len(older)-1].Seq + 1
				continue
			}
		}
		if whole && from < page.First && page.Archived {
			return nil, problem.New(problem.StoreUnavailable, "the archive here lacks records of run %q from before %d", id, page.First).
				WithPlace(problem.Place{ExecutionID: id}).WithHint("Name the archive that the run was started with.")
		}
		if len(page.Records) == 0 {
			break
		}
		for i := range page.Records {
			r, err := page.Records[i].Record(id)
			if err != nil {
				return nil, err
			}
			records = append(records, r)
		}
		if from = records[len(records)-1].Seq + 1; from > page.Last {
			break
		}
	}
	return records, nil
}

// past reads the histories of runs for searches of repeated calls.
type past struct {
	*Engine
	// whole makes the lack of archived records an error.
	whole bool
}

func (p past) Execution(ctx context.Context, id string) (history.Execution, error) {
	s, err := p.look(ctx, id)
	if err != nil {
		return history.Execution{}, err
	}
	return s.exec, nil
}

func (p past) Read(ctx context.Context, id string, from int64, limit int) ([]history.Record, error) {
	return p.read(ctx, id, from, limit, p.whole)
}
