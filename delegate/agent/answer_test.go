package agent_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/delegate/agent"
	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// TestAnAnswerOfNoUseIsRefused: an answer that the agent cannot use is refused by the process that is to record it, also by one without the
// agent. Nothing is recorded then, and the question stands as it was asked.
func TestAnAnswerOfNoUseIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		p := newTill(0)
		m := model(func(_ context.Context, req chat.Request) (chat.Reply, error) {
			if len(req.Messages) > 1 && req.Messages[len(req.Messages)-1].Role == chat.Result {
				return chat.Reply{Text: "Paid."}, nil
			}
			return chat.Reply{Calls: []chat.Call{{ID: "a", Name: "pay", Arguments: `{"to":"A"}`}, {ID: "b", Name: "pay", Arguments: `{"to":"B"}`}}}, nil
		})
		agents := enginetest.Must(agent.New(agent.Config{
			Models: map[string]agent.Model{"main": {Chat: m, Model: agentloop.Model{Model: "m"}}},
			Agents: map[string]agent.Agent{"clerk": {Tools: []agent.Toolset{p}}},
		}))
		r := enginetest.Must(graph.New(store, graph.Options{Delegates: activities.Composite{SDK: agents}, Work: graph.WorkAll, CheckAnswer: agent.CheckAnswer}))
		begin(t, r, "r")
		run := enginetest.Must(r.Status(t.Context(), graph.StatusRequest{ExecutionID: "r", Wait: &graph.Wait{Limit: time.Hour}}))
		shut(t, r)
		if len(run.Pending) == 0 {
			t.Fatalf("%s %s", run.Status, run.Error)
		}
		id, records := run.Pending[0].ID, len(stepsOf(t, store))
		digests := map[string]any{}
		shown, _ := run.Pending[0].Show.(map[string]any)
		calls, _ := shown["calls"].([]any)
		for _, c := range calls {
			call, _ := c.(map[string]any)
			digests[call["key"].(string)] = call["digest"]
		}
		bare := enginetest.Must(graph.New(store, graph.Options{Work: graph.WorkAll, CheckAnswer: agent.CheckAnswer}))
		for want, answer := range map[string]object{
			"no decision about t1.c2":              {"calls": object{"t1.c1": object{"decision": "approve"}}},
			"no decision about t1.c1 and t1.c2":    {"calls": object{}},
			"t1.c2: the digest is not":             {"decision": "approve", "digest": digests["t1.c1"]},
			"t1.c1: the digest is not":             {"calls": object{"t1.c1": object{"decision": "deny", "digest": "0"}, "t1.c2": object{"decision": "deny"}}},
			`t1.c1: edit needs "arguments"`:        {"decision": "edit"},
			"t1.c1: respond needs":                 {"decision": "respond"},
			"t1.c1: the arguments break the tool":  {"decision": "edit", "arguments": object{"to": 7}},
			`there is no call "t7.c1"`:             {"decision": "deny", "calls": object{"t7.c1": object{"decision": "deny"}}},
			`t1.c1: the decision "yes" is not one`: {"decision": "yes"},
			"additional properties":                {"decision": "deny", "reson": "No."},
		} {
			_, err := bare.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", InterruptID: id, Payload: answer})
			e, ok := problem.As(err)
			if !ok || e.Code != problem.InvalidResumePayload || !strings.Contains(strings.ToLower(e.Message), strings.ToLower(want)) || e.At.NodeID == "" || e.Hint == "" {
				t.Errorf("%v: %+v, want %q", answer, err, want)
			}
			if form := `{"calls":{"t1.c1":{"decision":"approve"},…}}`; ok && want != "additional properties" && !strings.Contains(e.Hint, form) {
				t.Errorf("%v: the hint %q does not show %s", answer, e.Hint, form)
			}
		}
		run = enginetest.Must(bare.Status(t.Context(), graph.StatusRequest{ExecutionID: "r"}))
		if got := len(stepsOf(t, store)); got != records || run.Pending[0].ID != id {
			t.Errorf("%d records became %d, the question %s", records, got, run.Pending[0].ID)
		}
		good := object{"calls": object{"t1.c1": object{"decision": "approve", "digest": digests["t1.c1"]}, "t1.c2": object{"decision": "deny", "digest": digests["t1.c2"]}}}
		for range 2 { // the second time it is a repetition
			if _, err := bare.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", InterruptID: id, Payload: good}); err != nil {
				t.Fatal(err)
			}
		}
		shut(t, bare)
		r = enginetest.Must(graph.New(store, graph.Options{Delegates: activities.Composite{SDK: agents}, Work: graph.WorkAll}))
		defer shut(t, r)
		if run = end(t, r, "r"); run.Status != machine.Completed {
			t.Errorf("%s %s", run.Status, run.Error)
		}
		if n, _ := p.paid(); n != 1 {
			t.Errorf("%d calls were made", n)
		}
	})
}
