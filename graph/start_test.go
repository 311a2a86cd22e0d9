package graph_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

func TestStartInProcess(t *testing.T) {
	t.Parallel()
	store := historymem.New()
	exec := &script{}
	r := newRunner(t, store, graph.Options{Activities: exec})
	run := start(t, r, "r1", linear(t, "lin", "a", "b", "c"), object{"in": 1})
	wantStatus(t, run, machine.Completed)
	want := object{"in": 1.0, "a": 1.0, "b": 1.0, "c": 1.0}
	if !sameJSON(run.FinalState, want) || !sameJSON(run.Result, want) {
		t.Errorf("final state %v, result %v", run.FinalState, run.Result)
	}
	if run.State != nil || run.Pending != nil || run.CurrentNodeID != "" {
		t.Errorf("an ended run has state %v, pending %v, node %q", run.State, run.Pending, run.CurrentNodeID)
	}
	if run.DefinitionName != "lin" || run.DefinitionVersion != "1" || len(run.DefinitionHash) != 64 || run.Mode != machine.InProcess {
		t.Errorf("run %+v", run)
	}
	if run.NodeVisits != 5 || run.MaxVisits != machine.DefaultMaxVisits {
		t.Errorf("visits %d of %d", run.NodeVisits, run.MaxVisits)
	}
	if want := []string{"r1:a#1.1", "r1:b#1.1", "r1:c#1.1"}; !slices.Equal(exec.keys(), want) {
		t.Errorf("keys %v", exec.keys())
	}
	again := status(t, r, "r1")
	if again.Seq != run.Seq || !sameJSON(again.Result, run.Result) || again.Status != run.Status {
		t.Errorf("status %+v, start said %+v", again, run)
	}
}

func TestStartAFailedRunIsAResult(t *testing.T) {
	t.Parallel()
	store := historymem.New()
	r := newRunner(t, store, graph.Options{Activities: &script{answers: answers{
		"a": func(context.Context, activities.Request) (any, error) {
			return nil, &activities.Failure{Code: "HANDLER_ERROR", Message: "boom"}
		},
	}}})
	run := start(t, r, "f", linear(t, "lin", "a"), nil)
	wantStatus(t, run, machine.Failed)
	for _, run := range []*view.Run{run, status(t, r, "f")} {
		if run.Error != "boom" || run.ErrorCode != "HANDLER_ERROR" || run.ErrorNodeID != "a" || run.CurrentNodeID != "a" {
			t.Errorf("run %+v", run)
		}
		if run.FinalState == nil {
			t.Error("no final state")
		}
	}
}

func TestStartChoosesAnID(t *testing.T) {
	t.Parallel()
	r, _ := host(t, graph.Options{})
	d := linear(t, "lin", "a")
	for _, id := range []string{"", "  \t"} {
		run := start(t, r, id, d, nil)
		if len(run.ExecutionID) != 36 {
			t.Errorf("id %q", run.ExecutionID)
		}
	}
	if run := start(t, r, " x ", d, nil); run.ExecutionID != " x " {
		t.Errorf("id %q was changed", run.ExecutionID)
	}
}

