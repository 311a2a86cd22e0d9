package archtest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestCodesOfFailuresAreDeclared: a code that is written out where a failure or an error is made is one that package problem declares, or
// one of the results that models read.
func TestCodesOfFailuresAreDeclared(t *testing.T) {
	t.Parallel()
	known, found := declaredCodes(t), 0
	code := regexp.MustCompile(`^[A-Z][A-Z0-9]*(_[A-Z0-9]+)+$`)
	for _, p := range list(t) {
		room := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		paths, err := filepath.Glob(filepath.Join(root, room, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		fset, consts := token.NewFileSet(), map[string]ast.Expr{}
		var files []*ast.File
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
			ast.Inspect(f, func(n ast.Node) bool {
				if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Names) == len(spec.Values) {
					for i, name := range spec.Names {
						consts[name.Name] = spec.Values[i]
					}
				}
				return true
			})
		}
		check := func(e ast.Expr) {
			if id, ok := e.(*ast.Ident); ok && consts[id.Name] != nil {
				e = consts[id.Name]
			}
			if call, ok := e.(*ast.CallExpr); ok && len(call.Args) == 1 { // a conversion
				e = call.Args[0]
			}
			lit, ok := e.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return
			}
			text, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			if !known[text] {
				t.Errorf("%s: code %q is not declared: add it to graph/problem/codes.go and docs/reference/codes.md", fset.Position(lit.Pos()), text)
			}
		}
		for _, f := range files {
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CallExpr: // activities.Fail(code, …), problem.New(code, …)
					fun, ok := n.Fun.(*ast.SelectorExpr)
					if !ok || len(n.Args) < 2 {
						return true
					}
					if x, ok := fun.X.(*ast.Ident); ok && (x.Name == "activities" && fun.Sel.Name == "Fail" || x.Name == "problem" && fun.Sel.Name == "New") {
						found++
						check(n.Args[0])
					}
				case *ast.KeyValueExpr: // Code: code
					if key, ok := n.Key.(*ast.Ident); ok && strings.EqualFold(key.Name, "code") {
						if lit, ok := n.Value.(*ast.BasicLit); ok && code.MatchString(strings.Trim(lit.Value, `"`)) {
							check(lit)
						}
					}
				}
				return true
			})
		}
	}
	if found < 300 {
		t.Errorf("only %d failures and errors found", found)
	}
}
