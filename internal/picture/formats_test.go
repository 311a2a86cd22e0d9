package picture_test

import (
	"encoding/xml"
	"errors"
	"flag"
	"html"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/history/runfile"
	"github.com/workflows-engine/workflows-engine/internal/picture"
	"github.com/workflows-engine/workflows-engine/internal/timeline"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var formats = map[string]func(*definition.Program, *timeline.Run) string{
	"txt": picture.Text, "mmd": picture.Mermaid, "svg": picture.SVG,
}

func compile(t *testing.T, file string) *definition.Program {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	parse := definition.Parse
	if filepath.Ext(file) == ".yaml" {
		parse = definition.ParseYAML
	}
	doc, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	prog, findings := definition.Compile(doc, definition.Options{})
	if prog == nil {
		t.Fatal(findings)
	}
	return prog
}

func TestFormats(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{"document-review": "document-review.workflow.yaml", "research": "research.workflow.json"} {
		prog := compile(t, filepath.Join("../../examples", name, file))
		for extension, draw := range formats {
			requireGolden(t, filepath.Join("testdata", name+"."+extension), draw(prog, nil))
		}
	}
}

// texts returns the texts of an image, and fails for what is not well-formed.
func texts(t *testing.T, svg string) []string {
	t.Helper()
	var list []string
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, svg)
		}
		switch token := token.(type) {
		case xml.StartElement:
			if !regexp.MustCompile(`^(svg|title|style|defs|marker|path|rect|text|polygon|g)$`).MatchString(token.Name.Local) {
				t.Errorf("element %s", token.Name.Local)
			}
		case xml.CharData:
			list = append(list, string(token))
		}
	}
}

func TestImagesAreWellFormed(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../examples/*/*.workflow.*")
	if err != nil || len(files) < 7 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		prog := compile(t, file)
		all := strings.Join(texts(t, picture.SVG(prog, nil)), "\n")
		for _, n := range prog.Nodes {
			if !strings.Contains(all, n.ID) {
				t.Errorf("%s: no node %s", file, n.ID)
			}
		}
	}
}

// area is what a box or a label of an image covers.
type area struct{ left, top, right, bottom float64 }

// TestNothingOverlaps: boxes and labels of the examples' images are apart.
func TestNothingOverlaps(t *testing.T) {
	t.Parallel()
	files, _ := filepath.Glob("../../examples/*/*.workflow.*")
	for _, file := range files {
		requireApart(t, file, picture.SVG(compile(t, file), nil))
	}
}

var (
	rectangle = regexp.MustCompile(`<rect x="([-\d.]+)" y="([-\d.]+)" width="([\d.]+)" height="([\d.]+)"`)
	label     = regexp.MustCompile(`<text class="label" x="([-\d.]+)" y="([-\d.]+)"[^>]*>([^<]+)<`)
	hexagon   = regexp.MustCompile(`<polygon points="([-\d.]+),\S+ \S+,([-\d.]+) \S+ ([-\d.]+),\S+ \S+,([-\d.]+) `)
)

