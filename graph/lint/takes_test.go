package lint_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/lint"
)

// inputs are values of each kind, in the order of kinds, with which functions of that kind succeed.
var inputs = [][]string{
	{`null`}, {`true`, `false`}, {`0`, `1`, `1.5`}, {`""`, `"a"`, `"1"`, `"2015-03-05T23:51:47Z"`, `"2015"`},
	{`[]`, `[1]`, `["a"]`, `[[1, 2]]`, `[{"key": "a", "value": 1}]`, `[2024, 1, 1, 1, 1, 1, 1, 1]`}, {`{}`, `{"a": 1}`, `{"a": "x"}`, `{"a": [1]}`, `{"a": {"key": "k"}}`},
}

// arguments are those of functions that take others than the default.
var arguments = map[string]string{
	"flatten/1": "1", "split/2": `"a"; null`, "test/2": `"a"; "g"`, "match/2": `"a"; "g"`, "sub/3": `"a"; "b"; "g"`, "gsub/3": `"a"; "b"; "g"`,
	"sub/2": `"a"; "b"`, "gsub/2": `"a"; "b"`, "strftime/1": `"%Y"`, "strptime/1": `"%Y"`, "has/1": `0, "a"`,
	"all/1": ".", "any/1": ".", "group_by/1": ".", "map/1": ".", "map_values/1": ".", "max_by/1": ".", "min_by/1": ".", "sort_by/1": ".",
	"unique_by/1": ".", "with_entries/1": ".",
}

// TestKindsThatFunctionsTake: a function fails for every kind that it is said not to take, and succeeds for some value of each other.
func TestKindsThatFunctionsTake(t *testing.T) {
	t.Parallel()
	for call, taken := range lint.Takes() {
		name, count, _ := strings.Cut(call, "/")
		programs := []string{name}
		if count != "0" {
			list := arguments[call]
			if list == "" {
				list = `"a"`
			}
			programs = nil
			for each := range strings.SplitSeq(list, ", ") {
				programs = append(programs, fmt.Sprintf("%s(%s)", name, each))
			}
		}
		for kind, values := range inputs {
			succeeded := ""
			for _, src := range programs {
				p, err := expr.Compile(".v | [" + src + "]")
				if err != nil {
					t.Fatalf("%s: %v", src, err)
				}
				for _, value := range values {
					if _, err := p.EvalAt(map[string]any{"v": decode(t, value)}, expr.Env{Now: time.Unix(1e9, 0)}); err == nil {
						succeeded = value + " | " + src
					}
				}
			}
			if taken[kind] != (succeeded != "") {
				t.Errorf("%s: %q succeeded, and the kind counts as taken: %v", call, succeeded, taken[kind])
			}
		}
	}
}
