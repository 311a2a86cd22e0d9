package lint_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/lint"
)

// shipping is a subworkflow, and parent runs it, once and for each of a list.
const shipping = `
document: { schema: s, name: shipping, version: "1" }
state_schema:
  type: object
  required: [weight]
  properties: { weight: { type: integer }, carrier: { enum: [road, rail] }, parcel: { type: object, properties: { number: { type: string } } } }
nodes:
  - id: begin
    type: start
    config:
      input_schema:
        type: object
        required: [address]
        properties: { weight: { type: integer }, address: { type: string }, carrier: {} }
  - { id: label, type: set_state, config: { assignments: { label: { jq: ".address + .remark" } } } }
  - { id: finish, type: end, config: { output_mapping: "{ label, number: .parcel.number }" } }
edges:
  - { source: __start__, target: begin }
  - { source: begin, target: label }
  - { source: label, target: finish }
`

// closedShipping takes no other input than it declares.
const closedShipping = `
document: { schema: s, name: closed-shipping, version: "1" }
state_schema: { type: object }
nodes:
  - { id: begin, type: start, config: { input_schema: { type: object, properties: { number: {} }, additionalProperties: false } } }
  - { id: finish, type: end, config: { output_mapping: "{ number }" } }
edges:
  - { source: __start__, target: begin }
  - { source: begin, target: finish }
`

const parent = `
x-workflows-engine: { uses: [map] }
document: { schema: s, name: parent, version: "1" }
state_schema: { type: object, properties: { street: { type: string }, kilos: { type: integer }, orders: { type: array, items: { type: object, properties: { weight: { type: integer } } } } } }
nodes:
  - { id: begin, type: start }
  - id: ship
    type: subworkflow
    config: { workflow_ref: "urn:example:shipping", input_mapping: { address: { jq: .street }, weight: "${ .kilos }", carrier: rail } }
  - id: each
    type: subworkflow
    map: { items: .orders, as: order, collect: parcels }
    config: { workflow_ref: shipping, input_mapping: { weight: { jq: .order.weight }, address: { literal: here } } }
  - { id: finish, type: end, config: { output_mapping: "{ label, parcel, all: [.parcels[].number] }" } }
edges:
  - { source: __start__, target: begin }
  - { source: begin, target: ship }
  - { source: ship, target: each }
  - { source: each, target: finish }
`

func TestSubworkflows(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ old, new, want string }{
		{``, ``, ``},
		// What it brings.
		{`{ label, parcel`, `{ lable, parcel`, `EXPRESSION_PATH_UNKNOWN /nodes/3/config/output_mapping: did you mean "label"?`},
		{`{ label, parcel`, `{ label: .label, parcel: .parcel.numbr`, `EXPRESSION_PATH_UNKNOWN /nodes/3/config/output_mapping: did you mean "number"?`},
		{`{ label, parcel`, `{ carrier: (.carrier == \"rial\")`, `EXPRESSION_COMPARISON_CONSTANT /nodes/3/config/output_mapping: did you mean "rail"?`},
		{`.parcels[].number`, `.parcels[].nubmer`, `EXPRESSION_PATH_UNKNOWN /nodes/3/config/output_mapping: did you mean "number"?`},
		{`.parcels[].number`, `.parcels[].labels`, ``},
		{`{ label, parcel`, `{ label, price`, ``},
		// What it is given.
		{`address: { jq: .street }`, `adress: { jq: .street }`, `INPUT_INVALID /nodes/1/config/input_mapping/adress/jq: did you mean "address"?`},
		{`address: { jq: .street }, `, ``, `INPUT_INVALID /nodes/1/config/input_mapping: give it a value here`},
		{`address: { jq: .street }`, `address: { jq: .kilos }`, `INPUT_INVALID /nodes/1/config/input_mapping/address/jq: `},
		{`address: { jq: .street }`, `address: { jq: .unknown }`, ``},
		{`weight: "${ .kilos }"`, `weight: "${ .street }"`, `INPUT_INVALID /nodes/1/config/input_mapping/weight: `},
		{`weight: "${ .kilos }"`, `weight: "3"`, `INPUT_INVALID /nodes/1/config/input_mapping/weight: `},
		{`weight: "${ .kilos }"`, `weight: 3`, ``},
		{`weight: "${ .kilos }", `, ``, `INPUT_INVALID /nodes/1/config/input_mapping: give it a value here`},
		{`carrier: rail`, `carrier: rial`, `INPUT_INVALID /nodes/1/config/input_mapping/carrier: did you mean "rail"?`},
		{`carrier: rail`, `remarks: rail`, ``},
		{`carrier: rail`, `remark: rail`, ``},
		{`carrier: rail`, `carier: rail`, `INPUT_INVALID /nodes/1/config/input_mapping/carier: did you mean "carrier"?`},
		{`{ jq: .order.weight }`, `{ jq: .order.wieght }`, `EXPRESSION_PATH_UNKNOWN /nodes/2/config/input_mapping/weight/jq: did you mean "weight"?`},
		{`{ literal: here }`, `{ literal: null }`, `INPUT_INVALID /nodes/2/config/input_mapping/address: `},
		{`workflow_ref: shipping, input_mapping: { weight: { jq: .order.weight }, address: { literal: here } }`,
			`workflow_ref: closed-shipping, input_mapping: { number: 3, remark: none }`, `INPUT_INVALID /nodes/2/config/input_mapping/remark: remove it, or declare it there`},
		// What is not at hand.
		{`ref: shipping, input_mapping: { weight`, `ref: elsewhere, input_mapping: { wieght`, ``},
	} {
		text := strings.Replace(parent, tt.old, tt.new, 1)
		doc, err := definition.ParseYAML([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", tt.new, err)
		}
		_, findings := lint.Compile(doc, lint.Options{Subworkflow: func(ref, pin string) *definition.Document {
			if pin != "" || !strings.HasSuffix(ref, "shipping") {
				return nil
			}
			text := shipping
			if ref == "closed-shipping" {
				text = closedShipping
			}
			child, err := definition.ParseYAML([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			return child
		}})
		var got []string
		for _, f := range findings {
			got = append(got, fmt.Sprintf("%s %s: %s", f.Code, f.At.Pointer, f.Hint))
		}
		if strings.Join(got, "\n") != tt.want {
			t.Errorf("%s: got %v\nwant %s", tt.new, got, tt.want)
		}
	}
}
