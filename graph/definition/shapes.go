package definition

import (
	"fmt"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// The shapes of a definition outside its nodes (spec: definition, 2), and the parts that shapes are built from.

func text(noun string) *shape { return &shape{noun: noun, kind: jsonvalue.String} }

// filled is a string of at least one character.
func filled(noun string) *shape { return &shape{noun: noun, kind: jsonvalue.String, notEmpty: true} }

// free is an object with any fields.
func free(noun string) *shape { return &shape{noun: noun, kind: jsonvalue.Object, open: true} }

// anything is a value of any kind.
func anything() *shape { return &shape{any: true} }

// objectOf is an object with these fields and no others.
func objectOf(noun string, members ...member) *shape {
	return &shape{noun: noun, kind: jsonvalue.Object, members: members}
}

func listOf(noun string, element *shape) *shape {
	return &shape{noun: noun, kind: jsonvalue.Array, element: element}
}

func oneOf(noun string, enum ...string) *shape { return &shape{noun: noun, enum: enum} }

func boolean(noun string) *shape { return &shape{noun: noun, kind: jsonvalue.Bool} }

func atLeast(noun string, minimum float64) *shape {
	return &shape{noun: noun, kind: jsonvalue.Number, integer: true, minimum: &minimum}
}

// schema is a JSON Schema of at least one keyword.
func schema(noun string) *shape {
	return &shape{noun: noun, kind: jsonvalue.Object, open: true, notEmpty: true, hint: `write at least {"type": "object"}`}
}

// The following methods complete a shape that was just made.

func (s *shape) nonEmpty() *shape {
	s.notEmpty = true
	return s
}

func (s *shape) upTo(maximum float64) *shape {
	s.maximum = &maximum
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

func (s *shape) ruled(rules ...rule) *shape {
	s.rules = rules
	return s
}

// about sets the description in the published schema, and examples in JSON.
func (s *shape) about(description string, examples ...string) *shape {
	s.description, s.examples = description, examples
	return s
}

// called gives the shape a place of its own among the $defs of the published schema.
func (s *shape) called(name string) *shape {
	s.name = name
	return s
}

func (s *shape) obsolete() *shape {
	s.deprecated = true
	return s
}

// needsOneOf requires at least one of several fields.
type needsOneOf []string

func (r needsOneOf) check(c *shapeCheck, n *jsonvalue.Node, at *path) {
	for _, name := range r {
		if n.Get(name) != nil {
			return
		}
	}
	c.report(n, at, "anyOf", map[string]any{}, fmt.Sprintf("the config must have the field %q or %q", r[0], r[1]), "")
}

func (r needsOneOf) keywords() jsonvalue.Ordered {
	return jsonvalue.Ordered{{"anyOf", eachRequired(r)}}
}

// exactlyOne requires one of two fields and not the other. neither and both complete the finding's message.
type exactlyOne struct{ a, b, neither, both, hint string }

func (r exactlyOne) check(c *shapeCheck, n *jsonvalue.Node, at *path) {
	a, b := n.Get(r.a) != nil, n.Get(r.b) != nil
	if a != b {
		return
	}
	message := r.neither
	if a {
		message = r.both
	}
	c.report(n, at, "oneOf", map[string]any{"passingSchemas": nil}, message, r.hint)
}

func (r exactlyOne) keywords() jsonvalue.Ordered {
	return jsonvalue.Ordered{{"oneOf", eachRequired([]string{r.a, r.b})}}
}

// needsIf requires one of several fields if another field has a certain value.
type needsIf struct {
	discriminator, value string
	names                []string
}

func (r needsIf) check(c *shapeCheck, n *jsonvalue.Node, at *path) {
	switch {
	case !isText(n.Get(r.discriminator), r.value):
	case len(r.names) > 1:
		needsOneOf(r.names).check(c, n, at)
	case n.Get(r.names[0]) == nil:
		c.report(n, at, "required", map[string]any{"missingProperty": r.names[0]},
			fmt.Sprintf("with %s %q the config must have the field %q", r.discriminator, r.value, r.names[0]), "")
	}
}

func (r needsIf) keywords() jsonvalue.Ordered {
	chosen := jsonvalue.Ordered{{r.discriminator, jsonvalue.Ordered{{"const", r.value}}}}
	return jsonvalue.Ordered{
		{"if", jsonvalue.Ordered{{"required", []any{r.discriminator}}, {"properties", chosen}}},
		{"then", needsOneOf(r.names).keywords()},
	}
}

func isText(n *jsonvalue.Node, value string) bool {
	return n != nil && n.Kind == jsonvalue.String && n.Str == value
}

var documentShape = objectOf("the document block",
	member{"schema", filled("the schema of a document").
		about("The format of this document. Any string is accepted; write the id of this schema.", `"`+schemaID+`"`), true},
	member{"name", filled("the name of a workflow").
		about("A short name for people and for lists of workflows.", `"refund-approval"`), true},
	member{"version", filled("the version of a workflow").or(`write the version as a text, for example "1.0.0"`).
		about("The version, a string. Raise it when the workflow changes.", `"1.0.0"`), true},
	member{"description", text("the description of a workflow").or("leave the field out if there is none").
		about("The purpose of the workflow, in a sentence or two."), false},
).called("document").
	about("The name of the workflow. It does not change a run, but is part of the definition hash.")

var checkpointingShape = free("checkpointing").or(`write an object such as {"strategy": "after_each_node"}`).fields(
	member{"strategy", text("the strategy of checkpointing").
		about("after_each_node (the default), every_n_nodes, or disabled.", `"after_each_node"`, `"every_n_nodes"`, `"disabled"`), false},
	member{"policy", text("the policy of checkpointing").obsolete().
		about("An older name of strategy; read only if strategy is missing."), false},
	member{"n", atLeast("the n of checkpointing", 1).
		about("For every_n_nodes: the number of nodes between two checkpoints."), false},
	member{"interval", atLeast("the interval of checkpointing", 1).obsolete().
		about("An older name of n; read only if n is missing."), false},
).called("checkpointing").
	about("When checkpoints of a run are recorded; after each node if absent. Other properties are accepted and ignored.")

// fields lists fields of an open object.
func (s *shape) fields(members ...member) *shape {
	s.members = members
	return s
}

var edgeShape = objectOf("an edge",
	member{"source", filled("the source of an edge").
		about("The id of the node that the edge leaves, or __start__ for the one edge that starts a run."), true},
	member{"target", filled("the target of an edge").about("The id of the node that comes next."), true},
).not(map[string]string{
	"condition": "edges carry no conditions; route with a switch node",
	"when":      "edges carry no conditions; route with a switch node",
	"from":      `write "source"`,
	"to":        `write "target"`,
	"label":     "edges have no labels",
}).called("edge").
	about("An arrow of the graph. Edges carry no conditions: to choose between targets, use a switch node.")

var stateSchemaShape = schema("state_schema").called("state_schema").
	about("A JSON Schema (draft 2020-12) for the state: the object that every node reads and changes. "+
		"The input of a run is its first value, and it is validated after every change. "+
		"A direct property may also have the keyword reducer, which combines a new value with the old one: "+
		"overwrite (the default), append (to an array) or merge (objects, deeply).",
		`{"type": "object", "properties": {"request": {"type": "string"}, "findings": {"type": "array", "items": {"type": "string"}, "reducer": "append"}}, "required": ["request"]}`)

// nodesShape is the list of nodes; each has the shape of its type.
var nodesShape = listOf("nodes", nil).nonEmpty().or("write a list of nodes, each with its id").
	about("The nodes of the workflow, in any order. Exactly one has the type start and exactly one has the type end; ids are unique.")

// rootShape checks everything but the nodes, which checkNode checks.
var rootShape = objectOf("a workflow definition",
	member{"document", documentShape, true},
	member{"state_schema", stateSchemaShape, true},
	member{"nodes", nodesShape, true},
	member{"edges", listOf("edges", edgeShape).or(`write a list of objects with "source" and "target"`).
		about("The order of the nodes. One edge has the source __start__ and leads to the start node. " +
			"Every other node has exactly one outgoing edge, except switch nodes, which route by their cases, and the end node. " +
			"The edges of a parallel branch lead to the node that the parallel node's own edge names."), true},
	member{"checkpointing", checkpointingShape, false},
	member{extensionsMember, extensionsShape, false},
).not(map[string]string{
	"$schema":    "leave it out; let the editor choose the schema by the file name *.workflow.json",
	"extensions": `name the extensions of this engine in "x-workflows-engine": {"uses": […]}`,
	"name":       "put it into the document block",
	"version":    "put it into the document block",
	"state":      "describe the state in state_schema; its first value is the input of a run",
}).about("A durable workflow that AI agents run: a state, nodes that read and change it, and edges between the nodes. Name the file *.workflow.json.")
