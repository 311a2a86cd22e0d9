package format_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
				t.Errorf("got\n%s", got)
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

// TestExamplesCanBeFormatted: the definitions of the examples keep what they say and their comments, and stay as they are the second time.
func TestExamplesCanBeFormatted(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("..", "..", "examples", "*", "*.workflow.*"))
	if err != nil || len(files) < 5 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		once, err := formatted(file, text)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if twice, err := formatted(file, once); err != nil || string(twice) != string(once) {
			t.Errorf("%s: the second time differs: %v", file, err)
		}
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
		"a comment that the reader drops": {
			head + "nodes: [\n  # lost\n]\nedges: []\nstate_schema: {}\n", problem.Unsupported, "# lost",
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
