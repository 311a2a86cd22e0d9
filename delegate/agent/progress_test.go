package agent_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/delegate/agent"
	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// TestProgressSaysWhatAnAgentIsAt: who, in which turn, at what, what it has taken, and the text of a streamed reply, whole in pieces.
func TestProgressSaysWhatAnAgentIsAt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := model(func(_ context.Context, req chat.Request) (chat.Reply, error) {
			switch n := len(req.Messages); {
			case n == 2:
				return chat.Reply{Calls: []chat.Call{{ID: "a", Name: "look", Arguments: "{}"}}, Usage: chat.Usage{Prompt: 10, Completion: 5}}, nil
			case req.Stream:
				for i := range 50 {
					req.OnText(fmt.Sprintf("é%d ", i))
					time.Sleep(30 * time.Millisecond)
				}
			}
			return chat.Reply{Text: "done"}, nil
		})
		tried := false
		flaky := model(func(ctx context.Context, req chat.Request) (chat.Reply, error) {
			if !tried {
				tried = true
				time.Sleep(time.Millisecond) // the call listens by then
				return chat.Reply{}, &activities.Failure{Code: "LLM_PROVIDER_ERROR", Message: "status 500"}
			}
			return m(ctx, req)
		})
		r := workshop(t, historymem.New(), flaky, func(a *agent.Agent) { a.Stream, a.Retry = true, agentloop.Retry{InitialIntervalMs: 1000} },
			agent.Func("look", "", func(context.Context, struct{}) (any, error) { return "seen", nil }))
		defer shut(t, r)
		var mu sync.Mutex
		var said []string
		var text strings.Builder
		received := 0
		run, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: enginetest.Define(t, researched), Input: object{"task": "Work."}, Wait: graph.Wait{
			Limit: time.Hour, Progress: func(p graph.Progress) {
				if p.Kind != graph.ExecutorAlive {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				piece, _ := p.Detail[activities.HeartbeatText].(string)
				text.WriteString(piece)
				if n, _ := p.Detail["received_chars"].(int); n > 0 {
					received = n
					return
				}
				totals, _ := p.Detail["totals"].(object)
				said = append(said, fmt.Sprintf("%s %v %s %v, %v tokens", p.Detail["agent"], p.Detail["turn"], p.Detail["activity"], p.Detail["tool"], totals["prompt_tokens"]))
			},
		}})
		if err != nil || run.Status != machine.Completed {
			t.Fatalf("%v, %+v", err, run)
		}
		want := "clerk 1 model <nil>, 0 tokens; clerk 1 waiting <nil>, 0 tokens; clerk 1 model <nil>, 0 tokens; clerk 1 tool look, 10 tokens; clerk 2 model <nil>, 10 tokens"
		if got := strings.Join(said, "; "); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
		if n := len([]rune(text.String())); n != received || !strings.HasPrefix(text.String(), "é0 é1 ") || !strings.HasSuffix(text.String(), "é49 ") {
			t.Errorf("%d characters of %d arrived: %s", n, received, text.String())
		}
	})
}
