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
	"github.com/workflows-engine/workflows-engine/graph/lint"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/authoring"
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
			_, findings := lint.Compile(parse(t, file), lint.Options{})
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
	run, given := startExample(t, runner, parse(t, mainFile(t, folder)), want)
	if given != len(want.answers) {
		t.Fatalf("the run has ended (%s %s) before the answer %v", run.Status, run.Error, want.answers[given])
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

// startExample starts a run and gives it its answers, until it ends. It says how many it gave.
func startExample(t *testing.T, runner *graph.Runner, document *definition.Document, e expectation) (run *view.Run, given int) {
	t.Helper()
	run, err := runner.Start(t.Context(), graph.StartRequest{ExecutionID: "example", Definition: document, Input: e.input})
	for err == nil && given < len(e.answers) && !run.Status.Terminal() {
		run, err = give(t, runner, run, e.answers[given])
		given++
	}
	if err != nil {
		t.Fatal(err)
	}
	return run, given
}

// give answers the first thing that the run waits for.
func give(t *testing.T, runner *graph.Runner, run *view.Run, answer map[string]any) (*view.Run, error) {
	t.Helper()
	if payload, ok := answer["resume"].(map[string]any); ok {
		return runner.Resume(t.Context(), graph.ResumeRequest{ExecutionID: run.ExecutionID, Payload: payload})
	}
	name, _ := answer["signal"].(string)
	payload, _ := answer["payload"].(map[string]any)
	return runner.Signal(t.Context(), graph.SignalRequest{ExecutionID: run.ExecutionID, Name: name, Payload: payload})
}

// TestModelCallsAreRetried: no example, and no template, fails because a model was busy for a moment, or takes whatever it says.
func TestModelCallsAreRetried(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*/*.workflow.*")
	if err != nil {
		t.Fatal(err)
	}
	documents := map[string]*definition.Document{}
	for _, file := range files {
		documents[file] = parse(t, file)
	}
	for _, name := range authoring.TemplateNames() {
		text, _ := authoring.TemplateFiles(name, name)
		documents["template "+name] = enginetest.Must(definition.ParseYAML([]byte(text)))
	}
	calls := 0
	for name, document := range documents {
		program, _ := definition.Compile(document, definition.Options{})
		for _, n := range program.Nodes {
			if n.Type != definition.LLMCall {
				continue
			}
			calls++
			if n.Retry == nil || n.Retry.MaxAttempts < 2 {
				t.Errorf("%s: %s is not tried again", name, n.ID)
			}
			if n.Activity.OutputSchema == nil {
				t.Errorf("%s: %s has no output_schema", name, n.ID)
			}
		}
	}
	if calls == 0 {
		t.Error("no model is called")
	}
}

// missed are outputs that an example does without.
var missed = map[string]string{
	"competitor-scan/look_up":     "a catch leads to an answer without prices",
	"nightly-schedule/read_sales": "the log says which night has failed",
	"price-import/import":         "nothing reads the price that the shop answers with",
	"price-import/read":           "the old prices are restored, and the result says that none were published",
	"release-gate/build":          "nothing reads the name of the image",
	"research/search_archive":     "the sources of the result are those that had something to say",
	"research/search_papers":      "as above",
	"research/search_web":         "as above",
	"trip-booking/book_car":       "the arguments of pay demand it, which the demo profile does not fill in",
	"trip-booking/book_flight":    "as above",
	"trip-booking/book_hotel":     "as above",
}

// TestNoExampleTakesNothingForAnAnswer: where a tool or a step answers {}, no run completes that came through it.
func TestNoExampleTakesNothingForAnAnswer(t *testing.T) {
	t.Parallel()
	tried := 0
	for _, folder := range folders(t) {
		runs := readExpectations(t, filepath.Join(folder, "expect.json"))
		files := enginetest.Must(filepath.Glob(filepath.Join(folder, "*.workflow.*")))
		for _, file := range files {
			for id, document := range silenced(t, file) {
				tried++
				for _, run := range runs {
					t.Run(folder+"/"+id+"/"+run.name, func(t *testing.T) {
						t.Parallel()
						own := t.TempDir()
						for _, f := range files {
							text := read(t, f)
							if f == file {
								text = document
							}
							if err := os.WriteFile(filepath.Join(own, filepath.Base(f)), text, 0o600); err != nil {
								t.Fatal(err)
							}
						}
						synctest.Test(t, func(t *testing.T) {
							runner := newRunner(t, own)
							got, _ := startExample(t, runner, parse(t, filepath.Join(own, filepath.Base(mainFile(t, folder)))), run)
							through := file != mainFile(t, folder) || slices.Contains(completedNodes(t, runner), id)
							if got.Status == machine.Completed && through && missed[folder+"/"+id] == "" {
								t.Errorf("completed with %s", jsonvalue.Canonical(got.Result))
							}
						})
					})
				}
			}
		}
	}
	if tried < 10 {
		t.Errorf("only %d outputs were left out", tried)
	}
}

// silenced returns a definition once for each tool and step that has an output in the demo profile, without that output.
func silenced(t *testing.T, file string) map[string][]byte {
	t.Helper()
	variants := map[string][]byte{}
	nodes := func(value any) []any { return value.(map[string]any)["nodes"].([]any) }
	for i, node := range nodes(parse(t, file).Value()) {
		of := node.(map[string]any)
		metadata, _ := of["metadata"].(map[string]any)
		if output, _ := metadata["demo_output"].(map[string]any); len(output) == 0 || of["type"] != "tool_call" && of["type"] != "step" {
			continue
		}
		value := parse(t, file).Value()
		nodes(value)[i].(map[string]any)["metadata"].(map[string]any)["demo_output"] = map[string]any{}
		variants[of["id"].(string)] = []byte(jsonvalue.Canonical(value)) // JSON is YAML, too
	}
	return variants
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
