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

// rooms lists, for each package of this module, the packages of this module that it may import: only such as are below it.
var rooms = map[string][]string{
	"schemas":                     {},
	"graph/problem":               {},
	"internal/guard":              {},
	"internal/regularfile":        {},
	"graph/trace":                 {"history"},
	"internal/jsonvalue":          {"graph/problem"},
	"internal/backtrack":          {},
	"internal/jsonschema":         {"graph/problem", "internal/backtrack", "internal/jsonvalue"},
	"internal/jsondelta":          {"graph/problem"},
	"internal/signing":            {"internal/config/envname", "internal/jsonvalue", "graph/problem"},
	"internal/suggest":            {},
	"docs":                        {},
	"internal/guide":              {"docs", "graph/definition", "graph/problem", "internal/suggest"},
	"internal/format":             {"graph/definition", "graph/problem", "internal/jsonvalue"},
	"internal/scaffold":           {"internal/jsonvalue"},
	"internal/explain":            {"docs", "internal/suggest"},
	"internal/shellword":          {},
	"internal/outline":            {"internal/jsonvalue"},
	"internal/config/envname":     {"graph/problem"},
	"internal/port":               {},
	"internal/wait":               {},
	"internal/memory":             {"graph/problem", "internal/wait"},
	"internal/jsonobject":         {"graph/problem", "internal/jsonvalue", "internal/suggest"},
	"internal/sdnotify":           {},
	"internal/leaktest":           {},
	"internal/soak":               {},
	"internal/enginetest":         {"graph/definition"},
	"internal/mcpserver/frame":    {"internal/jsonvalue"},
	"internal/mcpserver/stdio":    {"internal/mcpserver/frame"},
	"internal/mcpserver/elicit":   {"graph/problem", "internal/jsonvalue"},
	"internal/mcphost":            {"graph/problem", "internal/regularfile"},
	"internal/doctor":             {"history", "graph/problem", "internal/catalog", "internal/config"},
	"graph/expr":                  {"graph/problem", "internal/backtrack", "internal/jsonvalue", "internal/suggest"},
	"graph/fill":                  {"graph/problem", "graph/expr", "internal/jsonvalue"},
	"graph/state":                 {"graph/problem", "internal/jsonvalue", "internal/jsonschema"},
	"graph/definition":            {"graph/problem", "graph/expr", "graph/state", "internal/jsonvalue", "internal/jsonschema", "internal/suggest", "schemas"},
	"graph/lint":                  {"graph/problem", "graph/definition", "graph/state", "internal/jsonvalue", "internal/suggest"},
	"history":                     {"graph/problem", "internal/jsonvalue"},
	"history/runfile":             {"history", "graph/problem", "internal/jsonvalue"},
	"history/internal/storeclock": {},
	"history/historymem":          {"history", "history/internal/storeclock", "graph/problem", "internal/jsonvalue"},
	"history/historysql":          {"internal/regularfile", "history", "history/internal/shortform", "history/internal/storeclock", "graph/problem", "internal/jsonvalue"},
	"history/historytest":         {"history", "graph/problem", "internal/jsonvalue"},
	"graph/machine":               {"history", "graph/problem", "graph/definition", "graph/expr", "graph/fill", "graph/state", "internal/jsondelta", "internal/jsonvalue", "internal/jsonschema"},
	"activities":                  {"graph/problem", "internal/jsonvalue", "internal/port"},
	"activities/activitiestest":   {"activities", "graph/problem"},
	"activities/chat":             {},
	"activities/chat/chattest":    {"activities/chat", "internal/enginetest"},
	"internal/childprocess":       {"graph/problem"},
	"activities/toolcall":         {"activities", "graph/expr", "graph/fill", "graph/problem", "internal/childprocess", "internal/jsonschema", "internal/jsonvalue", "internal/port", "internal/suggest", "internal/wait"},
	"activities/stepcommand":      {"activities", "graph/problem", "internal/childprocess", "internal/jsonvalue"},
	"internal/manifest":           {"activities/stepcommand", "activities/toolcall", "graph/problem", "internal/jsonobject", "internal/jsonvalue", "internal/suggest"},
	"activities/llmcall":          {"activities", "activities/chat", "graph/problem", "graph/expr", "graph/fill", "internal/httpbody", "internal/jsonobject", "internal/jsonschema", "internal/jsonvalue", "internal/port"},
	"delegate":                    {"activities", "graph/problem", "internal/httpbody", "internal/jsonvalue", "internal/port", "internal/wait"},
	"internal/agentsteps":         {"graph/problem"},
	"delegate/agentloop":          {"activities/chat", "graph/expr", "graph/problem", "internal/agentsteps", "internal/jsonschema", "internal/jsonvalue", "internal/suggest"},
	"delegate/agent":              {"activities", "activities/chat", "delegate", "delegate/agentloop", "graph/problem", "internal/agentsteps", "internal/jsonvalue", "internal/suggest", "internal/wait"},
	"delegate/agent/llmagent":     {"activities", "activities/llmcall", "delegate", "delegate/agent"},
	"delegate/agent/mcptools":     {"activities", "activities/toolcall", "delegate/agent", "graph/problem"},
	"delegate/agent/steptools":    {"activities", "delegate/agent", "graph/problem", "internal/jsonvalue"},
	"delegate/agent/knowledge":    {"internal/regularfile", "activities", "delegate/agent", "delegate/agentloop", "graph/problem", "internal/jsonvalue", "internal/suggest"},
	"delegate/agent/skills":       {"internal/regularfile", "activities", "delegate/agent", "delegate/agentloop", "graph/problem", "internal/suggest"},
	"delegate/agent/apicall": {
		"activities", "delegate/agent", "delegate/agentloop", "graph/problem", "internal/childprocess", "internal/dialguard", "internal/httpbody", "internal/jsonvalue", "internal/suggest",
	},
	"internal/agentfile": {"delegate/agentloop", "graph/expr", "graph/problem", "internal/jsonobject", "internal/jsonschema", "internal/jsonvalue", "internal/suggest"},
	"graph/runview":      {"history", "graph/problem", "graph/definition", "graph/fill", "graph/machine", "internal/jsonvalue"},
	"history/internal/shortform": {
		"history", "graph/problem", "internal/jsondelta", "internal/jsonvalue",
	},
	"graph/admit": {
		"history", "graph/problem", "graph/definition", "graph/machine", "graph/runview", "internal/jsonvalue", "internal/jsonschema",
	},
	"graph/actor":    {"history", "graph/machine"},
	"graph/arrival":  {"history"},
	"graph/recorded": {"activities", "history", "graph/problem", "graph/admit", "graph/machine", "graph/runview"},
	"graph/execution": {
		"history", "graph/problem", "graph/definition", "graph/machine", "graph/runview", "graph/actor", "graph/admit", "graph/recorded", "graph/trace", "internal/jsonvalue",
		"graph/attempt", "graph/capable", "graph/runlock", "graph/runstate", "graph/tree",
	},
	"graph/attempt":  {"graph/problem", "graph/machine", "graph/trace"},
	"graph/capable":  {"graph/definition", "graph/runview"},
	"graph/tree":     {"history", "graph/problem", "graph/runview", "graph/admit"},
	"graph/runlock":  {},
	"graph/runstate": {},
	"graph/limit":    {"graph/problem"},
	"graph/library":  {"internal/guard", "internal/jsonvalue", "internal/suggest", "history", "graph/problem", "graph/definition", "graph/machine", "graph/runview", "graph/admit", "graph/capable", "graph/execution"},
	"graph/replay":   {"activities", "internal/agentsteps", "internal/jsonschema", "internal/jsonvalue", "history", "graph/problem", "graph/definition", "graph/machine", "graph/library", "graph/survey"},
	"graph/transfer": {
		"history", "history/runfile", "graph/problem", "graph/definition", "graph/machine", "graph/actor", "graph/admit", "graph/capable", "graph/library", "graph/recorded", "graph/replay", "graph/runview",
	},
	"graph/survey":   {"history", "graph/problem", "graph/machine", "graph/runview", "graph/recorded", "graph/execution", "graph/library"},
	"graph/perform":  {"internal/guard", "history", "activities", "delegate", "graph/problem", "graph/definition", "graph/machine", "graph/runview", "graph/attempt", "graph/limit", "graph/trace", "internal/jsonvalue", "internal/port", "internal/wait"},
	"graph/schedule": {"internal/guard", "history", "graph/machine", "graph/attempt", "graph/execution"},
	"graph/standing": {"graph/problem", "graph/machine", "graph/runview", "graph/execution", "graph/library"},
	"graph/notify":   {"internal/guard", "graph/problem", "history", "graph/machine", "graph/execution", "graph/standing"},
	"graph": {
		"activities", "delegate", "history", "history/runfile", "graph/problem", "graph/definition", "graph/machine", "graph/runview",
		"graph/admit", "graph/attempt", "graph/execution", "graph/library", "graph/replay", "graph/transfer", "graph/survey", "graph/perform", "graph/limit", "graph/schedule", "graph/notify", "graph/standing", "graph/outbox",
		"graph/actor", "graph/arrival", "graph/recorded", "graph/trace", "graph/tree", "internal/guard", "internal/wait",
	},
	"graph/graphtest": {
		"activities", "graph", "graph/admit", "graph/definition", "graph/machine", "graph/problem", "graph/runview", "history", "internal/jsonvalue",
	},
	"internal/workflowtest": {
		"internal/regularfile",
		"activities", "graph", "graph/admit", "graph/definition", "graph/graphtest", "graph/machine", "graph/problem",
		"internal/catalog", "internal/jsonobject", "internal/jsonvalue", "internal/suggest",
	},
	"conformance": {
		"internal/regularfile", "activities", "activities/activitiestest", "delegate", "history", "history/historymem", "graph", "graph/problem",
		"graph/definition", "graph/machine", "internal/jsonobject", "internal/jsonvalue", "internal/signing",
	},
	"internal/catalog":      {"graph/admit", "graph/definition", "graph/lint", "graph/problem", "internal/regularfile", "internal/suggest"},
	"internal/dialguard":    {},
	"internal/httpbody":     {},
	"internal/httpworkflow": {"graph/definition", "graph/problem", "internal/config/envname", "internal/dialguard", "internal/wait"},
	"internal/webhook":      {"graph/outbox", "graph/problem", "history", "internal/dialguard", "internal/httpbody", "internal/jsonobject", "internal/jsonvalue"},
	"graph/outbox":          {"history", "graph/problem", "graph/runview", "internal/guard", "internal/jsonvalue", "internal/runjson", "internal/suggest", "internal/wait"},
	"internal/config": {
		"internal/regularfile",
		"internal/catalog", "internal/childprocess", "internal/config/envname", "internal/httpworkflow", "internal/mcpserver/elicit", "internal/memory",
		"activities/stepcommand", "activities/toolcall", "internal/agentfile", "internal/dialguard", "internal/manifest", "internal/webhook",
		"activities", "activities/llmcall", "delegate", "delegate/agent", "delegate/agent/apicall", "delegate/agent/knowledge", "delegate/agent/llmagent", "delegate/agent/mcptools", "delegate/agent/skills", "delegate/agent/steptools", "history", "history/historymem", "history/historysql", "graph", "graph/problem",
		"graph/definition", "graph/machine", "internal/jsonobject", "internal/jsonvalue", "internal/signing",
	},
	"internal/agentview": {"history", "internal/agentsteps", "internal/jsonvalue"},
	"internal/runjson":   {"history", "internal/agentview", "internal/config/envname", "graph/machine", "graph/runview", "internal/jsondelta", "internal/jsonvalue"},
	"internal/picture":   {"graph/definition", "history"},
	"internal/runtree":   {"graph/definition", "history", "internal/agentview", "internal/jsonvalue", "internal/picture"},
	"internal/mcpserver/streamable": {
		"internal/mcpserver/frame",
	},
	"internal/mcpserver": {
		"history", "graph", "graph/problem", "graph/definition", "graph/lint", "graph/arrival", "graph/machine", "internal/jsonobject", "internal/jsonvalue", "internal/runjson",
		"internal/agentsteps", "internal/agentview", "internal/catalog", "internal/guide", "internal/mcpserver/elicit", "internal/mcpserver/frame", "internal/mcpserver/streamable", "internal/outline", "internal/picture", "internal/shellword", "internal/suggest", "internal/config/envname", "graph/expr", "schemas",
	},
	"internal/cli": {
		"internal/agentsteps", "internal/agentview", "internal/buildstamp", "internal/catalog", "internal/explain", "internal/format", "internal/regularfile", "internal/scaffold", "graph/graphtest", "internal/guide", "internal/wait", "internal/workflowtest",
		"activities", "activities/toolcall", "delegate/agent", "graph/outbox", "internal/agentfile", "internal/manifest", "internal/sdnotify", "internal/suggest",
		"conformance", "history", "history/runfile", "graph", "graph/problem", "graph/definition", "graph/lint", "graph/machine", "graph/arrival",
		"internal/config", "internal/config/envname", "internal/jsonvalue", "internal/jsonschema", "internal/mcphost", "internal/mcpserver/streamable", "internal/doctor", "internal/memory", "internal/picture", "internal/runjson", "internal/runtree", "internal/shellword", "schemas",
	},
	"cmd/workflows-engine":     {"internal/childprocess", "internal/cli"},
	"cmd/workflows-engine-mcp": {"internal/buildstamp", "internal/catalog", "internal/childprocess", "internal/config", "internal/memory", "internal/mcpserver", "internal/mcpserver/frame", "internal/mcpserver/stdio", "internal/mcpserver/streamable", "graph", "graph/machine", "graph/problem", "history"},
	"examples":                 {},
	"examples/lighthouse":      {},
	"examples/lighthouse/live": {"examples/lighthouse", "internal/cli"},

	"internal/agentdemo":           {"delegate/agentloop", "graph/machine", "history", "history/historysql", "internal/cli", "internal/jsonvalue"},
	"internal/agentdemo/demotest":  {},
	"examples/refund-agent":        {},
	"examples/refund-agent/live":   {"examples/refund-agent", "internal/agentdemo"},
	"examples/research-agent":      {},
	"examples/research-agent/live": {"examples/research-agent", "internal/agentdemo"},
	"examples/agent-team":          {},
	"examples/agent-team/live":     {"examples/agent-team", "internal/agentdemo"},
	"internal/archtest":            {},
	"internal/buildstamp":          {},
	"internal/release":             {},
	"internal/supply":              {},
}

