package temporal

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	enums "go.temporal.io/api/enums/v1"
	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// flight is an effect under way.
type flight struct {
	key    string
	cancel workflow.CancelFunc
	// turn is set for an attempt with a queue_timeout, effect from its turn on.
	turn   *machine.TurnEffect
	effect machine.Effect
	// child is the workflow of a subworkflow that has been requested.
	child workflow.ChildWorkflowFuture
}

// attempts reports whether the effect is an attempt that a worker may have begun.
func (f *flight) attempts() bool { return f.effect != nil }

const (
	// maxStretches is the number of stretches of a walk in a row, after which a timer ends the workflow task. A stretch takes about 50 ms; the
	// SDK takes a coroutine without a yield for 1 s as a deadlock.
	maxStretches = 5
	walkPause    = time.Millisecond
	// longest is the longest attempt of a node without a timeout.
	longest = 10 * 365 * 24 * time.Hour
	// releaseTime bounds the cancel of a task at an agent.
	releaseTime = 30 * time.Second
)

// repeat is the retry policy of activities: they fail only if their worker was lost, or lacks the executor. Retries are the machine's.
var repeat = sdk.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 30 * time.Second}

// perform begins an effect. It returns the input of an effect that ends at once, else nil.
func (r *walk) perform(effect machine.Effect) machine.Input {
	switch e := effect.(type) {
	case *machine.WalkEffect:
		if r.stretches++; r.stretches < maxStretches {
			return machine.Continue{Key: e.EffectKey}
		}
		workflow.Go(r.ctx, func(ctx workflow.Context) {
			_ = workflow.Sleep(ctx, walkPause)
			r.input(ctx, machine.Continue{Key: e.EffectKey})
		})
		return nil
	}
	if r.adopt(effect) {
		return nil
	}
	if r.leaving {
		return nil // begun where the run moves to
	}
	if r.held = r.held || workflow.GetInfo(r.ctx).GetCurrentHistoryLength() >= r.in.Limits.mostEvents(); r.held {
		return nil // begun after the run has continued as new
	}
	switch e := effect.(type) {
	case *machine.TurnEffect:
		r.turn(e)
	case *machine.ActivityEffect:
		if in := r.tooLarge(&e.EffectBase, e.State); in != nil {
			return in
		}
		r.attempt(activityPerform, e, attempt{Activity: e})
	case *machine.DelegateEffect:
		if in := r.tooLarge(&e.EffectBase, e.State, e.Input); in != nil {
			return in
		}
		r.attempt(activityDelegate, e, attempt{Delegate: e})
	case *machine.ChildEffect:
		return r.child(e)
	}
	return nil
}

// tooLarge returns the failure of an attempt whose values Temporal does not carry.
func (r *walk) tooLarge(e *machine.EffectBase, values ...map[string]any) machine.Input {
	most := r.in.Limits.Value
	for _, v := range values {
		if n := jsonvalue.Size(v, most); most > 0 && n > most {
			return machine.Outcome{
				Key: e.EffectKey, Code: string(problem.Unsupported), Final: true,
				Error: problem.Format("the state has more than %d bytes, which needs a side store", most),
			}
		}
	}
	return nil
}

// taskQueue returns the name of the task queue of an effect's executor.
func (l *layout) taskQueue(queue, needs string) string {
	name := l.workflows(queue)
	if slices.Contains(l.Lanes, needs) {
		return name + "." + needs
	}
	kind, _, _ := strings.Cut(needs, ":")
	return name + "." + kind
}

// taskQueue returns the name of the task queue of a node's attempts. A node without a queue has that of the run.
func (r *walk) taskQueue(nodeID string) string {
	queue, n := r.in.Queue, r.m.Program().Node(nodeID)
	if n != nil {
		queue = cmp.Or(n.Queue, queue)
	}
	return r.in.Layout.taskQueue(queue, work.Needs(n))
}

// workflows returns the name of the task queue of the runs of a queue.
func (l *layout) workflows(queue string) string {
	return l.TaskQueue + "." + cmp.Or(queue, history.DefaultQueue)
}

// activityOptions are those of an attempt.
func (r *walk) activityOptions(e machine.Effect) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		ActivityID: e.Key(), TaskQueue: r.taskQueue(e.Base().NodeID),
		StartToCloseTimeout: longest, HeartbeatTimeout: r.in.Layout.Lost, RetryPolicy: &repeat,
	}
}

// attempt has a worker perform an attempt, or poll a task.
func (r *walk) attempt(activity string, e machine.Effect, arg attempt) {
	base, o := e.Base(), r.activityOptions(e)
	arg.ExecutionID, arg.TraceParent = r.id, r.m.Config().TraceParent
	if !base.Deadline.IsZero() && activity != activityPoll {
		o.ScheduleToCloseTimeout = max(base.Deadline.Sub(workflow.Now(r.ctx)), time.Millisecond)
	}
	r.fly(&flight{key: e.Key(), effect: e}, activity, o, arg)
}

