package conformance_test

import (
	"context"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/history"
)

// verify holds what a crash has left, and what was made of it, against the rules that the command verify knows: whatever
// it finds in a file that was only ever killed is a mistake, of the engine or of the check.
func (x *trial) verify(at string) {
	x.t.Helper()
	ctx := context.Background()
	report := func(f history.Finding) {
		x.t.Errorf("%s: %s record %d: %s: %s", at, f.ExecutionID, f.Seq, f.Code, f.Message)
	}
	if v, ok := x.store.(history.Verifier); ok {
		if _, err := v.Verify(ctx, "", false, report); err != nil {
			x.t.Errorf("%s: %v", at, err)
		}
	}
	for id := range x.executions() {
		audit := history.Audit{ExecutionID: id}
		for _, r := range x.records(id) {
			audit.Record(&r, nil)
		}
		findings, err := graph.Inspect(ctx, x.store, id)
		if err != nil {
			x.t.Errorf("%s: %s: %v", at, id, err)
		}
		for _, f := range append(audit.Findings, findings...) {
			report(f)
		}
	}
}
