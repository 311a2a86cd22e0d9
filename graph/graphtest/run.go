package graphtest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// run is the machine of the root run or of a subworkflow.
type run struct {
	sim     *simulation
	m       *machine.Machine
	covered *Covered
	// prefix precedes node ids: the prefix of the parent, and the id of its subworkflow node.
	prefix string
	path   []string
	// parent is the run that waits for this one under the key of its effect; nil for the root.
	parent    *run
	parentKey string
	// pending and timers are those of the machine after its last input.
	pending []machine.Wait
	timers  []machine.Timer
	// asked has the keys of interrupts whose answers have been queued.
	asked map[string]bool
	// dropped is true for a subworkflow that its parent no longer waits for.
	dropped bool
}

// begin starts a run.
func (s *simulation) begin(r *run, prog *definition.Program, cfg machine.Config, input map[string]any) {
	r.sim, r.covered, r.asked = s, s.coverage.of(prog), map[string]bool{}
	cfg.Moves = r.covered.moved
	s.runs = append(s.runs, r)
	r.m = machine.Start(prog, cfg, input, s.now)
	r.settle()
}

// take passes an input to the machine, which may return an error.
func (r *run) take(in machine.Input) error {
	if err := r.m.Handle(in, r.sim.now); err != nil {
		return err
	}
	r.settle()
	return nil
}

// settle handles the results of an input: visits, effects, and the end of the run.
func (r *run) settle() {
	s := r.sim
	for {
		var walk *machine.WalkEffect
		b := r.m.Ready()
		if b.TimersChanged {
			r.timers = b.Timers
		}
		for _, record := range b.Records {
			if record.Name == history.NodeScheduled {
				r.visited(record.Payload.NodeID)
			}
		}
		for _, key := range b.Abandoned {
			s.abandon(r, key)
		}
		for _, e := range b.Effects {
			if w, ok := e.(*machine.WalkEffect); ok {
				walk = w
			} else {
				r.perform(e)
			}
		}
		if walk == nil {
			break
		}
		if s.steps++; s.steps > maxSteps {
			return // next says so
		}
		if err := r.m.Handle(machine.Continue{Key: walk.EffectKey}, s.now); err != nil {
			s.fail(err)
			return
		}
	}
	r.pending = r.m.Pending()
	if r.m.Status().Terminal() {
		r.ended()
	}
}

func (r *run) visited(node string) {
	r.path = append(r.path, node)
	r.sim.visits[r.prefix+node]++
	for i := range r.covered.Nodes {
		if n := &r.covered.Nodes[i]; n.ID == node {
			n.Visits++
		}
	}
}

// ended reports the end of a run to its parent.
func (r *run) ended() {
	s := r.sim
	s.abandon(r, "")
	if r.parent == nil {
		return
	}
	s.runs = slices.DeleteFunc(s.runs, func(o *run) bool { return o == r })
	ending := view.EndingOf(r.m, r.m.Program().Hash)
	r.parent.await(r.parentKey, 0, ending.ChildEnded(r.parentKey))
}

// abandon drops the subworkflows that a run no longer waits for: the one of a key, or all.
func (s *simulation) abandon(parent *run, key string) {
	for _, r := range slices.Clone(s.runs) {
		if r.parent == parent && (key == "" || r.parentKey == key) {
			r.dropped = true
			s.runs = slices.DeleteFunc(s.runs, func(o *run) bool { return o == r })
			s.abandon(r, "")
		}
	}
}

// await queues the input that ends a wait.
func (r *run) await(key string, after time.Duration, in machine.Input) {
	s := r.sim
	s.queue = append(s.queue, event{at: s.now.Add(after), run: r, key: key, do: func() {
		if err := r.take(in); err != nil {
			s.fail(err)
		}
	}})
}

// perform performs an effect: with its stub, with the demo output of the node, or by running the subworkflow.
func (r *run) perform(effect machine.Effect) {
	e := effect.Base()
	c := Call{Node: r.prefix + e.NodeID, Visit: e.Visit, Attempt: e.Attempt, State: copied(e.State), Now: r.sim.now}
	c.Type = string(r.m.Program().Node(e.NodeID).Type)
	stub := r.sim.scenario.Stubs[c.Node]
	child, isChild := effect.(*machine.ChildEffect)
	switch effect := effect.(type) {
	case *machine.ActivityEffect:
		c.Config = copied(effect.Config)
		if output, ok := effect.Metadata[activities.DemoOutputKey].(map[string]any); ok && stub == nil {
			stub = Output(output)
		}
	case *machine.DelegateEffect:
		c.Input = copied(effect.Input)
	case *machine.ChildEffect:
		c.Input = copied(effect.Input)
		if stub == nil {
			r.beginChild(effect)
			return
		}
	}
	if stub == nil {
		r.sim.fail(noStub(r.m.Program(), c))
		return
	}
	result := stub(c)
	if e.Heartbeat > 0 && result.Delay >= e.Heartbeat {
		result = Result{Delay: e.Heartbeat, Err: activities.Fail(problem.HeartbeatTimeout, "the attempt gave no sign of life for %s", e.Heartbeat)}
	}
	out := outcome(e.EffectKey, result)
	if !isChild {
		r.await(e.EffectKey, result.Delay, out)
		return
	}
	mapped := r.m.Program().Node(child.NodeID).Map != nil
	end := machine.ChildEnded{Key: child.EffectKey, Status: machine.Completed, Result: out.Output, Error: out.Error, Code: out.Code}
	var isObject bool
	if end.FinalState, isObject = out.Output.(map[string]any); !out.OK {
		end.Status = machine.Failed
	} else if !isObject && !mapped {
		r.sim.fail(problem.New(problem.ValidationError, "the stub of node %q (subworkflow) has an output that is not an object", c.Node).
			WithPlace(problem.Place{NodeID: c.Node}).WithHint("The output of a subworkflow is its final state; in a map, its result."))
	}
	r.await(e.EffectKey, result.Delay, end)
}

