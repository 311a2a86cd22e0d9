package transfer

import (
	"context"
	"slices"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/actor"
	"github.com/workflows-engine/workflows-engine/graph/admit"
	"github.com/workflows-engine/workflows-engine/graph/capable"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/library"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/recorded"
	"github.com/workflows-engine/workflows-engine/graph/replay"
	"github.com/workflows-engine/workflows-engine/history"
)

// Fork is a run that is to begin with the past of another one; see graph.ForkRequest.
type Fork struct {
	// From is the run to fork, To the new one. Seq is the last record to take over; with BeforeNode the past ends before the newest
	// visit of a node, and Correction is a merge patch of the state there.
	From, To   string
	Seq        int64
	BeforeNode string
	Correction map[string]any
	// Retry, instead of Seq and BeforeNode, begins the new run where the other one has failed.
	Retry *replay.Retry
	// Again begins a retry beside others.
	Again bool
	// Definition is what the new run follows; nil means the run's own.
	Definition *definition.Document
	// RequireCapable refuses a run that Capabilities do not suffice for.
	RequireCapable bool
	Capabilities   capable.Capabilities
	Library        *library.Library
	// Limits bound the new run, MaxVisits its visits of nodes, MaxBytes its state.
	Limits    machine.Limits
	MaxVisits int
	MaxBytes  int
	// Now is when the past ends, in whole milliseconds.
	Now time.Time
}

// Batch returns the first append of the new run. Nothing is written. Its errors are those of Runner.Fork.
func (f *Fork) Batch(ctx context.Context, store history.Store) (history.Batch, error) {
	if f.Correction != nil && f.BeforeNode == "" && f.Retry == nil {
		return history.Batch{}, problem.New(problem.ValidationError, "a correction of the state goes with a node").WithHint("Say before which node the new run begins.")
	}
	if f.Correction != nil {
		var err error
		if f.Correction, err = admit.Object("state", f.Correction, f.MaxBytes, problem.ValidationError); err != nil {
			return history.Batch{}, err
		}
	}
	exec, err := store.Execution(ctx, f.From)
	if err != nil {
		return history.Batch{}, admit.NotFoundAs(err, problem.ExecutionNotFound, f.From)
	}
	prog, err := f.Library.Forked(ctx, &exec, f.Definition)
	if err != nil {
		return history.Batch{}, err
	}
	own := prog
	if f.Definition != nil && f.BeforeNode != "" {
		if own, err = f.Library.Stored(ctx, exec.DefinitionHash); err != nil {
			return history.Batch{}, err
		}
	}
	records, err := store.Read(ctx, f.From, 1, 0)
	if err != nil {
		return history.Batch{}, err
	}
	if f.Definition != nil {
		if err := f.Library.ForkedInput(&exec, prog, replay.InputOf(records)); err != nil {
			return history.Batch{}, err
		}
	}
	versions, children := f.Library.Versions(ctx, prog, nil)
	fork := &replay.Fork{
		From: f.From, To: f.To, Seq: f.Seq, BeforeNode: f.BeforeNode, Correction: f.Correction, MaxStateBytes: f.MaxBytes,
		Program: prog, Own: own, Subworkflows: versions, MaxVisits: f.MaxVisits, Now: f.Now, Actor: actor.Of(ctx), Retry: f.Retry, Changed: f.Definition != nil,
	}
	past, m, err := fork.Past(records)
	if err != nil {
		return history.Batch{}, err
	}
	if f.Retry != nil {
		if err := f.refuseBelow(ctx, store, records[min(fork.Seq, int64(len(records))):]); err != nil {
			return history.Batch{}, err
		}
	}
	if err := f.Library.LackingAhead(ctx, m, f.Capabilities, f.RequireCapable); err != nil {
		return history.Batch{}, err
	}
	if f.Correction != nil {
		if err := admit.RoomToStart(&history.Execution{ID: f.From}, f.Limits, "correction", f.Correction, past); err != nil {
			return history.Batch{}, err
		}
	}
	link := &history.Link{From: f.From, To: f.To, Kind: history.Forked, Seq: fork.Seq, At: f.Now, Again: f.Again}
	if f.Retry != nil {
		link.Kind = history.Retried
	}
	if a := actor.Of(ctx); a != nil {
		link.Actor = a.String()
	}
	return history.Batch{
		Link: link, ExecutionID: f.To, Records: past, Execution: history.Project(f.To, past), Definition: admit.StoredForm(prog), Subworkflows: children,
		SetTimers: true, Timers: recorded.Timers(f.To, m.Timers()),
	}, nil
}

// refuseBelow refuses a retry which begins subworkflows again whose agents have made calls that do more than read. dropped are the records
// that the new run does not take over.
func (f *Fork) refuseBelow(ctx context.Context, store history.Store, dropped []history.Record) error {
	if f.Retry.RepeatEffects || f.Retry.Compensated > 0 {
		return nil
	}
	var calls []string
	ids := []string{}
	for i := range dropped {
		if id := dropped[i].Payload.ChildExecutionID; id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	for len(ids) > 0 {
		id := ids[0]
		ids = ids[1:]
		records, err := store.Read(ctx, id, 1, 0)
		if err != nil {
			return err
		}
		calls = append(calls, replay.EffectsOf(id, records)...)
		for i := range records {
			if records[i].Name == history.SubworkflowStarted {
				ids = append(ids, records[i].Payload.ChildExecutionID)
			}
		}
	}
	return replay.RepeatsEffects(calls, problem.Place{ExecutionID: f.From, NodeID: f.Retry.Node})
}
