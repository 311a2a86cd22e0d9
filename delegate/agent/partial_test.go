package agent_test

import (
	"context"
	"encoding/json"
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
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/runjson"
)

// judged asks an agent, waits, and ends by whether the answer is partial.
const judged = `
document: {schema: "https://agent-workflow.dev/schemas/workflow-definition.json", name: judged, version: 1.0.0}
state_schema: {type: object}
nodes:
  - {id: start, type: start}
  - {id: research, type: agent_delegate, config: {agent_id: clerk, protocol: sdk, input_mapping: {task: {literal: "Look."}}}}
  - {id: rest, type: wait, config: {kind: duration, duration: 1h}}
  - {id: end, type: end, config: {output_mapping: 'if .partial then "half" else "whole" end'}}
edges:
  - {source: __start__, target: start}
  - {source: start, target: research}
  - {source: research, target: rest}
  - {source: rest, target: end}
`

// TestAPartialAnswerIsSeen: in the state, so that later nodes can tell, and as a warning of the run, while it goes on, once it has ended, in another
// process, in its JSON form and in what targets are sent.
func TestAPartialAnswerIsSeen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var sent []byte
		store := historymem.New()
		engine := func(turns int) *graph.Runner {
			agents := enginetest.Must(agent.New(agent.Config{
				Models: map[string]agent.Model{"main": {Model: agentloop.Model{Model: "m"}, Chat: model(func(_ context.Context, req chat.Request) (chat.Reply, error) {
					if req.Tools == nil {
						return chat.Reply{Text: "As far as I got."}, nil
					}
					return chat.Reply{Calls: []chat.Call{{ID: "a", Name: "look", Arguments: "{}"}}}, nil
				})}},
				Agents: map[string]agent.Agent{"clerk": {
					Config: agentloop.Config{Instructions: "Look.", Budgets: agentloop.Budgets{Turns: turns, OnExceeded: "finish"}},
					Tools:  []agent.Toolset{agent.Func("look", "Looks.", func(context.Context, struct{}) (object, error) { return object{"seen": 1}, nil })},
				}},
			}))
			return enginetest.Must(graph.New(store, graph.Options{
				Delegates: activities.Composite{SDK: agents}, Work: graph.WorkAll, Webhooks: map[string]graph.Webhook{"ops": {All: true}},
				Deliver: func(_ context.Context, d history.Delivery) (history.Receipt, error) {
					sent = d.Body
					return history.Receipt{Outcome: history.Sent, Status: 200}, nil
				},
			}))
		}
		warned := func(when string, run *view.Run) {
			t.Helper()
			if len(run.Warnings) != 1 || run.Warnings[0].Code != problem.AgentPartialAnswer || run.Warnings[0].NodeID != "research" || !strings.Contains(run.Warnings[0].Message, "AGENT_TURNS_EXCEEDED") {
				t.Errorf("%s: warnings %+v", when, run.Warnings)
			}
			if text := string(runjson.Full(run, nil).Append(nil)); !strings.Contains(text, `"warnings":[{"code":"AGENT_PARTIAL_ANSWER","node_id":"research","message":`) {
				t.Errorf("%s: %s", when, text)
			}
		}
		r := engine(1)
		run := enginetest.Must(r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: enginetest.Define(t, judged), Wait: graph.Wait{Limit: time.Minute}}))
		if run.Status != machine.AwaitingTimer || run.State["partial"] != true || run.State["partial_reason"] != "AGENT_TURNS_EXCEEDED" {
			t.Errorf("%s %v", run.Status, run.State)
		}
		warned("while it goes on", run)
		shut(t, r)
		r = engine(1)
		run = end(t, r, "r")
		if run.Result != "half" {
			t.Errorf("%s %v %s", run.Status, run.Result, run.Error)
		}
		warned("at the end", run)
		shut(t, r)
		r = engine(1)
		defer shut(t, r)
		warned("afterwards", enginetest.Must(r.Status(t.Context(), graph.StatusRequest{ExecutionID: "r"})))
		time.Sleep(time.Minute)
		synctest.Wait()
		var body struct {
			Run struct {
				Warnings []struct {
					Code   string `json:"code"`
					NodeID string `json:"node_id"`
				} `json:"warnings"`
			} `json:"run"`
		}
		if err := json.Unmarshal(sent, &body); err != nil || len(body.Run.Warnings) != 1 || body.Run.Warnings[0].Code != "AGENT_PARTIAL_ANSWER" || body.Run.Warnings[0].NodeID != "research" {
			t.Errorf("sent %s, %v", sent, err)
		}
		for _, rec := range enginetest.Must(store.Read(t.Context(), "r", 1, 0)) {
			if rec.Name == history.ActivityCompleted && (rec.Payload.Usage["partial"] != true || rec.Payload.Usage["partial_reason"] != "AGENT_TURNS_EXCEEDED") {
				t.Errorf("usage %v", rec.Payload.Usage)
			}
		}
	})
}
