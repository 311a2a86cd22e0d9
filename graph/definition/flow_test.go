package definition_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// summary writes findings as "<severity> <code> <pointer>".
func summary(findings problem.Findings) string {
	var lines []string
	for _, f := range findings {
		lines = append(lines, fmt.Sprintf("%s %s %s", f.Severity, f.Code, f.At.Pointer))
	}
	return strings.Join(lines, "\n")
}

func trimLines(s string) string {
	var lines []string
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

const badStep = `{"id":"a","type":"step","config":{"handler":"a"},"timeout":"soon"}`

// TestFaultsAreErrorsOnlyWhereUnavoidable holds the rule about severities: a fault that every run meets refuses the
// document, one that a run can avoid does not.
func TestFaultsAreErrorsOnlyWhereUnavoidable(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, base, patch, want string }{
		{
			"on the only way", "linear", `set /nodes/1/timeout "soon"`,
			`error DURATION_INVALID /nodes/1/timeout`,
		},
		{
			"on one of three ways", "routing", `set /nodes/5/timeout "soon"`,
			`warning DURATION_INVALID /nodes/5/timeout`,
		},
		{
			"on all ways", "routing", "set /nodes/4/timeout \"soon\"\nset /nodes/5/timeout \"later\"",
			`error DURATION_INVALID /nodes/4/timeout
			 error DURATION_INVALID /nodes/5/timeout`,
		},
		{
			"on a node that no run reaches", "linear",
			"set /nodes/- {\"id\":\"x\",\"type\":\"step\",\"config\":{\"handler\":\"x\"},\"timeout\":\"soon\"}\nset /edges/- {\"source\":\"x\",\"target\":\"end\"}",
			`warning GRAPH_UNREACHABLE_NODE /nodes/3
			 warning DURATION_INVALID /nodes/3/timeout`,
		},
		{
			"on a branch of all", "parallel", `set /nodes/2 ` + badStep,
			`error DURATION_INVALID /nodes/2/timeout`,
		},
		{
			"on a branch of any", "parallel", "set /nodes/2 " + badStep + "\nset /nodes/1/config/join \"any\"",
			`warning DURATION_INVALID /nodes/2/timeout`,
		},
		{
			"on two branches of two of three", "parallel",
			"set /nodes/2 " + badStep + "\nset /nodes/3/timeout \"soon\"\nset /nodes/1/config/join \"n_of_m\"\nset /nodes/1/config/n 2",
			`error DURATION_INVALID /nodes/2/timeout
			 error DURATION_INVALID /nodes/3/timeout`,
		},
		{
			"on one branch of any, while another fault is met", "parallel",
			"set /nodes/2 " + badStep + "\nset /nodes/1/config/join \"any\"\nset /nodes/6/config {\"output_mapping\":\".[\"}",
			`warning DURATION_INVALID /nodes/2/timeout
			 error EXPRESSION_INVALID /nodes/6/config/output_mapping`,
		},
		{
			"too large an n where it can be avoided", "routing", avoidableParallel,
			`warning PARALLEL_BRANCH_COUNT /nodes/7/config/n`,
		},
		{
			"a switch with one good way", "routing",
			"set /nodes/2/config/cases/0/when \".[\"\nset /nodes/2/config/default \"nobody\"",
			// The first case always fails, so nothing behind it counts.
			`error EXPRESSION_INVALID /nodes/2/config/cases/0/when
			 error UNKNOWN_NODE /nodes/2/config/default`,
		},
		{
			"a switch whose second case fails", "routing", `set /nodes/2/config/cases/1/when ".["`,
			`warning EXPRESSION_INVALID /nodes/2/config/cases/1/when`,
		},
		{
			"a switch without any way", "routing",
			"set /nodes/2/config {\"cases\":[{\"when\":\" \",\"target\":\"ticket\"}]}\nset /nodes/- {\"id\":\"x\",\"type\":\"switch\",\"config\":{\"cases\":[{\"when\":\".\",\"target\":\"review\"}],\"default\":\"search\"}}\nset /edges/1/target \"classify\"",
			`error SWITCH_WITHOUT_DEFAULT /nodes/2/config
			 warning CONFIG_BLANK /nodes/2/config/cases/0/when
			 warning GRAPH_UNREACHABLE_NODE /nodes/7`,
		},
		{
			"a resume_schema that nobody can satisfy", "routing", `set /nodes/3/config/resume_schema {"enum":[]}`,
			`warning SCHEMA_INVALID /nodes/3/config/resume_schema/enum`,
		},
		{
			"a loop that a run can avoid", "routing", `set /edges/5/target "search"`,
			`warning GRAPH_ENDLESS_LOOP /nodes/5`,
		},
		{
			"a loop of two that a run can avoid", "routing",
			"set /edges/5/target \"more\"\nset /nodes/- {\"id\":\"more\",\"type\":\"step\",\"config\":{\"handler\":\"x\"}}\nset /edges/- {\"source\":\"more\",\"target\":\"search\"}",
			`warning GRAPH_ENDLESS_LOOP /nodes/5`,
		},
		{
			"no loop can be left", "routing", "set /edges/4/target \"classify\"\nset /edges/5/target \"classify\"",
			`error GRAPH_ENDLESS_LOOP /nodes/1`,
		},
		{
			"a loop whose only way out leads nowhere", "routing", `set /nodes/2/config {"cases":[{"when":".x","target":"nobody"}],"default":"classify"}`,
			`error UNKNOWN_NODE /nodes/2/config/cases/0/target`,
		},
		{
			"a loop whose default leads nowhere", "routing", `set /nodes/2/config {"cases":[{"when":".x","target":"classify"}],"default":"nobody"}`,
			`error UNKNOWN_NODE /nodes/2/config/default`,
		},
		{
			"a loop that a run leaves for an edge to nowhere", "routing", `set /edges/3/target "nobody"
			 set /nodes/2/config {"cases":[{"when":".x","target":"classify"}],"default":"review"}`,
			`error UNKNOWN_NODE /edges/3/target`,
		},
		{
			"an avoidable loop whose only way out leads nowhere", "routing",
			"set /edges/5/target \"more\"\nset /nodes/- {\"id\":\"more\",\"type\":\"switch\",\"config\":{\"cases\":[{\"when\":\".x\",\"target\":\"nobody\"}],\"default\":\"search\"}}",
			`warning UNKNOWN_NODE /nodes/7/config/cases/0/target`,
		},
		{
			"an edge to nowhere on an avoidable way", "routing", `set /edges/5/target "nobody"`,
			`warning UNKNOWN_NODE /edges/5/target`,
		},
		{
			"an edge to nowhere on a branch of any", "parallel", "set /edges/3/target \"nobody\"\nset /nodes/1/config/join \"any\"",
			`error UNKNOWN_NODE /edges/3/target`,
		},
		{
			"a misspelt source", "linear", `set /edges/2/source "gret"`,
			`error UNKNOWN_NODE /edges/2/source`,
		},
		{
			"a misspelt join target", "parallel", `set /edges/2/target "merg"`,
			`error UNKNOWN_NODE /edges/2/target`,
		},
		{
			"a misspelt entry edge", "linear", `set /edges/0/target "strat"`,
			`error UNKNOWN_NODE /edges/0/target`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, _, findings := compileValue(t, patch(t, base(t, tt.base), tt.patch))
			if got, want := summary(findings), trimLines(tt.want); got != want {
				t.Errorf("got\n%s\nwant\n%s", list(findings), want)
			}
		})
	}
}

