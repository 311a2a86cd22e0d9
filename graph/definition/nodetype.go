package definition

import (
	"fmt"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// Type is a node type of the protocol.
type Type string

// The node types (spec: definition, 3).
const (
	Start         Type = "start"
	End           Type = "end"
	Step          Type = "step"
	LLMCall       Type = "llm_call"
	ToolCall      Type = "tool_call"
	Switch        Type = "switch"
	Interrupt     Type = "interrupt"
	Parallel      Type = "parallel"
	Wait          Type = "wait"
	SetState      Type = "set_state"
	Subworkflow   Type = "subworkflow"
	AgentDelegate Type = "agent_delegate"
)

// NodeType holds the facts about one node type: every package that distinguishes types asks it. The zero value stands for an
// unknown type.
type NodeType struct {
	Name Type
	// Example is a node of the type in JSON, complete and valid. It may lead to the nodes "end", "a" and "b".
	Example string
	// Executor is the port that performs nodes of the type, "" for the machine itself.
	Executor Executor
	// Performer describes the part of the config that an executor reads.
	Performer Performer
	// Output is where the fields come from that a completed node adds to the state.
	Output Output
	// Schema is the config's field with a JSON Schema of that output, or of the input of a run or its result; or "".
	Schema string
	// Instant nodes complete without waiting for anything.
	Instant bool
	// Stub is how a test of a definition replaces the node.
	Stub Stub
	// Figure is the form of the node in a picture.
	Figure Figure
	// Fill describes the fields of the config that are computed from the state.
	Fill Fill
	// Misplaced describes fields that authors write into an open config by mistake; it is empty for a config that rejects other fields.
	Misplaced Misplaced

	// config is the shape of the member config, whose description is that of the config; description is that of the type.
	config      *shape
	description string
	extended    []extended
	// optional: the config may be absent.
	optional bool
	rules    []rule
	compile  func(*config)

	// node is the shape of the whole node, made of the above.
	node *shape
}

// Executor is a port that performs nodes.
type Executor string

// The executor ports.
const (
	ActivityExecutor Executor = "activity"
	DelegateExecutor Executor = "delegate"
)

// Performer describes the executor's counterpart: a handler, a model, a tool or an agent.
type Performer struct {
	// Field is the config's field that names it, which may be absent; Noun is its kind in a sentence, for instance "MCP server".
	Field, Noun string
	// Role is its kind in one word, as attempts are listed.
	Role string
	// Class begins the name of a limit that bounds all attempts at one performer, "" if there is no such limit.
	Class string
	// Result is its output as a noun phrase; "" for any object.
	Result string
	// Label returns its name from a node's config, or "".
	Label func(config map[string]any) string
}

// Fill describes the fields of a config that are computed from the state when the node runs.
type Fill struct {
	// Fields may hold templates or programs; with Deep, at any depth.
	Fields []string
	Deep   bool
	// Switch is the field of metadata that has them filled in if it is true; "" if no such field decides.
	Switch string
	// Hint is advice for a template in another field, "" if other fields are not checked; Off is advice for one in Fields that is not
	// filled in.
	Hint, Off string
}

// Misplaced describes the fields that authors write into an open config by mistake.
type Misplaced struct {
	// Message is the finding's message, with a %s for the field.
	Message string
	// Hints holds advice by field.
	Hints map[string]string
}

// Output is where the fields come from that a completed node adds to the state.
type Output string

// The sources of output. The zero value, of an unknown type, counts as any fields.
const (
	OutputAny      Output = "any"         // any fields
	OutputNone     Output = "none"        // no fields
	OutputDeclared Output = "declared"    // the fields of Schema, if the node has one that is checked; else any
	OutputInput    Output = "input"       // the input of the run, which Schema describes
	OutputAssigned Output = "assigned"    // the keys of assignments
	OutputChild    Output = "subworkflow" // the state of a subworkflow
	OutputSignal   Output = "signal"      // the payload of a signal, if the node waits for one
)

// Stub is how a test of a definition replaces a node.
type Stub string

// The replacements.
const (
	StubNone   Stub = "none"   // the node runs
	StubOutput Stub = "stub"   // with an output or a failure
	StubAnswer Stub = "answer" // with the answer of a person
	StubSignal Stub = "signal" // with a signal, or by moving the clock
)

// Figure is the form of a node in a picture.
type Figure string

// The figures.
const (
	FigureBox      Figure = "box"
	FigureTerminal Figure = "terminal"
	FigureChoice   Figure = "choice"
	FigureQuestion Figure = "question"
	FigureFork     Figure = "fork"
	FigurePause    Figure = "pause"
)

var (
	nodeTypes []*NodeType
	typeNamed = map[Type]*NodeType{}
)

func init() {
	for _, make := range []func() NodeType{
		startType, endType, stepType, llmCallType, toolCallType, switchType, interruptType, parallelType, waitType, setStateType,
		subworkflowType, agentDelegateType,
	} {
		t := make()
		nodeTypes = append(nodeTypes, &t)
		typeNamed[t.Name] = &t
	}
	for _, t := range nodeTypes {
		t.finish()
	}
}

// NodeTypes returns the node types in the order of the protocol. Shared: do not change them.
func NodeTypes() []*NodeType { return slices.Clone(nodeTypes) }

var unknownType = &NodeType{}

// Info returns the facts about a type, those of an unknown type for any other name. Shared: do not change it.
func (t Type) Info() *NodeType {
	if known := typeNamed[t]; known != nil {
		return known
	}
	return unknownType
}

// IsActivity reports whether nodes of the type go through the activity port: step, llm_call, tool_call.
func (t Type) IsActivity() bool { return t.Info().Executor == ActivityExecutor }

// Attempted reports whether nodes of the type have attempts, and so timeout and retry.
func (t *NodeType) Attempted() bool { return t.Executor != "" }

// Fields returns the names of the config's fields, without obsolete ones.
func (t *NodeType) Fields() []string {
	var names []string
	for _, m := range t.config.members {
		if !m.shape.deprecated {
			names = append(names, m.name)
		}
	}
	return names
}

// RetryFields returns the names of the fields of a retry policy.
func RetryFields() []string {
	names := make([]string, len(retryShape.members))
	for i, m := range retryShape.members {
		names[i] = m.name
	}
	return names
}

// Noun returns the type's name with an article, for use before "node".
func (t *NodeType) Noun() string { return withArticle(string(t.Name)) }

// has reports whether an extension adds the field to nodes of the type.
func (t *NodeType) has(name string) bool {
	return slices.ContainsFunc(t.extended, func(e extended) bool { return e.name == name })
}

// typesWith returns the names of the types that meet the condition.
func typesWith(holds func(*NodeType) bool) []Type {
	var with []Type
	for _, t := range nodeTypes {
		if holds(t) {
			with = append(with, t.Name)
		}
	}
	return with
}

// attemptedTypes names the types that have attempts, in a sentence.
func attemptedTypes() string { return problem.AndList(typesWith((*NodeType).Attempted)) }

// Hints for fields of a node that are written into its config, and of the config beside it.
const (
	besideConfig = "%s is a field of the node: write it beside config, not in it"
	inConfig     = "%s is a field of config: write it there"
)

// finish makes the shape of nodes of the type, with hints for fields that belong to another place or another type.
func (t *NodeType) finish() {
	config := t.config
	config.noun = "the config of " + withArticle(string(t.Name)) + " node"
	config.instead = withDefaults(config.instead, t.besideConfig())
	t.node = &shape{
		noun: withArticle(string(t.Name)) + " node", kind: jsonvalue.Object,
		members:  append([]member{{"config", config, !t.optional}}, common...),
		extended: t.extended,
		rules:    t.rules,
		instead: withDefaults(map[string]string{
			"next":   "nodes are connected by edges",
			"label":  "put it into metadata",
			"name":   "put it into metadata",
			"inputs": "put the node's input into its config",
		}, t.insideConfig()),
		name: string(t.Name), description: t.description, examples: []string{t.Example},
	}
}

// besideConfig returns hints for fields of a node that are written into its config.
func (t *NodeType) besideConfig() map[string]string {
	hints := map[string]string{"metadata": fmt.Sprintf(besideConfig, "metadata")}
	if t.Attempted() {
		hints["timeout"], hints["retry"] = fmt.Sprintf(besideConfig, "timeout"), fmt.Sprintf(besideConfig, "retry")
	}
	for _, e := range t.extended {
		hints[e.name] = fmt.Sprintf(besideConfig, e.name)
	}
	return hints
}

// insideConfig returns hints for fields of the config that are written beside it, and for those of nodes of other types.
func (t *NodeType) insideConfig() map[string]string {
	hints := map[string]string{}
	for _, other := range nodeTypes {
		for _, e := range other.extended {
			with := typesWith(func(t *NodeType) bool { return t.has(e.name) })
			hints[e.name] = fmt.Sprintf("only %s nodes have %s", problem.AndList(with), e.name)
		}
	}
	for _, m := range t.config.members {
		hints[m.name] = fmt.Sprintf(inConfig, m.name)
	}
	isTimeout := func(name string) bool { return name == "timeout" }
	if slices.ContainsFunc(t.config.members, func(m member) bool { return isTimeout(m.name) }) ||
		slices.ContainsFunc(t.config.extended, func(e extended) bool { return isTimeout(e.name) }) {
		hints[deadlineMember.name] = "write timeout into its config, which bounds the whole node"
	}
	return hints
}

// withDefaults returns the hints, and the others for names without one.
func withDefaults(hints, others map[string]string) map[string]string {
	all := map[string]string{}
	for _, from := range []map[string]string{others, hints} {
		for name, hint := range from {
			all[name] = hint
		}
	}
	return all
}

func withArticle(name string) string {
	if name == string(LLMCall) || strings.ContainsAny(name[:1], "aeiou") {
		return "an " + name
	}
	return "a " + name
}

var retryShape = objectOf("a retry policy",
	member{"max_attempts", atLeast("max_attempts", 1).
		about("All attempts together, the first included. One repair of an answer that breaks output_schema is extra."), true},
	member{"initial_interval", interval("initial_interval").
		about("The pause before the second attempt: digits and a unit of ms, s, m or h; no pause if absent.", `"500ms"`, `"30s"`), false},
	member{"backoff_coefficient", (&shape{noun: "backoff_coefficient", kind: jsonvalue.Number}).
		about("Multiplies each further pause. The default 1 keeps it the same; 2 doubles it.", `2`), false},
	member{"max_interval", interval("max_interval").
		about("The longest pause, written like initial_interval; no bound if absent.", `"5m"`), false},
	member{"jitter", (&shape{noun: "jitter", kind: jsonvalue.Number, minimum: new(0.0), maximum: new(1.0)}).
		or("write a number from 0 to 1, the part of the pause that varies").
		about("The part of each pause, from 0 to 1, that varies between runs, so that runs that failed together do not retry together. "+
			"It is taken off the pause. The default is 0. An addition to the protocol: other engines reject it.", `0.5`), false},
	member{"non_retryable_errors", listOf("non_retryable_errors", text("a code in non_retryable_errors")).
		about("Codes of failures that no further attempt would fix, exactly as they are reported.", `["OUTPUT_SCHEMA_VIOLATION"]`), false},
).called("retry").
	about("How often a failed attempt is repeated, and after which pause: initial_interval times backoff_coefficient for every further attempt, " +
		"at most max_interval, less its jitter. Used by step, llm_call and tool_call nodes, and by agent_delegate nodes when a host reports a failure.")

func interval(noun string) *shape { return text(noun).or(`write a text such as "500ms" or "30s"`) }

// common are the fields of every node but its config. The type is checked before the other fields.
var common = []member{
	{"id", filled("the id of a node").called("id").
		about("A name that no other node of the workflow has. Edges, switch targets and branch entries refer to it."), true},
	{"type", (&shape{noun: "the type of a node", any: true}).
		about("start and end frame a run. step, llm_call and tool_call do work; agent_delegate hands it to another agent, subworkflow to another workflow. " +
			"switch chooses the next node, parallel starts several branches, interrupt asks a person, wait waits, set_state computes."), true},
	{"retry", retryShape, false},
	{"timeout", filled("a timeout").or(`write a text such as "30s"`).called("timeout").
		about("How long one attempt may take: digits and a unit of ms, s, m or h. Used by step, llm_call, tool_call and agent_delegate nodes.", `"30s"`, `"2m"`), false},
	{"metadata", free("metadata").called("metadata").
		about("Notes for people and tools, for instance a label. The engine reads prompt_templates (llm_call), argument_templates (tool_call), skills and knowledge (nodes of agents) and, in tests and with the profile demo, demo_output. It is part of the definition hash."), false},
}

// anyNode has the fields of every node, whatever its type.
var anyNode = free("a node").fields(common...).called("node").
	about("A node of the workflow. Its type decides its behaviour and the fields of its config.")

// checkNode reports whether a node has the shape of its type. An unknown type is one finding at the node, of keyword
// oneOf, as the conformance vectors expect (spec: definition, 6.2).
func (c *shapeCheck) checkNode(n *jsonvalue.Node, at *path) bool {
	if n.Kind != jsonvalue.Object {
		c.checkKind(anyNode, n, at)
		return false
	}
	t := n.Get("type")
	if t != nil && t.Kind == jsonvalue.String {
		if known := typeNamed[Type(t.Str)]; known != nil {
			return c.check(known.node, n, at)
		}
	}
	var names []string
	for _, known := range nodeTypes {
		names = append(names, string(known.Name))
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
	others.members = append([]member{common[0]}, common[2:]...) // the type has its finding
	c.check(&others, n, at)
	return false
}
