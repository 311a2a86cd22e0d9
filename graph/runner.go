package graph

import (
	"context"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/history"
)

// Runner runs workflows over a store.
type Runner struct{ impl any }

// RecordEvent is what Options.OnRecord gets.
type RecordEvent struct {
	ExecutionID string
	Records     []history.Record
}

// New makes a Runner over a store, which stays the caller's to close after Runner.Close.
func New(store history.Store, o Options) (*Runner, error) { panic("not written yet") }

// RegisterWorkflow makes a definition known under a workflow_ref, exactly as written.
func (r *Runner) RegisterWorkflow(ref string, d *definition.Document) error {
	panic("not written yet")
}

// Start begins a run and drives it until it rests, ends or the wait limit passes.
func (r *Runner) Start(ctx context.Context, req StartRequest) (*Run, error) {
	panic("not written yet")
}

// Status says where a run stands; it changes nothing but fires timers that are due.
func (r *Runner) Status(ctx context.Context, req StatusRequest) (*Run, error) {
	panic("not written yet")
}

// Resume answers an interrupt.
func (r *Runner) Resume(ctx context.Context, req ResumeRequest) (*Run, error) {
	panic("not written yet")
}

// SubmitActivity reports the outcome of a pending activity or delegate of a host-mediated run.
func (r *Runner) SubmitActivity(ctx context.Context, req SubmitRequest) (*Run, error) {
	panic("not written yet")
}

// Signal delivers a signal.
func (r *Runner) Signal(ctx context.Context, req SignalRequest) (*Run, error) {
	panic("not written yet")
}

// Cancel ends a run and its subworkflows. Cancelling a cancelled run answers with the first reason.
func (r *Runner) Cancel(ctx context.Context, req CancelRequest) (*Run, error) {
	panic("not written yet")
}

// List gives a page of runs, newest first.
func (r *Runner) List(ctx context.Context, q history.ListQuery) (history.ListPage, error) {
	panic("not written yet")
}

// History reads a run's records, redacted unless req.Reveal.
func (r *Runner) History(ctx context.Context, req HistoryRequest) ([]history.Record, error) {
	panic("not written yet")
}

// Recover takes over runs whose driver is gone and fires due timers.
func (r *Runner) Recover(ctx context.Context, req RecoverRequest) (*RecoverResult, error) {
	panic("not written yet")
}

// Validate checks a definition as Start would.
func (r *Runner) Validate(d *definition.Document) error { panic("not written yet") }

// Close stops driving: executors' contexts end, what they answered in time is recorded, leases are given back.
func (r *Runner) Close() error { panic("not written yet") }
