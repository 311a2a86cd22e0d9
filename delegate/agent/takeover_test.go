package agent_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/activities/chat/chattest"
	"github.com/workflows-engine/workflows-engine/delegate/agent"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// TestTakenOverAgentFinishesItsBatch kills a process with two of five results recorded: three calls are made by the next one, none twice, and
// steps that were recorded before are not reported again.
func TestTakenOverAgentFinishesItsBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked []chat.Call
		for _, n := range []string{"1", "2", "3", "4", "5"} {
			asked = append(asked, chattest.Call("look", `{"n":`+n+`}`))
		}
		endpoint := chattest.ServeInMemory(t, chattest.Reply{Calls: asked}, chattest.Reply{Text: "All seen."})
		var mu sync.Mutex
		looks := map[int]int{} // that have ended
		stuck := true
		look := agent.Func("look", "Looks.", func(ctx context.Context, in struct {
			N int `json:"n"`
		},
		) (int, error) {
			mu.Lock()
			hangs := stuck && in.N > 2
			mu.Unlock()
			if hangs {
				<-ctx.Done()
				return 0, ctx.Err()
			}
			mu.Lock()
			defer mu.Unlock()
			looks[in.N]++
			return in.N, nil
		}, agent.WithParallel(true), agent.WithOnCrash(agent.Repeat))
		store := historymem.New()
		work := func(c *agent.Agent) { c.Tools = []agent.Toolset{look} }
		doc := enginetest.Define(t, researched)

		first := office(t, store, endpoint, newShop(), work)
		if _, err := first.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: doc, Input: object{"task": "What does tea cost?"}, Wait: graph.Wait{Limit: time.Second}}); err != nil {
			t.Fatal(err)
		}
		shut(t, first)
		before := stepsOf(t, store)
		if len(before) != 4 || !slices.Contains(before, "result t1.c1") || !slices.Contains(before, "result t1.c2") {
			t.Fatalf("steps %q", before)
		}
		time.Sleep(time.Minute)
		mu.Lock()
		stuck = false
		mu.Unlock()

		var reported []string
		second := officeWith(t, store, endpoint, newShop(), work, graph.Options{OnRecord: func(e graph.RecordEvent) {
			mu.Lock()
			defer mu.Unlock()
			for i := range e.Records {
				if s, _, ok := machine.StepOf(&e.Records[i]); ok {
					reported = append(reported, s.Kind+" "+s.Key)
				}
			}
		}})
		run, err := finish(t, second, doc, nil)
		shut(t, second)
		if err != nil || run.Status != machine.Completed || run.FinalState["text"] != "All seen." {
			t.Fatalf("%v, %+v", err, run)
		}
		for n := 1; n <= 5; n++ {
			if looks[n] != 1 {
				t.Errorf("call %d has been made %d times", n, looks[n])
			}
		}
		if len(endpoint.Asked()) != 2 {
			t.Errorf("the model was asked %d times", len(endpoint.Asked()))
		}
		for _, step := range reported {
			if slices.Contains(before, step) {
				t.Errorf("%s is reported again", step)
			}
		}
		if len(reported) == 0 {
			t.Error("nothing is reported")
		}
	})
}
