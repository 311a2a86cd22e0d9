package lint_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/lint"
)

// review is a subworkflow that asks, and notes on the way.
const review = `
document: { schema: s, name: review, version: "1" }
state_schema: { type: object, properties: { notes: { type: array, reducer: append } } }
nodes:
  - { id: begin, type: start }
  - { id: note, type: set_state, config: { assignments: { notes: { literal: [seen] } } } }
  - { id: ask, type: interrupt, config: { prompt: "Good?", resume_schema: { type: object, properties: { good: { type: boolean } } } } }
  - { id: finish, type: end, config: { output_mapping: "{ good, notes }" } }
edges:
  - { source: __start__, target: begin }
  - { source: begin, target: note }
  - { source: note, target: ask }
  - { source: ask, target: finish }
`

const reviews = `
document: { schema: s, name: reviews, version: "1" }
x-workflows-engine: { uses: [map] }
state_schema: { type: object, properties: { notes: { type: array, reducer: append }, good: { type: boolean } } }
nodes:
  - { id: begin, type: start }
  - { id: both, type: parallel, config: { join: all, branches: [{ name: a, entry: one }, { name: b, entry: two }] } }
  - { id: one, type: subworkflow, config: { workflow_ref: review, input_mapping: { text: "1" } } }
  - { id: two, type: set_state, config: { assignments: { other: { literal: 2 } } } }
  - { id: finish, type: end }
edges:
  - { source: __start__, target: begin }
  - { source: begin, target: both }
  - { source: both, target: finish }
  - { source: one, target: finish }
  - { source: two, target: finish }
`

// TestStatesOfSubworkflows: where a subworkflow's whole state comes back and that is hardly meant, there is a warning.
func TestStatesOfSubworkflows(t *testing.T) {
	t.Parallel()
	const overwrite, leak = "PARALLEL_BRANCH_OVERWRITE ", "SUBWORKFLOW_STATE_LEAKS "
	other := `{ id: two, type: set_state, config: { assignments: { other: { literal: 2 } } } }`
	for _, tt := range []struct{ in, old, new, want string }{
		{"", "", "", ""},
		// Two branches.
		{"", other, `{ id: two, type: subworkflow, config: { workflow_ref: review, input_mapping: { text: "2" } } }`, overwrite + "/nodes/3: good"},
		{"", other, `{ id: two, type: set_state, config: { assignments: { good: { literal: true } } } }`, overwrite + "/nodes/3: good"},
		{"", `good: { type: boolean }`, `good: { type: boolean, reducer: overwrite }`, ""},
		{"", other, `{ id: two, type: subworkflow, map: { items: "[1]", collect: all }, config: { workflow_ref: review, input_mapping: { text: "2" } } }`, ""},
		{"", `join: all`, `join: any`, ""},
		// A list that comes back.
		{"", `text: "1" }`, `text: "1", notes: { jq: .notes } }`, leak + "/nodes/2/config/input_mapping/notes: notes"},
		{"", `id: one, type: subworkflow,`, `id: one, type: subworkflow, map: { items: "[1]", collect: all },`, ""},
		// What only the subworkflow needs.
		{"{ good, notes }", "", "{ good }", leak + "/nodes/2/config/workflow_ref: notes"},
		{"{ good, notes }", "", ".", ""},
		// A state that takes nothing else.
		{"", `state_schema: { type: object, properties: { notes: { type: array, reducer: append }, good: { type: boolean }`,
			`state_schema: { type: object, additionalProperties: false, properties: { notes: { type: array, reducer: append }, text: {}, other: {}`,
			leak + "/nodes/2/config/workflow_ref: good"},
	} {
		doc, err := definition.ParseYAML([]byte(strings.Replace(reviews, tt.old, tt.new, 1)))
		child := review
		if tt.in != "" {
			child = strings.Replace(review, tt.in, tt.new, 1)
			doc, err = definition.ParseYAML([]byte(reviews))
		}
		if err != nil {
			t.Fatalf("%s: %v", tt.new, err)
		}
		_, findings := lint.Compile(doc, lint.Options{Subworkflow: func(string, string) *definition.Document {
			doc, err := definition.ParseYAML([]byte(child))
			if err != nil {
				t.Fatal(err)
			}
			return doc
		}})
		var got []string
		for _, f := range findings {
			if c := string(f.Code) + " "; c == overwrite || c == leak {
				_, name, _ := strings.Cut(tt.want, ": ")
				if !strings.Contains(f.Message, fmt.Sprintf("%q", name)) {
					t.Errorf("%s: %s", tt.new, f.Message)
				}
				got = append(got, c+f.At.Pointer+": "+name)
			}
		}
		if strings.Join(got, "\n") != tt.want {
			t.Errorf("%s: got %v\nwant %s", tt.new, got, tt.want)
		}
	}
}
