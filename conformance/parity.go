package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonobject"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// parityCheck drives every surface through the same script and compares the answers (spec: execution, 13.4).
type parityCheck struct {
	executionID string
	steps       []parityStep
	stub        map[string]any
	overA2A     bool
	pending     bool
	reason      string
}

// parityStep is a call and its expected answer.
type parityStep struct {
	call            Call
	expectError     bool
	expectErrorCode string
	expect          map[string]any
}

func readParity(o *jsonobject.Object) check {
	c := &parityCheck{
		executionID: o.Require("executionId").NonBlank(),
		stub:        o.Get("stubActivityOutputs").Map(),
		overA2A:     o.Get("useProductionA2ADelegate").Bool(),
		pending:     o.Get("pending").Bool(),
		reason:      o.Get("pendingReason").Text(),
	}
	steps := o.Require("steps")
	if steps.Present() && len(steps.Elements()) == 0 {
		steps.Fail("minItems", "a script without steps checks nothing")
	}
	var scenario map[string]any
	for _, s := range steps.Elements() {
		step := readStep(s.Object(), c.executionID)
		if scenario == nil {
			scenario = step.call.Input
		}
		c.steps = append(c.steps, step)
	}
	// A step without input repeats the script's first input.
	for i := range c.steps {
		if call := &c.steps[i].call; call.Op == OpSubmit || call.Op == OpSignal || call.Op == OpStart && call.Input == nil {
			call.Input = orEmpty(scenario)
		}
	}
	return c
}

func readStep(o *jsonobject.Object, executionID string) parityStep {
	defer o.Close()
	call := Call{ExecutionID: executionID}
	call.Op = o.Require("op").Choice(OpStart, OpStatus, OpResume, OpSubmit, OpSignal, OpCancel, OpList)
	switch call.Op {
	case OpStart:
		if id := o.Get("executionId").Text(); id != "" {
			call.ExecutionID = id
		}
		call.Input = o.Get("input").Map()
	case OpResume:
		call.Payload, call.InterruptID = orEmpty(o.Get("resumePayload").Map()), o.Get("interruptId").Text()
	case OpSubmit:
		call.NodeID, call.IdempotencyKey = o.Require("nodeId").NonBlank(), o.Get("idempotencyKey").Text()
		call.Outcome = readOutcome(o.Require("outcome").Object())
		call.Span = readSpan(o.Get("expectedParallelSpan").Object())
	case OpSignal:
		call.SignalName, call.IdempotencyKey = o.Require("signalName").NonBlank(), o.Get("idempotencyKey").Text()
		call.Payload = o.Get("payload").Map()
	case OpCancel:
		call.Reason = o.Get("reason").Text()
	case OpList:
		call.Phase, call.Cursor = o.Get("listPhase").Text(), o.Get("listCursor").Text()
		limit, _ := o.Get("listLimit").Whole(0, maxCount)
		call.Limit = int(limit)
	}
	switch call.Op {
	case OpStart, OpResume, OpSubmit, OpSignal:
		call.Mode = readMode(o)
	}
	step := parityStep{call: call, expectError: o.Get("expectError").Bool(), expectErrorCode: o.Get("expectErrorCode").Text()}
	step.expect = o.Get("expect").Map()
	if step.expectErrorCode != "" && !step.expectError {
		o.Get("expectErrorCode").Fail("profile", "is not looked at without expectError")
	}
	if step.expectError && step.expect != nil {
		o.Get("expect").Fail("profile", "is not looked at with expectError")
	}
	for name, v := range o.Get("expect").Members() {
		if !slices.Contains(membersOf(call.Op), name) {
			v.Fail("additionalProperties", "no snapshot of this operation has such a member")
		}
	}
	return step
}

