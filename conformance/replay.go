package conformance

import (
	"context"
	"maps"
	"strconv"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/activitiestest"
	"github.com/workflows-engine/workflows-engine/delegate"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonobject"
)

// replayCheck continues a recorded history and checks the appended records (spec: execution, 13.3). Every call has its own runner over
// the same store, as if the engine had restarted in between.
type replayCheck struct {
	input  map[string]any
	prefix []history.Record
	mode   machine.Mode

	noActivity, noDelegate, noSubworkflow bool
	flaky                                 *activitiestest.Flaky
	steps                                 map[string]any

	submissions []submission
	// resume is nil if the run is not resumed.
	resume       map[string]any
	resumeTamper map[string]any

	expect replayExpectation
}

// submission is one element of activitySubmissions.
type submission struct {
	nodeID  string
	outcome Outcome
	span    *history.ParallelSpan
	tamper  map[string]any
	// refusal is the expected error code of the submit; "" if it must succeed.
	refusal string
}

func readReplay(o *jsonobject.Object) check {
	c := &replayCheck{
		input:         o.Get("input").Map(),
		mode:          readMode(o),
		noActivity:    o.Get("assertNoActivityExecutorInvocation").Bool(),
		noDelegate:    o.Get("assertNoDelegateExecutorInvocation").Bool(),
		noSubworkflow: o.Get("assertNoSubworkflowInvocation").Bool(),
		flaky:         readFlaky(o),
		steps:         o.Get("stepHandlers").Map(),
		prefix:        readPrefix(o),
		resume:        o.Get("resumePayload").Map(),
		resumeTamper:  o.Get("resumeDefinitionTamper").Map(),
	}
	if c.mode == "" {
		c.mode = machine.InProcess
	}
	if c.resumeTamper != nil && c.resume == nil {
		o.Get("resumeDefinitionTamper").Fail("profile", "does nothing without resumePayload")
	}
	for _, v := range o.Get("activitySubmissions").Elements() {
		c.submissions = append(c.submissions, readSubmission(v.Object()))
	}
	c.expect = readReplayExpectation(o.Require("expect").Object())
	return c
}

func readMode(o *jsonobject.Object) machine.Mode {
	return machine.Mode(o.Get("activityExecutionMode").Choice(string(machine.InProcess), string(machine.HostMediated)))
}

func readSubmission(o *jsonobject.Object) submission {
	s := submission{
		nodeID:  o.Require("nodeId").NonBlank(),
		outcome: readOutcome(o.Require("outcome").Object()),
		span:    readSpan(o.Get("expectedParallelSpan").Object()),
		tamper:  o.Get("definitionTamper").Map(),
	}
	refusal := o.Get("expectFailure").Object()
	s.refusal = refusal.Require("code").NonBlank()
	refusal.Close()
	o.Close()
	return s
}

// attempt is the outcome of the last call that was not expected to fail.
type attempt struct {
	status string
	code   string
	err    error
}

func outcomeOf(run *view.Run, err error) attempt {
	if err != nil {
		return attempt{status: string(machine.Failed), code: codeOf(err), err: err}
	}
	return attempt{status: string(run.Status), code: run.ErrorCode}
}

func (c *replayCheck) run(ctx context.Context, s *trial) problems {
	var ps problems
	if _, findings := definition.Compile(s.definition, definition.Options{}); findings.HasErrors() {
		ps.add("/definition", "is refused: %s", findingsText(findings))
		return ps
	}
	if s.options.NewEngine != nil {
		r := &replayRun{replayCheck: c, trial: s, id: s.id + "::exec", problems: &ps}
		if err := r.playOver(ctx); err != nil {
			ps.add("", "cannot be run: %v", err)
		}
		return ps
	}
	store, err := s.options.NewStore(ctx)
	if err != nil {
		ps.add("", "no store: %v", err)
		return ps
	}
	defer store.Close()
	r := &replayRun{replayCheck: c, trial: s, store: store, id: s.id + "::exec", problems: &ps}
	if err := r.play(ctx); err != nil {
		ps.add("", "cannot be run: %v", err)
	}
	return ps
}

// replayRun is one run of a replayCheck.
type replayRun struct {
	*replayCheck
	*trial
	store    history.Store
	id       string
	problems *problems
}

// playOver plays the vector over one engine that imports runs. Calls are forbidden unless a later step of the vector makes them.
func (r *replayRun) playOver(ctx context.Context) error {
	o, forbidden, err := r.assertingEngine()
	if err != nil {
		return err
	}
	if len(r.prefix) == 0 || len(r.submissions) > 0 {
		o.Delegates, o.Workflows = delegate.Mock{}, workflows{r.root}
	}
	e, err := r.options.NewEngine(o)
	if err != nil {
		return err
	}
	defer e.Close()
	if err := r.importInto(ctx, e); err != nil {
		return err
	}
	return r.calls(ctx, func(_ bool, f func(graph.Engine) error) error { return f(e) }, forbidden)
}

