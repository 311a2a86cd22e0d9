package temporal

import (
	"context"
	"errors"
	"time"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// An attempt of a node with a queue_timeout waits for its turn: it is requested once a worker has begun its activity. The activity starts
// without an effect, and its worker gets the effect with the update awp.turn. The queue_timeout is the activity's schedule-to-start timeout.

// queues reports whether attempts of a node wait for their turn.
func queues(n *definition.Node) bool { return n.QueueTimeout > 0 }

// turn schedules the activity of an attempt that waits for its turn.
func (r *walk) turn(e *machine.TurnEffect) {
	name, o := activityPerform, r.activityOptions(e)
	if e.Node.Delegate != nil {
		name = activityDelegate
	}
	if due := r.due(machine.QueueTimer(e.EffectKey)); !due.IsZero() {
		o.ScheduleToStartTimeout = max(due.Sub(workflow.Now(r.ctx)), time.Millisecond)
	}
	r.fly(&flight{key: e.Key(), turn: e}, name, o, attempt{Turn: e.Key()})
}

// due returns when a timer of the machine fires, zero if it is not open.
func (r *walk) due(key string) (due time.Time) {
	for _, t := range r.m.Timers() {
		if t.Key == key {
			due = t.Due
		}
	}
	return due
}

// waitingFor returns the flight that waits, or has waited, for a turn; nil without one.
func (r *walk) waitingFor(turn string) *flight {
	for _, f := range r.flights {
		if f.turn != nil && f.turn.Key() == turn {
			return f
		}
	}
	return nil
}

// checkTurn is the validator of the update awp.turn.
func (r *walk) checkTurn(_ workflow.Context, turn string) error {
	if r.waitingFor(turn) == nil {
		return rejection(problem.New(problem.HistoryConflict, "the run does not wait for %s", turn))
	}
	return nil
}

// grant handles the update awp.turn: it requests the attempt and returns it. A worker that asks after the loss of another one gets the same.
func (r *walk) grant(ctx workflow.Context, turn string) (attempt, error) {
	for {
		f := r.waitingFor(turn)
		if f == nil {
			return attempt{}, r.checkTurn(ctx, turn)
		}
		if f.effect != nil {
			a := attempt{ExecutionID: r.id, TraceParent: r.m.Config().TraceParent}
			a.Activity, _ = f.effect.(*machine.ActivityEffect)
			a.Delegate, _ = f.effect.(*machine.DelegateEffect)
			return a, nil
		}
		delete(r.flights, f.key) // the turn is over for the machine, the activity is not
		r.granting = f
		err := r.m.Handle(f.turn.Input(), workflow.Now(ctx))
		if err == nil {
			r.stretches = 0
			r.settle(nil)
		}
		r.granting = nil
		switch {
		case err == nil:
		case errors.Is(err, machine.ErrWalking):
			r.flights[f.key] = f
			if err := workflow.Await(ctx, func() bool { return !r.m.Walking() }); err != nil {
				return attempt{}, err
			}
		default:
			return attempt{}, rejection(err)
		}
	}
}

// adopt makes an effect that a granted turn requests that of the turn's activity.
func (r *walk) adopt(e machine.Effect) bool {
	f := r.granting
	if f == nil || f.effect != nil || e.Key() != f.turn.EffectKey {
		return false
	}
	f.key, f.effect = e.Key(), e
	r.flights[f.key] = f
	return true
}

// queueEnded handles the schedule-to-start timeout of an activity: either its attempt has had no turn, or its worker was lost, and the
// activity is scheduled again. It reports the latter.
func (r *walk) queueEnded(ctx workflow.Context, f *flight, err error) (again bool) {
	if f.turn == nil || !timedOut(err, enums.TIMEOUT_TYPE_SCHEDULE_TO_START) {
		return false
	}
	if f.effect != nil {
		return true
	}
	delete(r.flights, f.key)
	r.fire(ctx, machine.QueueTimer(f.turn.EffectKey))
	return false
}

// takeTurn asks the run for the effect of an attempt whose turn it is now.
func (p *performer) takeTurn(ctx context.Context, a attempt) (attempt, error) {
	info := activity.GetInfo(ctx)
	got, err := p.turns.turn(ctx, info.WorkflowExecution.ID, a.Turn, problem.Format("%s/%d", a.Turn, info.Attempt))
	if p := carried(err); p != nil {
		err = sdk.NewNonRetryableApplicationError(p.Message, string(p.Code), nil)
	}
	return got, err
}
