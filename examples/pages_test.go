package examples_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/graphtest"
	"github.com/workflows-engine/workflows-engine/graph/lint"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/picture"
	"github.com/workflows-engine/workflows-engine/internal/workflowtest"
)

// page is a document whose definitions are tested.
type page struct {
	definitions map[string]*definition.Document
	// runs are what the page says below a definition: its input and result as JSON.
	runs map[string][2]string
	// fragments are parts of definitions, by the line where they begin.
	fragments map[int]any
}

var fence = regexp.MustCompile("(?ms)^```(yaml|json)( fragment)?\n(.*?)^```\n(?:\nInput `([^\n]*)`, result `([^\n]*)`\\.\n)?")

func readPage(t *testing.T, name string) *page {
	t.Helper()
	text := string(read(t, filepath.Join("..", "docs", name)))
	p := &page{definitions: map[string]*definition.Document{}, runs: map[string][2]string{}, fragments: map[int]any{}}
	found := fence.FindAllStringSubmatchIndex(text, -1)
	if fences := strings.Count(text, "\n```yaml") + strings.Count(text, "\n```json"); len(found) != fences || fences == 0 {
		t.Fatalf("%s: %d of %d blocks are read", name, len(found), fences)
	}
	for _, at := range found {
		group := func(i int) string {
			if at[2*i] < 0 {
				return ""
			}
			return text[at[2*i]:at[2*i+1]]
		}
		line, block := strings.Count(text[:at[0]], "\n")+1, group(3)
		if group(2) != "" {
			block = "fragment:\n  " + strings.ReplaceAll(block, "\n", "\n  ")
		}
		doc, err := definition.ParseYAML([]byte(block)) // JSON is YAML
		if err != nil {
			t.Fatalf("%s:%d: %v", name, line, err)
		}
		root := doc.Value().(map[string]any)
		if group(2) != "" {
			p.fragments[line] = root["fragment"]
			continue
		}
		program, findings := definition.Compile(doc, definition.Options{})
		for _, f := range findings {
			t.Errorf("%s:%d: %s %s", name, line+f.At.Line, f.Code, f.Message)
		}
		if program == nil {
			continue
		}
		p.definitions[program.Name] = doc
		if group(4) != "" {
			p.runs[program.Name] = [2]string{group(4), group(5)}
		}
	}
	return p
}

// nodes returns the nodes of the definitions of a page.
func (p *page) nodes() []map[string]any {
	var all []map[string]any
	for _, doc := range p.definitions {
		for _, n := range doc.Value().(map[string]any)["nodes"].([]any) {
			all = append(all, n.(map[string]any))
		}
	}
	return all
}

// ResolveWorkflow finds subworkflows among the definitions of the page.
func (p *page) ResolveWorkflow(_ context.Context, ref, _ string) (*definition.Document, error) {
	if doc := p.definitions[ref]; doc != nil {
		return doc, nil
	}
	return nil, fmt.Errorf("%s: %w", ref, os.ErrNotExist)
}

// scenario is a world for a definition of a page.
func (p *page) scenario(with graphtest.Scenario) graphtest.Scenario {
	with.Workflows = p
	stubs := map[string]graphtest.Stub{}
	for _, n := range p.nodes() {
		metadata, _ := n["metadata"].(map[string]any)
		if output, ok := metadata["demo_output"]; ok && n["type"] == "agent_delegate" {
			stubs[n["id"].(string)] = graphtest.Output(output)
		}
	}
	maps.Copy(stubs, with.Stubs)
	with.Stubs = stubs
	return with
}

// worlds are the answers and signals that lead the definitions of the pages to their results.
var worlds = map[string]graphtest.Scenario{
	"parcel": { // paid while it is packed
		Stubs:   map[string]graphtest.Stub{"pack": graphtest.After(time.Hour, graphtest.Output(object{"parcel": "P-1"}))},
		Signals: []graphtest.Signal{{Name: "paid", Payload: object{"receipt": "R-7"}, Moment: graphtest.Moment{After: time.Minute}}},
	},
	"expenses": {
		Answers: map[string]graphtest.Answer{"ask_lead": graphtest.Reply(object{"approved": true})},
	},
	"agent-with-review": {
		Answers: map[string]graphtest.Answer{"review": graphtest.Reply(
			object{"accepted": false, "remarks": "shorter"}, object{"accepted": true})},
	},
}

type object = map[string]any

