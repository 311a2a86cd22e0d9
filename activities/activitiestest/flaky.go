// Package activitiestest holds activity executors for tests of packages that use the activity port.
package activitiestest

import (
	"context"
	"maps"
	"sync/atomic"

	"github.com/workflows-engine/workflows-engine/activities"
)

// Transient is the code that a Flaky fails with unless told otherwise.
const Transient = "TRANSIENT"

// Flaky fails its first calls, whatever their nodes, and then succeeds (spec: activities, 3). The zero value succeeds
// at once with {}. It must not be copied after its first call.
type Flaky struct {
	// Failures is the number of calls that fail.
	Failures int
	// Code of these failures; "" means Transient.
	Code string
	// Output of the later calls; nil means {}.
	Output map[string]any

	calls atomic.Int64
}

// Execute fails or succeeds, by the number of calls so far.
func (f *Flaky) Execute(_ context.Context, req activities.Request) (activities.Result, error) {
	call := f.calls.Add(1)
	if call <= int64(f.Failures) {
		code := f.Code
		if code == "" {
			code = Transient
		}
		return activities.Result{}, &activities.Failure{Code: code, Message: "this attempt of " + req.NodeID + " was made to fail"}
	}
	output := map[string]any{}
	maps.Copy(output, f.Output)
	return activities.Result{Output: output}, nil
}

// Capabilities reports that every node is answered at once.
func (f *Flaky) Capabilities(activities.Node) activities.Capabilities {
	return activities.Capabilities{Immediate: true}
}

// Calls is the number of calls so far.
func (f *Flaky) Calls() int { return int(f.calls.Load()) }
