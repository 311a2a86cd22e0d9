package agent_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate/agent"
	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

func TestName(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long", 20)
	for _, c := range []struct{ server, tool, want string }{
		{"files", "read_file", "files__read_file"},
		{"my files", "read/file.v2", "my_files__read_file_v2"},
		{"süß", "été", "s_____t_"},
	} {
		if got := agent.Name(c.server, c.tool); got != c.want {
			t.Errorf("Name(%q, %q) = %q, want %q", c.server, c.tool, got, c.want)
		}
	}
	a, b := agent.Name("s", long+"a"), agent.Name("s", long+"b")
	for _, name := range []string{a, b} {
		if len(name) != 64 || !regexp.MustCompile(`^[A-Za-z0-9_-]+$`).MatchString(name) {
			t.Errorf("%q is no name for providers", name)
		}
	}
	if a == b {
		t.Errorf("two tools have the name %q", a)
	}
}

type prices struct {
	Items []float64 `json:"items" jsonschema:"the prices"`
	Round bool      `json:"round,omitempty"`
}

func total(_ context.Context, in prices) (map[string]float64, error) {
	sum := 0.0
	for _, p := range in.Items {
		if p < 0 {
			return nil, errors.New("a price is negative")
		}
		sum += p
	}
	if len(in.Items) == 0 {
		return nil, activities.Fail("NO_PRICES", "there are no prices")
	}
	return map[string]float64{"total": sum}, nil
}

func TestFunc(t *testing.T) {
	t.Parallel()
	set := agent.Func("total", "Adds prices.", total, agent.WithOnCrash(agent.Repeat), agent.WithParallel(true))
	tools, err := set.Tools(t.Context())
	if err != nil || len(tools) != 1 {
		t.Fatalf("%v, %v", tools, err)
	}
	tool := tools[0]
	properties, _ := tool.Parameters["properties"].(map[string]any)
	items, _ := properties["items"].(map[string]any)
	if tool.Name != "total" || tool.OnCrash != agent.Repeat || !tool.Parallel || tool.Parameters["type"] != "object" || items["description"] != "the prices" ||
		!jsonvalue.Equal(tool.Parameters["required"], []any{"items"}) {
		t.Errorf("%+v", tool)
	}
	call := func(arguments map[string]any) (any, error) {
		return set.Call(t.Context(), agent.Call{Name: "total", Arguments: arguments})
	}
	if got, err := call(map[string]any{"items": []any{1.5, 2.0}}); err != nil || !jsonvalue.Equal(got, map[string]any{"total": 3.5}) {
		t.Errorf("%v, %v", got, err)
	}
	for code, arguments := range map[string]map[string]any{
		string(problem.HandlerError): {"items": []any{-1.0}}, "NO_PRICES": {"items": []any{}},
	} {
		_, err := call(arguments)
		if fail, ok := errors.AsType[*activities.Failure](err); !ok || fail.Code != code {
			t.Errorf("%v: %v, want %s", arguments, err, code)
		}
	}
	if _, err := agent.Func("bad", "", func(context.Context, struct{ C chan int }) (any, error) { return nil, nil }).Tools(t.Context()); err == nil {
		t.Error("a function whose argument has no schema is a tool")
	}
}

