package problem_test

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite testdata/codes.txt")

// TestCodes holds the closed list of codes: adding one shows in the diff of testdata/codes.txt, renaming one fails here
// and would break whoever matches on it.
func TestCodes(t *testing.T) {
	t.Parallel()
	f, err := parser.ParseFile(token.NewFileSet(), "codes.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var codes []string
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for _, v := range spec.Values {
			lit, ok := v.(*ast.BasicLit)
			if !ok {
				t.Errorf("%s must be a literal", spec.Names[0].Name)
				continue
			}
			text, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			codes = append(codes, text)
		}
		return true
	})
	slices.Sort(codes)
	if unique := slices.Compact(slices.Clone(codes)); len(unique) != len(codes) {
		t.Errorf("a code is declared twice")
	}
	got := strings.Join(codes, "\n") + "\n"
	if *update {
		if err := os.WriteFile("testdata/codes.txt", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile("testdata/codes.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the codes differ from testdata/codes.txt; go test ./graph/problem -update rewrites it\ngot\n%s", got)
	}
}
