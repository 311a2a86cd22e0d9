package mcpserver_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
)

// host is a client of a server over the real engine and a memory store.
type host struct {
	t       *testing.T
	session *mcp.ClientSession
	runner  *graph.Runner
	store   history.Store
	// answers are the compiled output schemas by tool.
	answers map[string]*jsonschema.Schema
}

func newHost(t *testing.T, o graph.Options) *host {
	t.Helper()
	return newHostOver(t, enginetest.Closing(t, historymem.New()), o)
}

func newHostOver(t *testing.T, store history.Store, o graph.Options) *host {
	t.Helper()
	runner := enginetest.Closing(t, enginetest.Must(graph.New(store, o)))
	h := connectHost(t, runner, mcpserver.Options{Definitions: store})
	h.runner, h.store = runner, store
	return h
}

// connectHost connects a client to a server over any engine.
func connectHost(t *testing.T, engine graph.Engine, o mcpserver.Options) *host {
	t.Helper()
	return connectAs(t, &mcp.Implementation{Name: "test", Version: "0"}, engine, o)
}

// connectAs is connectHost for a client that says who it is.
func connectAs(t *testing.T, who *mcp.Implementation, engine graph.Engine, o mcpserver.Options) *host {
	t.Helper()
	here, there := mcp.NewInMemoryTransports()
	served := make(chan error, 1)
	go func() { served <- mcpserver.Serve(context.Background(), mcpserver.New(engine, o), there) }()
	session, err := mcp.NewClient(who, nil).Connect(context.Background(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		session.Close()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return hostWith(t, session)
}

// hostWith is the host of a connected client.
func hostWith(t *testing.T, session *mcp.ClientSession) *host {
	t.Helper()
	h := &host{t: t, session: session, answers: map[string]*jsonschema.Schema{}}
	list, err := session.ListTools(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range list.Tools {
		if tool.OutputSchema == nil { // a workflow's, which answers as workflow_start does
			continue
		}
		if h.answers[tool.Name], err = jsonschema.Compile(tool.OutputSchema); err != nil {
			t.Fatalf("%s: output schema: %v", tool.Name, err)
		}
	}
	return h
}

// reply is a tool's answer.
type reply struct {
	content map[string]any
	text    string
	code    string // of an error
}

// raw calls a tool with arguments as they are.
func (h *host) raw(name string, args any) reply {
	h.t.Helper()
	res, err := h.session.CallTool(context.Background(), &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		h.t.Fatalf("%s: %v", name, err)
	}
	content, ok := res.StructuredContent.(map[string]any)
	if !ok {
		h.t.Fatalf("%s: structured content is %T", name, res.StructuredContent)
	}
	schema := h.answers[name]
	if schema == nil { // a tool of a registered workflow
		schema = h.answers[map[string]string{"find_workflow": "workflow_catalog"}[name]]
	}
	if schema == nil {
		schema = h.answers["workflow_start"]
	}
	if vs := schema.Validate(content); len(vs) > 0 {
		h.t.Errorf("%s: the answer breaks the output schema: %s\n%v", name, jsonschema.Text(vs), content)
	}
	r := reply{content: content, text: res.Content[0].(*mcp.TextContent).Text}
	failure, failed := content["error"].(map[string]any)
	if failed != res.IsError || len(res.Content) != 1 {
		h.t.Errorf("%s: isError is %v, content %v", name, res.IsError, content)
	}
	if failed {
		r.code = failure["code"].(string)
		if want := r.code + ": " + failure["message"].(string); !strings.HasPrefix(r.text, want) {
			h.t.Errorf("%s: text %q does not begin with %q", name, r.text, want)
		}
		return r
	}
	return r
}

// ok calls a tool that must succeed.
func (h *host) ok(name string, args map[string]any) map[string]any {
	h.t.Helper()
	r := h.raw(name, args)
	if r.code != "" {
		h.t.Fatalf("%s: %s", name, r.text)
	}
	return r.content
}

// refused calls a tool that must answer with an error of this code.
func (h *host) refused(code, name string, args map[string]any) reply {
	h.t.Helper()
	r := h.raw(name, args)
	if r.code != code {
		h.t.Fatalf("%s: code %q, want %s\n%s", name, r.code, code, r.text)
	}
	return r
}

func (r reply) details() map[string]any {
	failure, _ := r.content["error"].(map[string]any)
	details, _ := failure["details"].(map[string]any)
	return details
}

func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	return compact(t, a) == compact(t, b)
}

func compact(t *testing.T, text []byte) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// at returns the value at a path of members and indexes.
func at(t *testing.T, v any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, ok := v.(map[string]any)
			if !ok {
				t.Fatalf("no object at %q of %v: %v", step, path, v)
			}
			v = m[step]
		case int:
			list, ok := v.([]any)
			if !ok || step >= len(list) {
				t.Fatalf("no element %d of %v: %v", step, path, v)
			}
			v = list[step]
		}
	}
	return v
}

// null is JSON null as an expected value.
var null = json.RawMessage("null")

// want compares members of an answer; nil means absent.
func want(t *testing.T, got map[string]any, expected map[string]any) {
	t.Helper()
	for name, e := range expected {
		g, present := got[name]
		if e == nil && present {
			t.Errorf("%s is %v, want it absent", name, g)
			continue
		}
		if e != nil && !present {
			t.Errorf("%s is absent, want %v", name, e)
			continue
		}
		gotText, _ := json.Marshal(g)
		wantText, _ := json.Marshal(e)
		if string(gotText) != string(wantText) {
			t.Errorf("%s is %s, want %s", name, gotText, wantText)
		}
	}
}

func wantSame(t *testing.T, got, expected map[string]any) {
	t.Helper()
	if !reflect.DeepEqual(got, expected) {
		t.Errorf("got %v, want %v", got, expected)
	}
}

func definitionFile(t *testing.T, name string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "definitions", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var v map[string]any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

type object = map[string]any

func contains(text, part string) bool { return strings.Contains(text, part) }

// codeBlock returns the first JSON code block of a Markdown text.
func codeBlock(t *testing.T, markdown string) string {
	t.Helper()
	_, rest, ok := strings.Cut(markdown, "```json\n")
	block, _, closed := strings.Cut(rest, "```")
	if !ok || !closed {
		t.Fatal("no JSON block")
	}
	return block
}

func records(t *testing.T, h *host, id string) []history.Record {
	t.Helper()
	list, err := h.store.Read(context.Background(), id, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	return list
}