const avoidableParallel = `
set /nodes/- {"id":"p","type":"parallel","config":{"join":"n_of_m","n":2,"branches":[{"name":"x","entry":"x"}]}}
set /nodes/- {"id":"x","type":"step","config":{"handler":"x"}}
set /edges/- {"source":"p","target":"end"}
set /edges/- {"source":"x","target":"end"}
set /edges/5/target "p"
`

// a switch on the first branch of the parallel base, and a node behind it.
const branchSwitch = `
set /nodes/2 {"id":"a","type":"switch","config":{"cases":[{"when":".x","target":"more"}],"default":"merge"}}
set /nodes/- {"id":"more","type":"step","config":{"handler":"x"}}
set /edges/- {"source":"more","target":"merge"}
del /edges/3
`

func TestBranches(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, patch, want string }{
		{"a switch without a static edge", branchSwitch, ``},
		{"a switch that may run into the end", branchSwitch + `set /edges/6/target "end"`, `warning PARALLEL_BRANCH_BROKEN /nodes/1/config/branches/0/entry`},
		{"a switch that may go back to the fork", branchSwitch + `set /edges/6/target "fork"`, `warning PARALLEL_BRANCH_BROKEN /nodes/1/config/branches/0/entry`},
		{"a switch that may loop", branchSwitch + `set /edges/6/target "a"`, ``},
		{
			"a switch that never joins", branchSwitch + "set /edges/6/target \"a\"\nset /nodes/2/config/default \"more\"",
			`error PARALLEL_BRANCH_BROKEN /nodes/1/config/branches/0/entry`,
		},
		{
			"a switch that never joins, with join any",
			branchSwitch + "set /edges/6/target \"a\"\nset /nodes/2/config/default \"more\"\nset /nodes/1/config/join \"any\"",
			`warning PARALLEL_BRANCH_BROKEN /nodes/1/config/branches/0/entry`,
		},
		{
			"a switch whose only way to the join target leads nowhere",
			branchSwitch + "set /edges/6/target \"a\"\nset /nodes/2/config/default \"nobody\"", `error UNKNOWN_NODE /nodes/2/config/default`,
		},
		{
			"a switch whose only way to the join target leads nowhere, with join any",
			branchSwitch + "set /edges/6/target \"a\"\nset /nodes/2/config/default \"nobody\"\nset /nodes/1/config/join \"any\"",
			`warning UNKNOWN_NODE /nodes/2/config/default`,
		},
		{"straight into the fork again", `set /edges/3/target "fork"`, `error PARALLEL_BRANCH_BROKEN /nodes/1/config/branches/0/entry`},
		{
			"two loops", "set /edges/3/target \"a\"\nset /edges/4/target \"b\"",
			`error PARALLEL_BRANCH_BROKEN /nodes/1/config/branches/0/entry
			 error PARALLEL_BRANCH_BROKEN /nodes/1/config/branches/1/entry`,
		},
		{"a broken branch is an error even with join any", "set /edges/3/target \"end\"\nset /nodes/1/config/join \"any\"", `error PARALLEL_BRANCH_BROKEN /nodes/1/config/branches/0/entry`},
		{"a shared tail", `set /edges/3/target "b"`, ``},
		{
			"an interrupt on a nested branch", nestedTail + `set /nodes/7 {"id":"x","type":"interrupt","config":{"prompt":"?","resume_schema":{"type":"object"}}}`,
			`error INTERRUPT_IN_PARALLEL_BRANCH /nodes/7`,
		},
		{
			"an interrupt that two branches share is one finding",
			"set /nodes/2 {\"id\":\"a\",\"type\":\"interrupt\",\"config\":{\"prompt\":\"?\",\"resume_schema\":{\"type\":\"object\"}}}\nset /edges/4/target \"a\"",
			`error INTERRUPT_IN_PARALLEL_BRANCH /nodes/2`,
		},
		{"every branch is empty", `set /nodes/1/config/branches [{"name":"a","entry":"merge"}]`,
			`warning PARALLEL_BRANCH_EMPTY /nodes/1/config/branches/0/entry
			 warning GRAPH_UNREACHABLE_NODE /nodes/2
			 warning GRAPH_UNREACHABLE_NODE /nodes/3
			 warning GRAPH_UNREACHABLE_NODE /nodes/4`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, _, findings := compileValue(t, patch(t, base(t, "parallel"), tt.patch))
			got, want := strings.Split(summary(findings), "\n"), strings.Split(trimLines(tt.want), "\n")
			if !sameLines(got, want) {
				t.Errorf("got\n%s\nwant\n%s", list(findings), trimLines(tt.want))
			}
		})
	}
}

