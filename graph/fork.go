package graph

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/admit"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/execution"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/replay"
	"github.com/workflows-engine/workflows-engine/history"
)

// ForkRequest begins a run with the past of another one.
type ForkRequest struct {
	// ExecutionID is the run to fork, Seq the last of its records that the new run takes over: any record from the first
	// to the last.
	ExecutionID string
	Seq         int64
	// NewExecutionID is the new run's; blank means a new one.
	NewExecutionID string
	// Definition is what the new run follows; nil means the run's own. What is taken over must be what this definition
	// would have led to.
	Definition *definition.Document
	// Wait bounds how long the call waits in line; see Wait.
	Wait Wait
}

// Fork begins a run that has done what another one had done up to a record, and drives it on; what this process
// lacks is left to another one (Run.Lacks). The other run is not changed, whatever its state.
//
// Every outcome recorded up to Seq is kept: activities, answers, signals, fired timers and ended subworkflows, in parallel
// branches too. What was pending there is begun anew under the new run's id and idempotency keys: attempts in flight,
// timers, and subworkflows that had not ended, which start from their beginning. Times move along: the new run's past ends
// now, and what had an hour to go has an hour to go. An end, be it completion, failure or cancel, is not taken over;
// completion and failure follow again if nothing else does.
//
// NONDETERMINISM_DETECTED, with the place of the first difference, if the past is not what the definition leads to;
// VALIDATION_ERROR for a Seq that the run does not have and for runs that another engine began; EXECUTION_NOT_FOUND;
// DEFINITION_REQUIRED; DUPLICATE_EXECUTION_ID. Nothing is written then.
func (r *Runner) Fork(ctx context.Context, req ForkRequest) (*Run, error) {
	if err := r.enter(); err != nil {
		return nil, err
	}
	defer r.tasks.Done()
	if err := admit.ExecutionID(req.NewExecutionID); err != nil {
		return nil, err
	}
	if strings.TrimSpace(req.NewExecutionID) == "" {
		req.NewExecutionID = r.opts.NewID()
	}
	exec, err := r.store.Execution(ctx, req.ExecutionID)
	if err != nil {
		return nil, admit.NotFoundAs(err, problem.ExecutionNotFound, req.ExecutionID)
	}
	prog, err := r.forkProgram(ctx, &req, &exec)
	if err != nil {
		return nil, err
	}
	records, err := r.store.Read(ctx, req.ExecutionID, 1, 0)
	if err != nil {
		return nil, err
	}
	if req.Seq < 1 || req.Seq > int64(len(records)) {
		return nil, problem.New(problem.ValidationError, "run %q has no record %d", req.ExecutionID, req.Seq).
			WithPlace(problem.Place{ExecutionID: req.ExecutionID}).
			WithHint("Its records are 1 to %d; its history shows them.", len(records))
	}
	f := fork{req: &req, prog: prog, now: r.now().Truncate(time.Millisecond)}
	n := f.taken(records)
	// Proved is the past as it was, at its own times: a definition may ask for the time.
	if _, err := replay.Prove(prog, req.ExecutionID, records[:n], replay.InputOf(records), r.opts.MaxVisits, records[n-1].CreatedAt); err != nil {
		return nil, f.mismatch(err)
	}
	past, err := f.past(records, n)
	if err != nil {
		return nil, err
	}
	m, _, moved, err := replay.Run(prog, req.NewExecutionID, past, nil, r.opts.MaxVisits, f.now)
	if err != nil {
		return nil, f.mismatch(err)
	}
	for i := range moved {
		moved[i].Mend(&past[moved[i].Seq-1].Payload)
	}
	b := history.Batch{
		ExecutionID: req.NewExecutionID, Records: past, Execution: history.Project(req.NewExecutionID, past), Definition: execution.StoredForm(prog),
		SetTimers: true, Timers: execution.StoredTimers(req.NewExecutionID, m.Timers()),
	}
	x := r.runs.Hold(req.NewExecutionID)
	defer r.runs.Drop(x)
	if err := r.store.Append(ctx, b); err != nil {
		if errors.Is(err, problem.HistoryConflict) {
			err = r.used(ctx, req.NewExecutionID, "Choose another id, or leave it out.")
		}
		return nil, err
	}
	err = r.with(ctx, x, func(w *execution.Work) error {
		if err := x.Open(ctx); err != nil || x.Ended() {
			return err
		}
		return x.TakeOver(ctx, false, w)
	})
	if err != nil && !errors.Is(err, execution.ErrConflict) {
		return nil, err
	}
	return r.answer(ctx, x, req.Wait)
}

func (r *Runner) forkProgram(ctx context.Context, req *ForkRequest, exec *history.Execution) (*definition.Program, error) {
	if exec.Mode == "" || exec.InputHash == "" {
		return nil, problem.New(problem.ValidationError, "run %q was begun by another engine and cannot be forked", req.ExecutionID).
			WithPlace(problem.Place{ExecutionID: req.ExecutionID}).WithHint("Start a new run with its definition and input.")
	}
	if req.Definition != nil {
		return r.library.Admit(req.Definition)
	}
	return r.library.Stored(ctx, exec.DefinitionHash)
}

