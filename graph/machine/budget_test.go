package machine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// heavy is a program that makes a sixth of what one evaluation may make.
const heavy = `("x" * 8e6 | ascii_upcase | length) > %d`

// inOneVisit are nodes, between start and end, of which one visit evaluates %d programs of the form in the second place.
func inOneVisit(kind string, n int) string {
	var parts []string
	program := func(i int) string { return strings.ReplaceAll(fmt.Sprintf(heavy, i), `"`, `\"`) }
	for i := range n {
		switch kind {
		case "switch":
			parts = append(parts, fmt.Sprintf(`{"when":"%s","target":"e"}`, program(9e6+i)))
		case "set_state":
			parts = append(parts, fmt.Sprintf(`"k%d":{"jq":"%s"}`, i, program(i)))
		default:
			parts = append(parts, fmt.Sprintf(`"k%d":"${ %s }"`, i, program(i)))
		}
	}
	list := strings.Join(parts, ",")
	node := ""
	switch kind {
	case "set_state":
		node = `{"id":"n","type":"set_state","config":{"assignments":{` + list + `}}}`
	case "switch":
		node = `{"id":"n","type":"switch","config":{"cases":[` + list + `],"default":"e"}}`
	case "agent_delegate":
		node = `{"id":"n","type":"agent_delegate","config":{"agent_id":"a","protocol":"a2a","input_mapping":{` + list + `}}}`
	case "subworkflow":
		node = `{"id":"n","type":"subworkflow","config":{"workflow_ref":"urn:c","input_mapping":{` + list + `}}}`
	}
	edges := `{"source":"__start__","target":"s"},{"source":"s","target":"n"},{"source":"n","target":"e"}`
	if kind == "switch" {
		edges = `{"source":"__start__","target":"s"},{"source":"s","target":"n"}`
	}
	return `{"document":{"schema":"urn:t","name":"w","version":"1"},"state_schema":{"type":"object"},
		"nodes":[{"id":"s","type":"start"},` + node + `,{"id":"e","type":"end"}],"edges":[` + edges + `]}`
}

// TestExpressionsOfAVisitShareABudget: a visit of a node takes no longer however many programs it evaluates. The program that meets
// the end is named.
func TestExpressionsOfAVisitShareABudget(t *testing.T) {
	t.Parallel()
	if soak.UnderRace {
		t.Skip("one goroutine computes: there is no race to find")
	}
	for _, kind := range []string{"set_state", "switch", "agent_delegate", "subworkflow"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			few := machine.Start(compile(t, inOneVisit(kind, 2)), machine.Config{ExecutionID: "x"}, nil, epoch)
			if few.Status() == machine.Failed {
				message, _, _ := few.Failure()
				t.Errorf("two programs: %s", message)
			}
			many := machine.Start(compile(t, inOneVisit(kind, 12)), machine.Config{ExecutionID: "x"}, nil, epoch)
			message, code, _ := many.Failure()
			if many.Status() != machine.Failed || code != string(problem.ExpressionLimit) || !strings.Contains(message, "together with the expressions of the node") {
				t.Errorf("twelve programs: %s, %s %s", many.Status(), code, message)
			}
		})
	}
}

// TestVisitsHaveTheirOwnBudgets: nodes one after the other, and those of branches, do not share one.
func TestVisitsHaveTheirOwnBudgets(t *testing.T) {
	t.Parallel()
	if soak.UnderRace {
		t.Skip("one goroutine computes: there is no race to find")
	}
	var nodes, branches, edges []string
	for i := range 12 {
		nodes = append(nodes, fmt.Sprintf(`{"id":"n%d","type":"set_state","config":{"assignments":{"k%d":{"jq":"%s"}}}}`,
			i, i, strings.ReplaceAll(fmt.Sprintf(heavy, i), `"`, `\"`)))
		if i < 6 {
			branches = append(branches, fmt.Sprintf(`{"name":"b%d","entry":"n%d"}`, i, i))
			edges = append(edges, fmt.Sprintf(`{"source":"n%d","target":"n6"}`, i))
		} else if i < 11 {
			edges = append(edges, fmt.Sprintf(`{"source":"n%d","target":"n%d"}`, i, i+1))
		}
	}
	src := `{"document":{"schema":"urn:t","name":"w","version":"1"},"state_schema":{"type":"object"},"nodes":[{"id":"s","type":"start"},
		{"id":"p","type":"parallel","config":{"join":"all","branches":[` + strings.Join(branches, ",") + `]}},` + strings.Join(nodes, ",") + `,{"id":"e","type":"end"}],
		"edges":[{"source":"__start__","target":"s"},{"source":"s","target":"p"},{"source":"p","target":"n6"},` + strings.Join(edges, ",") + `,{"source":"n11","target":"e"}]}`
	m := machine.Start(compile(t, src), machine.Config{ExecutionID: "x", Limits: machine.Limits{StretchUnits: 1 << 40}}, nil, epoch)
	if message, code, _ := m.Failure(); m.Status() != machine.Completed {
		t.Errorf("%s: %s %s", m.Status(), code, message)
	}
}
