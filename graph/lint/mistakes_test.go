package lint_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/lint"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// mistakes change one place of testdata/order.yaml, which has no findings. want is "CODE pointer: hint", "" for a change that is right.
var mistakes = []struct{ old, new, want string }{
	// Members that nothing declares.
	{`if .confidence >`, `if .confidnce >`, `EXPRESSION_PATH_UNKNOWN /nodes/3/config/assignments/summary/jq: did you mean "confidence"?`},
	{`${ .customer } with`, `${ .custmer } with`, `EXPRESSION_PATH_UNKNOWN /nodes/1/config/user_prompt: did you mean "customer"?`},
	{`map(.price) | add`, `map(.pirce) | add`, `EXPRESSION_PATH_UNKNOWN /nodes/1/config/user_prompt: did you mean "price"?`},
	{`.address.street //`, `.address.stret //`, `EXPRESSION_PATH_UNKNOWN /nodes/1/config/user_prompt: did you mean "street"?`},
	{`.address.street //`, `.address.zip //`, `EXPRESSION_PATH_UNKNOWN /nodes/1/config/user_prompt: use country or street`},
	{`.address.street //`, `.addres.street //`, `EXPRESSION_PATH_UNKNOWN /nodes/1/config/user_prompt: did you mean "address"?`},
	{`select(.price > 10)`, `select(.priice > 10)`, `EXPRESSION_PATH_UNKNOWN /nodes/2/map/items: did you mean "price"?`},
	{`[.items[] | select`, `[.itmes[] | select`, `EXPRESSION_PATH_UNKNOWN /nodes/2/map/items: did you mean "items"?`},
	{`.colour == "red"`, `.color == "red"`, `EXPRESSION_PATH_UNKNOWN /nodes/4/config/cases/1/when: did you mean "colour"?`},
	{`any(.items[]; .colour == "red")`, `.items[0] as {shade: $c} | $c == "red"`, ``},
	{`any(.items[]; .colour == "red")`, `.items[0] as {culour: $c} | $c == "red"`, `EXPRESSION_PATH_UNKNOWN /nodes/4/config/cases/1/when: did you mean "colour"?`},
	{`any(.items[]; .colour == "red")`, `any(.items[] | .["colour"]; . == "red")`, ``},
	{`any(.items[]; .colour == "red")`, `any(.items[] | .["coulour"]; . == "red")`, `EXPRESSION_PATH_UNKNOWN /nodes/4/config/cases/1/when: did you mean "colour"?`},
	{`[$all[] | {price, size`, `[$all[] | {prize, size`, `EXPRESSION_PATH_UNKNOWN /nodes/4/config/cases/2/when: did you mean "price"?`},
	{`select(.price > 3)`, `select(.prise > 3)`, `EXPRESSION_PATH_UNKNOWN /nodes/4/config/cases/2/when: did you mean "price"?`},
	{`select(.price > 3)`, `select(.count > 3)`, `EXPRESSION_PATH_UNKNOWN /nodes/4/config/cases/2/when: use price or size`},
	{`.items as $all`, `.itmes as $all`, `EXPRESSION_PATH_UNKNOWN /nodes/4/config/cases/2/when: did you mean "items"?`},
	{`.quote.total > 100`, `.quote.totla > 100`, `EXPRESSION_PATH_UNKNOWN /nodes/4/config/cases/3/when: did you mean "total"?`},
	{`or .verdict ==`, `or .verdcit ==`, `EXPRESSION_PATH_UNKNOWN /nodes/4/config/cases/3/when: did you mean "verdict"?`},
	{`show: "{ customer,`, `show: "{ custumer,`, `EXPRESSION_PATH_UNKNOWN /nodes/5/show: did you mean "customer"?`},
	{`.items[0].price }`, `.items[0].pryce }`, `EXPRESSION_PATH_UNKNOWN /nodes/5/show: did you mean "price"?`},
	{`.items[0].price }`, `(.items | sort_by(.prcie) | last | .price) }`, `EXPRESSION_PATH_UNKNOWN /nodes/5/show: did you mean "price"?`},
	{`.items[0].price }`, `(reduce .items[] as $i (0; . + $i.prcie)) }`, `EXPRESSION_PATH_UNKNOWN /nodes/5/show: did you mean "price"?`},
	{`.items[0].price }`, `(.items[1:] | first | .prcie) }`, `EXPRESSION_PATH_UNKNOWN /nodes/5/show: did you mean "price"?`},
	{`for ${ .address.country }`, `for ${ .address.contry }`, `EXPRESSION_PATH_UNKNOWN /nodes/5/config/prompt: did you mean "country"?`},
	{`for ${ .address.country }`, `for ${ .customer.country }`, `EXPRESSION_PATH_UNKNOWN /nodes/5/config/prompt: `},
	{`items: "${ .items }"`, `items: "${ .itemes }"`, `EXPRESSION_PATH_UNKNOWN /nodes/7/config/arguments/items: did you mean "items"?`},
	{`{ jq: .address.country }`, `{ jq: .address.coutry }`, `EXPRESSION_PATH_UNKNOWN /nodes/7/config/arguments/country/jq: did you mean "country"?`},
	{`to: { jq: .customer }`, `to: { jq: .costumer }`, `EXPRESSION_PATH_UNKNOWN /nodes/8/config/input_mapping/to/jq: did you mean "customer"?`},
	{`"${ .summary }"`, `"${ .sumary }"`, `EXPRESSION_PATH_UNKNOWN /nodes/8/config/input_mapping/text: did you mean "summary"?`},
	{`.failure.message //`, `.failure.mesage //`, `EXPRESSION_PATH_UNKNOWN /nodes/9/config/assignments/summary/jq: did you mean "message"?`},
	{`// .remark //`, `// .remrak //`, `EXPRESSION_PATH_UNKNOWN /nodes/9/config/assignments/summary/jq: did you mean "remark"?`},
	{`total: .quote.total`, `total: .quote.totl`, `EXPRESSION_PATH_UNKNOWN /nodes/10/config/output_mapping: did you mean "total"?`},
	{`colours: [.items[].colour]`, `colours: [.items[].cloour]`, `EXPRESSION_PATH_UNKNOWN /nodes/10/config/output_mapping: did you mean "colour"?`},
	{`\(.customer)`, `\(.custommer)`, `EXPRESSION_PATH_UNKNOWN /nodes/3/config/assignments/notes/jq: did you mean "customer"?`},
	{`.items | length"`, `try .itmes catch 0 | length"`, `EXPRESSION_PATH_UNKNOWN /nodes/3/config/assignments/count/jq: did you mean "items"?`},
	{`collect: replies`, `collect: repleis`, `STATE_ASSIGNMENT /nodes/2/map/collect: did you mean "replies"?`},
	{`items: "[.items[] | select(.price > 10)]", as: article`, `items: .item, as: item`, `MAP_ITEMS_INVALID /nodes/2/map/items: item is a single item, while the node works on it; did you mean "items"?`},
	{`items: "[.items[] | select(.price > 10)]", as: article`, `items: ".item // []", as: item`, ``},
	{`items: "[.items[] | select(.price > 10)]", as: article`, `items: .articles, as: article`, ``},
	{`target: done, as: failure`, `target: done, as: sumary`, `STATE_ASSIGNMENT /nodes/8/catch/0/as: did you mean "summary"?`},
	{`collect: replies`, `collect: replies, tolerate: { count: 1, as: sumary }`, `STATE_ASSIGNMENT /nodes/2/map/tolerate/as: did you mean "summary"?`},
	{`paid: { type: boolean }, remark`, `paid: { type: boolean }, summary: { type: integer }, remark`, `STATE_SCHEMA_VIOLATION /nodes/5/config/resume_schema/properties/summary: `},
	{`paid: { type: boolean }, remark`, `paid: { type: boolean }, summary: { type: [string, "null"] }, remark`, ``},
	// What is right, or may be.
	{`if .confidence >`, `if .certainty >`, ``},
	{`if .confidence >`, `if .stocked >`, ``},
	{`.items | length"`, `.item | length"`, ``},
	{`.items | length"`, `{a: 1} | .b = 2 | .b"`, ``},
	{`.items | length"`, `def f: .custmer; f | length"`, ``},
	{`.items | length"`, `.items | group_by(.colour) | map(.[0].price) | length"`, ``},
	{`.items | length"`, `.items | to_entries | map(.value.price) | add"`, ``},
	{`.items | length"`, `[.[] | .custmer?] | length"`, ``},
	{`select(.price > 10)`, `select(.weight > 10)`, ``},
	{`.quote.total > 100`, `.quote.tax > 100`, ``},
	{`${ .customer } with`, `${ .reference } with`, ``},
	// What the engine puts into the state.
	{`.failure.message //`, `.failure.cod //`, `EXPRESSION_PATH_UNKNOWN /nodes/9/config/assignments/summary/jq: did you mean "code"?`},
	{`.failure.message //`, `.failure.attempt //`, `EXPRESSION_PATH_UNKNOWN /nodes/9/config/assignments/summary/jq: did you mean "attempts"?`},
	{`.failure.message //`, `.failure.data.raised //`, ``},
	{`.failure.message //`, `.failure.date //`, `EXPRESSION_PATH_UNKNOWN /nodes/9/config/assignments/summary/jq: did you mean "data"?`},
	{`.failure.message //`, `.failure.details //`, ``},
	{`.problem.code }`, `.problem.cod }`, `EXPRESSION_PATH_UNKNOWN /nodes/11/config/arguments/before: did you mean "code"?`},
	{`.unpacked[0].index }`, `.unpacked[0].indx }`, `EXPRESSION_PATH_UNKNOWN /nodes/11/config/arguments/failed: did you mean "index"?`},
	{`summary: { type: string }`, "summary: { type: string }\n    problem: { type: object }\n    failure: {}", ``},
	{`.part.sku }`, `.part.skuu }`, `EXPRESSION_PATH_UNKNOWN /nodes/11/config/arguments/sku: did you mean "sku"?`},
	{`.part.sku }`, `.part.colur }`, `EXPRESSION_PATH_UNKNOWN /nodes/11/config/arguments/sku: did you mean "colour"?`},
	{`.part.sku }`, `.prat.sku }`, `EXPRESSION_PATH_UNKNOWN /nodes/11/config/arguments/sku: did you mean "part"?`},
	{`.part.sku }`, `.part.skus }`, ``},
	{`.part.sku }`, `.part.sky }`, ``},
	{`.part.sku }`, `.part.size }`, ``},
	{`items: .items, as: part`, `items: .itmes, as: part`, `EXPRESSION_PATH_UNKNOWN /nodes/11/map/items: did you mean "items"?`},
	{`items: .items, as: part`, `items: ".items | map({sku: .colour})", as: part`, ``},
	// Codes of failures.
	{`[TIMEOUT, "MCP_*", "TCP_*"]`, `["LMM_*"]`, `FIELD_IGNORED /nodes/11/catch/0/codes/0: did you mean "LLM_*"?`},
	{`[TIMEOUT, "MCP_*", "TCP_*"]`, `[TIMEOUT, LMM*]`, `FIELD_IGNORED /nodes/11/catch/0/codes/1: did you mean "LLM*"?`},
	{`[TIMEOUT, "MCP_*", "TCP_*"]`, `[LLM]`, `FIELD_IGNORED /nodes/11/catch/0/codes/0: did you mean "LLM_*"?`},
	{`[TIMEOUT, "MCP_*", "TCP_*"]`, `[MCP_]`, `FIELD_IGNORED /nodes/11/catch/0/codes/0: did you mean "MCP_*"?`},
	{`[TIMEOUT, "MCP_*", "TCP_*"]`, `[OUT, STEP_BUDGET]`, ``},
	{`[TIMEOUT, "MCP_*", "TCP_*"]`, `[TIMOUT]`, `FIELD_IGNORED /nodes/11/catch/0/codes/0: did you mean "TIMEOUT"?`},
	{`[TIMEOUT, "MCP_*", "TCP_*"]`, `["EXPRESION_*"]`, `FIELD_IGNORED /nodes/11/catch/0/codes/0: did you mean "EXPRESSION_*"?`},
	{`[TIMEOUT, "MCP_*", "TCP_*"]`, `["MCP_TOOL_EXECUTOIN_*"]`, `FIELD_IGNORED /nodes/11/catch/0/codes/0: did you mean "MCP_TOOL_EXECUTION_*"?`},
	{`[TIMEOUT, "MCP_*", "TCP_*"]`, `[ACTIVITY_CANCELED]`, `FIELD_IGNORED /nodes/11/catch/0/codes/0: did you mean "ACTIVITY_CANCELLED"?`},
	{`[TIMEOUT, "MCP_*", "TCP_*"]`, `[HANDLER_NOTFOUND]`, `FIELD_IGNORED /nodes/11/catch/0/codes/0: did you mean "HANDLER_NOT_FOUND"?`},
	{`[MCP_ARGUMENTS_INVALID, OUT_OF_STOCK]`, `[MCP_ARGUMENT_INVALID]`, ``},
	{`[MCP_ARGUMENTS_INVALID, OUT_OF_STOCK]`, `[MCP_ARGUMENTS_INVLAID]`, `FIELD_IGNORED /nodes/11/retry/non_retryable_errors/0: did you mean "MCP_ARGUMENTS_INVALID"?`},
	{`[TIMEOUT, "MCP_*", "TCP_*"]`, `[TIME_OUT, timeout, TIMED_OUT, TIMEOUTS, "*TIMEOUT", "*_ERROR", "*", "L*M_*", "E*"]`, ``},
	{`[TIMEOUT, "MCP_*", "TCP_*"]`, `["VLM_*", "SLM_*", "LM_*", "MPC_*", "AMP_*", "POOL_*", "STOP_*", "STORED_*", "HANDLED_*", "HTTP_*", "STATES_*"]`, ``},
	{`[TIMEOUT, "MCP_*", "TCP_*"]`, `[HANDLER_ERRORS, LLM_RATE_LIMITED, MCP_CLIENT_TERROR, EXPRESSION_FAILURE, ENGINE_FAILED, NOT_FOUND, handler_error, MAP_LIMIT]`, ``},
	// Functions that always fail.
	{`.items | length"`, `.customer | sqrt"`, `EXPRESSION_FAILED /nodes/3/config/assignments/count/jq: put tonumber before it`},
	{`.items | length"`, `.count | ascii_downcase | length"`, `EXPRESSION_FAILED /nodes/3/config/assignments/count/jq: put tostring before it`},
	{`.items | length"`, `.notes | ascii_upcase | length"`, `EXPRESSION_FAILED /nodes/3/config/assignments/count/jq: apply it to each element: map(ascii_upcase)`},
	{`.items | length"`, `null | keys | length"`, `EXPRESSION_FAILED /nodes/3/config/assignments/count/jq: `},
	{`.items | length"`, `{} | .n | sqrt"`, `EXPRESSION_FAILED /nodes/3/config/assignments/count/jq: `},
	{`.items | length"`, `.paid | length"`, ``},
	{`.items | length"`, `true | length"`, `EXPRESSION_FAILED /nodes/3/config/assignments/count/jq: `},
	{`.items | length"`, `[.customer[]] | length"`, `EXPRESSION_FAILED /nodes/3/config/assignments/count/jq: `},
	{`.items | length"`, `.customer | map(1) | length"`, `EXPRESSION_FAILED /nodes/3/config/assignments/count/jq: `},
	{`.items | length"`, `.items | join(\",\") | floor"`, `EXPRESSION_FAILED /nodes/3/config/assignments/count/jq: put tonumber before it`},
	{`.items | length"`, `if .paid then .count else .customer | floor end"`, `EXPRESSION_FAILED /nodes/3/config/assignments/count/jq: put tonumber before it`},
	{`.items | length"`, `.customer | tonumber | sqrt"`, ``},
	{`.items | length"`, `.customer | sqrt? // 0"`, ``},
	{`.items | length"`, `(.customer | sqrt) // 0"`, ``},
	{`.items | length"`, `try (.customer | sqrt) catch 0"`, ``},
	{`.items | length"`, `.reference | sqrt"`, ``},
	{`.items | length"`, `.stocked | keys | length"`, ``},
	{`.items | length"`, `.quote | to_entries | length"`, ``},
	{`.items | length"`, `if (.customer | type) == \"number\" then .customer | floor else 0 end"`, ``},
	{`.items | length"`, `if .paid then 1 elif (.customer | type) == \"array\" then .customer | add else 0 end"`, ``},
	{`.items | length"`, `if (.customer | numbers) then .customer | floor else 0 end"`, ``},
	{`.items | length"`, `def number: type == \"number\"; if (.customer | number) then .customer | floor else 0 end"`, ``},
	{`.items | length"`, `.customer | select(type == \"number\") | floor"`, ``},
	{`.items | length"`, `[.customer | numbers | floor] | length"`, ``},
	{`.items | length"`, `if (.customer | type == \"number\") and (.customer | floor) > 1 then 1 else 0 end"`, ``},
	{`.items | length"`, `def sqrt: 1; .customer | sqrt"`, ``},
	{`.items | length"`, `(.customer, .count) | floor"`, ``},
	// Comparisons.
	{`.colour == "red"`, `.price == "3"`, `EXPRESSION_COMPARISON_CONSTANT /nodes/4/config/cases/1/when: write 3 without quotes`},
	{`.colour == "red"`, `.tags == "red"`, `EXPRESSION_COMPARISON_CONSTANT /nodes/4/config/cases/1/when: `},
	{`.colour == "red"`, `.colour == 3`, `EXPRESSION_COMPARISON_CONSTANT /nodes/4/config/cases/1/when: `},
	{`.colour == "red"`, `.colour == null`, ``},
	{`.colour == "red"`, `.tags[0] == "red"`, ``},
	{`.colour == "red"`, `(.tags | length) == "1"`, `EXPRESSION_COMPARISON_CONSTANT /nodes/4/config/cases/1/when: write 1 without quotes`},
	{`.colour == "red"`, `.price > "3"`, `EXPRESSION_COMPARISON_CONSTANT /nodes/4/config/cases/1/when: write 3 without quotes`},
	{`.status == "approved" and .paid`, `.status == "aproved" and .paid`, `EXPRESSION_COMPARISON_CONSTANT /nodes/4/config/cases/0/when: did you mean "approved"?`},
	{`.status == "approved" and .paid`, `.status != "done" and .paid`, `EXPRESSION_COMPARISON_CONSTANT /nodes/4/config/cases/0/when: the values are "open", "approved" and "rejected"`},
	{`.status == "approved" and .paid`, `(.status // "none") == "none"`, ``},
	{`.status == "approved" and .paid`, `.status | IN("open", "aproved")`, `EXPRESSION_COMPARISON_CONSTANT /nodes/4/config/cases/0/when: did you mean "approved"?`},
	{`.status == "approved" and .paid`, `.paid == "true"`, `EXPRESSION_COMPARISON_CONSTANT /nodes/4/config/cases/0/when: write true without quotes`},
	{`.status == "approved" and .paid`, `.count == "3"`, `EXPRESSION_COMPARISON_CONSTANT /nodes/4/config/cases/0/when: write 3 without quotes`},
	{`.verdict == "decline"`, `.verdict == "declin"`, `EXPRESSION_COMPARISON_CONSTANT /nodes/4/config/cases/3/when: did you mean "decline"?`},
	{`.verdict == "decline"`, `.verdict == "unknown"`, ``},
	// Conditions that are never false.
	{`.colour == "red"`, `.colour = "red"`, `EXPRESSION_ALWAYS_TRUE /nodes/4/config/cases/1/when: did you mean == in .colour == "red"?`},
	{`.status == "approved" and .paid`, `.paid = true`, `EXPRESSION_ALWAYS_TRUE /nodes/4/config/cases/0/when: did you mean == in .paid == true?`},
	{`.status == "approved" and .paid`, `.paid |= true`, `EXPRESSION_ALWAYS_TRUE /nodes/4/config/cases/0/when: did you mean == in .paid == true?`},
	{`.status == "approved" and .paid`, `.paid //= true`, `EXPRESSION_ALWAYS_TRUE /nodes/4/config/cases/0/when: did you mean ==?`},
	{`.status == "approved" and .paid`, `.status == "approved" and .paid = true`, `EXPRESSION_ALWAYS_TRUE /nodes/4/config/cases/0/when: did you mean == in .status == "approved" and .paid == true?`},
	{`.status == "approved" and .paid`, `.status == "approved" and (.paid = true)`, `EXPRESSION_ALWAYS_TRUE /nodes/4/config/cases/0/when: did you mean == in .paid == true?`},
	{`.status == "approved" and .paid`, `.status == "approved" or "open"`, `EXPRESSION_ALWAYS_TRUE /nodes/4/config/cases/0/when: compare a field with it: did you mean .FIELD == "open"?`},
	{`.status == "approved" and .paid`, `"paid"`, `EXPRESSION_ALWAYS_TRUE /nodes/4/config/cases/0/when: compare a field with it: did you mean .FIELD == "paid"?`},
	{`.status == "approved" and .paid`, `{paid}`, `EXPRESSION_ALWAYS_TRUE /nodes/4/config/cases/0/when: write a comparison, such as .approved == true`},
	{`.status == "approved" and .paid`, `[.paid]`, `EXPRESSION_ALWAYS_TRUE /nodes/4/config/cases/0/when: write a comparison, such as .approved == true`},
	{`.status == "approved" and .paid`, `1`, `EXPRESSION_ALWAYS_TRUE /nodes/4/config/cases/0/when: write a comparison, such as .approved == true`},
	{`.status == "approved" and .paid`, `.items | length`, `EXPRESSION_ALWAYS_TRUE /nodes/4/config/cases/0/when: write a comparison, such as .approved == true`},
	{`.status == "approved" and .paid`, `(.paid = true) | not`, `EXPRESSION_ALWAYS_TRUE /nodes/4/config/cases/0/when: did you mean == in .paid == true?`},
	{`.status == "approved" and .paid`, `if .paid then "yes" else "no" end`, `EXPRESSION_ALWAYS_TRUE /nodes/4/config/cases/0/when: write a comparison, such as .approved == true`},
	{`select(.price > 10)`, `select(.price = 10)`, `EXPRESSION_ALWAYS_TRUE /nodes/2/map/items: did you mean == in .price == 10?`},
	{`.status == "approved" and .paid`, `(.quote.total, .count) = 1`, `EXPRESSION_ALWAYS_TRUE /nodes/4/config/cases/0/when: did you mean == in (.quote.total, .count) == 1?`},
	{`.status == "approved" and .paid`, `(.) = false`, ``},
	{`.status == "approved" and .paid`, `true`, ``},
	{`.status == "approved" and .paid`, `(true)`, ``},
	{`.status == "approved" and .paid`, `.paid // false`, ``},
	{`.status == "approved" and .paid`, `.paid // true`, ``},
	{`.status == "approved" and .paid`, `first(.items[] | select(.price > 3) | "yes") // false`, ``},
	{`.status == "approved" and .paid`, `(.paid = false | .paid) == true`, ``},
	{`.status == "approved" and .paid`, `.items[0] | objects | {price}`, ``},
	{`.status == "approved" and .paid`, `if .paid then true else false end`, ``},
	// What is written.
	{`status: { literal: open }`, `status: { literal: aproved }`, `STATE_ASSIGNMENT /nodes/3/config/assignments/status/literal: did you mean "approved"?`},
	{`status: { literal: open }`, `status: { jq: 'if .paid then "approved" else "open" end' }`, ``},
	{`status: { literal: open }`, `status: { jq: '"aproved"' }`, `STATE_ASSIGNMENT /nodes/3/config/assignments/status/jq: did you mean "approved"?`},
	{`status: { literal: open }`, `sttaus: { literal: open }`, `STATE_ASSIGNMENT /nodes/3/config/assignments/sttaus: did you mean "status"?`},
	{`count: { jq: ".items | length" }`, `count: { jq: ".items | map(.price)" }`, `STATE_ASSIGNMENT /nodes/3/config/assignments/count/jq: `},
	{`count: { jq: ".items | length" }`, `count: { jq: ".items | length | tostring" }`, `STATE_ASSIGNMENT /nodes/3/config/assignments/count/jq: `},
	{`notes: { jq: '"seen by \(.customer)"' }`, `notes: { jq: ".count + 1" }`, ``},
	{`notes: { jq: '"seen by \(.customer)"' }`, `notes: { jq: "[.items | length]" }`, `STATE_ASSIGNMENT /nodes/3/config/assignments/notes/jq: `},
	{`status: { literal: open }`, `address: { jq: "{ street: .customer, countri: null }" }`, `STATE_ASSIGNMENT /nodes/3/config/assignments/address/jq: did you mean "country"?`},
	{`status: { literal: open }`, `address: { jq: "{ street: (.items | length) }" }`, `STATE_ASSIGNMENT /nodes/3/config/assignments/address/jq: `},
	{`total: .quote.total`, `total: .customer`, `OUTPUT_SCHEMA_VIOLATION /nodes/10/config/output_mapping: `},
	{`items: "[.items[] | select(.price > 10)]"`, `items: ".items | length"`, `MAP_ITEMS_INVALID /nodes/2/map/items: write a program that gives a list`},
	{`verdict: accept }`, `verdict: acept }`, `OUTPUT_SCHEMA_VIOLATION /nodes/1/metadata/demo_output/verdict: did you mean "accept"?`},
	{`{ notes: [reserved], stocked: 1 }`, `{ notes: [3], stocked: 1 }`, `STATE_SCHEMA_VIOLATION /nodes/7/metadata/demo_output/notes: `},
	// Schemas.
	{`properties: { street:`, `propertys: { street:`, `SCHEMA_KEYWORD_UNKNOWN /state_schema/properties/address/propertys: did you mean "properties"?`},
	{`required: [price]`, `requried: [price]`, `SCHEMA_KEYWORD_UNKNOWN /state_schema/$defs/item/requried: did you mean "required"?`},
	{`required: [price]`, `required: [pricce]`, `SCHEMA_KEYWORD_UNKNOWN /state_schema/$defs/item/required/0: did you mean "price"?`},
	{`summary: { type: string }`, `summary: { typ: string }`, `SCHEMA_KEYWORD_UNKNOWN /state_schema/properties/summary/typ: did you mean "type"?`},
	{`verdict: { type: string, enum:`, `verdict: { type: string, enums:`, `SCHEMA_KEYWORD_UNKNOWN /nodes/1/config/output_schema/properties/verdict/enums: did you mean "enum"?`},
	{`additionalProperties: false`, `additionalProperty: false`, `SCHEMA_KEYWORD_UNKNOWN /state_schema/properties/address/additionalProperty: did you mean "additionalProperties"?`},
	{`additionalProperties: false`, `additionalProperties: false, required: [town]`, `SCHEMA_KEYWORD_UNKNOWN /state_schema/properties/address/required/0: `},
	{`summary: { type: string }`, `summary: { type: string, x-typ: 1, widget: area, maxLength: 3 }`, ``},
	// Members that nothing reads.
	{`metadata: { prompt_templates: true, demo_output`, `metadata: { prompt_templates: true, demo_ouput`, `FIELD_IGNORED /nodes/1/metadata/demo_ouput: did you mean "demo_output"?`},
	{`metadata: { argument_templates: true,`, `metadata: { argument_templates: true, argument_template: true,`, `FIELD_IGNORED /nodes/7/metadata/argument_template: did you mean "argument_templates"?`},
	{`model: m`, "model: m\n      sytem_prompt: hello", `FIELD_IGNORED /nodes/1/config/sytem_prompt: did you mean "system_prompt"?`},
	{`model: m`, "model: m\n      output_scheme: {}", `FIELD_IGNORED /nodes/1/config/output_scheme: did you mean "output_schema"?`},
	{`{ name: mail, entry: mail }`, `{ name: mail, entry: mail }, { name: mails, entry: stock }`, `PARALLEL_BRANCH_ENTRY /nodes/6/config/branches/2/entry: did you mean "mail"?`},
	{`{ name: mail, entry: mail }`, `{ name: mail, entry: mail }, { name: second, entry: mail }`, ``},
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/order.yaml")
	if err != nil {
		t.Fatal(err)
	}
	base := string(text)
	if got := found(t, base); got != nil {
		t.Fatalf("the base has findings: %v", got)
	}
	for _, tt := range mistakes[:soak.Size(len(mistakes), 10, len(mistakes))] {
		before, after, ok := strings.Cut(base, tt.old)
		if !ok || strings.Contains(after, tt.old) {
			t.Errorf("%q does not stand once in the base", tt.old)
			continue
		}
		var want []string
		if tt.want != "" {
			want = []string{tt.want}
		}
		findings := found(t, before+tt.new+after)
		var got []string
		first, last := strings.Count(before, "\n")+1, strings.Count(before+tt.new, "\n")+1
		for _, f := range findings {
			got = append(got, fmt.Sprintf("%s %s: %s", f.Code, f.At.Pointer, f.Hint))
			if f.At.Line < first || f.At.Line > last || f.At.Column == 0 {
				t.Errorf("%s: at %d:%d, not in line %d", tt.new, f.At.Line, f.At.Column, last)
			}
		}
		if len(got) != len(want) || len(want) > 0 && got[0] != want[0] {
			t.Errorf("%s:\n got %v\nwant %v\n%v", tt.new, got, want, findings)
		}
	}
}

