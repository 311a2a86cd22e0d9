package agent_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/delegate/agent"
	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// changing is a toolset whose tool becomes another one. lists counts how often it was listed.
type changing struct {
	tools   []agent.Tool
	changes int64
	lists   int
}

func (c *changing) Tools(context.Context) ([]agent.Tool, error)   { c.lists++; return c.tools, nil }
func (c *changing) Call(context.Context, agent.Call) (any, error) { return "noted", nil }
func (c *changing) Changes() int64                                { return c.changes }

// TestToolsThatChangeWhileAnAgentWorks: what the agent was given stays. That a tool is another one now is recorded with the result of its
// call, and a tool that is gone has an error for a result. The list is read again only where it may have changed.
func TestToolsThatChangeWhileAnAgentWorks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &changing{tools: []agent.Tool{{Name: "note", Description: "Notes.", ReadOnly: true, Parameters: object{"type": "object"}}}}
		var offered [][]chat.Tool
		m := model(func(_ context.Context, req chat.Request) (chat.Reply, error) {
			offered = append(offered, req.Tools)
			switch len(offered) {
			case 3:
				c.tools = []agent.Tool{{Name: "note", Description: "Notes, for the public.", Parameters: object{"type": "object", "properties": object{"to": object{"type": "string"}}}}}
				c.changes++
			case 4:
				c.tools = nil
				c.changes++
			case 5:
				return chat.Reply{Text: "done"}, nil
			}
			return chat.Reply{Calls: []chat.Call{{ID: "a", Name: "note", Arguments: fmt.Sprintf(`{"n":%d}`, len(offered))}}}, nil
		})
		store := historymem.New()
		r := workshop(t, store, m, nil, c)
		defer shut(t, r)
		if run := work(t, r); run.Status != machine.Completed {
			t.Fatalf("%s %s", run.Status, run.Error)
		}
		for i := range offered {
			if !reflect.DeepEqual(offered[i], offered[0]) {
				t.Errorf("turn %d has other tools: %v", i+1, offered[i])
			}
		}
		var results []string
		for _, rec := range enginetest.Must(store.Read(t.Context(), "r", 1, 0)) {
			if s, _, ok := machine.StepOf(&rec); ok && s.Kind == agentloop.StepResult {
				failure, _ := s.Body["error"].(object)
				results = append(results, fmt.Sprint(s.Key, " ", s.Body["toolChanged"], " ", failure["code"]))
			}
		}
		want := "t1.c1 <nil> <nil>, t2.c1 <nil> <nil>, t3.c1 [description parameters readOnly] <nil>, t4.c1 <nil> TOOL_UNKNOWN"
		if got := strings.Join(results, ", "); got != want || c.lists != 3 {
			t.Errorf("results %s, want %s; listed %d times", got, want, c.lists)
		}
	})
}
