package temporal

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/testsuite"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// payer keeps a journal. Its first attempt pays and fails; the second one pays again unless it finds the journal of the first.
type payer struct{ payments int }

func (p *payer) Execute(context.Context, activities.Request) (activities.Result, error) {
	return activities.Result{}, errors.New("not called")
}

func (p *payer) Capabilities(activities.Node) activities.Capabilities {
	return activities.Capabilities{Work: p.work}
}

func (p *payer) work(ctx context.Context, _ activities.Request, j activities.Journal) (activities.End, error) {
	earlier, ok, err := j.(activities.Earlier).Before(ctx)
	if err != nil {
		return activities.End{}, err
	}
	if ok && len(earlier.Steps) > 0 {
		return activities.End{Result: &activities.Result{Output: map[string]any{"paid": true}}}, nil
	}
	p.payments++
	if err := j.Record(ctx, activities.Step{Key: "pay", Kind: "note", Body: map[string]any{"paid": true}}); err != nil {
		return activities.End{}, err
	}
	return activities.End{}, &activities.Failure{Code: "BUSY", Message: "later"}
}

// TestARunKeepsTheJournalsOfEarlierAttempts: without an archive it does not continue as new between two attempts of an agent.
func TestARunKeepsTheJournalsOfEarlierAttempts(t *testing.T) {
	t.Parallel()
	p := &payer{}
	e, b := newTestEngine(t, Options{Activities: p, SideStore: fileStore(t)})
	b.suggest = true
	d := enginetest.Define(t, enginetest.Linear("pays", `{"id":"begin","type":"start"}`, `{"id":"work","type":"step","config":{"handler":"pay"},"retry":{"max_attempts":2,"initial_interval":"1h"}}`, `{"id":"end","type":"end"}`))
	run := start(t, e, graph.StartRequest{ExecutionID: "r", Definition: d})
	if run.Status != machine.AwaitingTimer && run.Status != machine.Running {
		t.Fatalf("%+v", run)
	}
	if got := follow(t, e, "r"); got != machine.Completed || p.payments != 1 {
		t.Errorf("%s with %d payments", got, p.payments)
	}
}

// unreadable are records that a worker cannot read.
type unreadable struct{}

func (unreadable) Execution(context.Context, string) (history.Execution, error) {
	return history.Execution{}, nil
}

func (unreadable) Read(context.Context, string, int64, int) ([]history.Record, error) {
	return nil, problem.New(problem.StoreUnavailable, "the archive here lacks records")
}

// TestUnreadableRecordsFailNoAttempt: a worker without the archive of the run leaves the attempt to another one.
func TestUnreadableRecordsFailNoAttempt(t *testing.T) {
	t.Parallel()
	o, err := Options{Activities: &payer{}, SideStore: fileStore(t)}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	p := newPerformer(&o, o.library(newDefinitions(&o, nil)))
	p.past = unreadable{}
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivityWithOptions(p.Perform, activity.RegisterOptions{Name: activityPerform})
	effect := &machine.ActivityEffect{NodeType: "step", Config: map[string]any{"handler": "pay"}, EffectBase: machine.EffectBase{
		EffectKey: "work#1.2", NodeID: "work", Visit: 1, Attempt: 2, State: map[string]any{}, Requested: time.Now(),
	}}
	if _, err := env.ExecuteActivity(activityPerform, attempt{ExecutionID: "r", Activity: effect}); err == nil || carried(err) != nil {
		t.Errorf("error %v, want one that Temporal repeats", err)
	}
}
