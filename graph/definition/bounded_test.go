package definition_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// repeated is a text n times, separated; %d stands for its index.
func repeated(n int, text, separator string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteString(separator)
		}
		b.WriteString(strings.ReplaceAll(text, "%d", fmt.Sprint(i)))
	}
	return b.String()
}

// around is a definition with a state schema and one node between start and end.
func around(schema, node string) string {
	return `{"document":{"schema":"s","name":"n","version":"1"},"state_schema":` + schema + `,"nodes":[{"id":"s","type":"start"},` + node +
		`,{"id":"e","type":"end"}],"edges":[{"source":"__start__","target":"s"},{"source":"s","target":"p"},{"source":"p","target":"e"}]}`
}

const oneStep = `{"id":"p","type":"step","config":{"handler":"x"}}`

// expensive are documents whose size says little of what they take, with the code that they get, "" if they are read.
var expensive = []struct {
	name, text string
	code       problem.Code
}{
	{"a list of numbers", "[" + repeated(1_000_000, "0", ",") + "]", problem.DefinitionTooLarge},
	{"empty objects", "[" + repeated(1_000_000, "{}", ",") + "]", problem.DefinitionTooLarge},
	{"unknown members", "{" + repeated(190_000, `"%d":0`, ",") + "}", problem.DefinitionSchema},
	{"nodes without a type", around(`{"type":"object"}`, repeated(60_000, "{}", ",")), problem.DefinitionSchema},
	{"an enum", around(`{"type":"object","properties":{"a":{"enum":[`+repeated(50_000, `"text number %d"`, ",")+`]}}}`, oneStep), ""},
	{"required members", around(`{"type":"object","required":[`+repeated(50_000, `"p%d"`, ",")+`]}`, oneStep), ""},
	{"subschemas", around(`{"type":"object","properties":{`+repeated(60_000, `"p%d":{"type":"string"}`, ",")+`}}`, oneStep), problem.StateSchemaInvalid},
	{"schemas", around(`{"type":"object"}`, oneStep+","+repeated(2_500, `{"id":"n%d","type":"interrupt","config":{"prompt":"?","resume_schema":{"type":"object","properties":{`+
		repeated(30, `"p%d":true`, ",")+`}}}}`, ",")), problem.GraphOutgoing},
	{"patterns", around(`{"type":"object","patternProperties":{`+repeated(4_000, `"^(a|b|%d){1,900}$":{}`, ",")+`}}`, oneStep), problem.StateSchemaInvalid},
	{"a large pattern", around(`{"type":"object","properties":{"a":{"pattern":"`+strings.Repeat("x{1000}", 500)+`"}}}`, oneStep), problem.StateSchemaInvalid},
	{"programs", around(`{"type":"object"}`, `{"id":"p","type":"set_state","config":{"assignments":{`+
		repeated(20_000, `"a%d":{"jq":".a + %d"}`, ",")+`}}}`), problem.DefinitionTooLarge},
	{"long programs", around(`{"type":"object"}`, `{"id":"p","type":"set_state","config":{"assignments":{`+
		repeated(40, `"a%d":{"jq":"`+strings.Repeat(" ", 60_000)+`.a"}`, ",")+`}}}`), problem.DefinitionTooLarge},
	{"yaml: anchors", "a:\n" + repeated(100_000, "- &a%d x", "\n"), problem.DefinitionSchema},
	{"yaml: a list", "a:\n" + repeated(700_000, "- x", "\n"), problem.DefinitionTooLarge},
	{"yaml: a flow list", "a: [" + repeated(2_000_000, "x", ",") + "]", problem.DefinitionTooLarge},
	{"yaml: members", repeated(600_000, "k%d: 1", "\n"), problem.DefinitionTooLarge},
	{"yaml: aliases of aliases", "a: &a [x,x,x,x,x,x,x,x,x,x]\n" +
		"b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\n" +
		"e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\n", problem.DefinitionTooLarge},
}

