package definition

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// The shapes of nodes (spec: definition, 3 and 4). A node is checked against the shape of the type it declares.

var types = []Type{
	Start, End, Step, LLMCall, ToolCall, Switch, Interrupt, Parallel, Wait, SetState, Subworkflow, AgentDelegate,
}

// attempted are the types of nodes that have attempts, and so timeout and retry.
var attempted = []Type{Step, LLMCall, ToolCall, AgentDelegate}

var retryShape = &shape{
	what: "a retry policy", kind: jsonvalue.Object,
	members: []member{
		{"max_attempts", atLeastOne("max_attempts"), true},
		{"initial_interval", interval("initial_interval"), false},
		{"backoff_coefficient", &shape{what: "backoff_coefficient", kind: jsonvalue.Number}, false},
		{"max_interval", interval("max_interval"), false},
		{"jitter", jitterShape, false},
		{"non_retryable_errors", listOf("non_retryable_errors", text("a code in non_retryable_errors")), false},
	},
}

var jitterShape = &shape{
	what: "jitter", kind: jsonvalue.Number, minimum: new(0.0), maximum: new(1.0),
	hint: "write a number from 0 to 1, the part of the pause that varies",
}

func interval(what string) *shape { return text(what).or(`write a text such as "500ms" or "30s"`) }

// common are the members of every node but its config. The type has been looked at before.
var common = []member{
	{"id", filled("the id of a node"), true},
	{"type", &shape{what: "the type of a node", any: true}, true},
	{"retry", retryShape, false},
	{"timeout", filled("a timeout").or(`write a text such as "30s"`), false},
	{"metadata", free("metadata"), false},
}

// anyNode is what every node has, whatever its type.
var anyNode = &shape{what: "a node", kind: jsonvalue.Object, open: true, members: common}

var nodeShapes = func() map[Type]*shape {
	shapes := map[Type]*shape{}
	for _, t := range types {
		config := configShapes[t]
		config.what = "the config of " + withArticle(string(t)) + " node"
		config.kind = jsonvalue.Object
		config.instead = withDefaults(config.instead, besideConfigOf(t))
		shapes[t] = &shape{
			what: withArticle(string(t)) + " node", kind: jsonvalue.Object,
			members:  append([]member{{"config", config, t != Start && t != End}}, common...),
			extended: extendedNodes[t],
			instead: withDefaults(map[string]string{
				"next":   "nodes are connected by edges",
				"label":  "put it into metadata",
				"name":   "put it into metadata",
				"inputs": "put what the node needs into its config",
			}, insideConfigOf(t)),
		}
	}
	shapes[Switch].rule = switchRule
	return shapes
}()

// besideConfigOf are hints for members of a node that are written into its config.
func besideConfigOf(t Type) map[string]string {
	hints := map[string]string{"metadata": fmt.Sprintf(besideConfig, "metadata")}
	if slices.Contains(attempted, t) {
		hints["timeout"], hints["retry"] = fmt.Sprintf(besideConfig, "timeout"), fmt.Sprintf(besideConfig, "retry")
	}
	for _, e := range extendedNodes[t] {
		hints[e.name] = fmt.Sprintf(besideConfig, e.name)
	}
	return hints
}

// insideConfigOf are hints for members of the config of a node that are written beside it, and for those of nodes of other types.
func insideConfigOf(t Type) map[string]string {
	hints := map[string]string{}
	for _, other := range types {
		for _, e := range extendedNodes[other] {
			hints[e.name] = fmt.Sprintf("only %s nodes have %s", problem.AndList(typesWith(e.name)), e.name)
		}
	}
	for _, m := range configShapes[t].members {
		hints[m.name] = fmt.Sprintf(inConfig, m.name)
	}
	for _, name := range readOf[t] {
		hints[name] = fmt.Sprintf(inConfig, name)
	}
	return hints
}