func TestStartRefusalsLeaveNoTrace(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{MaxDocumentBytes: 2000})
	good := linear(t, "good", "a")
	typed := workflowWith(t, "typed", `"state_schema":{"type":"object","properties":{"n":{"type":"integer"}}}`,
		[]string{`{"id":"s","type":"start","config":{"input_schema":{"type":"object","required":["n"]}}}`, endNode()}, "s e")
	start(t, r, "used", good, nil)
	for name, c := range map[string]struct {
		req  graph.StartRequest
		code problem.Code
	}{
		"no definition":      {graph.StartRequest{}, problem.ValidationError},
		"invalid definition": {graph.StartRequest{Definition: define(t, `{"nodes":[]}`)}, problem.ValidationError},
		"interrupt in branch": {graph.StartRequest{Definition: workflow(t, "i",
			[]string{startNode(), fork("p", "all", "i"), interrupt("i"), endNode()}, "s p", "p e", "i e")}, problem.InterruptInParallelBranch},
		"unknown ref":            {graph.StartRequest{DefinitionRef: "nobody"}, problem.WorkflowNotFound},
		"used id":                {graph.StartRequest{ExecutionID: "used", Definition: good}, problem.DuplicateExecutionID},
		"large input":            {graph.StartRequest{Definition: good, Input: object{"a": strings.Repeat("x", 2000)}}, problem.ValidationError},
		"large definition":       {graph.StartRequest{Definition: workflow(t, strings.Repeat("n", 2000), []string{startNode(), endNode()}, "s e")}, problem.ValidationError},
		"input no JSON":          {graph.StartRequest{Definition: good, Input: object{"f": func() {}}}, problem.ValidationError},
		"input against input":    {graph.StartRequest{Definition: typed, Input: object{}}, problem.ValidationError},
		"input against state":    {graph.StartRequest{Definition: typed, Input: object{"n": "x"}}, problem.ValidationError},
		"unknown mode":           {graph.StartRequest{Definition: good, Mode: "host"}, problem.ValidationError},
		"unknown branch order":   {graph.StartRequest{Definition: good, Branches: "random"}, problem.ValidationError},
		"existing without id":    {graph.StartRequest{ExecutionID: "new", AllowExisting: true}, problem.ValidationError},
		"existing, other def":    {graph.StartRequest{ExecutionID: "used", Definition: typed, AllowExisting: true}, problem.SubmitValidationError},
		"existing, other input":  {graph.StartRequest{ExecutionID: "used", Definition: good, Input: object{"x": 1}, AllowExisting: true}, problem.SubmitValidationError},
		"W-63 id of a child":     {graph.StartRequest{ExecutionID: "x:sub:v", Definition: good}, problem.ValidationError},
		"W-63 existing child id": {graph.StartRequest{ExecutionID: "x:sub:v", Definition: good, AllowExisting: true}, problem.ValidationError},
	} {
		t.Run(name, func(t *testing.T) {
			unchanged(t, store, func() {
				run, err := r.Start(t.Context(), c.req)
				if run != nil {
					t.Errorf("run %+v", run)
				}
				wantCode(t, err, c.code)
			})
		})
	}
	_, err := r.Start(t.Context(), graph.StartRequest{Definition: good, Input: object{"a": strings.Repeat("x", 2000)}})
	p := wantCode(t, err, problem.ValidationError)
	if p.Details["label"] != "input" || p.Details["bytes"] != 2008.0 || p.Details["maxBytes"] != 2000.0 {
		t.Errorf("details %v", p.Details)
	}
	_, err = r.Start(t.Context(), graph.StartRequest{Definition: typed, Input: object{"n": "x"}})
	p = wantCode(t, err, problem.ValidationError)
	if len(p.Findings) != 1 || p.Findings[0].At.Pointer != "/n" || p.Findings[0].Keyword != "type" {
		t.Errorf("findings %+v", p.Findings)
	}
}

func TestStartByReference(t *testing.T) {
	t.Parallel()
	r, _ := host(t, graph.Options{})
	d := linear(t, "lin", "a")
	hash := start(t, r, "first", d, nil).DefinitionHash
	for _, ref := range []string{hash, "lin", "lin@1"} {
		run, err := r.Start(t.Context(), graph.StartRequest{DefinitionRef: ref})
		if err != nil || run.DefinitionHash != hash {
			t.Errorf("%s: %v", ref, err)
		}
	}
	_, err := r.Start(t.Context(), graph.StartRequest{DefinitionRef: "lin@2"})
	wantCode(t, err, problem.WorkflowNotFound)
}

