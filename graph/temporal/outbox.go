package temporal

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"slices"
	"strings"
	"time"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/workflow"

	"github.com/workflows-engine/workflows-engine/graph/internal/outbox"
	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// The event of a run that names webhook targets becomes a child workflow, "awp.outbox", which outlives the run. It makes the body once, and
// sends it to each target with the pauses of package outbox. Workers that have targets perform its activities.

// OutboxType is the type of the workflow that sends an event of a run to its webhook targets.
const OutboxType = "awp.outbox"

// letter is the argument of the outbox: an event, and the run as it was then.
type letter struct {
	ExecutionID string           `json:"executionId"`
	Event       history.RunEvent `json:"event"`
	EventID     string           `json:"eventId"`
	At          time.Time        `json:"at"`
	Root        string           `json:"root,omitempty"`
	Targets     []string         `json:"targets"`
	Queue       string           `json:"queue"`
	Lost        time.Duration    `json:"lost"`
	Definition  source           `json:"definition"`
	Run         snapshot         `json:"run"`
	// Truncated is set if the run has more values than Temporal carries without a side store. Their place is empty then.
	Truncated bool `json:"truncated,omitempty"`
}

// parcel is the argument of an attempt to send the body of a letter to a target.
type parcel struct {
	ID       string           `json:"id"`
	EventID  string           `json:"eventId"`
	Event    history.RunEvent `json:"event"`
	Run      string           `json:"executionId"`
	Target   string           `json:"target"`
	At       time.Time        `json:"at"`
	Body     []byte           `json:"body"`
	Attempts int              `json:"attempts"`
	Step     int              `json:"step"`
}

// sent is the result of an attempt: the state of the delivery, and the pause before the next attempt.
type sent struct {
	Target   string                `json:"target"`
	ID       string                `json:"id"`
	State    history.DeliveryState `json:"state"`
	Step     int                   `json:"step"`
	Attempts int                   `json:"attempts"`
	Status   int                   `json:"status,omitempty"`
	Error    string                `json:"error,omitempty"`
	Pause    time.Duration         `json:"pause,omitempty"`
}

// stableID returns an id that a replay of the workflow makes again.
func stableID(prefix string, parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return prefix + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:26])
}

// webhooks returns the name of the task queue of the workers that have the targets of the runs of a queue.
func (l *layout) webhooks(queue string) string { return l.workflows(queue) + ".webhooks" }

// notify starts the outbox for the event in a batch of records, if there is one. before is the phase of the run before them.
func (r *walk) notify(before history.Phase, records []history.Record) {
	if len(r.in.Notify) == 0 || len(records) == 0 {
		return
	}
	event, root := outbox.EventOf(before, &r.exec, records)
	if event == "" {
		return
	}
	l := letter{
		ExecutionID: r.id, Event: event, At: workflow.Now(r.ctx).Truncate(time.Millisecond), Root: root, Targets: r.in.Notify,
		EventID: stableID("evt_", r.id, workflow.GetInfo(r.ctx).FirstRunID, problem.Format("%d", r.exec.Seq)),
		Queue:   r.in.Layout.webhooks(r.in.Queue), Lost: r.in.Layout.Lost, Definition: r.in.Library[r.in.Definition], Run: r.snapshot(),
	}
	l.fit(r.in.Limits.Value)
	future := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(r.ctx, workflow.ChildWorkflowOptions{
		WorkflowID: l.EventID, TaskQueue: r.in.Layout.workflows(r.in.Queue), ParentClosePolicy: enums.PARENT_CLOSE_POLICY_ABANDON,
		WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
	}), OutboxType, l)
	r.releasing++
	workflow.Go(r.ctx, func(ctx workflow.Context) { // the run must not end before its outbox has started
		if err := future.GetChildWorkflowExecution().Get(ctx, nil); err != nil {
			workflow.GetLogger(ctx).Error("webhooks not sent", "event", string(event), "error", err)
		}
		r.releasing--
	})
}

// fit takes out values of the run that are larger than Temporal carries; most is 0 without a limit.
func (l *letter) fit(most int) {
	size := len(l.Run.Position) + jsonvalue.Size(l.Run.State, most)
	if l.Run.Position != nil {
		size += len(l.Definition.Text)
	}
	if end := l.Run.Ending; end != nil {
		size += jsonvalue.Size(end.State, most) + jsonvalue.Size(end.Result, most)
	}
	if most <= 0 || size <= most {
		return
	}
	l.Truncated, l.Run.Position, l.Run.State, l.Definition = true, nil, nil, source{}
	if l.Run.Ending != nil {
		end := *l.Run.Ending
		end.State, end.Result = nil, nil
		l.Run.Ending = &end
	}
}

// maxAtOnce bounds the attempts that are scheduled in one workflow task: each has a body of up to outbox.MaxBody.
const maxAtOnce = 8

