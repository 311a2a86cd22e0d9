package definition_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/definition"
)

// chain is a valid document of about n nodes of several types, blocks included.
func chain(n int) map[string]any {
	nodes := []any{map[string]any{"id": "start", "type": "start"}}
	edges := []any{map[string]any{"source": "__start__", "target": "start"}}
	link := func(from, to string) { edges = append(edges, map[string]any{"source": from, "target": to}) }
	add := func(id, kind string, config map[string]any) {
		nodes = append(nodes, map[string]any{"id": id, "type": kind, "config": config})
	}
	last := "start"
	for i := 0; len(nodes) < n-1; i++ {
		id := func(s string) string { return fmt.Sprintf("%s%d", s, i) }
		link(last, id("set"))
		add(id("set"), "set_state", map[string]any{"assignments": map[string]any{"n": map[string]any{"jq": ".n + 1"}}})
		link(id("set"), id("tool"))
		add(id("tool"), "tool_call", map[string]any{"server": "s", "tool": "t", "arguments": map[string]any{"i": float64(i)}})
		link(id("tool"), id("route"))
		add(id("route"), "switch", map[string]any{
			"cases": []any{map[string]any{"when": ".n > 3", "target": id("fork")}}, "default": id("fork"),
		})
		add(id("fork"), "parallel", map[string]any{"join": "all", "branches": []any{
			map[string]any{"name": "a", "entry": id("a")}, map[string]any{"name": "b", "entry": id("b")},
		}})
		add(id("a"), "step", map[string]any{"handler": "a"})
		add(id("b"), "step", map[string]any{"handler": "b"})
		add(id("join"), "wait", map[string]any{"kind": "duration", "duration": "5s"})
		link(id("a"), id("join"))
		link(id("b"), id("join"))
		link(id("fork"), id("join"))
		last = id("join")
	}
	nodes = append(nodes, map[string]any{"id": "end", "type": "end", "config": map[string]any{"output_mapping": ".n"}})
	link(last, "end")
	return map[string]any{
		"document":     map[string]any{"schema": "s", "name": "chain", "version": "1"},
		"state_schema": map[string]any{"type": "object", "properties": map[string]any{"n": map[string]any{"type": "number"}}},
		"nodes":        nodes, "edges": edges,
	}
}

// TestLargeDocuments bounds the work on large good documents and on ones that are bad in the costliest ways known.
func TestLargeDocuments(t *testing.T) {
	t.Parallel()
	if _, p, findings := compileValue(t, chain(2000)); p == nil || len(findings) > 0 {
		t.Errorf("a chain of 2,000 nodes\n%s", list(findings))
	}
	// Branches that share one long tail, and end off their block.
	doc := chain(10)
	nodes, edges := doc["nodes"].([]any), doc["edges"].([]any)
	const n = 1100
	for i := range n {
		nodes = append(nodes, map[string]any{"id": fmt.Sprintf("t%d", i), "type": "step", "config": map[string]any{"handler": "x"}})
		edges = append(edges, map[string]any{"source": fmt.Sprintf("t%d", i), "target": fmt.Sprintf("t%d", (i+1)%n)})
		nodes = append(nodes, map[string]any{"id": fmt.Sprintf("p%d", i), "type": "parallel", "config": map[string]any{
			"join": "all", "branches": []any{map[string]any{"name": "a", "entry": fmt.Sprintf("t%d", i)}},
		}})
		edges = append(edges, map[string]any{"source": fmt.Sprintf("p%d", i), "target": fmt.Sprintf("p%d", (i+1)%n)})
	}
	doc["nodes"], doc["edges"] = nodes, edges
	_, p, findings := compileValue(t, doc)
	if p != nil {
		t.Error("endless branches have a program")
	}
	if !strings.Contains(list(findings), "not all of them could be checked") {
		t.Error("the walk over branches is not bounded")
	}
}

func BenchmarkCompile(b *testing.B) {
	routing := func() any { return base(b, "routing") }
	for _, bench := range []struct {
		name string
		doc  func() any
	}{
		{"routing", routing},
		{"nodes=500", func() any { return chain(500) }},
		{"nodes=2000", func() any { return chain(2000) }},
		{"nodes=8000", func() any { return chain(8000) }},
	} {
		b.Run(bench.name, func(b *testing.B) {
			doc := bench.doc()
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				d, err := definition.FromValue(doc)
				if err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				if p, findings := definition.Compile(d, definition.Options{}); p == nil {
					b.Fatal(list(findings))
				}
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	d, err := definition.FromValue(chain(2000))
	if err != nil {
		b.Fatal(err)
	}
	src := d.Canonical()
	b.SetBytes(int64(len(src)))
	b.ReportAllocs()
	for b.Loop() {
		d, err := definition.Parse(src)
		if err != nil || d.Hash() == "" {
			b.Fatal(err)
		}
	}
}