// found lints a definition that is valid.
func found(t *testing.T, text string) []finding {
	t.Helper()
	doc, err := definition.ParseYAML([]byte(text))
	if err != nil {
		t.Errorf("%v\n%s", err, text)
		return nil
	}
	program, findings := lint.Compile(doc, lint.Options{})
	if program == nil {
		t.Errorf("refused: %v", findings)
	}
	return findings
}

// closed is a definition whose state only has what it names: no activity takes part, and the input has no other members.
const closed = `
document: { schema: s, name: closed, version: "1" }
state_schema: { type: object, properties: { hours: { type: number }, rate: { type: number }, cost: { type: number }SPARE } }
nodes:
  - id: begin
    type: start
    config: { input_schema: { type: object, properties: { hours: {}, rate: {} }, additionalProperties: false } }
  - { id: early, type: set_state, config: { assignments: { cost: { jq: "EARLY" } } } }
  - { id: compute, type: set_state, config: { assignments: { margin: { jq: ".cost / 10" } } } }
  - { id: finish, type: end, config: { output_mapping: "RESULT" } }
edges:
  - { source: __start__, target: begin }
  - { source: begin, target: early }
  - { source: early, target: compute }
  - { source: compute, target: finish }
`

func TestStateThatNothingElseWrites(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ spare, early, result, want string }{
		{"", ".hours * .rate", "{cost, margin}", ""},
		{"", ".hours * .wage", "{cost, margin}", `EXPRESSION_PATH_UNKNOWN /nodes/1/config/assignments/cost/jq: use cost, hours, margin or rate`},
		{"", ".hours * .rate", "{cost, margine}", `EXPRESSION_PATH_UNKNOWN /nodes/3/config/output_mapping: did you mean "margin"?`},
		{", colour: {}", ".hours * .rate", "{cost, margin}", `STATE_KEY_UNUSED /state_schema/properties/colour: remove it, or name it in the input_schema of the start node`},
		{", colour: {}", ".hours * .rate", ".", ""},
		{", colour: {}", ".hours * .rate", "{cost, all: keys}", ""},
		{", colour: {}", ".hours * .rate", `. as {$margin} | {$margin}`, ""},
		{", colour: {}", ".hours * .rate", `{cost, other: .[\"colour\"]}`, ""},
		{", colour: {}", ".hours * .rate", `{cost} + if .cost > 1 then {margin} else {} end`, `STATE_KEY_UNUSED /state_schema/properties/colour: remove it, or name it in the input_schema of the start node`},
	} {
		var got []string
		for _, f := range found(t, strings.NewReplacer("SPARE", tt.spare, "EARLY", tt.early, "RESULT", tt.result).Replace(closed)) {
			got = append(got, fmt.Sprintf("%s %s: %s", f.Code, f.At.Pointer, f.Hint))
		}
		if strings.Join(got, "\n") != tt.want {
			t.Errorf("%+v: got %v", tt, got)
		}
	}
}

