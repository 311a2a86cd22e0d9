package enginetest

import (
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// AroundExample returns a definition that comes to the example of a node type at once, with all nodes to which an example may lead,
// and the id of the example.
func AroundExample(t testing.TB, typ *definition.NodeType) (d *definition.Document, id string) {
	t.Helper()
	v, err := jsonvalue.Decode([]byte(typ.Example))
	example, _ := v.(map[string]any)
	if err != nil || example["type"] != string(typ.Name) {
		t.Fatalf("the example of %s is %s (%v)", typ.Name, typ.Example, err)
	}
	node := func(id, kind string) any {
		n := map[string]any{"id": id, "type": kind}
		if kind == "step" {
			n["config"] = map[string]any{"handler": id}
		}
		return n
	}
	nodes := map[string]any{"begin": node("begin", "start"), "a": node("a", "step"), "b": node("b", "step"), "end": node("end", "end")}
	edge := func(from, to any) any { return map[string]any{"source": from, "target": to} }
	edges := []any{edge("__start__", "begin"), edge("a", "end"), edge("b", "end")}
	id, _ = example["id"].(string)
	first := id
	switch typ.Name {
	case definition.Start:
		id, first = "begin", "a"
		example["id"] = id
	case definition.End:
		id, first = "end", "end"
		example["id"] = id
	case definition.Switch:
	default:
		edges = append(edges, edge(id, "end"))
	}
	nodes[id] = example
	list := make([]any, 0, len(nodes))
	for _, id := range jsonvalue.Keys(nodes) {
		list = append(list, nodes[id])
	}
	d, err = definition.FromValue(map[string]any{
		"document":     map[string]any{"schema": "s", "name": "example", "version": "1.0.0"},
		"state_schema": map[string]any{"type": "object"}, "nodes": list, "edges": append(edges, edge("begin", first)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return d, id
}