// TestNewRefuses: what an agent cannot do is refused when it is configured, with its name and the one that was meant.
func TestNewRefuses(t *testing.T) {
	t.Parallel()
	models := map[string]agent.Model{"main": {Model: agentloop.Model{Model: "m"}}}
	for name, c := range map[string]struct {
		config agent.Config
		says   string
	}{
		"no model":    {agent.Config{Models: models, Agents: map[string]agent.Agent{"a": {Models: []string{"mian"}}}}, `did you mean "main"?`},
		"no agent":    {agent.Config{Models: models, Agents: map[string]agent.Agent{"a": {Agents: []agent.SubAgent{{Name: "b"}}}}}, `no agent "b"`},
		"in a circle": {agent.Config{Models: models, Agents: map[string]agent.Agent{"a": {Agents: []agent.SubAgent{{Name: "b"}}}, "b": {Agents: []agent.SubAgent{{Name: "a"}}}}}, "a → b → a"},
		"hooks":       {agent.Config{Models: models, Agents: map[string]agent.Agent{"a": {Config: agentloop.Config{Hooks: agentloop.Hooks{BeforeTool: true}}}}}, "hooks"},
		"a budget":    {agent.Config{Models: models, Agents: map[string]agent.Agent{"a": {Config: agentloop.Config{Budgets: agentloop.Budgets{CostMicros: 5}}}}}, "priceUsdPerMTok"},
		"2^30 ways":   {agent.Config{Models: models, Agents: lattice(30)}, "agent a0: it has more than 256 sub-agents"},
		"very deep":   {agent.Config{Models: models, Agents: chain(5000)}, "agent a0: sub-agents are nested more than 64 deep"},
	} {
		_, err := agent.New(c.config)
		if !errors.Is(err, problem.AgentConfigInvalid) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// lattice are agents of which each calls both of the next row: few agents, and very many ways through them.
func lattice(rows int) map[string]agent.Agent {
	agents := map[string]agent.Agent{}
	for i := range rows {
		next := []agent.SubAgent{{Name: fmt.Sprint("a", i+1)}, {Name: fmt.Sprint("b", i+1)}}
		agents[fmt.Sprint("a", i)], agents[fmt.Sprint("b", i)] = agent.Agent{Agents: next}, agent.Agent{Agents: next}
	}
	agents[fmt.Sprint("a", rows)], agents[fmt.Sprint("b", rows)] = agent.Agent{}, agent.Agent{}
	return agents
}

// chain are agents of which each calls the next.
func chain(n int) map[string]agent.Agent {
	agents := map[string]agent.Agent{fmt.Sprint("a", n): {}}
	for i := range n {
		agents[fmt.Sprint("a", i)] = agent.Agent{Agents: []agent.SubAgent{{Name: fmt.Sprint("a", i+1)}}}
	}
	return agents
}

// TestAFunctionKnowsItsCall: the function of Func can hand on the key under which its call is repeated, and knows the run.
func TestAFunctionKnowsItsCall(t *testing.T) {
	t.Parallel()
	if _, ok := agent.CallOf(t.Context()); ok {
		t.Error("a call without a Func")
	}
	var beats []map[string]any
	set := agent.Func("pay", "", func(ctx context.Context, _ struct{}) (string, error) {
		c, ok := agent.CallOf(ctx)
		if !ok {
			t.Error("no call")
		}
		c.Heartbeat(map[string]any{"paid": 1})
		return c.Key + " of " + c.Request.ExecutionID, nil
	})
	got, err := set.Call(t.Context(), agent.Call{
		Key: "k", Request: activities.Request{ExecutionID: "r"}, Heartbeat: func(details map[string]any) { beats = append(beats, details) },
	})
	if err != nil || got != "k of r" || len(beats) != 1 {
		t.Errorf("%v, %v, %v", got, err, beats)
	}
}

// TestAFunctionIsGivenTheMembersOfItsNames: what a rule has checked under one name does not reach a function under another spelling.
func TestAFunctionIsGivenTheMembersOfItsNames(t *testing.T) {
	t.Parallel()
	set := agent.Func("refund", "", func(_ context.Context, in struct {
		Amount float64 `json:"amount"`
	}) (float64, error) {
		return in.Amount, nil
	})
	for _, arguments := range []map[string]any{{"Amount": 900.0}, {"amount": 0.0, "AMOUNT": 900.0}} {
		if got, err := set.Call(t.Context(), agent.Call{Arguments: arguments}); err != nil || got != 0.0 {
			t.Errorf("%v became %v, %v", arguments, got, err)
		}
	}
}