// A name is first that of a registered workflow, then of what the Resolver knows, then of what is stored; a hash is that of what is
// stored. What the Resolver refuses with another code than WORKFLOW_NOT_FOUND is not looked for among the stored ones.
func TestStartByNameOfTheResolver(t *testing.T) {
	t.Parallel()
	stored, resolved, registered := linear(t, "lin", "a"), linear(t, "lin", "b"), linear(t, "lin", "c")
	var refusal error
	asked := ""
	r, _ := host(t, graph.Options{Workflows: resolver(func(ref, pin string) (*definition.Document, error) {
		asked = ref + pin
		return resolved, refusal
	})})
	start(t, r, "first", stored, nil)
	begun := func(ref string) string {
		t.Helper()
		run, err := r.Start(t.Context(), graph.StartRequest{DefinitionRef: ref})
		if err != nil {
			t.Fatal(err)
		}
		return run.DefinitionHash
	}
	if got := begun("lin"); got != resolved.Hash() || asked != "lin" {
		t.Errorf("started %s, asked for %q", got, asked)
	}
	if got := begun(stored.Hash()); got != stored.Hash() {
		t.Errorf("by hash: started %s", got)
	}
	refusal = problem.New(problem.WorkflowNotFound, "gone").WithHint("Bring it back.")
	other := start(t, r, "other", linear(t, "other", "a"), nil).DefinitionHash
	if got := begun("other"); got != other {
		t.Errorf("unknown to the resolver: started %s", got)
	}
	_, err := r.Start(t.Context(), graph.StartRequest{DefinitionRef: "nobody"})
	if p := wantCode(t, err, problem.WorkflowNotFound); p.Message != "gone" || !strings.HasSuffix(p.Hint, "Bring it back.") {
		t.Errorf("unknown: %v. %s", p, p.Hint)
	}
	for _, refusal = range []error{problem.New(problem.ValidationError, "two of them").WithReason(problem.WorkflowNotFound), errors.New("no network")} {
		if run, err := r.Start(t.Context(), graph.StartRequest{DefinitionRef: "other"}); err == nil {
			t.Errorf("%v: started %s", refusal, run.DefinitionHash)
		}
	}
	if err := r.RegisterWorkflow("lin", registered); err != nil {
		t.Fatal(err)
	}
	if got := begun("lin"); got != registered.Hash() {
		t.Errorf("registered: started %s", got)
	}
}

func TestStartExisting(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{})
	d := linear(t, "lin", "a")
	again := func(id string, input map[string]any) (*view.Run, error) {
		return r.Start(t.Context(), graph.StartRequest{ExecutionID: id, Definition: d, Input: input, AllowExisting: true})
	}
	start(t, r, "waits", d, object{"o": object{"a": 1, "b": 2}})
	start(t, r, "done", d, nil)
	done := submit(t, r, "done", "a", object{"x": 1})
	start(t, r, "gone", d, nil)
	if _, err := r.Cancel(t.Context(), graph.CancelRequest{ExecutionID: "gone", Reason: "first"}); err != nil {
		t.Fatal(err)
	}
	unchanged(t, store, func() {
		run, err := again("waits", object{"o": object{"b": 2.0, "a": 1}})
		if err != nil || run.Status != machine.AwaitingActivity || run.Pending[0].NodeID != "a" {
			t.Errorf("waiting: %+v, %v", run, err)
		}
		run, err = again("done", object{})
		if err != nil || run.Status != machine.Completed || !sameJSON(run.Result, done.Result) {
			t.Errorf("W-22: completed: %+v, %v", run, err)
		}
		run, err = again("gone", object{"any": "input"})
		if err != nil || run.Status != machine.Cancelled || run.Reason != "first" {
			t.Errorf("cancelled: %+v, %v", run, err)
		}
	})
}

// TestW18_AFailedRunIsNotDrivenAgain holds that starting a failed run again gives its recorded failure.
func TestW18_AFailedRunIsNotDrivenAgain(t *testing.T) {
	t.Parallel()
	exec := &script{answers: answers{"a": func(context.Context, activities.Request) (any, error) {
		return nil, &activities.Failure{Message: "no"}
	}}}
	store := historymem.New()
	r := newRunner(t, store, graph.Options{Activities: exec})
	d := linear(t, "lin", "a")
	wantStatus(t, start(t, r, "r", d, nil), machine.Failed)
	delete(exec.answers, "a")
	unchanged(t, store, func() {
		run, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: d, AllowExisting: true})
		if err != nil || run.Status != machine.Failed || run.Error != "no" {
			t.Errorf("%+v, %v", run, err)
		}
	})
	if exec.count() != 1 {
		t.Errorf("%d calls", exec.count())
	}
}