// typesWith returns the types of nodes to which an extension adds the member.
func typesWith(name string) []Type {
	var with []Type
	for _, t := range types {
		if slices.ContainsFunc(extendedNodes[t], func(e extended) bool { return e.name == name }) {
			with = append(with, t)
		}
	}
	return with
}

// withDefaults adds to hints those of others whose names it does not have.
func withDefaults(hints, others map[string]string) map[string]string {
	all := maps.Clone(others)
	maps.Copy(all, hints)
	return all
}

func withArticle(name string) string {
	if name == string(LLMCall) || strings.ContainsAny(name[:1], "aeiou") {
		return "an " + name
	}
	return "a " + name
}

var caseShape = objectOf("a switch case",
	member{"when", filled("the when of a switch case"), true},
	member{"target", filled("the target of a switch case"), true},
).not(map[string]string{"condition": `write "when"`, "if": `write "when"`, "next": `write "target"`, "then": `write "target"`, "goto": `write "target"`, "to": `write "target"`})

var branchShape = objectOf("a branch",
	member{"name", filled("the name of a branch"), true},
	member{"entry", filled("the entry of a branch"), true},
).not(map[string]string{"nodes": `give the id of the branch's first node as "entry"; edges lead on from it`})

var assignmentShape = &shape{
	what: "an assignment", kind: jsonvalue.Object, rule: assignmentRule,
	members: []member{{"jq", filled("the jq program of an assignment"), false}, {"literal", &shape{any: true}, false}},
	hint:    `write {"literal": <value>} or {"jq": "<program>"}`,
	instead: map[string]string{"value": `write "literal"`, "expr": `write "jq"`, "expression": `write "jq"`},
}

var configShapes = map[Type]*shape{
	Start: {
		members: []member{{"input_schema", free("input_schema"), false}},
		instead: map[string]string{"output_schema": "a start node has an input_schema; the end node has the output_schema"},
	},
	End: {
		members: []member{
			{"output_mapping", filled("output_mapping").or(`write one jq program as text, for example "{ total: .total }"`), false},
			{"output_schema", free("output_schema"), false},
		},
	},
	Step: {
		open: true,
		rule: needsOneOf("handler", "code_ref"),
	},
	LLMCall: {open: true},
	ToolCall: {
		members: []member{
			{"server", filled("server"), true},
			{"tool", filled("tool"), true},
			{"arguments", free("arguments"), false},
		},
		instead: map[string]string{
			"input_mapping": "a tool_call sends its arguments literally; write them into arguments",
			"input":         "write arguments",
			"args":          "write arguments",
		},
	},
	Switch: {
		members: []member{
			{"cases", listOf("cases", caseShape), false}, // switchRule wants some
			{"default", filled("the default of a switch"), false},
		},
	},
	Interrupt: {
		members: []member{
			{"resume_schema", schema("resume_schema"), true},
			{"prompt", filled("prompt"), false},
			{"prompt_ref", filled("prompt_ref"), false},
			{"timeout", filled("the timeout of an interrupt"), false},
		},
		rule:    needsOneOf("prompt", "prompt_ref"),
		instead: map[string]string{"assignee": "say in the prompt who is meant"},
	},
	Parallel: {
		members: []member{
			{"join", &shape{what: "join", enum: []string{"all", "any", "n_of_m"}}, true},
			{"n", atLeastOne("n"), false},
			{"branches", listOf("branches", branchShape).nonEmpty(), true},
			{"timeout", filled("the timeout of a parallel node"), false},
		},
		rule: needsIf("join", "n_of_m", "n"),
	},
	Wait: {
		members: []member{
			{"kind", &shape{what: "the kind of a wait", enum: []string{"duration", "until", "signal"}}, true},
			{"duration_ms", &shape{what: "duration_ms", kind: jsonvalue.Number, integer: true, minimum: new(float64)}, false},
			{"duration", filled("duration"), false},
			{"until", filled("until"), false},
			{"signal", filled("signal"), false},
		},
		extended: []extended{{member{"timeout", filled("the timeout of a wait").or(`write a text such as "24h"`), false}, ExtensionOnTimeout}},
		rule:     waitRule,
	},
	SetState: {
		members: []member{
			{"assignments", &shape{what: "assignments", kind: jsonvalue.Object, notEmpty: true, values: assignmentShape}, true},
		},
	},
	Subworkflow: {
		members: []member{
			{"workflow_ref", filled("workflow_ref"), true},
			{"input_mapping", free("input_mapping"), true},
			{"version_pin", filled("version_pin"), false},
		},
	},
	AgentDelegate: {
		members: []member{
			{"agent_id", filled("agent_id"), true},
			{"protocol", &shape{what: "protocol", enum: []string{"a2a", "mcp", "sdk"}}, true},
			{"input_mapping", free("input_mapping"), true},
		},
	},
}

