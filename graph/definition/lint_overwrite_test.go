package definition_test

import (
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// TestOverwriteWarnings: two branches that set the same key of the state, where the join would lose a value.
func TestOverwriteWarnings(t *testing.T) {
	t.Parallel()
	set := func(node, id, assignments string) string {
		return "set /nodes/" + node + ` {"id":"` + id + `","type":"set_state","config":{"assignments":{` + assignments + `}}}` + "\n"
	}
	llm := func(node, id, properties string) string {
		return "set /nodes/" + node + ` {"id":"` + id + `","type":"llm_call","config":{"model":"m","output_schema":{"type":"object","properties":{` + properties + `}}}}` + "\n"
	}
	const jq = `"k":{"jq":".x"}`
	for _, tt := range []struct{ name, patch, want string }{
		{"one key", set("2", "a", jq) + set("3", "b", jq), `/nodes/3/config/assignments/k the branches "one" and "two"`},
		{"one warning for three branches", set("2", "a", jq) + set("3", "b", jq) + set("4", "c", jq), `/nodes/3/config/assignments/k the branches "one" and "two"`},
		{"what models answer", llm("2", "a", `"k":{}`) + llm("4", "c", `"k":{}`), `/nodes/4/config/output_schema/properties/k the branches "one" and "three"`},
		{"a model and an assignment", llm("2", "a", `"k":{}`) + set("4", "c", jq), `/nodes/4/config/assignments/k the branches "one" and "three"`},
		{"a tail of two branches", set("3", "b", jq) + `set /edges/3/target "b"`, `/nodes/3/config/assignments/k the branches "one" and "two"`},
		{"n_of_m", set("2", "a", jq) + set("3", "b", jq) + "set /nodes/1/config/join \"n_of_m\"\nset /nodes/1/config/n 2", `/nodes/3/config/assignments/k the branches "one" and "two"`},
		{"other literals", set("2", "a", `"k":{"literal":1}`) + set("3", "b", `"k":{"literal":2}`), `/nodes/3/config/assignments/k the branches "one" and "two"`},
		{
			"a nested block", nestedTail + set("7", "x", jq) + set("4", "c", jq),
			`/nodes/4/config/assignments/k the branches "one" and "three"`,
		},

		{"the same literals", set("2", "a", `"k":{"literal":"done"}`) + set("3", "b", `"k":{"literal":"done"}`), ``},
		{"other keys", set("2", "a", jq) + set("3", "b", `"l":{"jq":".x"}`), ``},
		{"a reducer", set("2", "a", `"found":{"jq":".x"}`) + set("3", "b", `"found":{"jq":".x"}`), ``},
		{"an overwrite that is meant", set("2", "a", jq) + set("3", "b", jq) + `set /state_schema/properties/k {"reducer":"overwrite"}`, ``},
		{"any", set("2", "a", jq) + set("3", "b", jq) + `set /nodes/1/config/join "any"`, ``},
		{"twice on one branch", set("2", "a", jq) + set("3", "b", jq) + "set /edges/3/target \"b\"\nset /nodes/1/config/branches/1/entry \"c\"\nset /nodes/1/config/branches/2 {\"name\":\"three\",\"entry\":\"d\"}\n" +
			`set /nodes/- {"id":"d","type":"step","config":{"handler":"h"}}` + "\n" + `set /edges/- {"source":"d","target":"merge"}`, ``},
		{"behind the join", set("2", "a", `"phase":{"jq":".x"}`), ``},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, _, findings := compileValue(t, patch(t, base(t, "parallel"), tt.patch))
			var got []string
			for _, f := range findings {
				if f.Code == problem.ParallelOverwrite {
					got = append(got, f.At.Pointer+" "+f.Message)
					if f.At.NodeID == "" || !strings.Contains(f.Hint, "/state_schema/properties/k") {
						t.Errorf("node %q, hint %q", f.At.NodeID, f.Hint)
					}
				}
			}
			if tt.want == "" && len(got) > 0 || tt.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], tt.want)) {
				t.Errorf("got\n%s\nwant %s", list(findings), tt.want)
			}
		})
	}
}