// deliver is the workflow of the outbox. Its result is the end of each delivery.
func deliver(ctx workflow.Context, l letter) ([]sent, error) {
	o := workflow.ActivityOptions{TaskQueue: l.Queue, StartToCloseTimeout: longest, HeartbeatTimeout: l.Lost, RetryPolicy: &repeat}
	ctx = workflow.WithActivityOptions(ctx, o)
	var body []byte
	if err := workflow.ExecuteActivity(ctx, activityWrite, l).Get(ctx, &body); err != nil {
		return nil, err
	}
	ends, open := make([]sent, len(l.Targets)), len(l.Targets)
	for i, target := range l.Targets {
		if i > 0 && i%maxAtOnce == 0 {
			if err := workflow.Sleep(ctx, walkPause); err != nil {
				return nil, err
			}
		}
		workflow.Go(ctx, func(ctx workflow.Context) {
			ends[i] = deliverTo(ctx, parcel{
				ID: stableID("dlv_", l.EventID, target), EventID: l.EventID, Event: l.Event, Run: l.ExecutionID, Target: target, At: l.At, Body: body,
			})
			open--
		})
	}
	return ends, workflow.Await(ctx, func() bool { return open == 0 })
}

// deliverTo sends to one target until it has the delivery, or is given up.
func deliverTo(ctx workflow.Context, p parcel) sent {
	for {
		p.Attempts++
		end := sent{Target: p.Target, ID: p.ID, Attempts: p.Attempts, Step: p.Step}
		if err := workflow.ExecuteActivity(ctx, activityDeliver, p).Get(ctx, &end); err != nil {
			end.State, end.Error = history.DeliveryDead, err.Error()
		}
		if end.State != history.DeliveryPending {
			return end
		}
		if err := workflow.Sleep(ctx, end.Pause); err != nil {
			end.State, end.Error = history.DeliveryDead, err.Error()
			return end
		}
		p.Step = end.Step
	}
}

// Write makes the body of a letter.
func (p *performer) Write(ctx context.Context, l letter) ([]byte, error) {
	defer p.beat(ctx)()
	exec, err := history.ParseExecution(l.ExecutionID, l.Run.Projection)
	if err != nil {
		return nil, err
	}
	exec.Bytes = l.Run.Bytes
	s := view.Source{
		Execution: &exec, Ending: l.Run.Ending, MaxVisits: l.Run.MaxVisits, Mode: l.Run.Mode, Limits: l.Run.Limits.machine(), Now: l.At,
	}
	if s.Ending != nil && s.Ending.State == nil {
		s.Ending.State = map[string]any{}
	}
	if l.Run.Position != nil {
		if s.Program, err = (&walker{}).compiled(&l.Definition, exec.DefinitionHash); err != nil {
			return nil, err
		}
		if s.Machine, err = machine.Restore(s.Program, l.Run.Position, l.Run.State); err != nil {
			return nil, err
		}
		s.Machine.SetLimits(0, s.Limits)
		s.Machine.SetBytes(l.Run.Bytes)
		s.Waits = s.Machine.Pending()
	}
	v := view.Of(s)
	if err := run.Journals(ctx, p.past, v.Pending); err != nil {
		p.log.Warn("question not read for a webhook", "execution_id", l.ExecutionID, "error", err)
	}
	return p.box.Body(outbox.Heading{Event: l.Event, ID: l.EventID, At: l.At, Root: l.Root, Truncated: l.Truncated}, v), nil
}

// Deliver makes one attempt to send to a target.
func (p *performer) Deliver(ctx context.Context, a parcel) (sent, error) {
	defer p.beat(ctx)()
	s := outbox.Sender{Targets: p.box.Targets, Send: p.send, Now: time.Now, Log: p.log, Context: ctx}
	d := history.Delivery{
		ID: a.ID, EventID: a.EventID, ExecutionID: a.Run, Event: a.Event, Target: a.Target, Body: a.Body, CreatedAt: a.At, Due: a.At,
		State: history.DeliveryPending, Step: a.Step, Attempts: a.Attempts,
	}
	if _, known := s.Targets[a.Target]; !known { // another worker may have it
		return sent{}, problem.New(problem.WebhookTargetUnknown, "this worker lacks the webhook target %q", a.Target)
	}
	end := s.Try(&d)
	if ctx.Err() != nil {
		return sent{}, context.Cause(ctx) // performed again
	}
	return sent{
		Target: a.Target, ID: a.ID, Attempts: a.Attempts, State: end.State, Step: end.Step, Status: end.Status, Error: end.Error, Pause: max(end.Due.Sub(end.At), 0).Round(time.Millisecond),
	}, nil
}

// sendsWebhooks reports whether the process has webhook targets.
func (p *performer) sendsWebhooks() bool { return p.send != nil && len(p.box.Targets) > 0 }

// notifies returns the names of webhook targets that a new run notifies.
func (e *Engine) notifies(names []string) ([]string, error) {
	return e.performer.box.Targets.Admit(slices.Clone(names))
}
