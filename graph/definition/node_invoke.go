package definition

import (
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// SubworkflowConfig is the config of a subworkflow.
type SubworkflowConfig struct {
	// WorkflowRef and VersionPin are trimmed; a blank WorkflowRef fails the node.
	WorkflowRef  string
	VersionPin   string
	InputMapping *expr.Mapping
}

var inputMappingShape = free("input_mapping").called("input_mapping").
	about("The values that are passed on, by name. A value is a string \"${ PROGRAM }\" or an object {\"jq\": PROGRAM}, which are computed from the state, "+
		"or {\"literal\": VALUE} or any other value, which are passed unchanged.",
		`{"task": "${ .request }", "limit": {"literal": 5}, "tags": {"jq": "[.items[].tag]"}}`)

// subworkflowType is a node that runs another workflow.
func subworkflowType() NodeType {
	return NodeType{
		Name: Subworkflow, Output: OutputChild, Stub: StubOutput, Figure: FigureBox,
		Example:     `{"id": "pay", "type": "subworkflow", "config": {"workflow_ref": "refund", "input_mapping": {"amount": "${ .amount }"}}}`,
		description: "Runs another workflow. Its final state is combined with the state of this one.",
		config: objectOf("",
			member{"workflow_ref", filled("workflow_ref").about("The document name of the workflow, or its address."), true},
			member{"input_mapping", inputMappingShape, true},
			member{"version_pin", filled("version_pin").
				about("The definition hash that the workflow must have: 64 lower-case hexadecimal digits."), false},
		).about("The workflow, and its input."),
		extended: []extended{catchMember, compensateMember, mapMember, deadlineMember},
		Fill:     Fill{Fields: []string{"input_mapping"}, Hint: "only input_mapping of a subworkflow is evaluated"},
		compile:  (*config).subworkflow,
	}
}

func (x *config) subworkflow() {
	s := &SubworkflowConfig{
		WorkflowRef: expr.TrimSpace(x.text("workflow_ref")), VersionPin: expr.TrimSpace(x.text("version_pin")), InputMapping: x.mapping(),
	}
	x.v.node.Subworkflow = s
	if s.WorkflowRef == "" {
		x.fatal(problem.ConfigBlank, "workflow_ref", "workflow_ref is blank", "name the workflow to run")
	}
	if s.VersionPin != "" && !isHash(s.VersionPin) {
		x.fatal(problem.ConfigInvalid, "version_pin", "version_pin is not a definition hash, so nothing can match it",
			"write the 64 lower-case hexadecimal digits of the hash, or leave it out")
	}
}

func isHash(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}

// DelegateConfig is the config of an agent_delegate.
type DelegateConfig struct {
	AgentID      string // trimmed; blank fails the node
	Protocol     string
	InputMapping *expr.Mapping
}

// agentDelegateType is a node that hands a task to an agent.
func agentDelegateType() NodeType {
	return NodeType{
		Name: AgentDelegate, Executor: DelegateExecutor, Stub: StubOutput, Output: OutputAny, Figure: FigureBox,
		Performer: Performer{
			Field: "agent_id", Noun: "agent", Role: "agent", Class: "agent:", Result: "the agent's result",
			Label: func(config map[string]any) string { return trimmed(config["agent_id"]) },
		},
		Example:     `{"id": "research", "type": "agent_delegate", "config": {"agent_id": "researcher", "protocol": "sdk", "input_mapping": {"task": "${ .request }"}}}`,
		description: "Hands a task to another agent. Its output is combined with the state.",
		config: objectOf("",
			member{"agent_id", filled("agent_id").about("The name of the agent, as the operator has configured it."), true},
			member{"protocol", oneOf("protocol", "a2a", "mcp", "sdk").about("How the agent is reached."), true},
			member{"input_mapping", inputMappingShape, true},
		).about("The agent, its protocol, and its input."),
		extended: []extended{catchMember, compensateMember, heartbeatMember, queueMember, queueTimeoutMember, deadlineMember},
		Fill:     Fill{Fields: []string{"input_mapping"}, Hint: "only input_mapping of an agent_delegate is evaluated"},
		compile:  (*config).delegate,
	}
}

// trimmed returns a string without space around it, "" for any other value.
func trimmed(v any) string {
	s, _ := v.(string)
	return strings.TrimSpace(s)
}

func (x *config) delegate() {
	d := &DelegateConfig{AgentID: expr.TrimSpace(x.text("agent_id")), Protocol: x.text("protocol"), InputMapping: x.mapping()}
	x.v.node.Delegate = d
	if d.AgentID == "" {
		x.fatal(problem.ConfigBlank, "agent_id", "agent_id is blank", "name the agent to call")
	}
}

// mapping compiles an input_mapping. A member that is wrong fails the node when the mapping is evaluated.
func (x *config) mapping() *expr.Mapping {
	raw, _ := x.raw["input_mapping"].(map[string]any)
	m, problems := expr.CompileMapping(raw)
	n, at := x.json.Get("input_mapping"), x.at.member("input_mapping")
	for _, name := range jsonvalue.Keys(raw) {
		if err, wrong := problems[name]; wrong {
			x.c.fatal(problem.ExpressionInvalid, n.Get(name), at.member(name), x.v, err.Error(), hintOf(err))
		}
	}
	return m
}
