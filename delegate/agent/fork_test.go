package agent_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/delegate/agent"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// till counts what was paid, by the keys of the calls.
type till struct {
	mu   sync.Mutex
	keys map[string]int
	slow time.Duration
}

func (p *till) Tools(context.Context) ([]agent.Tool, error) {
	return []agent.Tool{{Name: "pay", Parameters: object{"type": "object", "properties": object{"to": object{"type": "string"}}}, Gate: agent.Ask}}, nil
}

func (p *till) Call(ctx context.Context, c agent.Call) (any, error) {
	p.mu.Lock()
	p.keys[c.Key]++
	p.mu.Unlock()
	select {
	case <-time.After(p.slow):
		return "paid", nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *till) paid() (n, most int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range p.keys {
		n, most = n+k, max(most, k)
	}
	return n, most
}

func newTill(slow time.Duration) *till { return &till{keys: map[string]int{}, slow: slow} }

func begin(t testing.TB, r *graph.Runner, id string) {
	t.Helper()
	if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: id, Definition: enginetest.Define(t, researched), Input: object{"task": "Work."}}); err != nil {
		t.Fatal(err)
	}
}

func end(t testing.TB, r *graph.Runner, id string) *view.Run {
	t.Helper()
	for range 50 {
		run, err := r.Status(t.Context(), graph.StatusRequest{ExecutionID: id, Wait: &graph.Wait{Limit: time.Hour}})
		if err != nil {
			t.Fatal(err)
		}
		if run.Status.Terminal() {
			return run
		}
		if len(run.Pending) > 0 && run.Pending[0].Kind == machine.WaitInterrupt {
			_, _ = r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: id, InterruptID: run.Pending[0].ID, Payload: object{"decision": "approve"}})
		}
	}
	t.Fatal("no end")
	return nil
}

// TestAnAgentIsForkedAtEveryStep goes on in a copy from each step, also from within a batch of steps, and from the last one: what was paid
// before is not paid again there.
func TestAnAgentIsForkedAtEveryStep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, store := newTill(0), historymem.New()
		r := workshop(t, store, model(func(_ context.Context, req chat.Request) (chat.Reply, error) {
			if req.Messages[len(req.Messages)-1].Role == chat.Result {
				return chat.Reply{Text: said(req)}, nil
			}
			return chat.Reply{Calls: []chat.Call{{ID: "a", Name: "nothing", Arguments: "{}"}, {ID: "b", Name: "pay", Arguments: "[]"}, {ID: "c", Name: "pay", Arguments: "{}"}}}, nil
		}), nil, p)
		defer shut(t, r)
		begin(t, r, "r")
		end(t, r, "r")
		for _, rec := range enginetest.Must(store.Read(t.Context(), "r", 1, 0)) {
			if _, _, ok := machine.StepOf(&rec); !ok {
				continue
			}
			before, _ := p.paid()
			id := fmt.Sprintf("fork-%d", rec.Seq)
			if _, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", NewExecutionID: id, Seq: rec.Seq}); err != nil {
				t.Fatalf("fork at %d: %v", rec.Seq, err)
			}
			run := end(t, r, id)
			after, most := p.paid()
			if run.Status != machine.Completed || most > 1 || after > before+1 || !strings.Contains(fmt.Sprint(run.FinalState["text"]), "paid") {
				t.Errorf("fork at %d: %s %s %v, %d %d", rec.Seq, run.Status, run.Error, run.FinalState, after-before, most)
			}
		}
	})
}
