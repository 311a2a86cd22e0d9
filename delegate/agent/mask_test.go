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

// TestSecretsAreMaskedBeforeTheyAreRecorded: whatever model, tool or hook says a secret, and however it is spelt or cut in pieces, it is
// neither recorded nor read by the next model, and nobody who waits sees it.
func TestSecretsAreMaskedBeforeTheyAreRecorded(t *testing.T) {
	t.Parallel()
	const secret = `sk-sentinel/77"aTb0x9`
	var mu sync.Mutex
	var everything strings.Builder
	keep := func(v any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(&everything, "%v\n", v)
	}
	mask := strings.NewReplacer(secret, "[secret]", `sk-sentinel/77\"aTb0x9`, "[secret]", `sk-sentinel\/77\"aTb0x9`, "[secret]").Replace
	synctest.Test(t, func(t *testing.T) {
		tried := false
		m := model(func(_ context.Context, req chat.Request) (chat.Reply, error) {
			keep(req.Messages)
			if len(req.Messages) == 2 {
				if !tried {
					tried = true
					return chat.Reply{}, &activities.Failure{Code: "LLM_PROVIDER_ERROR", Message: "wrong key " + secret}
				}
				return chat.Reply{Model: secret, Text: secret, Reasoning: secret, Calls: []chat.Call{
					{ID: "a", Name: "leak", Arguments: `{"say":"sk-\u0073entinel\/77\"aTb0x9"}`}, {ID: "b", Name: "fail", Arguments: "{}"}, {ID: secret, Name: secret, Arguments: secret},
				}}, nil
			}
			for _, piece := range []string{"It is sk-sent", "inel/77", `"aTb0x9 and no`, " more"} {
				req.OnText(piece)
				time.Sleep(time.Second)
			}
			return chat.Reply{Text: "It is " + secret + " and no more"}, nil
		})
		agents := enginetest.Must(agent.New(agent.Config{
			Models: map[string]agent.Model{"main": {Chat: m, Model: agentloop.Model{Model: "m"}}}, Mask: mask,
			Hooks: agent.Hooks{BeforeTool: func(context.Context, agent.PlannedCall) (agent.Decision, error) {
				return agent.Decision{Reason: secret}, nil
			}},
			Agents: map[string]agent.Agent{"clerk": {Config: agentloop.Config{Stream: true}, Tools: []agent.Toolset{
				agent.Func("leak", "Knows "+secret, func(_ context.Context, in struct {
					Say string `json:"say"`
				},
				) (any, error) {
					return object{secret: []any{in.Say, secret, "plain"}}, nil
				}),
				agent.Func("fail", "", func(context.Context, struct{}) (any, error) { return nil, fmt.Errorf("refused: %s", secret) }),
			}}},
		}))
		store := historymem.New()
		r := enginetest.Must(graph.New(store, graph.Options{Delegates: activities.Composite{SDK: agents}, Work: graph.WorkAll}))
		defer shut(t, r)
		var arrived strings.Builder
		run, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: enginetest.Define(t, researched), Input: object{"task": "Work."}, Wait: graph.Wait{
			Limit: time.Hour, Progress: func(p graph.Progress) {
				keep(p)
				text, _ := p.Detail[activities.HeartbeatText].(string)
				arrived.WriteString(text)
			},
		}})
		if err != nil || run.Status != machine.Completed {
			t.Fatalf("%v, %+v", err, run)
		}
		keep(run)
		if want := "It is [secret] and no more"; arrived.String() != want || run.FinalState["text"] != want {
			t.Errorf("arrived %q, answered %v", arrived.String(), run.FinalState)
		}
		for _, rec := range enginetest.Must(store.Read(t.Context(), "r", 1, 0)) {
			keep(fmt.Sprintf("%+v", rec.Payload))
		}
	})
	if text := everything.String(); strings.Contains(text, "aTb0x9") || strings.Count(text, "[secret]") < 12 || !strings.Contains(text, "plain") {
		for line := range strings.Lines(text) {
			if strings.Contains(line, "aTb0x9") {
				t.Error(line)
			}
		}
		t.Errorf("%d masks", strings.Count(text, "[secret]"))
	}
}
