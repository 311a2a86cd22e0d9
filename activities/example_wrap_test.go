package activities_test

import (
	"context"
	"fmt"

	"github.com/workflows-engine/workflows-engine/activities"
)

// A middleware that prints each attempt. The engine still learns from the registry which handlers there are.
func ExampleWrap() {
	steps := activities.NewStepRegistry()
	if err := steps.RegisterStatic(map[string]any{"urn:example:greet": map[string]any{"greeting": "hello"}}); err != nil {
		fmt.Println(err)
		return
	}
	printed := activities.Wrap(steps, func(next activities.ExecutorFunc) activities.ExecutorFunc {
		return func(ctx context.Context, req activities.Request) (activities.Result, error) {
			result, err := next(ctx, req)
			fmt.Println("node", req.NodeID, "put out", result.Output)
			return result, err
		}
	})
	executor := activities.Composite{Step: printed}

	greet := map[string]any{"handler": "urn:example:greet"}
	_, err := executor.Execute(context.Background(), activities.Request{NodeID: "a", NodeType: "step", Config: greet})
	for _, config := range []map[string]any{greet, {"handler": "urn:other"}} {
		fmt.Println(err, executor.Capabilities(activities.Node{Type: "step", Config: config}).Missing)
	}
	// Output:
	// node a put out map[greeting:hello]
	// <nil> 0
	// <nil> 1
}
