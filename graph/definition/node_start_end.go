package definition

import (
	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
)

// StartConfig is the config of a start node.
type StartConfig struct {
	// InputSchema is nil if absent. The reference engine never checks it.
	InputSchema *jsonschema.Schema
}

// startType is the first node of a run.
func startType() NodeType {
	return NodeType{
		Name: Start, Output: OutputInput, Schema: "input_schema", Instant: true, Figure: FigureTerminal, Stub: StubNone,
		Example:     `{"id": "begin", "type": "start", "config": {"input_schema": {"type": "object", "properties": {"request": {"type": "string"}}}}}`,
		description: "The start of every run. There is exactly one.",
		optional:    true,
		config: objectOf("", member{"input_schema", free("input_schema").
			about("A JSON Schema of the input. A run does not start with an input that breaks it."), false}).
			not(map[string]string{"output_schema": "a start node has an input_schema; the end node has the output_schema"}).
			about("May be absent."),
		compile: (*config).start,
	}
}

func (x *config) start() {
	schema, _ := x.schema("input_schema", checkedHere)
	x.v.node.Start = &StartConfig{InputSchema: schema}
}

// EndConfig is the config of an end node.
type EndConfig struct {
	// OutputMapping is the identity program if absent or blank.
	OutputMapping *expr.Program
	// OutputSchema is nil if absent. The reference engine never checks it.
	OutputSchema *jsonschema.Schema
}

// endType is the last node of a run.
func endType() NodeType {
	return NodeType{
		Name: End, Output: OutputNone, Schema: "output_schema", Instant: true, Figure: FigureTerminal, Stub: StubNone,
		Example:     `{"id": "end", "type": "end", "config": {"output_mapping": "{ request: .request }"}}`,
		description: "Where a run ends and its result is computed. There is exactly one, and no edge leaves it.",
		optional:    true,
		config: objectOf("",
			member{"output_mapping", filled("output_mapping").or(`write one jq program as text, for example "{ total: .total }"`).
				about("One jq program over the final state; its value is the result of the run. The result is the whole state if it is absent.",
					`"{ approved: .approved, note: .note }"`), false},
			member{"output_schema", free("output_schema").about("A JSON Schema that the result must satisfy."), false},
		).about("May be absent; the result is then the whole state."),
		compile: (*config).end,
	}
}

func (x *config) end() {
	schema, _ := x.schema("output_schema", checkedHere)
	x.v.node.End = &EndConfig{OutputMapping: expr.Identity(), OutputSchema: schema}
	if expr.TrimSpace(x.text("output_mapping")) != "" {
		x.v.node.End.OutputMapping = x.program(x.json.Get("output_mapping"), x.at.member("output_mapping"))
	}
}