// fly schedules an activity, and gives its result to the machine.
func (r *walk) fly(f *flight, activity string, o workflow.ActivityOptions, arg attempt) {
	var ctx workflow.Context
	ctx, f.cancel = workflow.WithCancel(r.ctx)
	r.flights[f.key] = f
	future := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, o), activity, arg)
	workflow.Go(r.ctx, func(own workflow.Context) {
		var p performed
		err := future.Get(own, &p)
		if r.flights[f.key] == f && r.queueEnded(own, f, err) {
			o.ScheduleToStartTimeout = 0
			err = workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, o), activity, arg).Get(own, &p)
		}
		if r.flights[f.key] != f {
			return // abandoned
		}
		ctx, base := own, f.base()
		delete(r.flights, f.key)
		r.stretches = 0
		in := p.input()
		switch {
		case err == nil && in != nil:
			if err := r.take(ctx, in, "", nil); err != nil { // it comes too late, or cannot be recorded
				w := wireOf(err)
				r.input(ctx, machine.Outcome{Key: base.EffectKey, Code: string(w.Code), Error: w.Message})
			}
		case timedOut(err, enums.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE) && activity != activityPoll:
			r.expire(ctx, base.EffectKey)
		case sdk.IsCanceledError(err):
		default:
			r.input(ctx, machine.Outcome{Key: base.EffectKey, Code: string(problem.Internal), Error: problem.Format("the worker could not perform the attempt: %v", err)})
		}
	})
}

// base returns the base of the effect.
func (f *flight) base() *machine.EffectBase {
	if f.effect == nil {
		return f.turn.Base()
	}
	return f.effect.Base()
}

func timedOut(err error, kind enums.TimeoutType) bool {
	t, ok := errors.AsType[*sdk.TimeoutError](err)
	return ok && t.TimeoutType() == kind
}

// input passes an input to the machine. One that does not fit is too late.
func (r *walk) input(ctx workflow.Context, in machine.Input) {
	if err := r.take(ctx, in, "", nil); err != nil {
		workflow.GetLogger(ctx).Info("input dropped", "error", err)
	}
}

// expire reports the deadline of an attempt to the machine.
func (r *walk) expire(ctx workflow.Context, key string) {
	for _, t := range r.m.Timers() {
		if w, ok := r.m.TimedWait(t.Key); ok && w.Key == key {
			r.fire(ctx, t.Key)
			return
		}
	}
}

// fire reports to the machine that a timer of it is due, which Temporal may have noticed early.
func (r *walk) fire(ctx workflow.Context, key string) {
	if early := r.due(key).Sub(workflow.Now(ctx)); early > 0 {
		_ = workflow.Sleep(ctx, early)
	}
	r.input(ctx, machine.TimerFired{Key: key})
}

// abandon stops an effect that is no longer needed. With keep, a subworkflow keeps its tasks at agents.
func (r *walk) abandon(key string, keep bool) {
	f := r.flights[key]
	if f == nil {
		return
	}
	delete(r.flights, key)
	if !keep || f.child == nil {
		f.cancel()
		return
	}
	in := machine.Cancel{Reason: "the parent run " + r.id + " has ended", KeepTasks: true, ByParent: true}
	r.releasing++
	workflow.Go(r.ctx, func(ctx workflow.Context) { // before the end of this workflow cancels the subworkflow without it
		err := f.child.GetChildWorkflowExecution().Get(ctx, nil)
		if err == nil {
			err = f.child.SignalChildWorkflow(ctx, signalLeave, in).Get(ctx, nil)
		}
		if err != nil {
			workflow.GetLogger(ctx).Info("subworkflow not told to keep its tasks", "error", err)
		}
		r.releasing--
	})
}

func (r *walk) abandonAll(keep bool) {
	for _, key := range slices.Sorted(maps.Keys(r.flights)) {
		r.abandon(key, keep)
	}
	r.setTimers(nil)
}

// release cancels a task at an agent that is no longer needed. The run ends after it.
func (r *walk) release(e *machine.DelegateEffect) {
	o := workflow.ActivityOptions{
		TaskQueue:              r.taskQueue(e.NodeID),
		ScheduleToCloseTimeout: releaseTime, RetryPolicy: &repeat,
	}
	future := workflow.ExecuteActivity(workflow.WithActivityOptions(r.ctx, o), activityRelease, attempt{ExecutionID: r.id, Delegate: e})
	r.releasing++
	workflow.Go(r.ctx, func(ctx workflow.Context) {
		if err := future.Get(ctx, nil); err != nil {
			workflow.GetLogger(ctx).Warn("task at agent not cancelled", "error", err)
		}
		r.releasing--
	})
}