func TestRoomsImportOnlyRoomsBelow(t *testing.T) {
	t.Parallel()
	for _, p := range list(t) {
		room := strings.TrimPrefix(p.ImportPath, module+"/")
		allowed, ok := rooms[room]
		if !ok {
			t.Errorf("no room %s in the table: add it to rooms, with the rooms it may import", room)
			continue
		}
		for _, imp := range p.Imports {
			if below, ours := strings.CutPrefix(imp, module+"/"); ours && !slices.Contains(allowed, below) {
				t.Errorf("%s imports %s, which is not below it", room, below)
			}
		}
	}
	for room := range rooms {
		if _, err := os.Stat(filepath.Join(root, room)); err != nil {
			t.Errorf("no folder for room %s: remove it from rooms", room)
		}
	}
}

// TestArrowsRunDown: the table itself has no cycle, and names no room that it does not list.
func TestArrowsRunDown(t *testing.T) {
	t.Parallel()
	done := map[string]bool{}
	var visit func(room string, above []string)
	visit = func(room string, above []string) {
		if slices.Contains(above, room) {
			t.Errorf("a cycle of rooms: %v", append(above, room))
			return
		}
		if done[room] {
			return
		}
		below, ok := rooms[room]
		if !ok {
			t.Errorf("%v may import %s, which is not in the table", above, room)
		}
		for _, b := range below {
			visit(b, append(slices.Clone(above), room))
		}
		done[room] = true
	}
	for room := range rooms {
		visit(room, nil)
	}
}

// pure are the rooms that do no I/O and read no clock.
var pure = []string{"activities/chat", "delegate/agentloop", "graph/runview", "graph/admit", "graph/problem", "graph/expr", "graph/fill", "graph/state", "graph/definition", "graph/lint", "graph/machine", "internal/jsonvalue", "internal/agentsteps", "internal/agentview", "internal/runjson", "internal/runtree", "internal/jsonobject", "internal/jsondelta", "internal/jsonschema"}

func TestPureRoomsDoNoIO(t *testing.T) {
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
		room := strings.TrimPrefix(p.ImportPath, module+"/")
		if !slices.Contains(pure, room) {
			continue
		}
		for _, imp := range p.Imports {
			if why, bad := banned[imp]; bad {
				t.Errorf("%s imports %s: %s", room, imp, why)
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
