package definition

import (
	"fmt"

	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// SwitchConfig is the config of a switch.
type SwitchConfig struct {
	// Cases in order, those with a blank when or an empty target left out.
	Cases []SwitchCase
	// Default is "" if absent.
	Default string
}

// SwitchCase routes to Target if When is truthy. The target may not exist: the node then fails when it is chosen.
type SwitchCase struct {
	When   *expr.Program
	Target string
}

// switchType is a node that chooses the next one.
func switchType() NodeType {
	choice := objectOf("a switch case",
		member{"when", filled("the when of a switch case").
			about("A jq program over the state. Everything but false and null is true, also 0, \"\" and an empty array. "+
				"It should have one output: several outputs are always true.", `".intent == \"billing\" and .confidence > 0.8"`), true},
		member{"target", filled("the target of a switch case").about("The id of the next node."), true},
	).not(map[string]string{"condition": `write "when"`, "if": `write "when"`, "next": `write "target"`, "then": `write "target"`, "goto": `write "target"`, "to": `write "target"`})
	return NodeType{
		Name: Switch, Output: OutputNone, Instant: true, Figure: FigureChoice, Stub: StubNone,
		Example:     `{"id": "route", "type": "switch", "config": {"cases": [{"when": ".urgent", "target": "a"}], "default": "end"}}`,
		description: "Chooses the next node by the state. It needs no outgoing edge; its targets may lead back, which makes a loop.",
		config: objectOf("",
			member{"cases", listOf("cases", choice).
				about("The first case whose condition is true decides; later cases are not evaluated. A switch with a loop needs no cases."), false}, // see casesRule
			member{"default", filled("the default of a switch").
				about("The id of the next node if no case is true; the run fails if it is absent."), false},
		).about("The cases, in order."),
		extended: []extended{{member{"loop", loopShape, false}, ExtensionLoop}},
		rules:    []rule{casesRule{}},
		compile:  (*config).switchNode,
	}
}

// casesRule requires cases of a switch without a loop.
type casesRule struct{}

func (casesRule) check(c *shapeCheck, n *jsonvalue.Node, at *path) {
	config := n.Get("config")
	if n.Get("loop") != nil || config == nil || config.Kind != jsonvalue.Object {
		return
	}
	at = at.member("config")
	switch cases, s := config.Get("cases"), Switch.Info().config; {
	case cases == nil:
		c.report(config, at, "required", map[string]any{"missingProperty": "cases"},
			s.noun+` must have the field "cases"`, c.misspelt(s, config, "cases"))
	case cases.Kind == jsonvalue.Array && len(cases.Elements) == 0:
		c.report(cases, at.member("cases"), "minItems", map[string]any{"limit": 1.0}, "cases must have at least one element", "")
	}
}

func (casesRule) keywords() jsonvalue.Ordered {
	const description = "Cases are required without a loop."
	cases := jsonvalue.Ordered{{"description", description}, {"minItems", 1.0}}
	some := jsonvalue.Ordered{{"description", description}, {"required", []any{"cases"}}, {"properties", jsonvalue.Ordered{{"cases", cases}}}}
	return jsonvalue.Ordered{{"anyOf", []jsonvalue.Ordered{
		{{"required", []any{"loop"}}},
		{{"properties", jsonvalue.Ordered{{"config", some}}}},
	}}}
}

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
		x.c.fail(problem.SwitchDefault, x.json, x.at, x.v, "the target after the last round of the loop is missing",
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
