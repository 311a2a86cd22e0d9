package workflowtest

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/graphtest"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonobject"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// reader reads the tests of a file. Without a program, ids of nodes are not checked.
type reader struct {
	report    *jsonobject.Report
	prog      *definition.Program
	workflows graph.Resolver
}

// statuses are the final statuses of a simulation.
var statuses = []string{"completed", "failed", "cancelled", "refused", "interrupted", "awaiting_signal"}

func (r *reader) tests(list jsonobject.Value) (tests []*Test) {
	elements := list.Elements()
	if elements != nil && len(elements) == 0 {
		list.Fail("minItems", "there are no tests")
	}
	seen := map[string]bool{}
	for i, element := range elements {
		o := element.Object()
		t := &Test{Name: o.Require("name").NonEmpty(), pointer: "/tests/" + strconv.Itoa(i)}
		if t.Name != "" && seen[t.Name] {
			o.Get("name").Fail("uniqueItems", "another test is named %q", t.Name)
		}
		seen[t.Name] = true
		r.test(t, o)
		o.Close()
		tests = append(tests, t)
	}
	return tests
}

func (r *reader) test(t *Test, o *jsonobject.Object) {
	s := &t.scenario
	s.Workflows = r.workflows
	s.Input = o.Get("input").Map()
	s.Start = start(o.Get("start"))
	s.Stubs, s.Answers = map[string]graphtest.Stub{}, map[string]graphtest.Answer{}
	for id, v := range o.Get("stubs").Members() {
		r.node(v, id, definition.StubOutput)
		s.Stubs[id] = each(v, stub, graphtest.Visits)
	}
	for id, v := range o.Get("answers").Members() {
		r.node(v, id, definition.StubAnswer)
		s.Answers[id] = each(v, reply, inTurn)
	}
	for _, v := range o.Get("signals").Elements() {
		signal := v.Object()
		v := signal.Require("name")
		name := v.NonEmpty()
		r.signal(v, name)
		s.Signals = append(s.Signals, graphtest.Signal{
			Name: name, Payload: signal.Get("payload").Map(), Moment: r.moment(signal),
		})
		signal.Close()
	}
	if v := o.Get("cancel"); v.Present() {
		cancel := v.Object()
		s.Cancel = &graphtest.Cancel{Moment: r.moment(cancel), Reason: cancel.Get("reason").Text()}
		cancel.Close()
	}
	t.Snapshot = o.Get("snapshot").Bool()
	if v := o.Get("expect"); v.Present() {
		t.expect = r.expectation(v.Object())
	}
}

// each reads one entry, or a list of them, which all combines.
func each[T any](v jsonobject.Value, read func(jsonobject.Value) T, all func(...T) T) (none T) {
	if _, isList := v.Plain.([]any); !isList {
		return read(v)
	}
	var list []T
	for _, e := range v.Elements() {
		list = append(list, read(e))
	}
	if len(list) == 0 {
		v.Fail("minItems", "the list is empty")
		return none
	}
	return all(list...)
}

// stub reads the answer of a node in a visit.
func stub(v jsonobject.Value) graphtest.Stub {
	o := v.Object()
	attempts := o.Get("attempts")
	if !attempts.Present() {
		return attempt(v, o, "output, fail or attempts")
	}
	for _, name := range []string{"output", "fail", "delay"} {
		if other := o.Get(name); other.Present() {
			other.Fail("oneOf", "%s cannot be used with attempts", name)
		}
	}
	var list []graphtest.Stub
	elements := attempts.Elements()
	for _, e := range elements {
		list = append(list, attempt(e, e.Object(), "output or fail"))
	}
	if elements != nil && len(list) == 0 {
		attempts.Fail("minItems", "the list is empty")
	}
	o.Close()
	return graphtest.Attempts(list...)
}

// attempt reads the answer of one attempt.
func attempt(v jsonobject.Value, o *jsonobject.Object, choice string) graphtest.Stub {
	if o == nil {
		return nil
	}
	output, fail := o.Get("output"), o.Get("fail")
	s := graphtest.Output(output.Plain)
	switch {
	case output.Present() && fail.Present():
		fail.Fail("oneOf", "fail cannot be used with output")
	case fail.Present():
		s = failure(fail.Object())
	case !output.Present():
		v.Fail("oneOf", "expected one of %s", choice).Hint = "an empty answer is output: {}"
	}
	delay := duration(o.Get("delay"))
	o.Close()
	return graphtest.After(delay, s)
}

func failure(o *jsonobject.Object) graphtest.Stub {
	f := &activities.Failure{Code: "ACTIVITY_FAILED", Message: "the stub fails"}
	if code := o.Get("code"); code.Present() {
		f.Code = code.NonEmpty()
	}
	if message := o.Get("message"); message.Present() {
		f.Message = message.Text()
	}
	if o.Get("final").Bool() {
		f.Retryable = activities.RetryPointless
	}
	o.Close()
	return func(graphtest.Call) graphtest.Result { return graphtest.Result{Err: f} }
}

