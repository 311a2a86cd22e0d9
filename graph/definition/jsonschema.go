package definition

import (
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// schemaID identifies the published schema: a contract of the protocol.
const schemaID = "https://agent-workflow.dev/schemas/workflow-definition.json"

// JSONSchema returns the JSON Schema (draft 2020-12) of definitions, generated from the shapes, as one line of JSON. It accepts the
// documents that the structural check of Compile accepts. Package schemas publishes it.
func JSONSchema() []byte {
	g := &schemaGenerator{defs: map[string]any{}}
	root := jsonvalue.Ordered{{"$schema", jsonschema.Dialect}, {"$id", schemaID}, {"title", "Workflow definition"}}
	root = append(root, g.schema(rootShape)...)
	root.Put("$comment", "A signed definition carries a block as described in $defs/signature, in document.signature or at the root. "+
		"It is removed before the definition is validated and hashed, so this schema has no property for it.")
	var guards []jsonvalue.Ordered
	for _, e := range Extensions() {
		if forbidden := g.without(Extension(e), rootShape); forbidden != nil {
			guards = append(guards, jsonvalue.Ordered{{"if", jsonvalue.Ordered{{"not", uses(e)}}}, {"then", forbidden}})
		}
	}
	root.Put("allOf", guards)
	g.define("signature", jsonvalue.Raw(signatureSchema))
	var defs jsonvalue.Ordered
	for _, name := range g.names {
		defs.Put(name, g.defs[name])
	}
	root.Put("$defs", defs)
	return root.Append(nil)
}

// signatureSchema describes a signature block, which signatureFault checks.
const signatureSchema = `{"description": "A signature over the definition without its signature blocks. It is in document.signature or in signature at the root, and is removed before the definition is validated.", ` +
	`"type": "object", "required": ["value"], "properties": {` +
	`"alg": {"description": "The algorithm. There is only one.", "const": "EdDSA"}, ` +
	`"keyId": {"description": "The name of the key; equal to the kid in the header of value.", "type": "string"}, ` +
	`"value": {"description": "A compact JWS whose payload is the canonical JSON of the unsigned definition.", "type": "string"}}}`

// schemaGenerator collects the $defs in the order of their first use.
type schemaGenerator struct {
	names []string
	defs  map[string]any
}

func (g *schemaGenerator) define(name string, schema any) {
	g.names, g.defs[name] = append(g.names, name), schema
}

// property returns the schema of a value: a reference if the shape has a name.
func (g *schemaGenerator) property(s *shape) jsonvalue.Ordered {
	if s.name == "" {
		return g.schema(s)
	}
	if !slices.Contains(g.names, s.name) {
		g.define(s.name, nil) // its place in the order
		if s == anyNode {
			g.defs[s.name] = g.anyNode()
		} else {
			g.defs[s.name] = g.schema(s)
		}
	}
	return ref(s.name)
}

func ref(name string) jsonvalue.Ordered { return jsonvalue.Ordered{{"$ref", "#/$defs/" + name}} }

func (g *schemaGenerator) schema(s *shape) jsonvalue.Ordered {
	var out jsonvalue.Ordered
	out.Text("description", s.description)
	if s.deprecated {
		out.Put("deprecated", true)
	}
	switch {
	case s.enum != nil:
		out.Put("enum", listOfAny(s.enum))
	case s.any:
	case s.integer:
		out.Put("type", "integer")
	default:
		out.Put("type", s.kind.String())
	}
	if s.notEmpty {
		out.Put(map[jsonvalue.Kind]string{
			jsonvalue.String: "minLength", jsonvalue.Array: "minItems", jsonvalue.Object: "minProperties",
		}[s.kind], 1.0)
	}
	if s.minimum != nil {
		out.Put("minimum", *s.minimum)
	}
	if s.maximum != nil {
		out.Put("maximum", *s.maximum)
	}
	switch {
	case s == nodesShape:
		out.Put("items", g.property(anyNode))
	case s.element != nil:
		out.Put("items", g.property(s.element))
	}
	g.object(&out, s)
	if len(s.examples) > 0 {
		out.Put("examples", jsonvalue.Raw("["+strings.Join(s.examples, ", ")+"]"))
	}
	return out
}

// object adds the keywords of objects.
func (g *schemaGenerator) object(out *jsonvalue.Ordered, s *shape) {
	var required []string
	var properties jsonvalue.Ordered
	for _, m := range s.members {
		if m.required {
			required = append(required, m.name)
		}
		properties.Put(m.name, g.property(m.shape))
	}
	for _, e := range s.extended {
		properties.Put(e.name, g.property(e.shape))
	}
	if required != nil {
		out.Put("required", listOfAny(required))
	}
	switch {
	case s.values != nil:
		out.Put("additionalProperties", g.property(s.values))
	case s.kind == jsonvalue.Object && s.enum == nil && !s.any && !s.open:
		out.Put("additionalProperties", false)
	}
	if properties != nil {
		out.Put("properties", properties)
	}
	switch len(s.rules) {
	case 0:
	case 1:
		*out = append(*out, s.rules[0].keywords()...)
	default:
		var all []jsonvalue.Ordered
		for _, r := range s.rules {
			all = append(all, r.keywords())
		}
		out.Put("allOf", all)
	}
}

// anyNode is the schema of a node: the fields of all nodes, one of the types, and for each type its own schema.
func (g *schemaGenerator) anyNode() jsonvalue.Ordered {
	var types, own []jsonvalue.Ordered
	var names []string
	for _, t := range nodeTypes {
		types, names = append(types, isType(t.Name)), append(names, `"`+string(t.Name)+`"`)
	}
	out := g.schema(withType(anyNode, func(s shape) *shape { return s.about(s.description, names...) }))
	for _, t := range nodeTypes {
		only := oneOf("", string(t.Name)).about("The type of the node.")
		own = append(own, ifType(t.Name, g.property(withType(t.node, func(shape) *shape { return only }))))
	}
	out.Put("oneOf", types)
	out.Put("allOf", own)
	return out
}

// withType returns the shape of a node with another shape of its type, and with id and type as its first fields.
func withType(node *shape, other func(shape) *shape) *shape {
	out := *node
	out.members = nil
	for _, m := range common[:2] {
		if m.name == "type" {
			m.shape = other(*m.shape)
		}
		out.members = append(out.members, m)
	}
	for _, m := range node.members {
		if m.name != "id" && m.name != "type" {
			out.members = append(out.members, m)
		}
	}
	return &out
}

func isType(t Type) jsonvalue.Ordered {
	return jsonvalue.Ordered{{"properties", jsonvalue.Ordered{{"type", jsonvalue.Ordered{{"const", string(t)}}}}}}
}

// uses is the schema of documents that name an extension.
func uses(extension string) jsonvalue.Ordered {
	names := jsonvalue.Ordered{{"contains", jsonvalue.Ordered{{"const", extension}}}}
	block := jsonvalue.Ordered{{"required", []any{"uses"}}, {"properties", jsonvalue.Ordered{{"uses", names}}}}
	return jsonvalue.Ordered{{"required", []any{extensionsMember}}, {"properties", jsonvalue.Ordered{{extensionsMember, block}}}}
}

// without is the schema of values of a shape that have no field of an extension, or nil if the shape has no such field.
func (g *schemaGenerator) without(e Extension, s *shape) jsonvalue.Ordered {
	if s == nil {
		return nil
	}
	description := jsonvalue.Ordered{{"description", "Without the extension " + string(e) + "."}}
	var properties, out jsonvalue.Ordered
	var forbidden []string
	for _, m := range s.members {
		if inner := g.without(e, m.shape); inner != nil {
			properties.Put(m.name, append(slices.Clip(description), inner...))
		}
	}
	for _, m := range s.extended {
		if m.extension == e {
			forbidden = append(forbidden, m.name)
		} else if inner := g.without(e, m.shape); inner != nil {
			properties.Put(m.name, append(slices.Clip(description), inner...))
		}
	}
	if properties != nil {
		out.Put("properties", properties)
	}
	switch len(forbidden) {
	case 0:
	case 1:
		out.Put("not", eachRequired(forbidden)[0])
	default:
		out.Put("not", jsonvalue.Ordered{{"anyOf", eachRequired(forbidden)}})
	}
	items := g.without(e, s.element)
	if s == nodesShape {
		items = g.nodesWithout(e)
	}
	if items != nil {
		out.Put("items", items)
	}
	return out
}

// nodesWithout is the schema of nodes without fields of an extension. The config depends on the type; an extension's other fields have
// one shape in nodes of all types.
func (g *schemaGenerator) nodesWithout(e Extension) jsonvalue.Ordered {
	all := &shape{}
	var own []jsonvalue.Ordered
	for _, t := range nodeTypes {
		for _, m := range t.extended {
			if !slices.ContainsFunc(all.extended, func(known extended) bool { return known.name == m.name }) {
				all.extended = append(all.extended, m)
			}
		}
		config := &shape{members: []member{{"config", t.config, false}}}
		if inner := g.without(e, config); inner != nil {
			own = append(own, ifType(t.Name, inner))
		}
	}
	out := g.without(e, all)
	if own != nil {
		out.Put("allOf", own)
	}
	return out
}

func ifType(t Type, then jsonvalue.Ordered) jsonvalue.Ordered {
	return jsonvalue.Ordered{{"if", append(jsonvalue.Ordered{{"required", []any{"type"}}}, isType(t)...)}, {"then", then}}
}

// eachRequired are schemas of objects with one of the fields.
func eachRequired(names []string) []jsonvalue.Ordered {
	var out []jsonvalue.Ordered
	for _, name := range names {
		out = append(out, jsonvalue.Ordered{{"required", []any{name}}})
	}
	return out
}

func listOfAny(names []string) []any {
	out := make([]any, len(names))
	for i, name := range names {
		out[i] = name
	}
	return out
}
