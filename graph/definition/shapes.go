package definition

import "github.com/workflows-engine/workflows-engine/internal/jsonvalue"

// The shapes of a definition outside its nodes (spec: definition, 2).

var one = 1.0

func text(what string) *shape { return &shape{what: what, kind: jsonvalue.String} }

// filled is a text of at least one character.
func filled(what string) *shape { return &shape{what: what, kind: jsonvalue.String, notEmpty: true} }

// free is an object with anything inside.
func free(what string) *shape { return &shape{what: what, kind: jsonvalue.Object, open: true} }

func atLeastOne(what string) *shape {
	return &shape{what: what, kind: jsonvalue.Number, integer: true, minimum: &one}
}

var documentShape = &shape{
	what: "the document block", kind: jsonvalue.Object,
	members: []member{
		{"schema", filled("the schema of a document"), true},
		{"name", filled("the name of a workflow"), true},
		{
			"version",
			&shape{
				what: "the version of a workflow", kind: jsonvalue.String, notEmpty: true,
				hint: `write the version as a text, for example "1.0.0"`,
			},
			true,
		},
		{
			"description",
			&shape{what: "the description of a workflow", kind: jsonvalue.String, hint: "leave the member out if there is none"},
			false,
		},
	},
}

var checkpointingShape = &shape{
	what: "checkpointing", kind: jsonvalue.Object, open: true,
	hint: `write an object such as {"strategy": "after_each_node"}`,
	members: []member{
		{"strategy", text("the strategy of checkpointing"), false},
		{"policy", text("the policy of checkpointing"), false},
		{"n", atLeastOne("the n of checkpointing"), false},
		{"interval", atLeastOne("the interval of checkpointing"), false},
	},
}

var edgeShape = &shape{
	what: "an edge", kind: jsonvalue.Object,
	members: []member{
		{"source", filled("the source of an edge"), true},
		{"target", filled("the target of an edge"), true},
	},
	instead: map[string]string{
		"condition": "edges carry no conditions; route with a switch node",
		"when":      "edges carry no conditions; route with a switch node",
		"from":      `write "source"`,
		"to":        `write "target"`,
		"label":     "edges have no labels",
	},
}

// rootShape checks all but the nodes, which checkNode does.
var rootShape = &shape{
	what: "a workflow definition", kind: jsonvalue.Object,
	members: []member{
		{"document", documentShape, true},
		{
			"state_schema",
			&shape{
				what: "state_schema", kind: jsonvalue.Object, open: true, notEmpty: true,
				hint: `write at least {"type": "object"}`,
			},
			true,
		},
		{"nodes", &shape{what: "nodes", kind: jsonvalue.Array, notEmpty: true, hint: "write a list of nodes, each with its id"}, true},
		{
			"edges",
			&shape{
				what: "edges", kind: jsonvalue.Array, element: edgeShape,
				hint: `write a list of objects with "source" and "target"`,
			},
			true,
		},
		{"checkpointing", checkpointingShape, false},
	},
	instead: map[string]string{
		"$schema":    "leave it out; let the editor choose the schema by the file name *.workflow.json",
		"extensions": "definitions cannot be extended",
		"name":       "put it into the document block",
		"version":    "put it into the document block",
		"state":      "describe the state in state_schema; its first value is the input of a run",
	},
}
