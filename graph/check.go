package graph

import (
	"fmt"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// object brings an object that a caller gave into the value model and checks its size. Nil counts as empty. label
// names the argument.
func (r *Runner) object(label string, m map[string]any, code problem.Code) (map[string]any, error) {
	if m == nil {
		return map[string]any{}, nil
	}
	plain, err := jsonvalue.Normalize(m)
	if err != nil {
		e := problem.New(code, "%s is no JSON", label).WithCause(err)
		if p, ok := problem.As(err); ok {
			e.At = p.At
		}
		return nil, e
	}
	limit := r.opts.MaxDocumentBytes
	if jsonvalue.Size(plain, limit) > limit {
		return nil, checkBytes(label, jsonvalue.Size(plain, 0), limit, code)
	}
	return plain.(map[string]any), nil
}

// checkBytes refuses what is larger than the limit, naming both.
func checkBytes(label string, bytes, limit int, code problem.Code) error {
	if bytes <= limit {
		return nil
	}
	e := problem.New(code, "%s has %d bytes, which exceeds the limit of %d", label, bytes, limit).
		WithHint("Keep large content elsewhere and pass a reference to it.")
	e.Details = map[string]any{"label": label, "bytes": float64(bytes), "maxBytes": float64(limit)}
	return e
}

// checkInput holds an input against the start node's input_schema and the state_schema: the input is the first state
// (spec: execution, 3.1). The reference engine ignores the former and finds the latter broken only after it has
// recorded the run.
func checkInput(prog *definition.Program, input map[string]any) error {
	for _, n := range prog.Nodes {
		if n.Start == nil || n.Start.InputSchema == nil {
			continue
		}
		if vs := n.Start.InputSchema.Validate(input); len(vs) > 0 {
			return refusedInput("input_schema", vs)
		}
	}
	if vs := prog.State.Validate(input); len(vs) > 0 {
		return refusedInput("state_schema", vs)
	}
	return nil
}

// refusedInput makes one error of what is wrong with an input. It speaks of the first violation and holds all.
func refusedInput(schema string, vs []jsonschema.Violation) error {
	e := problem.New(problem.ValidationError, "the input breaks %s", schema).WithHint("Correct the input; no run was begun.")
	for _, v := range vs {
		message := v.Message
		if v.InstancePath == "" {
			message = "the input " + message
		}
		e.Findings = append(e.Findings, problem.Finding{
			Code: problem.InputInvalid, Severity: problem.SeverityError, At: problem.Place{Pointer: v.InstancePath},
			Message: message, Keyword: v.Keyword, SchemaPath: v.SchemaPath, Params: v.Params,
		})
	}
	first := e.Findings[0]
	e.At, e.Message = first.At, e.Message+": "+strings.TrimSpace(first.At.Pointer+" "+first.Message)
	if len(vs) > 1 {
		e.Message += moreErrors(len(vs) - 1)
	}
	return e
}

// MaxExecutionID is the length in bytes up to which callers may choose the id of a run. Those of subworkflows are longer.
const MaxExecutionID = 256

// checkExecutionID refuses ids that callers may not choose (spec: execution, 14.4, W-63).
func checkExecutionID(id string) error {
	if len(id) > MaxExecutionID {
		return problem.New(problem.ValidationError, "execution id %q is longer than %d bytes", id, MaxExecutionID).
			WithHint("Choose a shorter one, or leave it out.")
	}
	if strings.Contains(id, childMark) {
		return problem.New(problem.ValidationError, "execution id %q holds %q, which names subworkflows", id, childMark).
			WithHint("Choose another id, or leave it out.")
	}
	return nil
}

// childMark stands between a run's id and what names its subworkflow (spec: execution, 12.1).
const childMark = ":sub:"

func moreErrors(n int) string {
	if n == 1 {
		return " (and 1 more error)"
	}
	return fmt.Sprintf(" (and %d more errors)", n)
}