// fork makes the past of a new run.
type fork struct {
	req  *ForkRequest
	prog *definition.Program
	now  time.Time
}

// taken gives the number of records that are taken over.
func (f *fork) taken(records []history.Record) int {
	return replay.WithoutFailure(records, replay.WithoutEnd(records, int(f.req.Seq)))
}

// past gives the records that the new run begins with: the first n of the other one, under the new id, moved in time.
func (f *fork) past(all []history.Record, n int) ([]history.Record, error) {
	out := make([]history.Record, n)
	shift := f.now.Sub(all[n-1].CreatedAt)
	for i := range out {
		r := all[i]
		r.Raw, r.Foreign = nil, false
		r.CreatedAt = r.CreatedAt.Add(shift)
		f.rewrite(&r.Payload, r.Name, shift)
		out[i] = r
	}
	p := &out[0].Payload
	if out[0].Name != history.ExecutionStarted {
		return nil, problem.New(problem.HistoryCorrupt, "the first record is %s", out[0].Name).WithPlace(problem.Place{ExecutionID: f.req.ExecutionID})
	}
	input := replay.InputOf(all)
	if p.Input == nil && input != nil && !slices.ContainsFunc(out, func(r history.Record) bool { return r.Name == history.StateUpdated }) {
		p.Input = maps.Clone(input) // the first state, which is the input, is not among what is taken over
	}
	if f.req.Definition != nil {
		if err := admit.Input(f.prog, input); err != nil {
			return nil, err
		}
	}
	return withoutOpenTasks(out), nil
}

// withoutOpenTasks leaves out what is recorded of tasks at remote agents whose attempts had not ended. Such a task is the
// other run's: answered from here it would be answered there, and a cancel of the new run would end it for both.
func withoutOpenTasks(records []history.Record) []history.Record {
	type visit struct {
		node string
		n    int
	}
	ended := map[visit]bool{}
	open := make([]bool, len(records))
	for i, r := range slices.Backward(records) {
		at := visit{r.Payload.NodeID, max(r.Payload.Visit, 1)}
		switch r.Name {
		case history.ActivityCompleted, history.ActivityFailed:
			ended[at] = true
		case history.ActivityRequested, history.InterruptRaised, history.InterruptResumed:
			open[i] = r.Payload.ExternalTask != "" && !ended[at]
		}
	}
	kept := make([]history.Record, 0, len(records))
	for i, r := range records {
		if open[i] {
			continue
		}
		gone := int64(i - len(kept)) // records left out before this one
		r.Seq -= gone
		if r.Name == history.CheckpointWritten {
			r.Payload.LastAppliedEventSeq -= gone
		}
		kept = append(kept, r)
	}
	return kept
}

// rewrite makes a payload the new run's own. Payloads share values with the records read, which are nobody else's.
func (f *fork) rewrite(p *history.Payload, name history.Name, shift time.Duration) {
	for _, id := range []*string{&p.ChildExecutionID, &p.ParentExecutionID, &p.IdempotencyKey, &p.Correlation} {
		*id = f.own(*id)
	}
	for _, at := range []*time.Time{&p.DueAt, &p.RetryAt, &p.Deadline} {
		if !at.IsZero() && p.TimerKind != "until" { // an instant stays what it is
			*at = at.Add(shift)
		}
	}
	if p.DefinitionHash != "" {
		p.DefinitionHash = f.prog.Hash
	}
	if p.WorkflowVersion != "" {
		p.WorkflowVersion = f.prog.Version
	}
	if name == history.ExecutionStarted {
		p.WorkflowName, p.WorkflowVersion = f.prog.Name, f.prog.Version
		p.ParentExecutionID, p.Depth = "", 0 // nobody waits for it
		p.ForkedFrom = history.ForkOrigin{ExecutionID: f.req.ExecutionID, Seq: f.req.Seq}
	}
}

// own gives an id that begins with the other run's as the new run's.
func (f *fork) own(id string) string {
	rest, ok := strings.CutPrefix(id, f.req.ExecutionID)
	if !ok || rest != "" && rest[0] != ':' {
		return id
	}
	return f.req.NewExecutionID + rest
}

// mismatch says what to do about a past that the definition does not lead to.
func (f *fork) mismatch(err error) error {
	if !errors.Is(err, problem.Nondeterminism) {
		return err
	}
	e := problem.New(problem.Nondeterminism, "run %q cannot be forked at record %d: %v", f.req.ExecutionID, f.req.Seq, err).
		WithPlace(problem.Place{ExecutionID: f.req.ExecutionID})
	e.Hint = "Fork it at a record before the difference; nothing was written."
	return e
}