// reply reads the answer to an interrupt.
func reply(v jsonobject.Value) graphtest.Answer {
	o := v.Object()
	payload, after := o.Require("payload").Map(), duration(o.Get("after"))
	o.Close()
	return graphtest.ReplyAfter(after, payload)
}

// inTurn has an answer for each visit.
func inTurn(answers ...graphtest.Answer) graphtest.Answer {
	return func(q graphtest.Question) (map[string]any, time.Duration, bool) {
		if q.Visit > len(answers) {
			return nil, 0, false
		}
		return answers[q.Visit-1](q)
	}
}

// moment reads after and when.
func (r *reader) moment(o *jsonobject.Object) graphtest.Moment {
	m := graphtest.Moment{After: duration(o.Get("after"))}
	if when := o.Get("when"); when.Present() {
		m.When = when.NonEmpty()
		r.node(when, m.When, "")
	}
	return m
}

func (r *reader) expectation(o *jsonobject.Object) *expectation {
	x := &expectation{}
	get := func(name string, has *bool) jsonobject.Value {
		v := o.Get(name)
		*has = v.Present()
		return v
	}
	if status := o.Get("status"); status.Present() {
		x.status = status.Choice(statuses...)
	}
	x.path, x.waiting = get("path", &x.hasPath).Texts(), get("waiting", &x.hasWaiting).Texts()
	if visits := o.Get("visits"); visits.Present() {
		x.visits = map[string]int{}
		for id, v := range visits.Members() {
			r.node(v, id, "")
			n, _ := v.Whole(0, 1<<31)
			x.visits[id] = int(n)
		}
	}
	x.state = o.Get("state").Map()
	x.exactly = o.Get("exactly").Bool()
	x.result = get("result", &x.hasResult).Plain
	if v := o.Get("error"); v.Present() {
		e := v.Object()
		x.failure = &graphtest.Failure{Code: e.Get("code").Text(), Message: e.Get("message").Text(), NodeID: e.Get("node").Text()}
		e.Close()
	}
	x.elapsed = duration(get("elapsed", &x.hasElapsed))
	o.Close()
	if x.status == "" {
		x.status = "completed"
		if x.failure != nil {
			x.status = "failed"
		}
	}
	return x
}

// node checks that the definition has a node, and that the node takes the kind of stub unless that is "". Nodes of subworkflows are not looked for, since the
// definition may be found anywhere.
func (r *reader) node(v jsonobject.Value, id string, stub definition.Stub) {
	if r.prog == nil || id == "" {
		return
	}
	n := r.prog.Node(id)
	if parent, _, below := strings.Cut(id, "/"); n == nil && below {
		if n = r.prog.Node(parent); n != nil && n.Type == definition.Subworkflow {
			return
		}
		id, n = parent, nil
	}
	if n == nil {
		var ids []string
		for _, n := range r.prog.Nodes {
			ids = append(ids, n.ID)
		}
		v.Fail("node", "the definition has no node %q", id).Hint = suggest.DidYouMean(id, ids)
		return
	}
	if stub != "" && n.Type.Info().Stub != stub {
		v.Fail("node", "node %q is of type %s and takes no %s", id, n.Type, stub)
	}
}

// signal checks that a node waits for a signal. Nodes of subworkflows are not checked.
func (r *reader) signal(v jsonobject.Value, name string) {
	if r.prog == nil || name == "" {
		return
	}
	var awaited []string
	for _, n := range r.prog.Nodes {
		if n.Type == definition.Subworkflow {
			return
		}
		if n.Wait != nil && n.Wait.Kind == definition.WaitSignal {
			awaited = append(awaited, n.Wait.Signal)
		}
	}
	if !slices.Contains(awaited, name) {
		v.Fail("signal", "no node of the definition waits for the signal %q", name).Hint = suggest.DidYouMean(name, awaited)
	}
}

var durationPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9]+(ms|s|m|h)$`) })

func duration(v jsonobject.Value) time.Duration {
	text := v.Text()
	if _, isText := v.Plain.(string); !isText {
		return 0
	}
	d, err := definition.ParseDuration(text)
	if e, ok := problem.As(err); ok {
		v.Fail("pattern", "invalid duration %q", text).Hint = e.Hint
	} else if !durationPattern().MatchString(text) {
		v.Fail("pattern", "invalid duration %q", text).Hint = `write digits and one unit of ms, s, m or h, for example "90s"`
	}
	return d
}

func start(v jsonobject.Value) time.Time {
	text := v.Text()
	if _, isText := v.Plain.(string); !isText {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		v.Fail("pattern", "invalid time %q", text).Hint = `write it as in "2026-01-01T00:00:00Z"`
	}
	return t.UTC()
}

// durationText writes a duration in the form of test files.
func durationText(d time.Duration) string {
	for _, unit := range []struct {
		of   time.Duration
		name string
	}{{time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}} {
		if d%unit.of == 0 && d > 0 {
			return strconv.FormatInt(int64(d/unit.of), 10) + unit.name
		}
	}
	return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
}
