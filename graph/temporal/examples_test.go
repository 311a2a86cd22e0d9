package temporal

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
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/catalog"
	"github.com/workflows-engine/workflows-engine/internal/config"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

const examples = "../../examples"

// TestExamples runs every example with its expectations.
func TestExamples(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(examples, "*", "expect.json"))
	if err != nil || len(files) < 10 {
		t.Fatalf("%d examples (%v)", len(files), err)
	}
	for _, file := range files {
		folder := filepath.Dir(file)
		for _, run := range expectations(t, file) {
			t.Run(filepath.Base(folder)+"/"+run["name"].(string), func(t *testing.T) {
				t.Parallel()
				runExample(t, folder, run)
			})
		}
	}
}

func expectations(t *testing.T, file string) (list []map[string]any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonvalue.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range v.(map[string]any)["runs"].([]any) {
		list = append(list, run.(map[string]any))
	}
	return list
}

// demoOptions are those of the demo profile.
func demoOptions(t testing.TB, folder string) Options {
	t.Helper()
	o := configured(t, config.Environment{}, "--store", "memory", "--profile", "demo")
	o.Workflows = catalog.New(folder, catalog.Options{})
	return o
}

// configured are the options of the programs with an environment and flags.
func configured(t testing.TB, env config.Environment, args ...string) Options {
	t.Helper()
	o, err := runnerOptions(env, args...)
	if err != nil {
		t.Fatal(err)
	}
	return Options{Activities: o.Activities, Delegates: o.Delegates, Attempts: o.Attempts, Webhooks: o.Webhooks, Deliver: o.Deliver}
}

// runnerOptions are those of a Runner of the programs.
func runnerOptions(env config.Environment, args ...string) (graph.Options, error) {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags := config.Register(set)
	if err := set.Parse(args); err != nil {
		return graph.Options{}, err
	}
	c, err := flags.Load(env)
	if err != nil {
		return graph.Options{}, err
	}
	executors, err := c.Executors()
	return c.RunnerOptions(executors, nil), err
}

func exampleDocument(t testing.TB, folder string) *definition.Document {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(folder, filepath.Base(folder)+".workflow.*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%q %v", found, err)
	}
	text, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	parse := definition.ParseYAML
	if strings.HasSuffix(found[0], ".json") {
		parse = definition.Parse
	}
	d, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func runExample(t *testing.T, folder string, want map[string]any) {
	e, _ := newTestEngine(t, demoOptions(t, folder))
	input, _ := want["input"].(map[string]any)
	run, err := e.Start(t.Context(), graph.StartRequest{ExecutionID: "example", Definition: exampleDocument(t, folder), Input: input})
	answers, _ := want["answers"].([]any)
	for _, a := range answers {
		if err != nil || run.Status.Terminal() {
			break
		}
		run, err = give(t, e, run, a.(map[string]any))
	}
	if err != nil {
		t.Fatal(err)
	}
	if run.Status != machine.Completed {
		t.Fatalf("status %s %s %s, pending %+v", run.Status, run.ErrorCode, run.Error, run.Pending)
	}
	if ordersFreely(t, folder) {
		return
	}
	if !jsonvalue.Equal(run.Result, want["result"]) {
		t.Errorf("result\n got %s\nwant %s", jsonvalue.Canonical(run.Result), jsonvalue.Canonical(want["result"]))
	}
	records, err := e.History(t.Context(), graph.HistoryRequest{ExecutionID: "example"})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := stream(records), runnerStream(t, folder, want); !slices.Equal(got, want) {
		i := 0
		for i < min(len(got), len(want)) && got[i] == want[i] {
			i++
		}
		t.Errorf("%d records, the Runner makes %d; they differ at %d:\n got %q\nwant %q", len(got), len(want), i+1, got[i:min(i+5, len(got))], want[i:min(i+5, len(want))])
	}
	if nodes, ok := want["nodes"].([]any); ok {
		var got []any
		for _, r := range records {
			if r.Name == history.CompleteNode {
				got = append(got, r.Payload.NodeID)
			}
		}
		if !slices.Equal(got, nodes) {
			t.Errorf("nodes\n got %q\nwant %q", got, nodes)
		}
	}
}

// ordersFreely reports whether the result of an example depends on the order in which branches end. Here they run at the same time; the Runner's
// own test runs them in a bubble.
func ordersFreely(t *testing.T, folder string) bool {
	prog, _ := definition.Compile(exampleDocument(t, folder), definition.Options{})
	return slices.ContainsFunc(prog.Nodes, func(n *definition.Node) bool { return n.Parallel != nil && n.Parallel.Join != definition.JoinAll })
}

// stream returns the kinds, names and nodes of records.
func stream(records []history.Record) (list []string) {
	for _, r := range records {
		list = append(list, strings.Join([]string{string(r.Kind), string(r.Name), r.Payload.NodeID}, " "))
	}
	return list
}

// runnerStream returns the records that the Runner makes of an example.
func runnerStream(t *testing.T, folder string, want map[string]any) (list []string) {
	synctest.Test(t, func(t *testing.T) {
		o := demoOptions(t, folder)
		r := enginetest.Closing(t, enginetest.Must(graph.New(historymem.New(), graph.Options{Activities: o.Activities, Delegates: o.Delegates, Attempts: o.Attempts, Workflows: o.Workflows})))
		input, _ := want["input"].(map[string]any)
		run, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "example", Definition: exampleDocument(t, folder), Input: input})
		answers, _ := want["answers"].([]any)
		for _, a := range answers {
			if err == nil && !run.Status.Terminal() {
				run, err = give(t, r, run, a.(map[string]any))
			}
		}
		var records []history.Record
		if err == nil {
			records, err = r.History(t.Context(), graph.HistoryRequest{ExecutionID: "example"})
		}
		if err != nil {
			t.Fatal(err)
		}
		list = stream(records)
	})
	return list
}

// give answers the first thing that the run waits for.
func give(t *testing.T, e graph.Engine, run *view.Run, answer map[string]any) (*view.Run, error) {
	t.Helper()
	if payload, ok := answer["resume"].(map[string]any); ok {
		return e.Resume(t.Context(), graph.ResumeRequest{ExecutionID: run.ExecutionID, Payload: payload})
	}
	name, _ := answer["signal"].(string)
	payload, _ := answer["payload"].(map[string]any)
	return e.Signal(t.Context(), graph.SignalRequest{ExecutionID: run.ExecutionID, Name: name, Payload: payload})
}
