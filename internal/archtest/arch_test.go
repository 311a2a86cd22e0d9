package archtest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/workflows-engine/workflows-engine"

// pkg is a package as `go list -json` prints it.
type pkg struct {
	ImportPath string
	Name       string
	Doc        string
	Imports    []string
	Deps       []string
}

var listed = sync.OnceValues(func() (ps []pkg, err error) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Name,Doc,Imports,Deps", module+"/...").Output()
	if err != nil {
		return nil, err
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return ps, nil
		} else if err != nil {
			return nil, err
		}
		ps = append(ps, p)
	}
})

// list returns the packages of this module.
func list(t *testing.T) []pkg {
	t.Helper()
	ps, err := listed()
	if err != nil || len(ps) < 10 {
		t.Fatalf("go list: %d packages, %v", len(ps), err)
	}
	return ps
}

// engine lists the packages of the engine from the lowest to the highest. A package may import those before it.
var engine = []string{
	"graph/problem", "graph/expr", "graph/definition", "graph/lint", "history", "history/runfile", "graph/machine", "graph/view", "graph/internal/admit",
	"graph/internal/library", "graph/internal/work", "graph/internal/run", "graph/internal/outbox", "graph/internal/transfer", "graph/internal/process",
	"graph", "graph/graphtest",
}

// beside lists what the engine may import besides its own packages: the executor port, and packages that know nothing of runs.
var beside = []string{
	"activities", "internal/agentsteps", "internal/arrival", "internal/backtrack", "internal/guard", "internal/jsondelta", "internal/jsonschema", "internal/jsonvalue",
	"internal/processid", "internal/suggest", "internal/wait",
	"internal/runjson", // the body of a webhook
}

// TestArrowsRunDown: the packages of the engine import only those below them, and nothing of adapters, settings and stores.
func TestArrowsRunDown(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, p := range list(t) {
		name := strings.TrimPrefix(p.ImportPath, module+"/")
		at := slices.Index(engine, name)
		if at < 0 {
			if strings.HasPrefix(name, "graph/") {
				t.Errorf("%s has no place in the order of the engine's packages", name)
			}
			continue
		}
		seen++
		for _, path := range p.Imports {
			imported, ours := strings.CutPrefix(path, module+"/")
			if ours && !slices.Contains(engine[:at], imported) && !slices.Contains(beside, imported) {
				t.Errorf("%s imports %s", name, imported)
			}
		}
	}
	if seen != len(engine) {
		t.Errorf("%d of the %d packages exist", seen, len(engine))
	}
}

// TestTheEngineLeadsToNoSettings: nothing that the engine imports, however far below, is settings or presentation.
func TestTheEngineLeadsToNoSettings(t *testing.T) {
	t.Parallel()
	imports := map[string][]string{}
	for _, p := range list(t) {
		imports[p.ImportPath] = p.Imports
	}
	above := []string{"internal/config", "internal/cli", "internal/mcpserver", "internal/timeline", "internal/picture", "internal/guide", "internal/explain"}
	seen := map[string]bool{}
	var visit func(path string, by []string)
	visit = func(path string, by []string) {
		name, ours := strings.CutPrefix(path, module+"/")
		if !ours || seen[path] {
			return
		}
		seen[path] = true
		by = append(slices.Clip(by), name)
		if slices.ContainsFunc(above, func(p string) bool { return name == p || strings.HasPrefix(name, p+"/") }) {
			t.Errorf("the engine comes to %s", strings.Join(by, " → "))
		}
		for _, next := range imports[path] {
			visit(next, by)
		}
	}
	visit(module+"/graph", nil)
	if len(seen) < 20 {
		t.Errorf("%d packages were looked at", len(seen))
	}
}

// apart lists packages and the beginnings of the paths that they must not import.
var apart = map[string][]string{
	"activities":         {"graph/machine", "graph/internal", "history", "internal/config", "internal/cli", "internal/mcpserver"},
	"delegate":           {"graph/machine", "graph/internal", "history", "internal/config", "internal/cli", "internal/mcpserver"},
	"internal/mcpserver": {"history/historysql", "history/historypg", "history/historymem", "internal/cli"},
	"history/historysql": {"graph/machine", "graph/definition", "internal/config", "internal/cli"},
	"history/historypg":  {"graph/machine", "graph/definition", "internal/config", "internal/cli"},
	"history/historymem": {"graph/machine", "graph/definition", "internal/config", "internal/cli"},
}

// TestEdgesStayApart: executors know no histories, and the MCP server knows no store.
func TestEdgesStayApart(t *testing.T) {
	t.Parallel()
	under := func(path, parent string) bool { return path == parent || strings.HasPrefix(path, parent+"/") }
	for _, p := range list(t) {
		name := strings.TrimPrefix(p.ImportPath, module+"/")
		for parent, banned := range apart {
			for _, path := range p.Imports {
				imported := strings.TrimPrefix(path, module+"/")
				if under(name, parent) && slices.ContainsFunc(banned, func(b string) bool { return under(imported, b) }) {
					t.Errorf("%s imports %s", name, imported)
				}
			}
		}
	}
}