// outcome converts the result of a stub to an input, as the engine does for executors.
func outcome(key string, r Result) machine.Outcome {
	out := machine.Outcome{Key: key, OK: true}
	err := r.Err
	if err == nil {
		if out.Output, err = jsonvalue.Normalize(r.Output); err == nil {
			return out
		}
		return machine.Outcome{Key: key, Code: string(problem.ActivityOutputInvalid), Error: "the output cannot be recorded: " + err.Error()}
	}
	out.OK, out.Error, out.Code = false, err.Error(), string(problem.ExecutorFailed)
	if f, ok := errors.AsType[*activities.Failure](err); ok {
		out.Final, out.RetryAfter = f.Retryable == activities.RetryPointless, max(f.RetryAfter, 0)
		if f.Code != "" {
			out.Code = f.Code
		}
	} else if p, ok := problem.As(err); ok {
		out.Code = string(p.Code)
	}
	if out.Error == "" {
		out.Error = out.Code
	}
	return out
}

// beginChild starts a subworkflow, or reports to the parent why it cannot.
func (r *run) beginChild(e *machine.ChildEffect) {
	s := r.sim
	cfg := r.m.Config()
	if cfg.Depth >= maxDepth {
		err := problem.New(problem.SubworkflowDepthExceeded, "subworkflows are nested more than %d levels deep", maxDepth)
		r.refuseChild(e, err)
		return
	}
	missing := noStub(r.m.Program(), Call{Node: r.prefix + e.NodeID, Type: string(definition.Subworkflow)})
	if s.scenario.Workflows == nil {
		s.fail(missing)
		return
	}
	doc, err := s.scenario.Workflows.ResolveWorkflow(context.Background(), e.WorkflowRef, e.VersionPin)
	if err != nil {
		s.fail(missing.WithCause(err))
		return
	}
	prog, err := admit.Definition(doc, definition.MaxBytes, definition.Options{})
	if err != nil {
		s.fail(err)
		return
	}
	input, err := object("input", e.Input)
	if err == nil {
		err = admit.Input(prog, input)
	}
	if err != nil {
		r.refuseChild(e, err)
		return
	}
	child := &run{prefix: r.prefix + e.NodeID + "/", parent: r, parentKey: e.EffectKey}
	s.begin(child, prog, machine.Config{ExecutionID: e.ChildExecutionID, Parent: cfg.ExecutionID, Depth: cfg.Depth + 1}, input)
}

func (r *run) refuseChild(e *machine.ChildEffect, err error) {
	f := failureOf(err)
	r.await(e.EffectKey, 0, machine.ChildRefused{Key: e.EffectKey, Error: f.Message, Code: f.Code})
}

// noStub returns the error for a node without a stub. Details have the fields of its output.
func noStub(prog *definition.Program, c Call) *problem.Error {
	e := problem.New(problem.TestStubMissing, "node %q (%s) of workflow %q is called and has no stub", c.Node, c.Type, prog.Name).
		WithPlace(problem.Place{NodeID: c.Node})
	if schema, ok := c.Config["output_schema"].(map[string]any); ok {
		e.Details = map[string]any{"required": schema["required"]}
	}
	return e
}

// answer queues the answers to interrupts raised since the last call.
func (r *run) answer() {
	s := r.sim
	for _, w := range r.pending {
		if w.Kind != machine.WaitInterrupt || r.asked[w.Key] {
			continue
		}
		r.asked[w.Key] = true
		give := s.scenario.Answers[r.prefix+w.NodeID]
		if give == nil {
			continue
		}
		q := Question{Node: r.prefix + w.NodeID, Visit: w.Visit, Prompt: w.Prompt, State: copied(w.State), Now: s.now}
		payload, after, answered := give(q)
		if !answered {
			continue
		}
		plain, err := object("answer", payload)
		if err != nil {
			s.fail(err)
			return
		}
		s.queue = append(s.queue, event{at: s.now.Add(after), run: r, key: w.Key, do: func() {
			if err := r.take(machine.Resume{Key: w.Key, Payload: plain}); err != nil {
				s.fail(s.refused(err, "the answer to %q, visit %d,", q.Node, q.Visit))
			}
		}})
	}
}

func (r *run) waits(key string) bool {
	return !r.dropped && slices.ContainsFunc(r.pending, func(w machine.Wait) bool { return w.Key == key })
}

// object converts an object of a test to the value model.
func object(what string, m map[string]any) (map[string]any, error) {
	plain, err := jsonvalue.Normalize(m)
	if err != nil {
		return nil, problem.New(problem.ValidationError, "%s is not plain JSON", what).WithCause(err)
	}
	o, _ := plain.(map[string]any)
	if o == nil {
		o = map[string]any{}
	}
	return o, nil
}

func failureOf(err error) *Failure {
	f := &Failure{Message: err.Error()}
	if p, ok := problem.As(err); ok {
		f.Code = string(p.Code)
	}
	return f
}

func copied(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return jsonvalue.CloneMap(m)
}

func copiedValue(v any) any { return jsonvalue.Clone(v) }
