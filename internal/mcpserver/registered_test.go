package mcpserver_test

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/catalog"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
	"github.com/workflows-engine/workflows-engine/internal/signing"
)

// registry is a host of a server with registered workflows.
type registry struct {
	*host
	folder string
	// changes gets a value for each notification that the list of tools has changed.
	changes chan struct{}
}

// newRegistry serves the workflows of a folder. Files are text by name without suffix.
func newRegistry(t *testing.T, files map[string]string, expose bool, o catalog.Options) *registry {
	t.Helper()
	r := &registry{folder: t.TempDir(), changes: make(chan struct{}, 100)}
	for name, text := range files {
		r.write(t, name, text)
	}
	c := catalog.New(r.folder, o)
	store := enginetest.Closing(t, historymem.New())
	runner := enginetest.Closing(t, enginetest.Must(graph.New(store, graph.Options{
		DefaultMode: machine.HostMediated, Workflows: c, VerifyDefinition: o.Verify,
	})))
	here, there := mcp.NewInMemoryTransports()
	served := make(chan error, 1)
	server := mcpserver.New(runner, mcpserver.Options{DefaultMode: machine.HostMediated, Definitions: store, Catalog: c, ExposeWorkflows: expose})
	go func() { served <- mcpserver.Serve(context.Background(), server, there) }()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "0"}, &mcp.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { r.changes <- struct{}{} },
	})
	session, err := client.Connect(context.Background(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		session.Close()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	r.host = hostWith(t, session)
	r.runner, r.store = runner, store
	return r
}

func (r *registry) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(r.folder, name+".workflow.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (r *registry) remove(name string) {
	r.t.Helper()
	if err := os.Remove(filepath.Join(r.folder, name+".workflow.json")); err != nil {
		r.t.Fatal(err)
	}
}

// tools are the tools listed now, by name, without those that are always there.
func (r *registry) tools() map[string]*mcp.Tool {
	r.t.Helper()
	tools := map[string]*mcp.Tool{}
	for _, tool := range enginetest.Must(r.session.ListTools(context.Background(), nil)).Tools {
		if !slices.Contains(order, tool.Name) && tool.Name != "workflow_catalog" {
			tools[tool.Name] = tool
		}
	}
	return tools
}

// changed has the server look at the folder, and waits until the client is told that the tools have changed: until then it keeps the list.
func (r *registry) changed() {
	r.t.Helper()
	r.ok("workflow_catalog", nil)
	<-r.changes
}

// changedTo has the folder looked at and waits until the client lists so many tools: it is told of a change once or twice, and the
// second may come late.
func (r *registry) changedTo(tools int) {
	r.t.Helper()
	r.ok("workflow_catalog", nil)
	for len(r.tools()) != tools {
		<-r.changes
	}
}

func (r *registry) names() string {
	r.t.Helper()
	return strings.Join(slices.Sorted(maps.Keys(r.tools())), " ")
}

// asks is a workflow that takes a member n and asks a person. schema is its input_schema.
func asks(name, version, schema string) string {
	return fmt.Sprintf(`{"document":{"schema":"s","name":%q,"version":%q,"description":"Asks about %s."},"state_schema":{"type":"object"},
 "nodes":[{"id":"a","type":"start","config":{"input_schema":%s}},
  {"id":"q","type":"interrupt","config":{"prompt":"Now?","resume_schema":{"type":"object"}}},{"id":"z","type":"end"}],
 "edges":[{"source":"__start__","target":"a"},{"source":"a","target":"q"},{"source":"q","target":"z"}]}`, name, version, name, schema)
}

const takesN = `{"properties":{"n":{"description":"How many.","type":"integer"}},"required":["n"],"type":"object"}`

// Without a folder the tools are the eleven; with one workflow_catalog comes behind them, and the capabilities stay as they are.
func TestCatalogIsATool(t *testing.T) {
	t.Parallel()
	r := newRegistry(t, map[string]string{"one": asks("one", "1", takesN)}, false, catalog.Options{})
	list := enginetest.Must(r.session.ListTools(t.Context(), nil)).Tools
	if last := list[len(list)-1]; len(list) != len(order)+1 || last.Name != "workflow_catalog" || !last.Annotations.ReadOnlyHint {
		t.Errorf("%d tools, the last is %s", len(list), last.Name)
	}
	about := r.session.InitializeResult()
	if about.Capabilities.Tools.ListChanged || !contains(about.Instructions, "workflow_catalog") || len(about.Instructions) > 2000 {
		t.Errorf("capabilities %+v, %d bytes of instructions", about.Capabilities.Tools, len(about.Instructions))
	}
	everyProperty(t, "workflow_catalog input", list[len(list)-1].InputSchema)
	everyProperty(t, "workflow_catalog output", list[len(list)-1].OutputSchema)
}

// The input of a subworkflow is held against what the registered workflow takes, before a run and as it starts.
func TestInputsOfRegisteredSubworkflows(t *testing.T) {
	t.Parallel()
	r := newRegistry(t, map[string]string{"one": asks("one", "1", takesN)}, false, catalog.Options{})
	parent := `{"document":{"schema":"s","name":"parent","version":"1"},"state_schema":{"type":"object"},
 "nodes":[{"id":"a","type":"start"},{"id":"q","type":"subworkflow","config":{"workflow_ref":"one","input_mapping":{"n":"many"}}},{"id":"z","type":"end"}],
 "edges":[{"source":"__start__","target":"a"},{"source":"a","target":"q"},{"source":"q","target":"z"}]}`
	for _, tool := range []string{"workflow_validate", "workflow_start"} {
		got := r.raw(tool, object{"definition": parent}).content
		if text := string(enginetest.Must(json.Marshal(got))); !contains(text, "INPUT_INVALID") || !contains(text, "/nodes/1/config/input_mapping/n") {
			t.Errorf("%s: %s", tool, text)
		}
	}
}

// The catalog says how each workflow is started and what it takes, and of files that cannot be used where and why.
func TestCatalog(t *testing.T) {
	t.Parallel()
	r := newRegistry(t, map[string]string{
		"one": asks("one", "1", takesN), "old": asks("two", "1", takesN), "new": asks("two", "2", takesN), "bad": "{\n \"document\": }",
	}, false, catalog.Options{})
	got := r.ok("workflow_catalog", nil)
	rows := got["workflows"].([]any)
	if len(rows) != 3 {
		t.Fatalf("listed %v", got)
	}
	want(t, rows[0].(object), object{"definition_ref": "one", "name": "one", "version": "1", "description": "Asks about one.", "input_schema": json.RawMessage(takesN), "broken": nil, "tool": nil})
	want(t, rows[1].(object), object{"definition_ref": "two@1"})
	want(t, got, object{"broken_total": 1, "next_cursor": nil})
	want(t, at(t, got, "broken", 0).(object), object{"file": "bad.workflow.json"})
	want(t, at(t, got, "broken", 0, "errors", 0).(object), object{"line": 2, "code": "DEFINITION_SYNTAX"})
	for _, row := range rows {
		want(t, r.ok("workflow_start", object{"definition_ref": row.(object)["definition_ref"], "input": object{"n": 1}}), object{"status": "interrupted"})
	}
	r.refused("VALIDATION_ERROR", "workflow_start", object{"definition_ref": "two"})
	if text := r.refused("VALIDATION_ERROR", "workflow_start", object{"definition_ref": "bad"}).text; !contains(text, "bad.workflow.json is invalid") || !contains(text, "line 2") {
		t.Error(text)
	}
	if text := r.refused("VALIDATION_ERROR", "workflow_start", object{"definition_ref": "ones"}).text; !contains(text, "cannot be used") && !contains(text, "Did you mean") {
		t.Error(text)
	}

	// Two of one name and version are told apart by their hashes, and have their name beside them.
	r.write(t, "twin", asks("one", "1", `{}`))
	if text := r.raw("workflow_catalog", nil).text; strings.Count(text, "\none is ") != 2 {
		t.Error(text)
	}
	r.remove("twin")

	// A broken file: its last good version is listed, started, and the answer says so.
	r.write(t, "one", "{")
	got = r.ok("workflow_catalog", object{"definition_ref": "one"})
	if text, _ := at(t, got, "workflows", 0, "broken").(string); !contains(text, "line 1") {
		t.Errorf("broken: %v", got)
	}
	run := r.ok("workflow_start", object{"definition_ref": "one", "input": object{"n": 1}})
	if text, _ := at(t, run, "warnings", 0, "message").(string); !contains(text, "one.workflow.json is invalid") || !contains(text, "last good version, 1, was started") {
		t.Errorf("warnings: %v", run["warnings"])
	}
	r.write(t, "one", asks("one", "2", takesN))
	run = r.ok("workflow_start", object{"definition_ref": "one", "input": object{"n": 1}})
	want(t, run, object{"warnings": nil})
	want(t, r.ok("workflow_status", object{"execution_id": run["execution_id"]}), object{"definition_version": "2"})
}

// A registered workflow comes before a stored definition of the same name, which a caller may have sent, also when its file is broken.
func TestRegisteredComesBeforeStored(t *testing.T) {
	t.Parallel()
	r := newRegistry(t, nil, false, catalog.Options{})
	sent := object{}
	if err := json.Unmarshal([]byte(asks("one", "caller's", `{}`)), &sent); err != nil {
		t.Fatal(err)
	}
	run := r.ok("workflow_start", object{"definition": sent})
	hash := r.ok("workflow_status", object{"execution_id": run["execution_id"]})["definition_hash"]
	version := func() any {
		t.Helper()
		run := r.ok("workflow_start", object{"definition_ref": "one"})
		return r.ok("workflow_status", object{"execution_id": run["execution_id"]})["definition_version"]
	}
	if got := version(); got != "caller's" {
		t.Errorf("not registered: %v", got)
	}
	r.write(t, "one", "{")
	r.refused("VALIDATION_ERROR", "workflow_start", object{"definition_ref": "one"})
	r.refused("VALIDATION_ERROR", "workflow_start", object{"definition_ref": "one@caller's"})
	r.write(t, "one", asks("one", "operator's", `{}`))
	if got := version(); got != "operator's" {
		t.Errorf("registered: %v", got)
	}
	want(t, r.ok("workflow_start", object{"definition_ref": hash}), object{"status": "interrupted"}) // a hash is what it is
}

// The catalog keeps to the size of answers: large schemas are cut and marked, and pages follow each other without a gap.
func TestCatalogPages(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	for i := range 60 {
		properties := object{}
		for j := range 40 {
			properties[fmt.Sprintf("member_%d", j)] = object{"type": "string", "description": strings.Repeat("long ", 20)}
		}
		schema := enginetest.Must(json.Marshal(object{"type": "object", "properties": properties}))
		name := fmt.Sprintf("w%02d", i)
		files[name] = strings.Replace(asks(name, "1", string(schema)), "Asks about", strings.Repeat("Word ", 300)+"asks about", 1)
	}
	r := newRegistry(t, files, false, catalog.Options{})
	var names []string
	args := object{}
	for pages := 0; ; pages++ {
		got := r.ok("workflow_catalog", args)
		if size := len(enginetest.Must(json.Marshal(got))); size > mcpserver.DefaultAnswerBytes || pages > 60 {
			t.Fatalf("page %d has %d bytes", pages, size)
		}
		for _, row := range got["workflows"].([]any) {
			want(t, row.(object), object{"input_schema_cut": true})
			names = append(names, row.(object)["name"].(string))
		}
		if got["next_cursor"] == nil {
			break
		}
		args = object{"cursor": got["next_cursor"]}
	}
	if len(names) != 60 || !slices.IsSorted(names) {
		t.Errorf("listed %d: %v", len(names), names)
	}
	full := r.ok("workflow_catalog", object{"definition_ref": "w07", "answer_bytes": 100_000})
	want(t, at(t, full, "workflows", 0).(object), object{"input_schema_cut": nil})
	if n := len(at(t, full, "workflows", 0, "input_schema", "properties").(object)); n != 40 {
		t.Errorf("%d members in full", n)
	}
	if n := len(r.ok("workflow_catalog", object{"query": "w07"})["workflows"].([]any)); n != 1 {
		t.Errorf("found %d", n)
	}
	if n := len(r.ok("workflow_catalog", object{"limit": 2})["workflows"].([]any)); n != 2 {
		t.Errorf("%d with a limit of 2", n)
	}
	for _, args := range []object{{"cursor": "x"}, {"query": "a", "definition_ref": "b"}, {"definition_ref": "nobody"}, {"limit": 0}, {"queri": "a"}} {
		r.refused("VALIDATION_ERROR", "workflow_catalog", args)
	}
}

// An exposed workflow is a tool: its arguments are the input, its answer that of workflow_start, refusals included.
func TestExposedWorkflow(t *testing.T) {
	t.Parallel()
	r := newRegistry(t, map[string]string{"one": asks("one", "1", takesN), "free": definitionWithoutSchema("free")}, true, catalog.Options{})
	tools := r.tools()
	if got := r.names(); got != "run_free run_one" {
		t.Fatalf("tools %s", got)
	}
	one := tools["run_one"]
	if schema := enginetest.Must(json.Marshal(one.InputSchema)); !sameJSON(t, schema, []byte(takesN)) {
		t.Errorf("input schema %s", schema)
	}
	if !strings.HasPrefix(one.Description, "Asks about one.") || one.Title != "one 1" || *one.Annotations.DestructiveHint || one.OutputSchema != nil {
		t.Errorf("tool %+v", one)
	}
	want(t, tools["run_free"].InputSchema.(object), object{"type": "object"})
	want(t, r.ok("workflow_catalog", nil)["workflows"].([]any)[1].(object), object{"tool": "run_one"})

	run := r.ok("run_one", object{"n": 3})
	want(t, run, object{"status": "interrupted", "state": object{"n": 3}, "node_id": "q"})
	next := at(t, run, "next", "arguments").(object)
	next["resume_payload"] = object{}
	want(t, r.ok("workflow_resume", next), object{"status": "completed"})
	want(t, r.ok("run_free", nil), object{"status": "completed"})

	byName := r.refused("VALIDATION_ERROR", "workflow_start", object{"definition_ref": "one", "input": object{"n": "three"}})
	byTool := r.refused("VALIDATION_ERROR", "run_one", object{"n": "three"})
	if !reflect.DeepEqual(byName, byTool) || !contains(byTool.text, "/n") {
		t.Errorf("by name %s\nby tool %s", byName.text, byTool.text)
	}
	if list := r.ok("workflow_list", nil)["executions"].([]any); len(list) != 2 {
		t.Errorf("%d runs", len(list))
	}
}

func definitionWithoutSchema(name string) string {
	return `{"document":{"schema":"s","name":"` + name + `","version":"1"},"state_schema":{"type":"object"},
 "nodes":[{"id":"a","type":"start"},{"id":"z","type":"end"}],"edges":[{"source":"__start__","target":"a"},{"source":"a","target":"z"}]}`
}

// A host gives what workflow_start has as arguments in _meta, so that a workflow's input can have members of any name.
func TestExposedWorkflowMeta(t *testing.T) {
	t.Parallel()
	schema := `{"type":"object","properties":{"wait_ms":{"type":"string"},"execution_id":{"type":"string"}}}`
	r := newRegistry(t, map[string]string{"one": asks("one", "1", schema)}, true, catalog.Options{})
	call := func(meta any) map[string]any {
		t.Helper()
		params := &mcp.CallToolParams{Name: "run_one", Arguments: object{"wait_ms": "long", "execution_id": "mine"}}
		if meta != nil {
			params.Meta = mcp.Meta{"workflows-engine/start": meta}
		}
		return enginetest.Must(r.session.CallTool(t.Context(), params)).StructuredContent.(object)
	}
	start := object{"execution_id": "r", "title": "Mine", "allow_existing_execution_id": true, "wait_ms": 60_000}
	for range 2 { // a call that is repeated begins no second run
		want(t, call(start), object{"execution_id": "r", "status": "interrupted", "state": object{"wait_ms": "long", "execution_id": "mine"}})
	}
	want(t, r.ok("workflow_status", object{"execution_id": "r"}), object{"title": "Mine"})
	if got := call(nil); got["execution_id"] == "mine" || got["execution_id"] == "r" {
		t.Errorf("without _meta: %v", got)
	}
	for _, wrong := range []any{object{"executionId": "x"}, object{"definition": object{}}, object{"definition_ref": "other"}, "r", object{"wait_ms": -1}} {
		if got := call(wrong); at(t, got, "error", "code") != "VALIDATION_ERROR" {
			t.Errorf("%v: %v", wrong, got)
		}
	}
}

// A client is told when the tools change, and only then; a change of a definition that the list does not show is none.
func TestToolsChangeWithTheFiles(t *testing.T) {
	t.Parallel()
	r := newRegistry(t, map[string]string{"one": asks("one", "1", takesN)}, true, catalog.Options{})
	if !r.session.InitializeResult().Capabilities.Tools.ListChanged {
		t.Fatal("the server does not declare that its list changes")
	}
	list := enginetest.Must(r.session.ListTools(t.Context(), nil))
	if list.TTLMs > 60_000 {
		t.Errorf("clients may keep the list for %d ms", list.TTLMs)
	}
	for i, step := range []struct {
		do    func()
		tools string
		told  bool
	}{
		{func() { r.write(t, "two", asks("two", "1", takesN)) }, "run_one run_two", true},
		{func() { r.write(t, "one", "{") }, "run_one run_two", false}, // the last good version stays
		{func() { r.write(t, "one", asks("one", "1", `{"type":"object"}`)) }, "run_one run_two", true},
		{func() { // what it asks is none of the list
			r.write(t, "one", strings.Replace(asks("one", "1", `{"type":"object"}`), "Now?", "When?", 1))
		}, "run_one run_two", false},
		{func() { r.remove("two") }, "run_one", true},
		{func() { r.remove("one") }, "", true},
	} {
		step.do()
		if step.told {
			r.changed()
		} else {
			r.ok("workflow_catalog", nil)
		}
		if got := r.names(); got != step.tools {
			t.Errorf("step %d: tools %q, want %q", i, got, step.tools)
		}
	}
	// Had there been more notifications, they would have come before those that were waited for.
	if n := len(r.changes); n > 0 {
		t.Errorf("%d more notifications", n)
	}
	if _, err := r.session.CallTool(t.Context(), &mcp.CallToolParams{Name: "run_one"}); err == nil {
		t.Error("a tool that is gone was called")
	}
}

// A tool whose file goes while it is called is refused, and not run from what is stored.
func TestAToolThatIsGone(t *testing.T) {
	t.Parallel()
	r := newRegistry(t, map[string]string{"one": asks("one", "1", takesN)}, true, catalog.Options{})
	r.ok("run_one", object{"n": 1})
	r.remove("one")
	if text := r.refused("VALIDATION_ERROR", "run_one", object{"n": 1}).text; !contains(text, "WORKFLOW_NOT_FOUND") {
		t.Error(text)
	}
	<-r.changes
}

// Of more than 25 workflows two tools find and run them, and of 25 again each is a tool.
func TestManyExposedWorkflows(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	for i := range 25 {
		name := fmt.Sprintf("w%02d", i)
		files[name] = asks(name, "1", takesN)
	}
	r := newRegistry(t, files, true, catalog.Options{})
	if got := r.tools(); len(got) != 25 {
		t.Fatalf("%d tools of 25 workflows", len(got))
	}
	r.write(t, "refund", asks("refund", "1", takesN))
	r.changedTo(2)
	if got := r.names(); got != "find_workflow run_workflow" {
		t.Fatalf("tools %s", got)
	}
	for _, tool := range r.tools() {
		everyProperty(t, tool.Name, tool.InputSchema)
	}
	found := r.ok("find_workflow", object{"query": "who gets refunds"})
	want(t, at(t, found, "workflows", 0).(object), object{"definition_ref": "refund", "input_schema": json.RawMessage(takesN)})
	want(t, r.ok("run_workflow", object{"definition_ref": "refund", "input": object{"n": 1}, "execution_id": "r", "wait_ms": 60_000}), object{"status": "interrupted", "execution_id": "r"})
	r.refused("VALIDATION_ERROR", "run_workflow", object{"definition_ref": "refund", "input": object{}})
	r.refused("VALIDATION_ERROR", "run_workflow", object{"input": object{}})
	r.refused("VALIDATION_ERROR", "run_workflow", object{"definition_ref": "nobody"})
	r.refused("VALIDATION_ERROR", "find_workflow", object{"query": "who", "answer_bytes": 100})
	page := r.ok("find_workflow", object{"query": "who gets refunds", "answer_bytes": 4096})
	for next, ok := page["next_cursor"]; ok; next, ok = page["next_cursor"] {
		page = r.ok("find_workflow", object{"query": "who gets refunds", "answer_bytes": 4096, "cursor": next})
	}
	r.refused("VALIDATION_ERROR", "find_workflow", nil)
	r.remove("refund")
	r.changedTo(25)
	if got := r.tools(); len(got) != 25 || got["run_w00"] == nil {
		t.Errorf("%d tools of 25 workflows again", len(got))
	}
}

// Names are made valid; where two would be the same, the one that is written so has it.
func TestToolNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long-", 20)
	files := map[string]string{}
	for i, name := range []string{"a_b", "a.b", "a b", "urn:x:flow", "naïve", long + "1", long + "2", "twice"} {
		files[fmt.Sprint("f", i)] = asks(name, "1", takesN)
	}
	files["again"] = asks("twice", "2.0", takesN)
	r := newRegistry(t, files, true, catalog.Options{})
	tools := r.tools()
	valid := regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	for name, tool := range tools {
		if !valid.MatchString(name) {
			t.Errorf("tool %q", name)
		}
		title := tool.Title[:strings.LastIndex(tool.Title, " ")]
		if got := r.ok(name, object{"n": 1}); r.ok("workflow_status", object{"execution_id": got["execution_id"]})["definition_name"] != title {
			t.Errorf("%s does not run %s", name, title)
		}
	}
	if len(tools) != len(files) {
		t.Errorf("%d tools of %d workflows", len(tools), len(files))
	}
	for name, title := range map[string]string{"run_a_b": "a_b 1", "run_urn_x_flow": "urn:x:flow 1", "run_twice_1": "twice 1", "run_twice_2_0": "twice 2.0"} {
		if tools[name] == nil || tools[name].Title != title {
			t.Errorf("no tool %s with title %s", name, title)
		}
	}
	// The same folder has the same names.
	if again := newRegistry(t, files, true, catalog.Options{}).names(); again != r.names() {
		t.Errorf("%s\n%s", again, r.names())
	}
}

