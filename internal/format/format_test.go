package format_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/format"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestGolden compares the form of testdata/NAME.in.yaml and .json with testdata/NAME.want.….
func TestGolden(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "*.in.*"))
	if err != nil || len(files) < 3 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got, err := formatted(file, text)
			if err != nil {
				t.Fatal(err)
			}
			golden := strings.Replace(file, ".in.", ".want.", 1)
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != string(want) {
				t.Errorf("%s differs (go test ./internal/format -update rewrites it): got\n%s", golden, got)
			}
		})
	}
}

func formatted(file string, text []byte) ([]byte, error) {
	if strings.HasSuffix(file, ".json") {
		return format.JSON(text)
	}
	return format.YAML(text)
}

// TestExamplesAreFormatted: authors copy them, and check what they have with fmt --check.
func TestExamplesAreFormatted(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("..", "..", "examples", "*", "*.workflow.*"))
	more, _ := filepath.Glob(filepath.Join("..", "..", "docs", "definitions", "*.workflow.*"))
	if err != nil || len(files) < 5 || len(more) < 5 {
		t.Fatalf("%d and %d files, %v", len(files), len(more), err)
	}
	files = append(files, more...)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if want, err := formatted(file, text); err != nil || string(text) != string(want) {
			t.Errorf("%s is not in its usual form: workflows-engine fmt --write %[1]s: %v", file, err)
		}
	}
}

// TestPagesAreFormatted holds the definitions of the pages, and the nodes that they show, to the form of fmt.
func TestPagesAreFormatted(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	more, _ := filepath.Glob(filepath.Join("..", "..", "docs", "reference", "*.md"))
	pages = append(pages, more...)
	fence := regexp.MustCompile("(?ms)^```yaml( fragment)?\n(document:.*?|- .*?)^```\n")
	found := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range fence.FindAllSubmatchIndex(text, -1) {
			block := string(text[at[4]:at[5]])
			if at[2] >= 0 {
				block = "nodes:\n" + regexp.MustCompile("(?m)^(.)").ReplaceAllString(block, "  $1")
			}
			found++
			if want, err := format.YAML([]byte(block)); err != nil || block != string(want) {
				t.Errorf("%s:%d: %v, the usual form is\n%s", page, strings.Count(string(text[:at[0]]), "\n")+1, err, want)
			}
		}
	}
	if found < 30 {
		t.Errorf("%d blocks", found)
	}
}

// TestLineEnds: a file with the line ends of Windows becomes the same as one without.
func TestLineEnds(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("..", "..", "examples", "*", "*.workflow.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want, err := format.YAML(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := format.YAML([]byte(strings.ReplaceAll(string(text), "\n", "\r\n"))); err != nil || string(got) != string(want) {
			t.Errorf("%s: %v\n%s", file, err, got)
		}
	}
}

