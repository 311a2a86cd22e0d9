package lint_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/lint"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// large is a definition of about 2 MB: many nodes whose programs read many properties, in the ways that cost most.
func large(nodes, properties int) string {
	var b strings.Builder
	b.WriteString(`{"document":{"schema":"s","name":"large","version":"1"},"state_schema":{"type":"object","properties":{`)
	for i := range properties {
		fmt.Fprintf(&b, `"property_%d":{"type":"object","properties":{"name":{"type":"string"},`+
			`"others":{"type":"array","items":{"$ref":"#/properties/property_%d"}}}},`, i, (i+1)%properties)
	}
	b.WriteString(`"last":{}}},"nodes":[{"id":"s","type":"start"},`)
	for i := range nodes {
		fmt.Fprintf(&b, `{"id":"n%d","type":"set_state","config":{"assignments":{"key_%d":{"jq":"`+
			`.propertie_%d.nam as $x | [.property_%d.others[].nmae, (.[] | .name), (. + {a: $x} | keys)]"}}}},`,
			i, i, i%properties, (i+7)%properties)
	}
	b.WriteString(`{"id":"e","type":"end","config":{"output_mapping":"{last}"}}],`)
	b.WriteString(`"edges":[{"source":"__start__","target":"s"},{"source":"s","target":"n0"}`)
	for i := range nodes {
		next := fmt.Sprintf("n%d", i+1)
		if i == nodes-1 {
			next = "e"
		}
		fmt.Fprintf(&b, `,{"source":"n%d","target":"%s"}`, i, next)
	}
	b.WriteString("]}")
	return b.String()
}

// TestLargeDefinitions: what a lint costs is bounded, and so is what it says.
func TestLargeDefinitions(t *testing.T) {
	t.Parallel()
	for _, text := range []string{large(200, 5), large(soak.Size(100, 10, 100), 1000)} {
		doc, err := definition.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		program, findings := lint.Compile(doc, lint.Options{})
		if program == nil || len(findings) == 0 || len(findings) > definition.MaxFindings {
			t.Errorf("%d findings", len(findings))
		}
	}
}

// maps is a definition of maps and compensations, whose programs each find other members in the state than the rest.
func maps(n int) string {
	var nodes, edges strings.Builder
	for i := range n {
		fmt.Fprintf(&nodes, `{"id":"n%d","type":"step","config":{"handler":"h"},"compensate":{"node":"u%d","as":"undone_%d"},`+
			`"map":{"items":".list_%d","as":"item_%d","collect":"all_%d","tolerate":{"count":1,"as":"failed_%d"}}},`+
			`{"id":"u%d","type":"step","config":{"handler":"h"}},`, i, i, i, i, i, i, i, i)
		fmt.Fprintf(&edges, `{"source":"n%d","target":"n%d"},`, i, i+1)
	}
	return `{"document":{"schema":"s","name":"maps","version":"1"},"state_schema":{"type":"object"},` +
		`"x-workflows-engine":{"uses":["map","compensate"],"rollback":["failure"]},"nodes":[{"id":"s","type":"start"},` + nodes.String() +
		fmt.Sprintf(`{"id":"n%d","type":"end"}],"edges":[{"source":"__start__","target":"s"},`, n) + edges.String() + `{"source":"s","target":"n0"}]}`
}

// TestMemoryOfManyMaps is not parallel: it looks at the heap of the process.
func TestMemoryOfManyMaps(t *testing.T) {
	doc, err := definition.Parse([]byte(maps(1000)))
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	known := lint.Known(doc)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if known == nil {
		t.Fatal("refused")
	}
	if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > 64<<20 {
		t.Errorf("the lint of 1,000 maps keeps %d MiB", kept>>20)
	}
	runtime.KeepAlive(known)
	runtime.KeepAlive(doc)
}

func BenchmarkCompile(b *testing.B) {
	for name, text := range map[string]string{"nodes": large(4900, 100), "properties": large(4900, 1000), "maps": maps(2000)} {
		parse := func(b *testing.B) *definition.Document {
			doc, err := definition.Parse([]byte(text))
			if err != nil {
				b.Fatal(err)
			}
			return doc
		}
		b.Run(name+"/plain", func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				doc := parse(b)
				b.StartTimer()
				definition.Compile(doc, definition.Options{})
			}
		})
		b.Run(name+"/lint", func(b *testing.B) {
			b.ReportMetric(float64(len(text))/1e6, "MB")
			doc := parse(b)
			for b.Loop() {
				if p, f := lint.Compile(doc, lint.Options{}); p == nil {
					b.Fatal(f[0])
				}
			}
		})
	}
}

// FuzzCompile: a lint never panics, finds nothing but warnings beyond those of definition.Compile, and the same again. Each
// subworkflow is the document itself.
func FuzzCompile(f *testing.F) {
	paths, err := filepath.Glob("../definition/testdata/bases/*.json")
	if err != nil || len(paths) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, path := range append(paths, "testdata/order.yaml") {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		doc, err := definition.ParseYAML(text)
		if err != nil {
			return
		}
		plain, before := definition.Compile(doc, definition.Options{})
		o := lint.Options{Subworkflow: func(string, string) *definition.Document { return doc }}
		program, findings := lint.Compile(doc, o)
		if (plain == nil) != (program == nil) || len(findings) < len(before) || program != nil && findings.HasErrors() {
			t.Fatalf("%d findings became %d", len(before), len(findings))
		}
		anew, err := definition.ParseYAML(text)
		if err != nil {
			t.Fatal(err)
		}
		_, again := lint.Compile(anew, o)
		if fmt.Sprint(again) != fmt.Sprint(findings) {
			t.Fatalf("another time other findings:\n%v\n%v", findings, again)
		}
	})
}
