package definition_test

import (
	"fmt"

	"github.com/workflows-engine/workflows-engine/graph/definition"
)

func ExampleCompile() {
	doc, err := definition.ParseYAML([]byte(`
document: {schema: s, name: greeting, version: "1"}
state_schema: {type: object}
nodes:
  - {id: start, type: start}
  - {id: greet, type: step, config: {handler: greet}, timeout: 1.5s}
  - {id: end, type: end}
edges:
  - {source: __start__, target: start}
  - {source: start, target: gret}
  - {source: greet, target: end}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	program, findings := definition.Compile(doc, definition.Options{})
	fmt.Println(program != nil)
	for _, f := range findings {
		fmt.Printf("line %d: %s %s: %s (%s)\n", f.At.Line, f.Severity, f.Code, f.Message, f.Hint)
	}
	// Output:
	// false
	// line 6: error DURATION_INVALID: invalid duration "1.5s" (write "1500ms": one whole number and one unit)
	// line 10: error UNKNOWN_NODE: there is no node "gret" (did you mean "greet"?)
}
