package definition

import (
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

func (x *config) subworkflow() {
	s := &SubworkflowConfig{
		WorkflowRef: expr.TrimSpace(x.text("workflow_ref")), VersionPin: expr.TrimSpace(x.text("version_pin")), InputMapping: x.mapping(),
	}
	x.v.node.Subworkflow = s
	x.unfilled("only input_mapping of a subworkflow is evaluated", "input_mapping")
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

func (x *config) delegate() {
	d := &DelegateConfig{AgentID: expr.TrimSpace(x.text("agent_id")), Protocol: x.text("protocol"), InputMapping: x.mapping()}
	x.v.node.Delegate = d
	x.unfilled("only input_mapping of an agent_delegate is evaluated", "input_mapping")
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
		member, place := n.Get(name), at.member(name)
		err, wrong := problems[name]
		if !wrong {
			x.c.lintMapping(member, place, x.v)
			continue
		}
		x.c.fatal(problem.ExpressionInvalid, member, place, x.v, err.Error(), hintOf(err))
	}
	return m
}
