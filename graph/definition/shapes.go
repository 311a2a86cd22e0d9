package definition

import "github.com/workflows-engine/workflows-engine/internal/jsonvalue"

// The shapes of a definition outside its nodes (spec: definition, 2).

func text(what string) *shape { return &shape{what: what, kind: jsonvalue.String} }

// filled is a text of at least one character.
func filled(what string) *shape { return &shape{what: what, kind: jsonvalue.String, notEmpty: true} }

// free is an object with anything inside.
func free(what string) *shape { return &shape{what: what, kind: jsonvalue.Object, open: true} }

// objectOf is an object with these members and no others.
func objectOf(what string, members ...member) *shape {
	return &shape{what: what, kind: jsonvalue.Object, members: members}
}

// listOf is an array.
func listOf(what string, element *shape) *shape {
	return &shape{what: what, kind: jsonvalue.Array, element: element}
}

// schema is a schema of at least one member.
func schema(what string) *shape {
	return &shape{what: what, kind: jsonvalue.Object, open: true, notEmpty: true, hint: `write at least {"type": "object"}`}
}

// nonEmpty, or, not and with complete a shape that was just made.
func (s *shape) nonEmpty() *shape {
	s.notEmpty = true
	return s
}

func (s *shape) or(hint string) *shape {
	s.hint = hint
	return s
}

func (s *shape) not(instead map[string]string) *shape {
	s.instead = instead
	return s
}

func (s *shape) with(members ...extended) *shape {
	s.extended = members
	return s
}

func atLeastOne(what string) *shape {
	return &shape{what: what, kind: jsonvalue.Number, integer: true, minimum: new(1.0)}
}

var documentShape = objectOf("the document block",
	member{"schema", filled("the schema of a document"), true},
	member{"name", filled("the name of a workflow"), true},
	member{"version", filled("the version of a workflow").or(`write the version as a text, for example "1.0.0"`), true},
	member{"description", text("the description of a workflow").or("leave the member out if there is none"), false},
)

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

var edgeShape = objectOf("an edge",
	member{"source", filled("the source of an edge"), true},
	member{"target", filled("the target of an edge"), true},
).not(map[string]string{
	"condition": "edges carry no conditions; route with a switch node",
	"when":      "edges carry no conditions; route with a switch node",
	"from":      `write "source"`,
	"to":        `write "target"`,
	"label":     "edges have no labels",
})

// rootShape checks all but the nodes, which checkNode does.
var rootShape = &shape{
	what: "a workflow definition", kind: jsonvalue.Object,
	members: []member{
		{"document", documentShape, true},
		{"state_schema", schema("state_schema"), true},
		{"nodes", listOf("nodes", nil).nonEmpty().or("write a list of nodes, each with its id"), true},
		{"edges", listOf("edges", edgeShape).or(`write a list of objects with "source" and "target"`), true},
		{"checkpointing", checkpointingShape, false},
		{extensionsMember, extensionsShape, false},
	},
	instead: map[string]string{
		"$schema":    "leave it out; let the editor choose the schema by the file name *.workflow.json",
		"extensions": `name the extensions of this engine in "x-workflows-engine": {"uses": […]}`,
		"name":       "put it into the document block",
		"version":    "put it into the document block",
		"state":      "describe the state in state_schema; its first value is the input of a run",
	},
}
