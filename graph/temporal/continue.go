package temporal

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// maxEvents is the number of events from which a run begins no more effects until it has continued as new.
const maxEvents = 10_000

func (l *limits) mostEvents() int {
	if l.Events > 0 {
		return l.Events * 5 / 2
	}
	return maxEvents
}

// full reports whether the event history is so long that the run should continue as new.
func (r *walk) full() bool {
	info := workflow.GetInfo(r.ctx)
	most := r.in.Limits.Events
	return r.held || most > 0 && info.GetCurrentHistoryLength() >= most || info.GetContinueAsNewSuggested()
}

// movable reports whether the run can continue as new: nothing is in flight, no caller waits for an answer, and its position can be stored.
func (r *walk) movable() bool {
	if r.requested.Err() != nil && !r.cancelled {
		return false // the next run would not know of the cancel
	}
	return !r.leaving && workflow.GetSignalChannel(r.ctx, signalLeave).Len() == 0 && len(r.flights) == 0 && r.releasing == 0 && !r.m.Walking() && workflow.AllHandlersFinished(r.ctx) &&
		workflow.GetSignalChannel(r.ctx, signalSignal).Len() == 0 && (r.in.Layout.Archive || !r.keepsJournal()) && r.m.Position() != nil
}

// keepsJournal reports whether an attempt needs records of the run to continue: its own journal, or that of an earlier attempt of the visit.
func (r *walk) keepsJournal() bool {
	return slices.ContainsFunc(r.m.Pending(), func(w machine.Wait) bool {
		return w.Journal != nil || slices.ContainsFunc(r.records, func(rec history.Record) bool {
			p := &rec.Payload
			return p.AgentStep != nil && p.NodeID == w.NodeID && max(p.Visit, 1) == max(w.Visit, 1)
		})
	})
}

// continueAsNew archives the records and returns the error that continues the run as new; nil if the run cannot any more.
func (r *walk) continueAsNew() (next, err error) {
	if r.in.Layout.Archive && r.archived < r.exec.Seq {
		if err := r.archiveRecords(); err != nil {
			return nil, err
		}
		if r.ended() || !r.movable() || r.archived < r.exec.Seq { // an input has come meanwhile
			return nil, nil
		}
	}
	in := r.in
	in.Input, in.Actor = nil, nil
	in.Config = r.m.Config()
	position := r.m.Position()
	at := machine.PositionStateSeq(position)
	in.Continued = &continued{
		Position: position, Projection: r.exec.AppendText(nil), Bytes: r.bytes, State: r.stateAt(at), StateSeq: at,
	}
	if r.in.Continued != nil {
		in.Continued.Children = r.in.Continued.Children
	}
	return workflow.NewContinueAsNewError(r.ctx, WorkflowType, in), nil
}

// restore restores the run after it has continued as new.
func (r *walk) restore(prog *definition.Program, c *continued, now time.Time) error {
	exec, err := history.ParseExecution(r.id, c.Projection)
	if err != nil {
		return err
	}
	m, err := machine.Restore(prog, c.Position, c.State)
	if err != nil {
		return err
	}
	m.SetLimits(0, r.in.Limits.machine())
	m.SetBytes(c.Bytes)
	if err := m.Catchup(nil, now); err != nil {
		return err
	}
	r.m, r.exec, r.bytes, r.first, r.archived, r.phase = m, exec, c.Bytes, exec.Seq+1, exec.Seq, exec.Phase
	if err := r.recordRest(c); err != nil {
		return err
	}
	r.settle(nil)
	for _, e := range m.InFlight() { // held back before
		if in := r.perform(e); in != nil {
			workflow.Go(r.ctx, func(ctx workflow.Context) { r.input(ctx, in) })
		}
	}
	r.setTimers(m.Timers())
	return nil
}

// recordRest records what an imported run has yet to record.
func (r *walk) recordRest(c *continued) error {
	before, rest := r.exec.Phase, make([]history.Record, len(c.Rest))
	for i := range rest {
		var err error
		if rest[i], err = c.Rest[i].Record(r.id); err != nil {
			return err
		}
	}
	r.record(rest)
	r.notify(before, rest)
	return nil
}

// end makes the run an imported one that ends with its rest. It has no machine.
func (r *walk) end() (err error) {
	c := r.in.Continued
	if r.exec, err = history.ParseExecution(r.id, c.Projection); err != nil {
		return err
	}
	r.bytes, r.first, r.archived = c.Bytes, r.exec.Seq+1, r.exec.Seq
	if err := r.recordRest(c); err != nil {
		return err
	}
	return workflow.UpsertTypedSearchAttributes(r.ctx, attrPhase.ValueSet(string(r.exec.Phase)))
}

// archiveBytes bounds the records of one activity.
const archiveBytes = 512 << 10

// archiveRecords stores the records so far in the archive. The workflow forgets them once it continues as new.
func (r *walk) archiveRecords() error {
	o := workflow.ActivityOptions{TaskQueue: r.in.Layout.workflows(r.in.Queue), StartToCloseTimeout: time.Minute, RetryPolicy: &repeat}
	ctx := workflow.WithActivityOptions(r.ctx, o)
	records := r.records[max(r.archived-r.first+1, 0):]
	for len(records) > 0 {
		a := archived{ExecutionID: r.id, Definition: r.in.Definition, Text: r.in.Library[r.in.Definition], Projection: json.RawMessage(r.exec.AppendText(nil))}
		size := 0
		for len(records) > 0 && (size == 0 || size < archiveBytes) {
			row := records[0].Row(r.id)
			size += len(row.Payload)
			a.Records, records = append(a.Records, row), records[1:]
		}
		if err := workflow.ExecuteActivity(ctx, activityArchive, a).Get(ctx, nil); err != nil {
			return err
		}
		r.archived = a.Records[len(a.Records)-1].Seq
	}
	return nil
}

// Archive stores records in the archive.
func (p *performer) Archive(ctx context.Context, a archived) error {
	if p.archive == nil {
		return sdk.NewApplicationError("this worker has no archive", string(problem.Unsupported))
	}
	records := make([]history.Record, len(a.Records))
	for i := range records {
		var err error
		if records[i], err = a.Records[i].Record(a.ExecutionID); err != nil {
			return rejection(err)
		}
	}
	return p.archive.Archive(ctx, a.ExecutionID, a.Text.stored(a.Definition), records)
}
