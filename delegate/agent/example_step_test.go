package agent_test

import (
	"context"
	"fmt"
	"log"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate/agent"
)

type items struct {
	Items []float64 `json:"items"`
}

// A step that workflows use is a tool of an agent, too. It is repeated after a crash, as it only adds.
func ExampleNewStepTool() {
	steps := activities.NewStepRegistry()
	err := activities.RegisterStep(steps, "urn:example:total", func(_ context.Context, c activities.Call[items]) (map[string]any, error) {
		sum := 0.0
		for _, n := range c.Input.Items {
			sum += n
		}
		return map[string]any{"total": sum}, nil
	})
	if err != nil {
		log.Fatal(err)
	}
	schema := map[string]any{"type": "object", "properties": map[string]any{"items": map[string]any{"type": "array", "items": map[string]any{"type": "number"}}}}
	total := agent.NewStepTool(steps, "urn:example:total", "total", "Adds prices.", schema, agent.WithOnCrash(agent.Repeat))
	_ = agent.Agent{Tools: []agent.Toolset{total}}

	result, err := total.Call(context.Background(), agent.Call{Name: "total", Arguments: map[string]any{"items": []any{1.5, 2.0}}})
	fmt.Println(result, err)
	// Output: map[total:3.5] <nil>
}