func sameLines(a, b []string) bool {
	count := map[string]int{}
	for _, s := range a {
		count[s]++
	}
	for _, s := range b {
		count[s]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}

func TestAllowInterruptInBranch(t *testing.T) {
	t.Parallel()
	doc := patch(t, base(t, "parallel"), `set /nodes/2 {"id":"a","type":"interrupt","config":{"prompt":"?","resume_schema":{"type":"object"}}}`)
	d, err := definition.FromValue(doc)
	if err != nil {
		t.Fatal(err)
	}
	if p, findings := definition.Compile(d, definition.Options{AllowInterruptInBranch: true}); p == nil {
		t.Errorf("refused\n%s", list(findings))
	}
	_, findings := definition.Compile(d, definition.Options{})
	if len(findings) != 1 {
		t.Fatalf("got\n%s", list(findings))
	}
	f := findings[0]
	if f.Keyword != "profile" || f.SchemaPath != "#/profile/interrupt-in-parallel-branch" ||
		f.Params["code"] != "INTERRUPT_IN_PARALLEL_BRANCH" || f.At.NodeID != "a" {
		t.Errorf("got %+v", f)
	}
}

// TestW25_MalformedBranchGraphs shows that branches which make the reference engine throw are findings.
func TestW25_MalformedBranchGraphs(t *testing.T) {
	t.Parallel()
	for _, m := range mutations {
		if m.verdict != exception {
			continue
		}
		_, _, findings := compileValue(t, patch(t, base(t, m.base), m.patch))
		if !m.program && !findings.HasErrors() {
			t.Errorf("%s: no finding", m.title())
		}
	}
}

// TestW26_BadSchemasAndTimeoutsAreFindings shows that what makes the reference engine throw is answered up front.
func TestW26_BadSchemasAndTimeoutsAreFindings(t *testing.T) {
	t.Parallel()
	for lines, want := range map[string]string{
		`set /state_schema {"type":"objekt"}`:                                         `error STATE_SCHEMA_INVALID /state_schema/type`,
		`set /state_schema {"$schema":"http://json-schema.org/draft-07/schema#"}`:     `warning SCHEMA_PORTABILITY /state_schema/$schema`,
		`set /state_schema {"properties":{"a":{"$ref":"http://127.0.0.1:1/s.json"}}}`: `error STATE_SCHEMA_INVALID /state_schema/properties/a/$ref`,
		`set /state_schema {"properties":{"a":{"pattern":"a(?=b"},"b":{"enum":[]}}}`:  "error STATE_SCHEMA_INVALID /state_schema/properties/a/pattern\nerror STATE_SCHEMA_INVALID /state_schema/properties/b/enum",
		`set /nodes/1/timeout "soon"`:                                                 `error DURATION_INVALID /nodes/1/timeout`,
		`set /nodes/0/config {"input_schema":{"type":"objekt"}}`:                      `error SCHEMA_INVALID /nodes/0/config/input_schema/type`,
		`set /nodes/2/config {"output_schema":{"required":"a"}}`:                      `error SCHEMA_INVALID /nodes/2/config/output_schema/required`,
	} {
		_, _, findings := compileValue(t, patch(t, base(t, "linear"), lines))
		if got := summary(findings); got != want {
			t.Errorf("%s: got\n%s", lines, list(findings))
		}
	}
}

// TestW33_HiddenMembers shows that what a hash does not cover is refused.
func TestW33_HiddenMembers(t *testing.T) {
	t.Parallel()
	text := strings.Replace(astral, `"metadata":{`, `"metadata":{"__proto__":{"hidden":true},`, 1)
	_, err := definition.Parse([]byte(text))
	checkRefusal(t, err, []string{"DEFINITION_RESERVED_MEMBER 1:"})
}

// TestAnotherWordForAMember: a case in other words is renamed member by member, with one finding for each.
func TestAnotherWordForAMember(t *testing.T) {
	t.Parallel()
	doc, err := definition.Parse(jsonvalue.Canonical(patch(t, base(t, "routing"), `set /nodes/2/config/cases/1 {"if":".x","then":"ticket"}`)))
	if err != nil {
		t.Fatal(err)
	}
	_, findings := definition.Compile(doc, definition.Options{})
	var hints []string
	for _, f := range findings {
		hints = append(hints, f.Hint)
	}
	want := []string{`write "when"`, `write "target"`}
	if !slices.Equal(hints, want) {
		t.Errorf("hints %q, want %q", hints, want)
	}
}