// Neither the list nor an answer names a tool that the operator has left out.
func TestRegisteredNamesOnlyWhatIsOffered(t *testing.T) {
	t.Parallel()
	for set, offered := range map[string]string{"workflow_status,workflow_catalog": "workflow_catalog", "workflow_status": "none"} {
		c := catalog.New(t.TempDir(), catalog.Options{})
		text := strings.Replace(asks("one", "1", takesN), `"type":"object"}},`, `"type":"object","oneOf":[{}]}},`, 1)
		if err := os.WriteFile(filepath.Join(c.Folder(), "one.workflow.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		store := enginetest.Closing(t, historymem.New())
		runner := enginetest.Closing(t, enginetest.Must(graph.New(store, graph.Options{DefaultMode: machine.HostMediated, Workflows: c})))
		h := connectHost(t, runner, mcpserver.Options{Definitions: store, Catalog: c, ExposeWorkflows: true, Tools: enginetest.Must(mcpserver.ParseTools(set))})
		tools := enginetest.Must(h.session.ListTools(t.Context(), nil)).Tools
		said := string(enginetest.Must(json.Marshal(tools)))
		if offered == "workflow_catalog" {
			r := h.raw("workflow_catalog", nil)
			said += r.text
		}
		for _, name := range []string{"workflow_start", "workflow_catalog"} {
			if name != offered && contains(said, name) {
				t.Errorf("%s: %s is named: %s", set, name, said)
			}
		}
		if want := len(strings.Split(set, ",")) + 1; len(tools) != want {
			t.Errorf("%s: %d tools", set, len(tools))
		}
	}
}

// What a workflow's tool takes of the list is bounded, whatever its definition holds.
func TestWorkflowToolsAreBounded(t *testing.T) {
	t.Parallel()
	properties := object{}
	for i := range 500 {
		properties[fmt.Sprint("member_", i)] = object{"type": "string", "description": strings.Repeat("long ", 100)}
	}
	schema := string(enginetest.Must(json.Marshal(object{"type": "object", "properties": properties})))
	long := strings.Repeat("Ünicode ", 2000)
	text := strings.Replace(asks(long, long, schema), "Asks about", long+"asks about", 1)
	r := newRegistry(t, map[string]string{"long": text}, true, catalog.Options{})
	for name, tool := range r.tools() {
		if size := len(enginetest.Must(json.Marshal(tool))); size > 4<<10 || !contains(tool.Description, "workflow_catalog") {
			t.Errorf("%s takes %d bytes", name, size)
		}
		want(t, r.ok(name, object{"member_7": "x"}), object{"status": "interrupted"})
	}
	got := r.ok("workflow_catalog", nil)
	if size := len(enginetest.Must(json.Marshal(got))); size > mcpserver.DefaultAnswerBytes {
		t.Errorf("the catalog takes %d bytes", size)
	}
	want(t, r.ok("workflow_start", object{"definition_ref": at(t, got, "workflows", 0, "definition_ref")}), object{"status": "interrupted"})
}

// Where signatures are required, they are of registered workflows too: by name, as a tool, and after a change.
func TestRegisteredWorkflowsAreSigned(t *testing.T) {
	t.Parallel()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	policy := signing.Policy{Mode: signing.Require, Keys: map[string]ed25519.PublicKey{"k": public}}
	verify := func(d *definition.Document) error {
		_, err := policy.VerifyBlock(d.Canonical, d.Signature())
		return err
	}
	signed := func(text string) string {
		doc := enginetest.Must(jsonvalue.Decode([]byte(text)))
		return string(jsonvalue.Canonical(enginetest.Must(signing.Sign(doc, private, "k"))))
	}
	r := newRegistry(t, map[string]string{"signed": signed(asks("signed", "1", takesN)), "plain": asks("plain", "1", takesN)}, true, catalog.Options{Verify: verify})
	if got := r.names(); got != "run_signed" {
		t.Errorf("tools %s", got)
	}
	want(t, r.ok("run_signed", object{"n": 1}), object{"status": "interrupted"})
	want(t, r.ok("workflow_start", object{"definition_ref": "signed", "input": object{"n": 1}}), object{"status": "interrupted"})
	if text := r.refused("VALIDATION_ERROR", "workflow_start", object{"definition_ref": "plain", "input": object{"n": 1}}).text; !contains(text, "plain.workflow.json is invalid") {
		t.Error(text)
	}
	want(t, at(t, r.ok("workflow_catalog", nil), "broken", 0).(object), object{"file": "plain.workflow.json"})
	r.write(t, "signed", asks("signed", "2", takesN)) // somebody changes the file
	run := r.ok("run_signed", object{"n": 1})
	want(t, r.ok("workflow_status", object{"execution_id": run["execution_id"]}), object{"definition_version": "1"})
}
