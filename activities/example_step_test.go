package activities_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/workflows-engine/workflows-engine/activities"
)

// A step handler works on Go types: the state comes in as Ticket, and what it returns is merged into the state.
func ExampleRegisterStep() {
	type Ticket struct {
		Subject string `json:"subject"`
	}
	type Slug struct {
		Slug string `json:"slug"`
	}
	steps := activities.NewStepRegistry()
	err := activities.RegisterStep(steps, "urn:example:slug", func(_ context.Context, call activities.Call[Ticket]) (Slug, error) {
		return Slug{strings.ReplaceAll(strings.ToLower(call.Input.Subject), " ", "-")}, nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	result, err := steps.Execute(context.Background(), activities.Request{
		NodeID: "slug", NodeType: "step",
		Config: map[string]any{"handler": "urn:example:slug"},
		State:  func() map[string]any { return map[string]any{"subject": "Printer On Fire"} },
	})
	fmt.Println(result.Output, err)
	// Output: {printer-on-fire} <nil>
}
