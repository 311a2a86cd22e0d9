package graph

import (
	"cmp"
	"context"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/internal/library"
	"github.com/workflows-engine/workflows-engine/graph/internal/process"
	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/arrival"
)

// Runner runs workflows on a store. It is an Engine, Recoverer, Forker, Handler, Exporter, Verifier, Pruner, Deliverer, Follower,
// Peeker, Counter and Definitions.
type Runner struct {
	opts    Options // with defaults
	p       *process.Process
	answers arrival.Answers
}

// New returns a Runner on a store. The caller closes the store after Runner.Close.
func New(store history.Store, o Options) (*Runner, error) {
	if store == nil {
		return nil, problem.New(problem.UsageError, "a Runner needs a store").
			WithHint("Open one with historysql.Open or historymem.New.")
	}
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	c := process.Config{
		Store: store, Log: o.Logger, Clock: o.Now, Activities: o.Activities, Delegates: o.Delegates, Turns: workLimits(o.Limits),
		Library: library.Options{
			Workflows: o.Workflows, Verify: o.VerifyDefinition, MaxBytes: o.MaxDocumentBytes,
			Compile: definition.Options{AllowInterruptInBranch: o.AllowInterruptInBranch},
		},
		Requests: work.Requests{Omit: o.OmitRequests, MaxRunBytes: o.MaxBytes, Hide: o.Redaction.Or().Value},
		Limits: machine.Limits{
			MaxRecords: o.MaxRecords, MaxBytes: o.MaxBytes, MaxPending: o.MaxPending, MinHostTimeout: o.MinHostTimeout, StretchUnits: o.stretchUnits,
		},
		Tree: run.TreeLimits(o.Tree), MaxVisits: o.MaxVisits, MaxDocumentBytes: o.MaxDocumentBytes, MaxDepth: o.MaxDepth, DefaultMode: o.DefaultMode,
		CheckAnswer: o.CheckAnswer, Owner: o.Owner, LeaseTTL: o.LeaseTTL, ReadOnly: o.ReadOnly, Admit: o.Admit,
		Work: process.Work(o.Work), Queues: o.Queues, Capacity: max(0, o.Capacity), MaxQueued: max(0, o.MaxQueued), FairLabel: o.FairLabel, Version: o.Version,
		Webhooks: targets(o.Webhooks), Deliver: o.Deliver, Redaction: o.Redaction.Or(), Glossary: o.Glossary,
	}
	if o.OnRecord != nil {
		c.OnRecord = func(id string, records []history.Record) { o.OnRecord(RecordEvent{ExecutionID: id, Records: records}) }
	}
	return &Runner{opts: o, p: process.New(c)}, nil
}

// Close stops executing runs. It rejects new calls and starts no more attempts. For Options.Drain, running attempts can end and their
// outcomes are recorded; the work that follows is left to other processes. For Options.DeliverLimit, it waits for webhooks. Then it ends the
// contexts of executors, records their outcomes and releases the process's lease. Attempts without an outcome are repeated, with the same
// keys, by the process that claims the run.
//
// Close returns when everything has stopped, or with an error that names the attempts still running after Options.CloseLimit. An executor or
// hook should not call Close: it would wait for itself that long.
func (r *Runner) Close() error {
	return r.p.Close(process.Closing{Drain: r.opts.Drain, Deliver: r.opts.DeliverLimit, Limit: r.opts.CloseLimit})
}

// enter admits a call, or rejects it after Close or the end of its context. If it returns nil, call r.p.Leave.
func (r *Runner) enter(ctx context.Context) error { return r.p.Enter(ctx) }

// enterToWrite is enter for a call that may write.
func (r *Runner) enterToWrite(ctx context.Context) error {
	if r.opts.ReadOnly {
		return problem.New(problem.StoreReadOnly, "this engine only reads").WithHint("Nothing was changed. Make the call where the store can be written to.")
	}
	return r.enter(ctx)
}

// call is a call about a run that waits.
func (r *Runner) call(x *run.Run, w Wait) *process.Call {
	w.Limit = r.limit(w)
	return r.p.Call(x, w.waiting())
}

// limit returns the longest wait of a call.
func (r *Runner) limit(w Wait) time.Duration { return cmp.Or(w.Limit, r.opts.WaitLimit) }

// object normalizes an object given by a caller and checks its size. label names the argument.
func (r *Runner) object(label string, m map[string]any, code problem.Code) (map[string]any, error) {
	return admit.Object(label, m, r.opts.MaxDocumentBytes, code)
}

// RegisterWorkflow registers a definition under a workflow_ref. Registering a ref again replaces the definition for new runs.
func (r *Runner) RegisterWorkflow(ref string, d *definition.Document) error {
	return r.p.Library.Register(ref, d)
}

// ReadDefinition reads the text of a definition: JSON if it begins with an object, else YAML. A text that was read lately is not read again,
// nor is the same definition as stored. The error is that of definition.Parse or definition.ParseYAML.
func (r *Runner) ReadDefinition(text []byte) (*definition.Document, error) {
	return r.p.Library.Read(text)
}

// Program checks a definition as Start does and returns its program. A definition that was compiled lately is not compiled again.
func (r *Runner) Program(d *definition.Document) (*definition.Program, error) {
	return r.p.Library.Admit(d)
}

// Lacking lists, in one line, the executors and subworkflows that this Runner lacks to perform definitions in process; "" if
// nothing is missing.
func (r *Runner) Lacking(ctx context.Context, ds ...*definition.Document) string {
	return r.p.Library.LackingFor(ctx, ds, r.p.Performer)
}