// TestW29_TheDefinitionIsBoundAtStart also covers W-28: a definition that is not the run's never reaches it.
func TestW29_TheDefinitionIsBoundAtStart(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{})
	d := workflowWith(t, "unbound", `"checkpointing":{"strategy":"disabled"}`,
		[]string{startNode(), tool("a"), signalWait("w", "go"), interrupt("i"), endNode()}, "s a", "a w", "w i", "i e")
	other := linear(t, "unbound", "a")
	start(t, r, "r", d, nil)
	caller := graph.Caller{Definition: other}
	refused := func(err error, code problem.Code) {
		t.Helper()
		wantCode(t, err, code)
	}
	unchanged(t, store, func() {
		_, err := r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: "a", OK: true, Caller: caller})
		refused(err, problem.SubmitValidationError)
		// A start that is repeated after a deployment gets its run, which keeps its definition.
		run, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: other, AllowExisting: true})
		if err != nil || run.DefinitionHash != d.Hash() || len(run.Warnings) != 1 || run.Warnings[0].Code != problem.DefinitionKept {
			t.Errorf("%+v, %v", run, err)
		}
	})
	submit(t, r, "r", "a", nil)
	unchanged(t, store, func() {
		_, err := r.Signal(t.Context(), graph.SignalRequest{ExecutionID: "r", Name: "go", Caller: caller})
		refused(err, problem.SignalValidationError)
	})
	if _, err := r.Signal(t.Context(), graph.SignalRequest{ExecutionID: "r", Name: "go", Caller: graph.Caller{Definition: d}}); err != nil {
		t.Fatal(err)
	}
	unchanged(t, store, func() {
		_, err := r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", Payload: object{"ok": true}, Caller: caller})
		refused(err, problem.InvalidResumePayload)
	})
}

func TestStartWaitsAtMostTheLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRunner(t, historymem.New(), graph.Options{Activities: &script{answers: answers{"a": after(time.Minute, object{"x": 1})}}})
		begun := time.Now()
		run := start(t, r, "r", linear(t, "lin", "a"), nil)
		wantStatus(t, run, machine.Running)
		if d := time.Since(begun); d != 20*time.Second {
			t.Errorf("waited %s", d)
		}
		if p := run.Pending; len(p) != 1 || p[0].NodeID != "a" || p[0].Host || p[0].Kind != machine.WaitActivity {
			t.Errorf("pending %+v", p)
		}
		run, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r2", Definition: linear(t, "lin", "a"), Wait: graph.Wait{Limit: graph.NoWait}})
		if err != nil || run.Status != machine.Running || time.Since(begun) != 20*time.Second {
			t.Errorf("%+v, %v", run, err)
		}
		wantStatus(t, settled(t, r, "r"), machine.Completed)
		if d := time.Since(begun); d != time.Minute {
			t.Errorf("ended after %s", d)
		}
		wantStatus(t, settled(t, r, "r2"), machine.Completed)
	})
}

// TestStartOutlivesItsCaller holds that the end of a caller's context ends only the waiting.
func TestStartOutlivesItsCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRunner(t, historymem.New(), graph.Options{Activities: &script{answers: answers{"a": after(time.Minute, object{"x": 1})}}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		run, err := r.Start(ctx, graph.StartRequest{ExecutionID: "r", Definition: linear(t, "lin", "a")})
		if err != nil {
			t.Fatal(err)
		}
		wantStatus(t, run, machine.Running)
		wantStatus(t, settled(t, r, "r"), machine.Completed)
		_, err = r.Start(ctx, graph.StartRequest{ExecutionID: "r2", Definition: linear(t, "lin", "a")})
		if err == nil {
			t.Error("a call whose context has ended before it began was accepted")
		}
	})
}

func TestOnRecordSeesEveryRecordInOrder(t *testing.T) {
	t.Parallel()
	var seen []history.Record
	store := historymem.New()
	r := newRunner(t, store, graph.Options{Activities: &script{}, OnRecord: func(e graph.RecordEvent) {
		seen = append(seen, e.Records...)
	}})
	start(t, r, "r", linear(t, "lin", "a", "b"), nil)
	want := records(t, store, "r")
	if !slices.Equal(names(seen, ""), names(want, "")) {
		t.Errorf("seen %v, stored %v", names(seen, ""), names(want, ""))
	}
	for i := range seen {
		if seen[i].Seq != int64(i+1) {
			t.Errorf("record %d has seq %d", i, seen[i].Seq)
		}
	}
}

// TestTheNameThatWasMeant: a start by a name that nobody knows suggests one that has been run.
func TestTheNameThatWasMeant(t *testing.T) {
	t.Parallel()
	r, _ := host(t, graph.Options{})
	start(t, r, "r", linear(t, "research-q", "a"), nil)
	for _, ref := range []string{"reserch-q", "reserch-q@1.0.0"} {
		_, err := r.Start(t.Context(), graph.StartRequest{DefinitionRef: ref})
		wantCode(t, err, problem.WorkflowNotFound)
		if e, _ := problem.As(err); !strings.HasPrefix(e.Hint, `Did you mean "research-q"`) {
			t.Errorf("%s: %s", ref, e.Hint)
		}
	}
}