// compensated is a definition with a compensation that two nodes share. None of them brings members that are not named, nor does the input.
const compensated = `
x-workflows-engine: { uses: [compensate], rollback: [failure] }
document: { schema: s, name: compensated, version: "1" }
state_schema: { type: object, properties: { bookings: { type: array }, undo: { type: integer } } }
nodes:
  - id: begin
    type: start
    config: { input_schema: { type: object, properties: { bookings: {} }, additionalProperties: false } }
  - id: book
    type: llm_call
    compensate: { node: cancel, as: booking }
    config: &ask { model: m, user_prompt: u, output_schema: { type: object, properties: {}, additionalProperties: false } }
  - { id: pay, type: llm_call, compensate: { node: cancel, as: undo }, config: *ask }
  - id: cancel
    type: tool_call
    metadata: { argument_templates: true }
    config: { server: s, tool: t, arguments: { id: "${ .booking.output.id }", node: "${ .undo.node }" } }
  - { id: finish, type: end, config: { output_mapping: "{bookings, undo, brought: .cancelled}" } }
edges:
  - { source: __start__, target: begin }
  - { source: begin, target: book }
  - { source: book, target: pay }
  - { source: pay, target: finish }
`

// TestWhatCompensationsFind: a compensation finds what it undoes under names that no schema declares, or declares as something else.
func TestWhatCompensationsFind(t *testing.T) {
	t.Parallel()
	if got := found(t, compensated); got != nil {
		t.Errorf("warned of %v", got)
	}
}