// requireApart fails if boxes or labels of an image overlap.
func requireApart(t *testing.T, name, svg string) {
	t.Helper()
	number := func(text string) float64 {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	var areas []area
	for _, m := range rectangle.FindAllStringSubmatch(svg, -1) {
		x, y := number(m[1]), number(m[2])
		areas = append(areas, area{x, y, x + number(m[3]), y + number(m[4])})
	}
	for _, m := range hexagon.FindAllStringSubmatch(svg, -1) {
		areas = append(areas, area{number(m[1]), number(m[2]), number(m[3]), number(m[4])})
	}
	for _, m := range label.FindAllStringSubmatch(svg, -1) {
		x, y, half := number(m[1]), number(m[2]), float64(len([]rune(html.UnescapeString(m[3]))))*3.05
		areas = append(areas, area{x - half, y - 10, x + half, y + 3})
	}
	if len(areas) < 3 {
		t.Errorf("%s: %d areas", name, len(areas))
	}
	for i, a := range areas {
		if a.left < 0 || a.top < 0 {
			t.Errorf("%s: %v is outside", name, a)
		}
		for _, b := range areas[:i] {
			if a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom {
				t.Errorf("%s: %v and %v overlap", name, a, b)
			}
		}
	}
}

// hostile is a definition with a text as its name, a node's id and a condition; nil if there can be none.
func hostile(text string) *definition.Program {
	when := "." + `["` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"]`
	doc, err := definition.FromValue(map[string]any{
		"document":     map[string]any{"schema": "https://agent-workflow.dev/schemas/workflow-definition.json", "name": text, "version": "1.0.0"},
		"state_schema": map[string]any{"type": "object"},
		"nodes": []any{
			map[string]any{"id": "s", "type": "start"},
			map[string]any{"id": "w", "type": "switch", "config": map[string]any{"cases": []any{map[string]any{"when": when, "target": text}}, "default": "s"}},
			map[string]any{"id": text, "type": "end"},
		},
		"edges": []any{map[string]any{"source": "__start__", "target": "s"}, map[string]any{"source": "s", "target": "w"}},
	})
	if err != nil {
		return nil
	}
	prog, _ := definition.Compile(doc, definition.Options{})
	return prog
}

var hostileTexts = []string{
	`"]; n0 -> evil [label="`, `</text><script>alert(1)</script>`, `x\`, "a\"|b`c`#quot;&amp;%%{init}%%", "x\n  evil --> n0", "a\u202eb\x1b[31m",
}

var mermaidLine = regexp.MustCompile(`^  n\d+([[({/]+"[^"<>;\x60]*(#\d+;[^"<>;\x60]*)*<br/>[^"<>]*"[\])}/]+| (-->|-\.->)(\|"[^"<>|]*"\|)? n\d+)$`)

// requireEscaped fails if a text of a definition gets out of its place in a drawing.
func requireEscaped(t *testing.T, prog *definition.Program) {
	t.Helper()
	texts(t, picture.SVG(prog, nil))
	for i, line := range strings.Split(strings.TrimSuffix(picture.Mermaid(prog, nil), "\n"), "\n") {
		if i > 0 && !mermaidLine.MatchString(line) {
			t.Errorf("mermaid: %q", line)
		}
	}
	for name, draw := range formats {
		text := draw(prog, nil)
		if strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && unicode.IsControl(r) || r == '\u202e' }) {
			t.Errorf("%s has control characters: %q", name, text)
		}
	}
	if n := strings.Count(picture.Text(prog, nil), "\n"); n != len(prog.Nodes) {
		t.Errorf("%d lines of text for %d nodes", n, len(prog.Nodes))
	}
}

func TestTextsOfDefinitionsAreEscaped(t *testing.T) {
	t.Parallel()
	for _, text := range hostileTexts {
		prog := hostile(text)
		if prog == nil {
			t.Errorf("%q does not compile", text)
			continue
		}
		requireEscaped(t, prog)
	}
}

func FuzzEscape(f *testing.F) {
	for _, text := range hostileTexts {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if prog := hostile(text); prog != nil {
			requireEscaped(t, prog)
		}
	})
}

// TestRun draws a run that was recorded: branches, of which two are held back, a map, a loop and a subworkflow.
func TestRun(t *testing.T) {
	t.Parallel()
	in, err := os.Open("../timeline/testdata/trip.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	file, err := runfile.Read(in)
	if err != nil {
		t.Fatal(err)
	}
	document, err := definition.Parse(file.Definitions[0].Text)
	if err != nil {
		t.Fatal(err)
	}
	prog, findings := definition.Compile(document, definition.Options{})
	if prog == nil {
		t.Fatal(findings)
	}
	line := timeline.New(file.ExecutionID, strings.TrimSpace)
	line.Define(file.ExecutionID, prog)
	for _, r := range file.Runs {
		for i := range r.Records {
			if r.ExecutionID == file.ExecutionID {
				line.Record(r.ExecutionID, &r.Records[i])
			}
		}
	}

	run := line.Root()
	text := picture.Text(prog, run)
	for _, want := range []string{
		`(?m)^gather .*\[done, 7s\]$`, `(?m)^search_web .*\[done, 2s\]$`, `(?m)^tidy .*\[done, 0ms\]$`, `(?m)^nap .*\[done, 3s\]$`,
		`(?m)^search_papers .*\[done, 7s\]$`, `(?m)^each .*\[done, 2\.8s\]$`, `(?m)^again .*\[done, 3 visits, 0ms\]$`,
	} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	mermaid := picture.Mermaid(prog, run)
	var taken []string
	for _, m := range regexp.MustCompile(`(?m)^  n(\d+) ==>.* n(\d+)$`).FindAllStringSubmatch(mermaid, -1) {
		from, _ := strconv.Atoi(m[1])
		to, _ := strconv.Atoi(m[2])
		taken = append(taken, prog.Nodes[from].ID+" "+prog.Nodes[to].ID)
	}
	const want = "begin gather, gather search_web, gather search_papers, gather nap, gather each, search_web tidy, tidy each, search_papers each, nap each, " +
		"each again, again loop, loop again, loop ship, ship ask, ask finish"
	if got := strings.Join(taken, ", "); got != want {
		t.Errorf("taken: %s, want %s", got, want)
	}
}