// timer is an open timer.
type timer struct {
	due    time.Time
	cancel workflow.CancelFunc
}

// setTimers makes the timers those of the machine. The deadline of an attempt under way is kept by Temporal.
func (r *walk) setTimers(ts []machine.Timer) {
	if r.m.Walking() {
		return // the machine reports them again at the end of the walk
	}
	wanted := map[string]bool{}
	for _, t := range ts {
		if r.flights[t.Key] != nil || r.keptByTemporal(t.Key) {
			continue
		}
		wanted[t.Key] = true
		if now := r.timers[t.Key]; now == nil || !now.due.Equal(t.Due) {
			r.setTimer(t)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(r.timers)) {
		if !wanted[key] {
			r.timers[key].cancel()
			delete(r.timers, key)
		}
	}
}

// keptByTemporal reports whether a timer is the deadline of an attempt under way, or that of a back-off after which the attempt waits for its
// turn.
func (r *walk) keptByTemporal(key string) bool {
	w, ok := r.m.TimedWait(key)
	if !ok {
		return machine.IsQueueTimer(key)
	}
	f := r.flights[w.Key]
	return f != nil && f.turn == nil || f == nil && r.flights[machine.TurnKey(w.Key)] != nil
}

func (r *walk) setTimer(t machine.Timer) {
	if old := r.timers[t.Key]; old != nil {
		old.cancel()
	}
	ctx, cancel := workflow.WithCancel(r.ctx)
	own := &timer{t.Due, cancel}
	r.timers[t.Key] = own
	future := workflow.NewTimer(ctx, max(t.Due.Sub(workflow.Now(r.ctx)), 0))
	workflow.Go(r.ctx, func(ctx workflow.Context) {
		if err := future.Get(ctx, nil); err != nil || r.timers[t.Key] != own {
			return
		}
		delete(r.timers, t.Key)
		if workflow.Now(ctx).Before(t.Due) {
			r.setTimer(t)
			return
		}
		r.stretches = 0
		if poll := r.m.Poll(t.Key); poll != nil {
			r.attempt(activityPoll, poll, attempt{Delegate: &poll.DelegateEffect})
			return
		}
		if turn := r.m.Queue(t.Key); turn != nil {
			r.perform(turn)
			return
		}
		r.input(ctx, machine.TimerFired{Key: t.Key})
	})
}

// child starts a subworkflow. It returns the input for one that cannot start, else nil.
func (r *walk) child(e *machine.ChildEffect) machine.Input {
	if c := r.in.Continued; c == nil || c.Children[e.ChildExecutionID] == nil { // an imported one has been admitted where it began
		if err := admit.Depth(r.m.Config().Depth, r.in.Limits.Depth); err != nil {
			return refused(e, err)
		}
	}
	cancelled, cancel := workflow.WithCancel(r.ctx)
	f := &flight{key: e.EffectKey, cancel: cancel}
	r.flights[e.EffectKey] = f
	r.beginning = append(r.beginning, e.ChildExecutionID)
	config := r.m.Config()
	workflow.Go(cancelled, func(ctx workflow.Context) {
		in, err := r.runChild(ctx, f, e, config)
		r.begun(e.ChildExecutionID)
		if r.flights[e.EffectKey] != f {
			return // abandoned
		}
		delete(r.flights, e.EffectKey)
		r.stretches = 0
		if err != nil {
			in = refused(e, err)
		}
		r.input(r.ctx, in)
	})
	return nil
}

func (r *walk) begun(child string) {
	r.beginning = slices.DeleteFunc(slices.Clone(r.beginning), func(id string) bool { return id == child })
}

// refused is the input for a subworkflow that cannot be started.
func refused(e *machine.ChildEffect, err error) machine.Input {
	w := wireOf(err)
	return machine.ChildRefused{Key: e.EffectKey, Error: w.problem().Error(), Code: string(w.Code)}
}

// runChild runs a subworkflow as a child workflow, and returns its end. An error means that it was not started.
func (r *walk) runChild(ctx workflow.Context, f *flight, e *machine.ChildEffect, config machine.Config) (machine.Input, error) {
	in := r.importedChild(e)
	if in == nil {
		var err error
		if in, err = r.newChild(ctx, e, config); err != nil {
			return nil, err
		}
	}
	if in.Ended != nil {
		return in.Ended.ChildEnded(e.EffectKey), nil
	}
	prog, err := r.program(in, in.Definition)
	if err != nil {
		return nil, err
	}
	o := workflow.ChildWorkflowOptions{
		WorkflowID: e.ChildExecutionID, TaskQueue: r.in.Layout.workflows(in.Queue), WorkflowTaskTimeout: workflowTaskTime,
		ParentClosePolicy: enums.PARENT_CLOSE_POLICY_REQUEST_CANCEL, WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		TypedSearchAttributes: in.attributes(prog.Name), Memo: in.memo(prog),
	}
	future := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(ctx, o), WorkflowType, *in)
	f.child = future
	err = future.GetChildWorkflowExecution().Get(ctx, nil)
	r.begun(e.ChildExecutionID)
	var end snapshot
	if err == nil {
		err = future.Get(ctx, &end)
	}
	switch {
	case err == nil && end.Ending != nil:
		return end.Ending.ChildEnded(e.EffectKey), nil
	case isType[*sdk.ChildWorkflowExecutionAlreadyStartedError](err):
		return machine.ChildRefused{Key: e.EffectKey, Code: string(problem.DuplicateExecutionID), Error: "run " + e.ChildExecutionID + " exists and is not a subworkflow of this run"}, nil
	case isType[*sdk.TerminatedError](err) || isType[*sdk.TimeoutError](err):
		return machine.ChildEnded{Key: e.EffectKey, Status: machine.Failed, Error: terminatedText, Code: string(problem.Terminated)}, nil
	}
	return machine.ChildEnded{Key: e.EffectKey, Status: machine.Failed, Error: problem.Format("the child workflow has failed: %v", err), Code: string(problem.Internal)}, nil
}