// readAndCompile returns the code of the first finding that is an error, and what was made of the text.
func readAndCompile(name, text string) (code problem.Code, kept any) {
	read := definition.Parse
	if strings.HasPrefix(name, "yaml") {
		read = definition.ParseYAML
	}
	d, err := read([]byte(text))
	if e, refused := problem.As(err); refused {
		return e.Findings[0].Code, nil
	}
	p, findings := definition.Compile(d, definition.Options{})
	for _, f := range findings {
		if f.Severity == problem.SeverityError {
			code = f.Code
			break
		}
	}
	return code, []any{d, p, findings}
}

// TestMemoryOfDocuments bounds what reading and compiling a document keeps and allocates. What is kept is bounded as a whole; what is
// allocated on the way, most of which is free again at once, is bounded by four times as much.
func TestMemoryOfDocuments(t *testing.T) { // not parallel: it counts what the process allocates
	if soak.UnderRace {
		t.Skip("the race detector allocates, too")
	}
	for i := 0; i < len(expensive); i += soak.Size(3, 3, 1) {
		d := expensive[i]
		var before, after, settled runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		code, kept := readAndCompile(d.name, d.text)
		runtime.ReadMemStats(&after)
		runtime.GC()
		runtime.ReadMemStats(&settled)
		runtime.KeepAlive(kept)
		if code != d.code {
			t.Errorf("%s: got %q, want %q", d.name, code, d.code)
		}
		most := 10*len(d.text) + 32<<20
		allocated, left := int(after.TotalAlloc-before.TotalAlloc), int(settled.HeapAlloc)-int(before.HeapAlloc)
		t.Logf("%s: %d KiB keep %d KiB and allocate %d KiB", d.name, len(d.text)>>10, left>>10, allocated>>10)
		if left > most || allocated > 4*most {
			t.Errorf("%s: %d KiB keep %d KiB and allocate %d KiB; %d KiB may be kept", d.name, len(d.text)>>10, left>>10, allocated>>10, most>>10)
		}
	}
}

// TestPatternsOfAllNodes shows that the patterns of a definition are bounded together.
func TestPatternsOfAllNodes(t *testing.T) {
	t.Parallel()
	nodes := oneStep + "," + repeated(100, `{"id":"n%d","type":"llm_call","config":{"model":"m","user_prompt":"u",`+
		`"output_schema":{"type":"object","properties":{"a":{"pattern":"x{1000}"}}}}}`, ",")
	d, err := definition.Parse([]byte(around(`{"type":"object"}`, nodes)))
	if err != nil {
		t.Fatal(err)
	}
	_, findings := definition.Compile(d, definition.Options{})
	if !strings.Contains(list(findings), "patterns are too large together") {
		t.Errorf("got\n%s", list(findings))
	}
}

// TestSubschemasOfAllNodes shows that the schemas of a definition are bounded together, and that a small one is compiled behind those that
// are too many.
func TestSubschemasOfAllNodes(t *testing.T) {
	t.Parallel()
	ask := func(n int, id string) string {
		return `{"id":"` + id + `","type":"interrupt","config":{"prompt":"?","resume_schema":{"type":"object","properties":{` + repeated(n, `"p%d":true`, ",") + `}}}}`
	}
	nodes := []string{}
	for i := range 20 {
		nodes = append(nodes, ask(900, fmt.Sprintf("n%d", i)))
	}
	d, err := definition.Parse([]byte(around(`{"type":"object"}`, strings.Join(append(nodes, ask(10, "small")), ","))))
	if err != nil {
		t.Fatal(err)
	}
	_, findings := definition.Compile(d, definition.Options{})
	if n := strings.Count(list(findings), "more than 15000 subschemas together"); n != 4 {
		t.Errorf("%d refused:\n%s", n, list(findings))
	}
}

func BenchmarkExpensiveDocuments(b *testing.B) {
	for _, d := range expensive {
		b.Run(d.name, func(b *testing.B) {
			b.SetBytes(int64(len(d.text)))
			b.ReportAllocs()
			for b.Loop() {
				readAndCompile(d.name, d.text)
			}
		})
	}
}
