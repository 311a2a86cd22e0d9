package archtest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

var (
	// adapterNames are what only users of an adapter know: tools and their arguments, variables, commands and flags.
	adapterNames = regexp.MustCompile(`workflow_(start|status|resume|submit|signal|cancel|list)|\bwait_ms\b|activity_execution_mode|allow_existing|` +
		`WORKFLOW_ENGINE_|(^|[ (,])--[a-z]|workflows-engine (run|status|recover|gc|verify|worker|list)\b`)
	// goNames are those that adapters translate, and what looks like one.
	goNames = regexp.MustCompile(`\b(Runner|TreeLimits|([A-Z][a-z]+)?Options|[A-Z][a-z]+Request)\.[A-Z][A-Za-z]+`)
	library = []string{"graph", "activities", "delegate", "history"}
)

// TestTheLibraryNamesGoThings: texts of the library speak of Go names that adapters translate (see problem.Names), or of
// neutral things, and never of an adapter's own names.
func TestTheLibraryNamesGoThings(t *testing.T) {
	t.Parallel()
	names := problem.Names()
	used := map[string]bool{}
	for path, src := range sources(t) {
		if room, _, _ := strings.Cut(path, "/"); !slices.Contains(library, room) || path == "graph/problem/names.go" || strings.HasPrefix(path, "graph/temporal/cmd/") || strings.HasPrefix(path, "history/historypg/pgtest/") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, src, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			if found := adapterNames.FindString(text); found != "" && found != text { // a text that is all name is data
				t.Errorf("%s: %q: %q is an adapter's name", path, text, found)
			}
			for _, name := range goNames.FindAllString(text, -1) {
				if used[name] = true; !slices.Contains(names, name) {
					t.Errorf("%s: %q: problem.Names lacks %q, so that no adapter translates it", path, text, name)
				}
			}
			return true
		})
	}
	for i, name := range names {
		if !used[name] {
			t.Errorf("problem.Names has %q, which no text uses", name)
		}
		for _, other := range names[i+1:] {
			if strings.HasPrefix(name, other) || strings.HasPrefix(other, name) {
				t.Errorf("%q and %q cannot be told apart", name, other)
			}
		}
	}
}