// TestPagesRun: the definitions of the pages for authors have no findings, and what a page says of their results is true.
func TestPagesRun(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"workflows.md", "recipes.md"} {
		p := readPage(t, name)
		for workflow, doc := range p.definitions {
			said, ok := p.runs[workflow]
			if !ok {
				t.Errorf("%s does not say what %q makes of which input", name, workflow)
				continue
			}
			scenario := p.scenario(worlds[workflow])
			scenario.Input = value(t, said[0]).(object)
			run := graphtest.Run(t, doc, scenario)
			if want := value(t, said[1]); run.Status != machine.Completed || !jsonvalue.Equal(run.Result, want) {
				t.Errorf("%s: %s %s %+v after %v\n got %s\nwant %s", name, workflow, run.Status, run.Error, run.Path, jsonvalue.Canonical(run.Result), said[1])
			}
		}
	}
}

// TestDefinitionsOfTheReference: the definitions whose nodes docs/reference/language.md shows pass their tests, and one has nodes of all types.
func TestDefinitionsOfTheReference(t *testing.T) {
	t.Parallel()
	folder, types := filepath.Join("..", "docs", "definitions"), map[definition.Type]bool{}
	definitions, err := filepath.Glob(filepath.Join(folder, "*.workflow.yaml"))
	tests, _ := workflowtest.Find(folder, ".")
	if err != nil || len(definitions) == 0 || len(tests) != len(definitions) {
		t.Fatalf("%d definitions have %d files of tests (%v)", len(definitions), len(tests), err)
	}
	for _, path := range definitions {
		program, findings := definition.Compile(parse(t, path), definition.Options{})
		for _, f := range findings {
			t.Errorf("%s:%d: %s %s", path, f.At.Line, f.Code, f.Message)
		}
		for _, n := range program.Nodes {
			types[n.Type] = true
		}
	}
	if len(types) != len(definition.NodeTypes()) {
		t.Errorf("only %d types of nodes", len(types))
	}
	for _, path := range tests {
		file, err := workflowtest.Load(folder, path)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, r := range file.Run(func(string) bool { return true }) {
			if !r.Passed() {
				t.Errorf("%s: %s: %+v", path, r.Test.Name, r.Differences)
			}
		}
	}
}

