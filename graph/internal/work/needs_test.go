package work

import (
	"slices"
	"testing"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/history"
)

// only has some agents, and performs nodes without an agent if plain is set.
type only struct {
	activities.Stub
	plain  bool
	agents []string
}

func (o only) Capabilities(n activities.Node) activities.Capabilities {
	can := activities.Capabilities{Targets: func() []string { return o.agents }}
	if o.plain {
		can.Targets = func() []string { return append([]string{""}, o.agents...) }
	}
	name, _ := n.Config["agent"].(string)
	switch {
	case name == "" && !o.plain:
		can.Missing = activities.MissingType
	case name != "" && !slices.Contains(o.agents, name):
		can.Missing = activities.MissingTarget
	}
	return can
}

// TestPerforms: what a process tells others about its executors is what it serves itself.
func TestPerforms(t *testing.T) {
	t.Parallel()
	lanes := []string{"", "llm_call", "llm_call:a", "llm_call:b", "tool_call:x", "step:charge"}
	for _, c := range []struct {
		executor activities.Executor
		performs []string
	}{
		{activities.Composite{LLMCall: only{plain: true, agents: []string{"a"}}, ToolCall: activities.Stub{}}, []string{"llm_call:", "llm_call:a", "tool_call"}},
		{activities.Composite{LLMCall: only{agents: []string{"a"}}}, []string{"llm_call:a"}},
		{activities.Composite{LLMCall: only{plain: true}}, []string{"llm_call:"}},
		{activities.Composite{}, nil},
	} {
		p := &Performer{Activities: c.executor}
		names := p.Performs()
		if !slices.Equal(names, c.performs) {
			t.Errorf("%q, want %q", names, c.performs)
		}
		other := history.Process{About: history.About{Work: history.WorkAll, Performs: names}}
		for _, needs := range lanes {
			if told, served := other.Serves(history.Lane{Queue: "q", Needs: needs}), p.Serves(needs); told != served {
				t.Errorf("%q: %q is told as %v and served %v", names, needs, told, served)
			}
		}
	}
}
