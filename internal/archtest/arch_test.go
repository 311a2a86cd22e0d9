package archtest_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/workflows-engine/workflows-engine"

// pkg is what `go list -json` tells of a package.
type pkg struct {
	ImportPath string
	Name       string
	Doc        string
	Imports    []string
	Deps       []string
}

func list(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Name,Doc,Imports,Deps", module+"/...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var ps []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		ps = append(ps, p)
	}
	if len(ps) < 10 {
		t.Fatalf("only %d packages listed", len(ps))
	}
	return ps
}

// rooms lists, for each room, the rooms of this module that it may import directly. A room may import only what stands
// below it; a package that is not listed here has no place yet.
var rooms = map[string][]string{
	"schemas":                   {},
	"graph/problem":             {},
	"internal/jsonvalue":        {"graph/problem"},
	"internal/jsonschema":       {"graph/problem", "internal/jsonvalue"},
	"internal/jsondelta":        {"graph/problem"},
	"internal/signing":          {"internal/jsonvalue", "graph/problem"},
	"internal/suggest":          {},
	"internal/sdnotify":         {},
	"internal/leaktest":         {},
	"internal/mcpserver/stdio":  {},
	"graph/expr":                {"graph/problem", "internal/jsonvalue"},
	"graph/state":               {"graph/problem", "internal/jsonvalue", "internal/jsonschema"},
	"graph/definition":          {"graph/problem", "graph/expr", "graph/state", "internal/jsonvalue", "internal/jsonschema", "internal/suggest", "schemas"},
	"history":                   {"graph/problem", "internal/jsonvalue"},
	"history/runfile":           {"history", "graph/problem", "internal/jsonvalue"},
	"history/historymem":        {"history", "graph/problem", "internal/jsonvalue"},
	"history/historysql":        {"history", "history/internal/shortform", "graph/problem", "internal/jsonvalue"},
	"history/historytest":       {"history", "graph/problem", "internal/jsonvalue"},
	"graph/machine":             {"history", "graph/problem", "graph/definition", "graph/expr", "graph/state", "internal/jsondelta", "internal/jsonvalue", "internal/jsonschema"},
	"activities":                {"graph/problem", "internal/jsonvalue"},
	"activities/activitiestest": {"activities", "graph/problem"},
	"internal/childprocess":     {"graph/problem"},
	"activities/toolcall":       {"activities", "graph/expr", "graph/problem", "internal/childprocess", "internal/jsonschema", "internal/jsonvalue", "internal/suggest"},
	"activities/stepcommand":    {"activities", "graph/problem", "internal/childprocess", "internal/jsonvalue"},
	"internal/manifest":         {"graph/problem", "internal/jsonvalue", "internal/suggest"},
	"activities/llmcall":        {"activities", "graph/problem", "graph/expr", "internal/jsonschema", "internal/jsonvalue"},
	"delegate":                  {"activities", "graph/problem", "internal/jsonvalue"},
	"graph/runview":             {"history", "graph/problem", "graph/definition", "graph/machine", "internal/jsonvalue"},
	"history/internal/shortform": {
		"history", "graph/problem", "internal/jsondelta", "internal/jsonvalue",
	},
	"graph/admit": {
		"history", "graph/problem", "graph/definition", "graph/machine", "graph/runview", "internal/jsonvalue", "internal/jsonschema",
	},
	"graph/execution": {
		"history", "graph/problem", "graph/definition", "graph/machine", "graph/runview", "graph/admit", "internal/jsonvalue",
	},
	"graph/library":  {"history", "graph/problem", "graph/definition", "graph/runview", "graph/admit", "graph/execution"},
	"graph/replay":   {"history", "graph/problem", "graph/definition", "graph/machine", "graph/library"},
	"graph/perform":  {"activities", "delegate", "graph/problem", "graph/definition", "graph/machine", "graph/runview", "graph/execution", "internal/jsonvalue"},
	"graph/schedule": {"history", "graph/machine", "graph/execution"},
	"graph/notify":   {"history", "graph/machine", "graph/execution"},
	"graph": {
		"activities", "delegate", "history", "history/runfile", "graph/problem", "graph/definition", "graph/machine", "graph/runview",
		"graph/admit", "graph/execution", "graph/library", "graph/replay", "graph/perform", "graph/schedule", "graph/notify",
	},
	"conformance": {
		"activities", "activities/activitiestest", "delegate", "history", "history/historymem", "graph", "graph/problem",
		"graph/definition", "graph/machine", "internal/jsonvalue", "internal/signing",
	},
	"internal/httpworkflow": {"graph/definition", "graph/problem"},
	"internal/config": {
		"internal/httpworkflow",
		"activities/stepcommand", "activities/toolcall", "internal/manifest",
		"activities", "activities/llmcall", "delegate", "history", "history/historymem", "history/historysql", "graph", "graph/problem",
		"graph/definition", "graph/machine", "internal/jsonvalue", "internal/signing",
	},
	"internal/mcpserver": {
		"history", "graph", "graph/problem", "graph/definition", "graph/machine", "internal/jsonvalue", "internal/suggest", "schemas",
	},
	"internal/cli": {
		"activities", "activities/toolcall", "internal/manifest", "internal/sdnotify",
		"conformance", "history", "history/runfile", "graph", "graph/problem", "graph/definition", "graph/machine",
		"internal/config", "internal/jsonvalue", "internal/jsonschema", "schemas",
	},
	"cmd/workflows-engine":     {"internal/cli"},
	"cmd/workflows-engine-mcp": {"internal/config", "internal/mcpserver", "internal/mcpserver/stdio", "graph", "graph/machine", "graph/problem"},
	"examples":                 {},
	"examples/lighthouse":      {},
	"examples/lighthouse/live": {"examples/lighthouse", "internal/cli"},
	"internal/archtest":        {},
}