// TestFragmentsArePartsOfDefinitions: each node that docs/reference/language.md shows stands in a definition of docs/definitions, and there is
// one of every type.
func TestFragmentsArePartsOfDefinitions(t *testing.T) {
	t.Parallel()
	definitions, types := &page{definitions: map[string]*definition.Document{}}, map[string]bool{}
	paths, err := filepath.Glob(filepath.Join("..", "docs", "definitions", "*.workflow.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		definitions.definitions[path] = parse(t, path)
	}
	nodes := definitions.nodes()
	for line, fragment := range readPage(t, "reference/language.md").fragments {
		list, _ := fragment.([]any)
		for _, n := range list {
			types[n.(object)["type"].(string)] = true
			if !slices.ContainsFunc(nodes, func(o object) bool { return jsonvalue.Equal(o, n) }) {
				t.Errorf("docs/reference/language.md:%d: the node %v is in no definition", line, n.(object)["id"])
			}
		}
	}
	for _, typ := range definition.NodeTypes() {
		if !types[string(typ.Name)] {
			t.Errorf("docs/reference/language.md: no fragment has a node of type %s", typ.Name)
		}
	}
}

// TestThePictureOfTheFirstDefinition: docs/workflows.md shows what the command graph draws of its definition.
func TestThePictureOfTheFirstDefinition(t *testing.T) {
	t.Parallel()
	program, _ := definition.Compile(readPage(t, "workflows.md").definitions["triage"], definition.Options{})
	drawn := "\n```mermaid\n" + picture.Mermaid(program, nil) + "```\n"
	if page := string(read(t, filepath.Join("..", "docs", "workflows.md"))); !strings.Contains(page, drawn) || strings.Count(page, "\n```mermaid\n") != 1 {
		t.Errorf("docs/workflows.md does not show this picture:\n%s", drawn)
	}
}

// TestRecipesUnderFailure: the recipes do what they are for when something goes wrong.
func TestRecipesUnderFailure(t *testing.T) {
	t.Parallel()
	p := readPage(t, "recipes.md")
	down := graphtest.Fail("PROVIDER_DOWN", "no answer")
	for _, test := range []struct {
		workflow, input, result string
		world                   graphtest.Scenario
	}{
		{"catch-an-error", `{"city":"Oslo"}`, `{"forecast":"unknown","reason":"PROVIDER_DOWN"}`, graphtest.Scenario{Stubs: map[string]graphtest.Stub{"ask": down}}},
		{"drafts", `{"topic":"tides"}`, `{"text":"A first try","good":true,"draft":2}`, graphtest.Scenario{Stubs: map[string]graphtest.Stub{
			"judge": graphtest.Visits(graphtest.Output(object{"good": false}), graphtest.Output(object{"good": true}))}}},
		{"trip", `{"to":"Rome"}`, `{"paid":false,"undone":2,"why":"no answer"}`, graphtest.Scenario{Stubs: map[string]graphtest.Stub{"pay": down}}},
		{"expenses", `{"amount":90}`, `{"approved":false,"decided_in":"refuse"}`, graphtest.Scenario{}},
		{"expenses", `{"amount":90}`, `{"approved":true,"decided_in":"ask_manager"}`, graphtest.Scenario{
			Answers: map[string]graphtest.Answer{"ask_manager": graphtest.Reply(object{"approved": true})}}},
		{"batch", `{"addresses":["a","b"]}`, `{"sent":0,"failed":["a","b"]}`, graphtest.Scenario{Stubs: map[string]graphtest.Stub{"send": down}}},
	} {
		doc := p.definitions[test.workflow]
		if doc == nil {
			t.Errorf("there is no %q", test.workflow)
			continue
		}
		scenario := p.scenario(test.world)
		scenario.Input = value(t, test.input).(object)
		run := graphtest.Run(t, doc, scenario)
		if run.Status != machine.Completed || !jsonvalue.Equal(run.Result, value(t, test.result)) {
			t.Errorf("%s: %s %+v after %v\n got %s\nwant %s", test.workflow, run.Status, run.Error, run.Path, jsonvalue.Canonical(run.Result), test.result)
		}
	}
}

func value(t *testing.T, text string) any {
	t.Helper()
	node, faults := jsonvalue.Parse([]byte(text), 0, 0)
	if len(faults) > 0 {
		t.Fatalf("%s: %v", text, faults[0])
	}
	return node.Value()
}

// TestTheTestOfThePage: the test file that docs/testing-workflows.md shows tests nightly-import.
func TestTheTestOfThePage(t *testing.T) {
	t.Parallel()
	shown := fence.FindSubmatch(read(t, filepath.Join("..", "docs", "testing-workflows.md")))
	if shown == nil {
		t.Fatal("the page shows no test")
	}
	folder := t.TempDir()
	for name, text := range map[string][]byte{
		"nightly-import.workflow.yaml": read(t, mainFile(t, "nightly-import")), "nightly-import.test.yaml": shown[3],
	} {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file, err := workflowtest.Load(folder, filepath.Join(folder, "nightly-import.test.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range file.Run(func(string) bool { return true }) {
		if !r.Passed() {
			t.Errorf("%s: %+v", r.Test.Name, r.Differences)
		}
	}
}

// TestNodesOfThePages: the nodes that docs/executors.md and docs/agents.md show, one after the other, are a definition without findings.
func TestNodesOfThePages(t *testing.T) {
	t.Parallel()
	var shown [][][]byte
	for _, page := range []string{"executors.md", "agents.md"} {
		of := fence.FindAllSubmatch(read(t, filepath.Join("..", "docs", page)), -1)
		if !slices.ContainsFunc(of, func(b [][]byte) bool { return string(b[1]) == "yaml" }) {
			t.Errorf("docs/%s shows no nodes", page)
		}
		shown = append(shown, of...)
	}
	for _, b := range shown {
		if string(b[1]) != "yaml" {
			continue
		}
		part, err := definition.ParseYAML([]byte("nodes:\n" + string(b[3])))
		if err != nil {
			t.Fatalf("%v in\n%s", err, b[3])
		}
		nodes := append([]any{object{"id": "begin", "type": "start"}}, part.Value().(object)["nodes"].([]any)...)
		nodes = append(nodes, object{"id": "finish", "type": "end"})
		edges := []any{object{"source": "__start__", "target": "begin"}}
		for i := range nodes[1:] {
			edges = append(edges, object{"source": nodes[i].(object)["id"], "target": nodes[i+1].(object)["id"]})
		}
		doc, err := definition.FromValue(object{
			"document": object{"schema": "s", "name": "shown", "version": "1"}, "state_schema": object{"type": "object"}, "nodes": nodes, "edges": edges,
		})
		if err != nil {
			t.Fatal(err)
		}
		_, findings := lint.Compile(doc, lint.Options{})
		for _, f := range findings {
			t.Errorf("%s %s in\n%s", f.Code, f.Message, b[3])
		}
	}
}

// TestTheReadmeShowsTheExample: what the README shows of a definition is part of it.
func TestTheReadmeShowsTheExample(t *testing.T) {
	t.Parallel()
	_, after, _ := strings.Cut(string(read(t, filepath.Join("..", "README.md"))), "```yaml\n")
	shown, _, ok := strings.Cut(after, "```\n")
	if !ok || !strings.Contains(string(read(t, "refund/refund.workflow.yaml")), shown) {
		t.Errorf("examples/refund/refund.workflow.yaml has no such part:\n%s", shown)
	}
}
