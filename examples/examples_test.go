// Package examples_test runs every example, so that none of them can rot.
package examples_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/spf13/pflag"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/graphtest"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/catalog"
	"github.com/workflows-engine/workflows-engine/internal/config"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/workflowtest"
)

// folders lists the examples.
func folders(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		if entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	if len(names) == 0 {
		t.Fatal("there are no examples")
	}
	return names
}

// parse reads a definition by its extension.
func parse(t *testing.T, path string) *definition.Document {
	t.Helper()
	text := read(t, path)
	parser := definition.Parse
	if strings.HasSuffix(path, ".yaml") {
		parser = definition.ParseYAML
	}
	document, err := parser(text)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return document
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// mainFile is the definition that an example's folder is named for.
func mainFile(t *testing.T, folder string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(folder, folder+".workflow.*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: want one %s.workflow.json or .yaml, got %q (%v)", folder, folder, found, err)
	}
	return found[0]
}

func TestDefinitionsAreClean(t *testing.T) {
	t.Parallel()
	for _, folder := range folders(t) {
		files, err := filepath.Glob(filepath.Join(folder, "*.workflow.*"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s has no definition (%v)", folder, err)
		}
		for _, file := range files {
			_, findings := definition.Compile(parse(t, file), definition.Options{})
			for _, f := range findings {
				t.Errorf("%s:%d:%d: %s %s", file, f.At.Line, f.At.Column, f.Code, f.Message)
			}
		}
	}
}

func TestExamplesAreExplained(t *testing.T) {
	t.Parallel()
	index := string(read(t, "README.md"))
	for _, folder := range folders(t) {
		if !strings.Contains(index, "]("+folder+"/)") {
			t.Errorf("README.md does not list %s", folder)
		}
		text := string(read(t, filepath.Join(folder, "README.md")))
		if command := "workflows-engine run examples/" + filepath.ToSlash(mainFile(t, folder)); !strings.Contains(text, command) {
			t.Errorf("%s/README.md does not say: %s", folder, command)
		}
	}
}

// TestTheTestsOfExamplesPass: each definition has tests, which pass and go through all of it.
func TestTheTestsOfExamplesPass(t *testing.T) {
	t.Parallel()
	definitions, err := filepath.Glob("*/*.workflow.*")
	if err != nil || len(definitions) == 0 {
		t.Fatalf("no definitions: %v", err)
	}
	files, err := workflowtest.Find(".", ".")
	if err != nil || len(files) != len(definitions) {
		t.Errorf("%d definitions have %d test files (%v)", len(definitions), len(files), err)
	}
	for _, file := range files {
		f, err := workflowtest.Load(".", file)
		if err != nil {
			t.Error(err)
			continue
		}
		var coverage graphtest.Coverage
		results := f.Run(func(string) bool { return true })
		for _, r := range results {
			if !r.Passed() {
				t.Errorf("%s: %s: %+v", file, r.Test.Name, r.Differences)
			}
			coverage.Add(r.Outcome.Coverage)
		}
		if len(results) < 2 {
			t.Errorf("%s: want the main path and another one", file)
		}
		if d := coverage[0]; len(d.Unvisited())+len(d.Untaken()) > 0 {
			t.Errorf("%s: not visited: %v; not taken: %v", file, d.Unvisited(), d.Untaken())
		}
	}
}

func TestExamplesRun(t *testing.T) {
	t.Parallel()
	for _, folder := range folders(t) {
		for _, want := range readExpectations(t, filepath.Join(folder, "expect.json")) {
			t.Run(folder+"/"+want.name, func(t *testing.T) {
				t.Parallel()
				// In a bubble, waits and back-offs pass at once.
				synctest.Test(t, func(t *testing.T) { runExample(t, folder, want) })
			})
		}
	}
}

// expectation is one run of an expect.json: what goes in, what is answered, what comes out.
type expectation struct {
	name    string
	input   map[string]any
	answers []map[string]any
	result  any
	// nodes are the completed nodes in order; nil does not look.
	nodes []string
}

func readExpectations(t *testing.T, path string) []expectation {
	t.Helper()
	node, faults := jsonvalue.Parse(read(t, path), 0, 0)
	if len(faults) > 0 {
		t.Fatalf("%s: %v", path, faults[0])
	}
	root, _ := node.Value().(map[string]any)
	runs, _ := root["runs"].([]any)
	if len(runs) == 0 {
		t.Fatalf("%s has no runs", path)
	}
	var list []expectation
	for _, run := range runs {
		members := run.(map[string]any)
		e := expectation{name: members["name"].(string), result: members["result"]}
		e.input, _ = members["input"].(map[string]any)
		answers, _ := members["answers"].([]any)
		for _, a := range answers {
			e.answers = append(e.answers, a.(map[string]any))
		}
		nodes, _ := members["nodes"].([]any)
		for _, n := range nodes {
			e.nodes = append(e.nodes, n.(string))
		}
		list = append(list, e)
	}
	return list
}

func runExample(t *testing.T, folder string, want expectation) {
	runner := newRunner(t, folder)
	run, err := runner.Start(t.Context(), graph.StartRequest{
		ExecutionID: "example",
		Definition:  parse(t, mainFile(t, folder)),
		Input:       want.input,
	})
	for _, answer := range want.answers {
		if err != nil {
			break
		}
		run, err = give(t, runner, run, answer)
	}
	if err != nil {
		t.Fatal(err)
	}
	if run.Status != machine.Completed {
		t.Fatalf("status %s %s %s, pending %+v", run.Status, run.ErrorCode, run.Error, run.Pending)
	}
	if !jsonvalue.Equal(run.Result, want.result) {
		t.Errorf("result\n got %s\nwant %s", jsonvalue.Canonical(run.Result), jsonvalue.Canonical(want.result))
	}
	if want.nodes != nil {
		if got := completedNodes(t, runner); !slices.Equal(got, want.nodes) {
			t.Errorf("nodes\n got %q\nwant %q", got, want.nodes)
		}
	}
}

// give answers the first thing that the run waits for.
func give(t *testing.T, runner *graph.Runner, run *graph.Run, answer map[string]any) (*graph.Run, error) {
	t.Helper()
	if run.Status.Terminal() {
		t.Fatalf("the run has ended (%s %s) before the answer %v", run.Status, run.Error, answer)
	}
	if payload, ok := answer["resume"].(map[string]any); ok {
		return runner.Resume(t.Context(), graph.ResumeRequest{ExecutionID: run.ExecutionID, Payload: payload})
	}
	name, _ := answer["signal"].(string)
	payload, _ := answer["payload"].(map[string]any)
	return runner.Signal(t.Context(), graph.SignalRequest{ExecutionID: run.ExecutionID, Name: name, Payload: payload})
}

// newRunner makes a runner as the command line does with --profile demo.
func newRunner(t *testing.T, folder string) *graph.Runner {
	t.Helper()
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags := config.Register(set)
	if err := set.Parse([]string{"--store", "memory", "--profile", "demo"}); err != nil {
		t.Fatal(err)
	}
	c, err := flags.Load(config.Environment{})
	if err != nil {
		t.Fatal(err)
	}
	executors, err := c.Executors()
	if err != nil {
		t.Fatal(err)
	}
	options := c.RunnerOptions(executors, nil)
	options.Workflows = catalog.New(folder, catalog.Options{})
	return enginetest.Closing(t, enginetest.Must(graph.New(historymem.New(), options)))
}

func completedNodes(t *testing.T, runner *graph.Runner) []string {
	t.Helper()
	records, err := runner.History(t.Context(), graph.HistoryRequest{ExecutionID: "example"})
	if err != nil {
		t.Fatal(err)
	}
	var nodes []string
	for _, r := range records {
		if r.Name == history.CompleteNode {
			nodes = append(nodes, r.Payload.NodeID)
		}
	}
	return nodes
}