func (c *parityCheck) run(ctx context.Context, s *trial) problems {
	var ps problems
	if c.pending {
		if !s.options.AllowPending {
			ps.add("/pending", "the vector is pending: %s", c.reason)
		}
		return ps
	}
	surfaces := append([]SurfaceFactory{{
		Name: runnerSurfaceName,
		Open: func(_ context.Context, r *graph.Runner) (Surface, error) { return runnerSurface{r}, nil },
	}}, s.options.Surfaces...)
	var first []snapshot
	for i, factory := range surfaces {
		got, err := c.play(ctx, s, factory)
		if err != nil {
			ps.add("surface "+factory.Name, "%v", err)
			continue
		}
		for n, step := range c.steps {
			step.judge(stepPlace(n, step.call.Op, factory.Name), got[n], &ps)
		}
		if i == 0 {
			first = got
			continue
		}
		for n := range first {
			at := fmt.Sprintf("%s against %s", stepPlace(n, c.steps[n].call.Op, factory.Name), surfaces[0].Name)
			ps.compare(at, first[n].comparable(), got[n].comparable())
		}
	}
	return ps
}

func stepPlace(n int, op, surface string) string {
	return fmt.Sprintf("/steps/%d (%s, %s)", n, op, surface)
}

// play runs the script on one surface, over its own store.
func (c *parityCheck) play(ctx context.Context, s *trial, factory SurfaceFactory) (got []snapshot, err error) {
	store, err := s.options.NewStore(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	delegates, err := c.delegates()
	if err != nil {
		return nil, err
	}
	engine := graph.Options{
		Activities: activities.Stub{Outputs: c.stub}, Delegates: delegates, Workflows: workflows{s.root}, Branches: s.options.Branches,
	}
	if s.options.NewEngine != nil {
		e, err := s.options.NewEngine(engine)
		if err == nil {
			got, err = c.calls(ctx, s, runnerSurface{e})
			err = errors.Join(err, e.Close())
		}
		return got, err
	}
	err = withRunner(store, engine, func(r *graph.Runner) error {
		surface, err := factory.Open(ctx, r)
		if err != nil {
			return err
		}
		got, err = c.calls(ctx, s, surface)
		return errors.Join(err, surface.Close(), c.replay(ctx, r))
	})
	return got, err
}

// calls makes the calls of the script.
func (c *parityCheck) calls(ctx context.Context, s *trial, surface Surface) (got []snapshot, err error) {
	for _, step := range c.steps {
		call := step.call
		switch call.Op {
		case OpStart, OpResume, OpSubmit, OpSignal:
			call.Definition = s.definition
		}
		answer, err := surface.Call(ctx, call)
		if err == nil {
			var snap snapshot
			snap, err = newSnapshot(call.Op, answer)
			got = append(got, snap)
		}
		if err != nil {
			return got, fmt.Errorf("step %d (%s): %w", len(got), call.Op, err)
		}
	}
	return got, nil
}

// replay checks that the recorded history leads to the current state of the run.
func (c *parityCheck) replay(ctx context.Context, r *graph.Runner) error {
	var differs []error
	_, err := r.Verify(ctx, c.executionID, false, func(f history.Finding) {
		differs = append(differs, fmt.Errorf("the recorded history does not replay: %s %s", f.Code, f.Message))
	})
	if errors.Is(err, problem.ExecutionNotFound) {
		return nil // every step was refused
	}
	return errors.Join(append(differs, err)...)
}

func (c *parityCheck) delegates() (activities.Executor, error) {
	if !c.overA2A {
		return delegate.Mock{}, nil
	}
	return delegate.NewA2AHTTP(delegate.A2AConfig{
		BaseURL:      "http://a2a.invalid",
		APIKey:       func(context.Context) (string, error) { return "conformance", nil },
		PollInterval: 10 * time.Millisecond,
		PollTimeout:  5 * time.Second,
		Client:       newTaskAgent().client(),
	})
}

func (s parityStep) judge(at string, got snapshot, ps *problems) {
	if got.isError != s.expectError {
		ps.differ(at+"/is_error", "differs", s.expectError, got.value())
		return
	}
	if s.expectErrorCode != "" && got.code != s.expectErrorCode {
		ps.differ(at+"/error/code", "differs", s.expectErrorCode, got.code)
	}
	if got.isError {
		return
	}
	for _, name := range jsonvalue.Keys(s.expect) {
		value, there := got.members[name]
		if !there {
			ps.differ(at+"/"+name, "is missing", s.expect[name], nil)
			continue
		}
		ps.compare(at+"/"+name, s.expect[name], value)
	}
}