// pure lists the packages that do no I/O and read no clock.
var pure = []string{"activities/chat", "delegate/agentloop", "graph/view", "graph/internal/admit", "graph/problem", "graph/expr", "graph/definition", "graph/lint", "graph/machine", "internal/jsonvalue", "internal/agentsteps", "internal/runjson", "internal/timeline", "internal/jsonobject", "internal/document", "internal/jsondelta", "internal/jsonschema"}

func TestPurePackagesDoNoIO(t *testing.T) {
	t.Parallel()
	banned := map[string]string{
		"os":           "the core touches no files",
		"os/exec":      "the core starts nothing",
		"net":          "the core opens no connection",
		"net/http":     "the core opens no connection",
		"log":          "the core returns facts",
		"log/slog":     "the core returns facts",
		"database/sql": "only the store opens the database",
		"math/rand":    "the core draws no random numbers",
		"math/rand/v2": "the core draws no random numbers",
		"crypto/rand":  "the core draws no random numbers",
	}
	for _, p := range list(t) {
		name := strings.TrimPrefix(p.ImportPath, module+"/")
		if !slices.Contains(pure, name) {
			continue
		}
		for _, imp := range p.Imports {
			if why, bad := banned[imp]; bad {
				t.Errorf("%s imports %s: %s", name, imp, why)
			}
		}
	}
}

// TestEmbeddersInheritLittle keeps drivers and providers out of what an embedder of graph links.
func TestEmbeddersInheritLittle(t *testing.T) {
	t.Parallel()
	banned := map[string]string{
		"modernc.org/sqlite":                         "a store is a choice",
		"github.com/jackc/pgx/v5":                    "a store is a choice",
		"github.com/spf13/cobra":                     "only the command line has commands",
		"github.com/modelcontextprotocol/go-sdk/mcp": "only the MCP server speaks MCP",
		"github.com/sashabaranov/go-openai":          "providers come with their executors",
		module + "/internal/cli":                     "the library knows no command line",
		module + "/internal/config":                  "the library reads no configuration",
		module + "/history/historysql":               "a store is a choice",
		module + "/history/historypg":                "a store is a choice",
		"github.com/rogpeppe/go-internal/testscript": "tests only",
		"testing": "tests only",
		"github.com/santhosh-tekuri/jsonschema/v5/httploader": "no schema is ever fetched",
	}
	for _, p := range list(t) {
		if p.ImportPath != module+"/graph" && p.ImportPath != module+"/graph/machine" {
			continue
		}
		for _, dep := range p.Deps {
			if why, bad := banned[dep]; bad {
				t.Errorf("%s depends on %s: %s", p.ImportPath, dep, why)
			}
		}
	}
}

// TestDriversHaveOnePlace: only its store imports the driver of a database.
func TestDriversHaveOnePlace(t *testing.T) {
	t.Parallel()
	places := map[string]string{"github.com/jackc/": "history/historypg", "modernc.org/": "history/historysql"}
	seen := map[string]bool{}
	for _, p := range list(t) {
		name := strings.TrimPrefix(p.ImportPath, module+"/")
		for driver, place := range places {
			if !slices.ContainsFunc(p.Imports, func(path string) bool { return strings.HasPrefix(path, driver) }) {
				continue
			}
			if seen[driver] = true; name != place && !strings.HasPrefix(name, place+"/") {
				t.Errorf("%s imports %s", name, driver)
			}
		}
	}
	if len(seen) != len(places) {
		t.Errorf("only %v are imported", seen)
	}
}

// TestTemporalHasItsOwnModule: the SDK of Temporal belongs to the module graph/temporal alone.
func TestTemporalHasItsOwnModule(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"go.mod", "go.sum", "tools.mod"} {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte("go.temporal.io")) {
			t.Errorf("%s names go.temporal.io", file)
		}
	}
	own, err := os.ReadFile(filepath.Join(root, "graph", "temporal", "go.mod"))
	if err != nil || !bytes.Contains(own, []byte("go.temporal.io/sdk ")) {
		t.Errorf("graph/temporal/go.mod does not require the SDK (%v)", err)
	}
}

// TestPostgresCanBeLeftOut: with the tag nopostgres, the programs link nothing of the store on PostgreSQL or its driver; without it they do.
func TestPostgresCanBeLeftOut(t *testing.T) {
	t.Parallel()
	for _, tag := range []string{"", "nopostgres"} {
		cmd := exec.Command("go", "list", "-deps", "-tags", tag, "./cmd/...")
		cmd.Dir = "../.."
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		linked := slices.ContainsFunc(strings.Fields(string(out)), func(path string) bool {
			return path == module+"/history/historypg" || strings.HasPrefix(path, "github.com/jackc/")
		})
		if linked != (tag == "") {
			t.Errorf("tag %q: the programs link PostgreSQL: %v", tag, linked)
		}
	}
}

func TestPackagesHaveAComment(t *testing.T) {
	t.Parallel()
	for _, p := range list(t) {
		want := "Package " + p.Name + " "
		if p.Name == "main" {
			want = "Command "
		}
		if !strings.HasPrefix(p.Doc, want) && p.Doc != "" || p.Doc == "" && !strings.HasSuffix(p.ImportPath, "/archtest") && !strings.HasSuffix(p.ImportPath, "/examples") {
			t.Errorf("%s: its comment begins %q, want %q", p.ImportPath, p.Doc, want)
		}
	}
}
