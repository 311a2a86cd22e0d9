package stepcommand

import (
	"context"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// protocol is the version of the two documents. Members may be added under the same number.
const protocol = "step-command/1"

// document is the standard input of a program.
func document(ctx context.Context, handler string, req activities.Request) []byte {
	d := map[string]any{
		"protocol":        protocol,
		"handler":         handler,
		"execution_id":    req.ExecutionID,
		"node_id":         req.NodeID,
		"visit":           float64(req.Visit),
		"attempt":         float64(req.Attempt),
		"idempotency_key": req.IdempotencyKey,
		"config":          object(req.Config),
		"metadata":        object(req.Metadata),
		"state":           map[string]any{},
	}
	if req.State != nil {
		d["state"] = req.State()
	}
	if deadline, ok := ctx.Deadline(); ok {
		d["deadline"] = deadline.UTC().Format(time.RFC3339Nano)
	}
	if b := req.Branch; b != nil {
		d["branch"] = map[string]any{
			"parallel_node_id": b.ParallelNodeID, "join_target_id": b.JoinTargetID, "branch_name": b.Name,
			"branch_entry_node_id": b.EntryNodeID,
		}
	}
	return append(jsonvalue.Canonical(d), '\n')
}

func object(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return m
}
