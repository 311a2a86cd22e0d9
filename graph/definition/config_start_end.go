package definition

import "github.com/workflows-engine/workflows-engine/graph/expr"

func (x *config) start() {
	schema, _ := x.schema("input_schema", checkedHere)
	x.v.node.Start = &StartConfig{InputSchema: schema}
}

func (x *config) end() {
	schema, _ := x.schema("output_schema", checkedHere)
	x.v.node.End = &EndConfig{OutputMapping: expr.Identity(), OutputSchema: schema}
	if expr.TrimSpace(x.text("output_mapping")) != "" {
		x.v.node.End.OutputMapping = x.program(x.json.Get("output_mapping"), x.at.member("output_mapping"))
	}
}
