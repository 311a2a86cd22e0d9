package admit

import (
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Definition compiles a definition of at most limit bytes. The error lists all of its faults.
func Definition(d *definition.Document, limit int, o definition.Options) (*definition.Program, error) {
	if d == nil {
		return nil, problem.New(problem.ValidationError, "no definition was given").
			WithHint("Give a definition, or the hash or name of a stored one.")
	}
	if err := Bytes("definition", len(d.Canonical()), limit, problem.ValidationError); err != nil {
		return nil, err
	}
	prog, findings := definition.Compile(d, o)
	if prog == nil || findings.HasErrors() {
		return nil, definition.Refusal(findings)
	}
	return prog, nil
}

// Input validates an input against the start node's input_schema and against the state_schema, since the input is the first state (spec:
// execution, 3.1). The reference engine ignores the former, and reports a violation of the latter only after it has recorded the run.
func Input(prog *definition.Program, input map[string]any) error {
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

// refusedInput returns one error for all violations of an input; its message describes the first.
func refusedInput(schema string, vs []jsonschema.Violation) error {
	e := problem.New(problem.ValidationError, "the input breaks %s", schema).WithReason(problem.InputInvalid).WithHint("Correct the input; no run was begun.")
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
		e.Message += problem.MoreErrors(len(vs) - 1)
	}
	return e
}

// StoredForm returns a definition as stored beside the histories.
func StoredForm(prog *definition.Program) *history.StoredDefinition {
	d := &history.StoredDefinition{Hash: prog.Hash, Name: prog.Name, Version: prog.Version, Text: prog.Document.Canonical()}
	if signature := prog.Document.Signature(); signature != nil {
		d.Signatures = [][]byte{jsonvalue.Canonical(signature)}
	}
	return d
}