// TestWhatCannotBeFormatted is left alone, with an error that says why.
func TestWhatCannotBeFormatted(t *testing.T) {
	t.Parallel()
	head := "document: {schema: s, name: n, version: '1'}\n"
	for name, tt := range map[string]struct {
		text string
		code problem.Code
		says string
	}{
		"no YAML": {"a: [", problem.ValidationError, ""},
		"an alias before its anchor": {
			"edges: &e [{source: a, target: b}]\nnodes: *e\n" + head, problem.Unsupported, "anchors",
		},
		"a comment in an empty list": {
			head + "nodes: [\n  # lost\n]\nedges: []\nstate_schema: {}\n", problem.Unsupported, `"# lost" on line 3`,
		},
		"two comments for one line": {
			head + "nodes: [ # one\n  {id: a, type: start}\n] # two\n", problem.Unsupported, `"# one" on line 2`,
		},
	} {
		_, err := format.YAML([]byte(tt.text))
		e, ok := problem.As(err)
		if !ok || !errors.Is(err, tt.code) || !strings.Contains(e.Message+e.Hint, tt.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := format.JSON([]byte(`{"a":1,"a":2}`)); !errors.Is(err, problem.ValidationError) {
		t.Errorf("JSON: %v", err)
	}
}

// TestCommentsStayWhereTheyAre: each comment stays beside what it stood beside, or the text is refused. A text without a wanted form is in
// its form.
func TestCommentsStayWhereTheyAre(t *testing.T) {
	t.Parallel()
	const refused = "refused"
	for name, tt := range map[string]struct{ text, want string }{
		"behind an anchor":               {"a: &x # c\n  b: 1\n", refused},
		"behind an anchor of a list":     {"a: &x # c\n  - b\nb: *x # d\n", refused},
		"behind an anchor of an element": {"a:\n  - &x # c\n    b: 1\n  # d\n  - *x # e\n", refused},
		"behind a dash":                  {"nodes:\n  - id: a\n  # foot\n\n  # head\n  - # c\n    id: b\n", refused},
		"behind a dash, of members in another order": {
			"nodes:\n- # c\n  type: end\n  # d\n  id: b\n", refused,
		},
		"behind a dash of a list": {text: "a:\n  - # c\n    # d\n    - - b # e\n      # f\n"},
		"behind a dash of a text": {"a:\n- # c\n  b\n", refused},
		"at the end of an element": {
			"nodes:\n  - id: a\n    # of a\n  - id: b\n    # of b\n  # of nodes\nedges: []\n# of all\n",
			"nodes:\n  - id: a\n    # of a\n  - id: b\n    # of b\n# of nodes\n\nedges: []\n# of all\n",
		},
		"at the end of a member of an element": {text: "nodes:\n  - id: a\n    config:\n      model: m\n      # of config\n    # of a\n  # of b\n  - id: b\n"},
		"at the end, in other places": {
			"a:\n- b: 1\n   # of the element\n  # so is this\n# of c\nc: 1\n", "a:\n  - b: 1\n    # of the element\n    # so is this\n# of c\nc: 1\n",
		},
		"before an element, at the margin": {"a:\n  - b\n# - x\n#   y: 1\n  - c\n", "a:\n  - b\n  # - x\n  #   y: 1\n  - c\n"},
		"behind the member before": {
			"nodes: [] # n\n# foot\n\n# head\ndocument: {} # d\n\nedges: []\n", "# foot\n\n# head\ndocument: {} # d\nnodes: [] # n\n\nedges: []\n",
		},
		"a heading":                   {"# heading\n\n# nodes\nnodes: []\ndocument: {}\n", "# heading\n\ndocument: {}\n\n# nodes\nnodes: []\n"},
		"a heading before a mark":     {"# heading\n--- # x\na: 1\n...\n# end\n", refused},
		"paragraphs":                  {"a: 1\n\n# one\n\n# two\n\nb: 2\n\n# three\n\n# four\n", "a: 1\n# one\n\n# two\nb: 2\n\n# three\n\n# four\n"},
		"between a key and its block": {text: "a: # c\n  # d\n\n  # e\n  b: 1\n"},
		"between a key and its value": {"a:\n  # c\n  b\nc:\n  # d\n  {e: 1} # f\n", "a: b\n# c\nc: {\n  # d\n  e: 1} # f\n"},
		"of texts in blocks": {
			text: "a: | # c\n  text # no comment\n  # neither\n# d\nb: >- # e\n  text\n\n# f\nc: |+\n  text\n\n# g\nd: 1\n",
		},
		"a text in a block with blanks at its end":            {text: "a: | # c\n  b # d \t\n  # e\nb: 1\n"},
		"a text in a block that the library puts into quotes": {"a: |\n  x # y \t\n  z  \n# c\nb: 1\n", "a: \"x # y \\t\\nz  \\n\"\n# c\nb: 1\n"},
		"a folded text with empty lines at its end, which the library writes as another one": {
			"a: >+\n  b\n  c\n\n# d\ne: 1\n", "a: |+\n  b c\n\n# d\ne: 1\n",
		},
		"of texts in quotes": {
			"a: 'b # c\n\n  # d' # e\nb: \"f # g \\\n  # h\" # i\n", "a: 'b # c\n\n  # d' # e\nb: \"f # g # h\" # i\n",
		},
		"in a flow collection": {
			"a: [\n  b, # b\n  # c\n  c, {d: 1}, # d\n  # end\n] # all\n", "a: [b, # b\n  # c\n  c, {d: 1,} # d\n  # end\n] # all\n",
		},
		"behind lists that become blocks":        {"edges: [{source: a, target: b}] # all\n", "edges: # all\n  - {source: a, target: b}\n"},
		"without a value":                        {"a: # c\nb:\n  - # d\n  # e\n  - f\n", refused},
		"behind a key that is written at length": {"? a # c\n: b\n", "a: b # c\n"},
	} {
		want := tt.want
		got, err := format.YAML([]byte(tt.text))
		if tt.want == "" {
			want = tt.text
		}
		if want == refused {
			if !errors.Is(err, problem.Unsupported) || !strings.Contains(err.Error(), "would be lost") {
				t.Errorf("%s: %v\n%s", name, err, got)
			}
			continue
		}
		if err != nil || string(got) != want {
			t.Errorf("%s: %v\n%q", name, err, got)
		}
	}
}

// FuzzFormat: a text that is formatted says the same, with its comments, and stays as it is the second time.
func FuzzFormat(f *testing.F) {
	for _, pattern := range []string{"testdata/*.in.*", "../../examples/*/*.workflow.*"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
	f.Add([]byte("a: |+\n  x\n\n\nb: 1\n"))
	f.Add([]byte("# a\na: 1 # b\n# c\n"))
	f.Add([]byte("# a\r# b\ra: 'x#y' # c # d\u2028b: #\n  - \"#\"\n"))
	f.Add([]byte("a:\n- # b\n  c: &x [d, # e\n   'f # g'] # h\n  # i\n\n# j\nb: > # k\n l\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, x := range []struct {
			format func([]byte) ([]byte, error)
			parse  func([]byte) (*definition.Document, error)
		}{{format.JSON, definition.Parse}, {format.YAML, definition.ParseYAML}} {
			once, err := x.format(text)
			if err != nil {
				if _, coded := problem.As(err); !coded {
					t.Fatalf("refused without a code: %v", err)
				}
				continue
			}
			for _, comment := range libraryComments(text) {
				if !strings.Contains(string(once), comment) {
					t.Fatalf("the comment %q is lost:\n%s", comment, once)
				}
			}
			before, err := x.parse(text)
			if err != nil {
				t.Fatal(err)
			}
			after, err := x.parse(once)
			if err != nil || before.Hash() != after.Hash() {
				t.Fatalf("it says something else: %v\n%s", err, once)
			}
			if twice, err := x.format(once); err != nil || string(twice) != string(once) {
				t.Fatalf("the second time differs: %v\n%s\n%s", err, once, twice)
			}
		}
	})
}

// libraryComments lists the lines of comment that the library finds, which are not all.
func libraryComments(text []byte) (all []string) {
	var doc yaml.Node
	if yaml.Unmarshal(text, &doc) != nil {
		return nil
	}
	var walk func(n *yaml.Node)
	walk = func(n *yaml.Node) {
		for line := range strings.Lines(n.HeadComment + "\n" + n.LineComment + "\n" + n.FootComment) {
			all = append(all, strings.TrimSpace(line))
		}
		for _, inner := range n.Content {
			walk(inner)
		}
	}
	walk(&doc)
	return all
}