// TestKeysNamedAsPlacesOfPrograms: a state may have members that are called as the places of programs are. They are checked as any other.
func TestKeysNamedAsPlacesOfPrograms(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"items", "output_mapping", "map", "when", "show", "while", "until", "jq"} {
		text := strings.NewReplacer("SPARE", ", "+name+": { type: array }", `margin: { jq: ".cost / 10" }`, name+": { jq: VALUE }",
			"EARLY", ".hours", "RESULT", "{cost, "+name+"}").Replace(closed)
		for value, want := range map[string]int{`"[.cost]"`: 0, `.cost`: 1} {
			got := found(t, strings.Replace(text, "VALUE", value, 1))
			if len(got) != want || want == 1 && got[0].At.Pointer != "/nodes/2/config/assignments/"+name+"/jq" {
				t.Errorf("%s: %s: %v", name, value, got)
			}
		}
	}
}

// rounds is a definition with a map and a loop whose names are those of the state, but for what a test replaces.
const rounds = `
x-workflows-engine: { uses: [map, loop] }
document: { schema: s, name: rounds, version: "1" }
state_schema: { type: object, properties: { mails: { type: array }, scores: { type: array }, attempt: { type: integer } } }
nodes:
  - { id: begin, type: start }
  - id: score
    type: llm_call
    metadata: { prompt_templates: true }
    config: { model: m, user_prompt: "Rate ${ .mail.text }" }
    map: { items: .mails, as: mail, collect: scores }
  - { id: again, type: switch, config: { default: finish }, loop: { until: .good, body: score, max: 3, counter: attempt } }
  - { id: finish, type: end }
edges:
  - { source: __start__, target: begin }
  - { source: begin, target: again }
  - { source: score, target: again }
`

// TestMisspeltItemsAndCounters: the plural of an item is no misspelt item, and the item is not in the program for the items.
func TestMisspeltItemsAndCounters(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ old, new, want string }{
		{"", "", ""},
		{"as: mail", "as: mial", `EXPRESSION_PATH_UNKNOWN /nodes/1/config/user_prompt: did you mean "mial"?`},
		{"items: .mails", "items: .mail", `MAP_ITEMS_INVALID /nodes/1/map/items: mail is a single item, while the node works on it; did you mean "mails"?`},
		{"counter: attempt", "counter: attmept", `STATE_ASSIGNMENT /nodes/2/loop/counter: did you mean "attempt"?`},
	} {
		var got []string
		for _, f := range found(t, strings.Replace(rounds, tt.old, tt.new, 1)) {
			got = append(got, fmt.Sprintf("%s %s: %s", f.Code, f.At.Pointer, f.Hint))
		}
		if strings.Join(got, "\n") != tt.want {
			t.Errorf("%s: got %v", tt.new, got)
		}
	}
}