func (r *replayRun) play(ctx context.Context) error {
	if err := r.importPrefix(ctx); err != nil {
		return err
	}
	asserting, forbidden, err := r.assertingEngine()
	if err != nil {
		return err
	}
	plain := asserting
	plain.Delegates, plain.Workflows = delegate.Mock{}, workflows{r.root}
	return r.calls(ctx, func(asserts bool, f func(graph.Engine) error) error {
		o := plain
		if asserts {
			o = asserting
		}
		return withRunner(r.store, o, func(g *graph.Runner) error { return f(g) })
	}, forbidden)
}

// calls makes the calls of the vector, each with an engine of its own.
func (r *replayRun) calls(ctx context.Context, with func(asserts bool, f func(graph.Engine) error) error, forbidden *noWorkflows) error {
	var last attempt
	err := with(true, func(g graph.Engine) error {
		last = outcomeOf(g.Start(ctx, graph.StartRequest{
			ExecutionID: r.id, Definition: r.trial.definition, Input: r.input, Mode: r.mode, AllowExisting: true,
		}))
		return nil
	})
	for i, s := range r.submissions {
		if err != nil {
			return err
		}
		err = with(false, func(g graph.Engine) error {
			return r.submit(ctx, g, "/activitySubmissions/"+strconv.Itoa(i), s, &last)
		})
	}
	if err == nil && r.resume != nil {
		err = with(true, func(g graph.Engine) error {
			doc, err := tampered(r.trial.definition, r.resumeTamper)
			if err == nil {
				last = outcomeOf(g.Resume(ctx, graph.ResumeRequest{
					ExecutionID: r.id, Payload: r.resume, Caller: graph.Caller{Definition: doc},
				}))
			}
			return err
		})
	}
	if err != nil {
		return err
	}
	if n := forbidden.asked.Load(); n > 0 {
		r.problems.add("/assertNoSubworkflowInvocation", "%d subworkflows would have run again", n)
	}
	return with(false, func(g graph.Engine) error { return r.judge(ctx, g, last) })
}

// assertingEngine configures the engine for start and resume so that forbidden calls fail.
func (r *replayRun) assertingEngine() (graph.Options, *noWorkflows, error) {
	forbidden := &noWorkflows{}
	o := graph.Options{
		Activities: activities.Stub{}, Delegates: delegate.Mock{}, Workflows: workflows{r.root}, Branches: r.options.Branches,
		DefaultMode: r.mode, // for prefixes without a recorded mode
	}
	switch {
	case r.noActivity:
		o.Activities = activities.Rejecting{}
	case r.flaky != nil:
		// A vector may be run more than once; each run counts from the start.
		o.Activities = &activitiestest.Flaky{Failures: r.flaky.Failures, Code: r.flaky.Code, Output: r.flaky.Output}
	case r.steps != nil:
		steps, err := stepHandlers(r.steps)
		if err != nil {
			return o, nil, err
		}
		o.Activities = steps
	}
	if r.noDelegate {
		o.Delegates = activities.Rejecting{}
	}
	if r.noSubworkflow {
		o.Workflows = forbidden
	}
	return o, forbidden, nil
}

func (r *replayRun) submit(ctx context.Context, g graph.Engine, at string, s submission, last *attempt) error {
	doc, err := tampered(r.trial.definition, s.tamper)
	if err != nil {
		return err
	}
	request := s.outcome.request()
	request.ExecutionID, request.NodeID, request.Span = r.id, s.nodeID, s.span
	request.Caller = graph.Caller{Definition: doc, Input: orEmpty(r.input), InputSet: true, Mode: r.mode}
	outcome := outcomeOf(g.SubmitActivity(ctx, request))
	if s.refusal == "" {
		*last = outcome
		return nil
	}
	if outcome.status != string(machine.Failed) || outcome.code != s.refusal {
		r.problems.differ(at+"/expectFailure/code", "submit: expected a refusal (status "+outcome.status+")", s.refusal, outcome.code)
	}
	return nil
}

// tampered returns the definition with some top-level fields replaced.
func tampered(d *definition.Document, tamper map[string]any) (*definition.Document, error) {
	top, ok := d.Value().(map[string]any)
	if tamper == nil || !ok {
		return d, nil
	}
	top = maps.Clone(top)
	maps.Copy(top, tamper)
	return definition.FromValue(top)
}

func orEmpty(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return m
}
