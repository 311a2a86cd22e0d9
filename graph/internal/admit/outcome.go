package admit

import (
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Outcome completes the outcome that a host submits, whose result may have at most maxBytes, and identifies its activity. Errors:
// SUBMIT_VALIDATION_ERROR.
func Outcome(o machine.Outcome, result map[string]any, maxBytes int) (machine.Outcome, Submitted, error) {
	const code = problem.SubmitValidationError
	if strings.TrimSpace(o.NodeID) == "" {
		return o, Submitted{}, problem.New(code, "node id is missing").WithHint("Set the node id of the pending activity.")
	}
	result, err := Object("result", result, maxBytes, code)
	if err != nil {
		return o, Submitted{}, err
	}
	if !o.OK && strings.TrimSpace(o.Error) == "" {
		return o, Submitted{}, problem.New(code, "a failed outcome must have an error text").WithHint("Describe the failure in error.")
	}
	o.Host, o.Error, o.Code = true, problem.Excerpt(o.Error, problem.MaxText), problem.Excerpt(o.Code, problem.MaxText)
	if o.OK {
		o.Output, o.Error, o.Code = result, "", ""
	}
	return o, Submitted{NodeID: o.NodeID, Span: o.Span, IdempotencyKey: o.IdempotencyKey}, nil
}