// needsOneOf requires at least one of two members.
func needsOneOf(a, b string) func(*shapeCheck, *jsonvalue.Node, *path) {
	return func(c *shapeCheck, n *jsonvalue.Node, at *path) {
		if n.Get(a) == nil && n.Get(b) == nil {
			c.report(n, at, "anyOf", map[string]any{}, fmt.Sprintf("the config must have the member %q or %q", a, b), "")
		}
	}
}

// needsIf requires a member if another one has a certain text.
func needsIf(discriminator, value, name string) func(*shapeCheck, *jsonvalue.Node, *path) {
	return func(c *shapeCheck, n *jsonvalue.Node, at *path) {
		if d := n.Get(discriminator); isText(d, value) && n.Get(name) == nil {
			c.report(n, at, "required", map[string]any{"missingProperty": name},
				fmt.Sprintf("with %s %q the config must have the member %q", discriminator, value, name), "")
		}
	}
}

func isText(n *jsonvalue.Node, value string) bool {
	return n != nil && n.Kind == jsonvalue.String && n.Str == value
}

func waitRule(c *shapeCheck, n *jsonvalue.Node, at *path) {
	if isText(n.Get("kind"), "duration") {
		needsOneOf("duration_ms", "duration")(c, n, at)
	}
	needsIf("kind", "until", "until")(c, n, at)
	needsIf("kind", "signal", "signal")(c, n, at)
}

func assignmentRule(c *shapeCheck, n *jsonvalue.Node, at *path) {
	jq, literal := n.Get("jq") != nil, n.Get("literal") != nil
	if jq == literal {
		message := "an assignment must have jq or literal"
		if jq {
			message = "an assignment must have either jq or literal, not both"
		}
		c.report(n, at, "oneOf", map[string]any{"passingSchemas": nil}, message,
			`write {"literal": <value>} or {"jq": "<program>"}`)
	}
}

// checkNode reports whether a node has the shape of its type. An unknown type is one finding at the node, of keyword
// oneOf, as the conformance vectors expect (spec: definition, 6.2).
func (c *shapeCheck) checkNode(n *jsonvalue.Node, at *path) bool {
	if n.Kind != jsonvalue.Object {
		c.checkKind(anyNode, n, at)
		return false
	}
	t := n.Get("type")
	if t != nil && t.Kind == jsonvalue.String {
		if s, ok := nodeShapes[Type(t.Str)]; ok {
			return c.check(s, n, at)
		}
	}
	names := make([]string, len(types))
	for i, known := range types {
		names[i] = string(known)
	}
	place, message, hint := n, "a node must have a type", c.misspelt(anyNode, n, "type")
	if t != nil {
		place, message = t, "expected the name of a node type, found "+describeValue(t)
		if t.Kind == jsonvalue.String {
			message, hint = fmt.Sprintf("unknown node type %q", clip(t.Str)), suggest.DidYouMean(t.Str, names)
		}
	}
	if hint == "" {
		hint = "the types are " + problem.AndList(names)
	}
	c.report(place, at, "oneOf", map[string]any{"passingSchemas": nil}, message, hint)
	others := *anyNode
	others.members = append([]member{common[0]}, common[2:]...) // what is wrong with the type has been said
	c.check(&others, n, at)
	return false
}
