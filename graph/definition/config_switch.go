package definition

import (
	"fmt"

	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// switchNode compiles a switch (spec: execution, 5.1). A wrong case is a fault of the node only if there is no other way
// out: cases are tried in order, a case whose program fails ends the run, one whose target is unknown ends it when chosen.
func (x *config) switchNode() {
	s := &SwitchConfig{Default: x.text("default")}
	x.v.node.Switch = s
	var faults []problem.Finding
	stopped := false
	at := x.at.member("cases")
	var cases []*jsonvalue.Node // a loop needs none
	if n := x.json.Get("cases"); n != nil {
		cases = n.Elements
	}
	for i, n := range cases {
		when, target, place := n.Get("when"), n.Get("target"), at.element(i)
		if expr.TrimSpace(when.Str) == "" {
			x.c.warn(problem.ConfigBlank, when, place.member("when"), x.v, "a case with a blank condition is skipped",
				"write a jq condition, or use default")
			continue
		}
		p, f := x.c.jq(when, place.member("when"), x.v)
		if f != nil {
			f.Severity = problem.SeverityWarning
			faults = append(faults, *f)
			stopped = true
		} else {
			x.c.lintCondition(p, when, place.member("when"), x.v)
		}
		s.Cases = append(s.Cases, SwitchCase{When: p, Target: target.Str})
		if f := x.way(target.Str, "target", place, n.Get("target"), stopped); f != nil {
			faults = append(faults, *f)
		}
	}
	if s.Default != "" {
		if f := x.way(s.Default, "default", x.at, x.json.Get("default"), stopped); f != nil {
			faults = append(faults, *f)
		}
	} else if x.v.json.Get("loop") != nil && len(s.Cases) == 0 {
		x.c.fail(problem.SwitchDefault, x.json, x.at, x.v, "nothing says where the run goes on when the loop is over",
			`add "default": "<id of a node>"`)
	} else {
		f := finding(problem.SwitchDefault, problem.SeverityWarning, x.json, x.at.pointer(), x.v,
			"without a default the run fails when no case matches", `add "default": "<id of a node>"`)
		if len(s.Cases) == 0 {
			f.Message = "no case can match, and there is no default"
		}
		if len(faults) == 0 {
			faults = append(faults, f)
		} else {
			x.c.findings = append(x.c.findings, f)
		}
	}
	x.v.blocked = len(x.v.ways) == 0
	x.loop()
	for _, f := range faults {
		x.c.fault(f, x.v)
	}
}

// way follows one target; one behind a case that always fails is unreachable.
func (x *config) way(id, name string, place *path, n *jsonvalue.Node, unreachable bool) *problem.Finding {
	if target := x.c.byID[id]; target != nil {
		x.v.targets = append(x.v.targets, target)
		if !unreachable {
			x.v.ways = append(x.v.ways, target)
		}
		return nil
	}
	if x.c.named(id) {
		return nil
	}
	x.c.danglingEdge, x.v.astray = true, true
	choice := "this case"
	if name == "default" {
		choice = "the default"
	}
	f := finding(problem.UnknownNode, problem.SeverityWarning, n, place.member(name).pointer(), x.v,
		fmt.Sprintf("there is no node %q: a run that takes %s fails", clip(id), choice), x.c.suggest(id))
	return &f
}
