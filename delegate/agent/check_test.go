package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/delegate/agent"
	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// many is a toolset of n tools.
type many int

func (n many) Tools(context.Context) ([]agent.Tool, error) {
	var tools []agent.Tool
	for i := range int(n) {
		tools = append(tools, agent.Tool{Name: fmt.Sprint("tool_", i), Parameters: object{"type": "object"}})
	}
	return tools, nil
}

func (many) Call(context.Context, agent.Call) (any, error) { return nil, errors.New("not called") }

// What is probably wrong is a warning: a gate for no tool, more than 128 tools. More than 512, or two of a name, are refused.
func TestCheck(t *testing.T) {
	t.Parallel()
	refund := agent.Func("shop__refund", "Pays back.", func(context.Context, struct{}) (struct{}, error) { return struct{}{}, nil })
	for _, c := range []struct {
		tools    []agent.Toolset
		gates    []string
		count    int
		warnings []string
		refused  bool
	}{
		{tools: []agent.Toolset{many(3)}, gates: []string{"tool_1", "tool_*", "*", "ask_person"}, count: 4},
		{tools: []agent.Toolset{many(3)}, gates: []string{"tol_1"}, count: 4, warnings: []string{`gates[0]: the pattern "tol_1" matches no tool, so the rule never applies; did you mean "tool_1"?`}},
		{tools: []agent.Toolset{refund}, gates: []string{"refund"}, count: 2, warnings: []string{`gates[0]: the pattern "refund" matches no tool, so the rule never applies; did you mean "shop__refund"?`}},
		{tools: []agent.Toolset{refund}, gates: []string{"purchase"}, count: 2, warnings: []string{`gates[0]: the pattern "purchase" matches no tool, so the rule never applies`}},
		{tools: []agent.Toolset{many(127)}, count: 128},
		{tools: []agent.Toolset{many(128)}, count: 129, warnings: []string{"there are 129 tools: many providers take at most 128; allow fewer"}},
		{tools: []agent.Toolset{many(511)}, count: 512, warnings: []string{"there are 512 tools: many providers take at most 128; allow fewer"}},
		{tools: []agent.Toolset{many(512)}, refused: true},
		{tools: []agent.Toolset{many(2), many(1)}, refused: true},
	} {
		a := agent.Agent{Config: agentloop.Config{Instructions: "i"}, Tools: c.tools, AskPerson: true}
		if c.gates != nil {
			a.Gates = []agentloop.Gate{{Tools: c.gates, Do: agent.Ask}}
		}
		agents := enginetest.Must(agent.New(agent.Config{
			Models: map[string]agent.Model{"m": {Chat: noChat{}, Model: agentloop.Model{Model: "m"}}}, Agents: map[string]agent.Agent{"a": a},
		}))
		tools, warnings, err := agents.Check(t.Context(), "a")
		if (err != nil) != c.refused || c.refused && failureCode(err) != problem.AgentConfigInvalid || !c.refused && len(tools) != c.count || !slices.Equal(warnings, c.warnings) {
			t.Errorf("%v: %d tools, %q, %v", c.tools, len(tools), warnings, err)
		}
	}
}

type noChat struct{}

func (noChat) Chat(context.Context, chat.Request) (chat.Reply, error) {
	return chat.Reply{}, errors.New("not asked")
}

func failureCode(err error) problem.Code {
	if failure, ok := errors.AsType[*activities.Failure](err); ok {
		return problem.Code(failure.Code)
	}
	return ""
}