func TestRoomsImportOnlyRoomsBelow(t *testing.T) {
	t.Parallel()
	for _, p := range list(t) {
		room := strings.TrimPrefix(p.ImportPath, module+"/")
		allowed, ok := rooms[room]
		if !ok {
			t.Errorf("package %s has no place in the house: add it to rooms, with what it may import", room)
			continue
		}
		for _, imp := range p.Imports {
			below, ours := strings.CutPrefix(imp, module+"/")
			if !ours {
				continue
			}
			found := false
			for _, a := range allowed {
				found = found || a == below
			}
			if !found {
				t.Errorf("%s imports %s, which is not below it", room, below)
			}
		}
	}
}

// pure are the rooms that do no I/O and read no clock.
var pure = []string{"history/internal/shortform", "graph/runview", "graph/admit", "graph/problem", "graph/expr", "graph/state", "graph/definition", "graph/machine", "internal/jsonvalue", "internal/jsondelta", "internal/jsonschema"}

func TestPureRoomsDoNoIO(t *testing.T) {
	t.Parallel()
	banned := map[string]string{
		"os":           "the core touches no files",
		"os/exec":      "the core starts nothing",
		"net":          "the core talks to nobody",
		"net/http":     "the core talks to nobody",
		"log":          "the core returns facts",
		"log/slog":     "the core returns facts",
		"database/sql": "the history owns the database",
		"math/rand":    "the core draws no lots",
		"math/rand/v2": "the core draws no lots",
		"crypto/rand":  "the core draws no lots",
	}
	for _, p := range list(t) {
		for _, room := range pure {
			if p.ImportPath != module+"/"+room {
				continue
			}
			for _, imp := range p.Imports {
				if why, bad := banned[imp]; bad {
					t.Errorf("%s imports %s: %s", room, imp, why)
				}
			}
		}
	}
}

// TestEmbeddersInheritLittle keeps drivers and providers out of what an embedder of graph links.
func TestEmbeddersInheritLittle(t *testing.T) {
	t.Parallel()
	banned := map[string]string{
		"modernc.org/sqlite":                         "a store is a choice",
		"github.com/spf13/cobra":                     "only the command line has commands",
		"github.com/modelcontextprotocol/go-sdk/mcp": "only the MCP server speaks MCP",
		"github.com/sashabaranov/go-openai":          "providers come with their executors",
		module + "/internal/cli":                     "the library knows no command line",
		module + "/internal/config":                  "the library reads no configuration",
		module + "/history/historysql":               "a store is a choice",
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

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
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
