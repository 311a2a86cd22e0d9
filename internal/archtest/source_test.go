package archtest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// TestPureRoomsReadNoClock: time is an argument in the core.
func TestPureRoomsReadNoClock(t *testing.T) {
	t.Parallel()
	banned := map[string]bool{"Now": true, "Since": true, "Until": true, "Sleep": true, "After": true, "NewTimer": true, "Tick": true, "NewTicker": true}
	files := 0
	for _, room := range pure {
		paths, err := filepath.Glob(filepath.Join(root, room, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			files++
			fset := token.NewFileSet()
			f, err := parser.ParseFile(fset, path, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				sel, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				if x, ok := sel.X.(*ast.Ident); ok && x.Name == "time" && x.Obj == nil && banned[sel.Sel.Name] {
					t.Errorf("%s: time.%s in the core", fset.Position(n.Pos()), sel.Sel.Name)
				}
				return true
			})
		}
	}
	if files < 40 {
		t.Fatalf("only %d files read", files)
	}
}

// shown returns what can show a claim: names of tests, scripts and vectors.
func shown(t *testing.T) map[string]bool {
	t.Helper()
	known, vectors := map[string]bool{}, filepath.Join(root, "conformance/vectors")+string(filepath.Separator)
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != root {
			return filepath.SkipDir
		}
		switch {
		case strings.HasSuffix(path, "_test.go"):
			src, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`).FindAllStringSubmatch(string(src), -1) {
				known[m[1]] = true
			}
		case strings.Contains(path, "graph/machine/testdata/") && strings.HasSuffix(path, ".txt"):
			known["script "+strings.TrimSuffix(filepath.Base(path), ".txt")] = true
		case strings.HasPrefix(path, vectors) && strings.HasSuffix(path, ".vector.json"):
			known["vector "+filepath.ToSlash(strings.TrimSuffix(strings.TrimPrefix(path, vectors), ".vector.json"))] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return known
}

// TestThreatsAreMet: every attack in docs/reference/threats.md names a test of its defence, and each of these tests exists.
func TestThreatsAreMet(t *testing.T) {
	t.Parallel()
	known, rows, threats := shown(t), 0, false
	for line := range strings.Lines(pages(t)[filepath.Join(root, "docs/reference/threats.md")]) {
		cells := strings.Split(line, "|")
		switch {
		case len(cells) != 5:
			threats = false
		case strings.HasPrefix(line, "| attack |"):
			threats = true
		case threats && !strings.HasPrefix(line, "|---"):
			rows++
			tests := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[3], -1)
			if len(tests) == 0 {
				t.Errorf("docs/reference/threats.md: no test shows the defence against %s", strings.TrimSpace(cells[1]))
			}
			for _, m := range tests {
				if !known[m[1]] {
					t.Errorf("docs/reference/threats.md: %q does not exist", m[1])
				}
			}
		}
	}
	if rows < 35 {
		t.Errorf("only %d rows", rows)
	}
}

// TestShownBy: every test, script and vector that docs/reference/differences.md names exists. Another test runs each of them.
func TestShownBy(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile(filepath.Join(root, "docs/reference/differences.md"))
	if err != nil {
		t.Fatal(err)
	}
	known := shown(t)
	rows := 0
	for line := range strings.Lines(string(doc)) {
		cells := strings.Split(line, "|")
		if len(cells) < 6 || !regexp.MustCompile(`^ (W-|12\.1\.)`).MatchString(cells[1]) {
			continue
		}
		rows++
		by := strings.TrimSpace(cells[4])
		if by == "" {
			if !strings.Contains(cells[3], "kept") && !strings.Contains(cells[3], "later") {
				t.Errorf("%s: no test shows that it is fixed", strings.TrimSpace(cells[1]))
			}
			continue
		}
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(by, -1) {
			if !known[m[1]] {
				t.Errorf("%s: %q does not exist", strings.TrimSpace(cells[1]), m[1])
			}
		}
	}
	if rows < 60 {
		t.Errorf("only %d rows", rows)
	}
}