// importedChild returns the input of a subworkflow that was moved here with the run, nil for another one.
func (r *walk) importedChild(e *machine.ChildEffect) *runInput {
	c := r.in.Continued
	if c == nil || c.Children[e.ChildExecutionID] == nil {
		return nil
	}
	in := *c.Children[e.ChildExecutionID]
	delete(c.Children, e.ChildExecutionID)
	in.Walk, in.Library, in.Limits, in.Layout = r.in.Walk, r.in.Library, r.in.Limits, r.in.Layout
	return &in
}

// newChild returns the input of a subworkflow that starts.
func (r *walk) newChild(ctx workflow.Context, e *machine.ChildEffect, config machine.Config) (*runInput, error) {
	hash := cmp.Or(e.Version, e.VersionPin)
	bound := r.in.Library
	if _, ok := bound[hash]; !ok {
		found, err := r.resolve(ctx, e, config)
		if err != nil {
			return nil, err
		}
		hash, bound = found.Definition, maps.Clone(bound)
		maps.Copy(bound, found.Library)
	}
	in := runInput{
		Walk: r.in.Walk, Definition: hash, Library: bound, Config: config, Title: r.in.Title, Labels: r.in.Labels, Notify: r.in.Notify, Queue: r.in.Queue,
		Limits: r.in.Limits, Layout: r.in.Layout,
	}
	in.Config.ExecutionID, in.Config.Parent, in.Config.Depth, in.Config.Subworkflows = e.ChildExecutionID, r.id, config.Depth+1, bound[hash].Subworkflows
	prog, err := r.program(&in, hash)
	if err != nil {
		return nil, err
	}
	in.Queue = cmp.Or(prog.Queue, in.Queue)
	if in.Input, err = admit.Object("input", e.Input, r.in.Limits.Document, problem.ValidationError); err != nil {
		return nil, err
	}
	if err := admit.Input(prog, in.Input); err != nil {
		return nil, err
	}
	if most := r.in.Limits.Value; most > 0 && jsonvalue.Size(in.Input, most) > most {
		return nil, problem.New(problem.Unsupported, "the input has more than %d bytes, which needs a side store", most)
	}
	return &in, nil
}

// terminatedText is the error of a run that Temporal has ended.
const terminatedText = "the workflow of the run was terminated in Temporal"

// resolve finds the definition of a subworkflow that the run is not bound to.
func (r *walk) resolve(ctx workflow.Context, e *machine.ChildEffect, config machine.Config) (*resolved, error) {
	o := workflow.ActivityOptions{
		ActivityID: "resolve:" + e.EffectKey, TaskQueue: r.in.Layout.workflows(r.in.Queue),
		StartToCloseTimeout: longest, HeartbeatTimeout: r.in.Layout.Lost, RetryPolicy: &repeat,
	}
	var found resolved
	err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, o), activityResolve, reference{
		ExecutionID: r.id, Ref: e.WorkflowRef, Pin: e.VersionPin, Version: e.Version, Inherited: config.Subworkflows,
	}).Get(ctx, &found)
	if err == nil && found.Refused != nil {
		err = found.Refused.problem()
	}
	return &found, err
}

// earliest returns the time of a machine's first timer, zero without one.
func earliest(m *machine.Machine) (due time.Time) {
	if m.Walking() {
		return due
	}
	for _, t := range m.Timers() {
		if due.IsZero() || t.Due.Before(due) {
			due = t.Due
		}
	}
	return due
}
