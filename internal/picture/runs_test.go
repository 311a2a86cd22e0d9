package picture_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/picture"
	"github.com/workflows-engine/workflows-engine/internal/timeline"
)

// worker performs a step as its config says: it ends after the duration takes, with the output gives or the failure fails. A step of a map
// fails for item only, and one in a loop in as many visits as visits says.
func worker(ctx context.Context, req activities.Request) (activities.Result, error) {
	if text, ok := req.Config["takes"].(string); ok {
		d, err := time.ParseDuration(text)
		if err != nil {
			return activities.Result{}, err
		}
		select {
		case <-ctx.Done():
			return activities.Result{}, context.Cause(ctx)
		case <-time.After(d):
		}
	}
	code, fails := req.Config["fails"].(string)
	if item, ok := req.Config["item"]; ok && req.State()["item"] != item {
		fails = false
	}
	if visits, ok := req.Config["visits"].(float64); ok && req.Visit > int(visits) {
		fails = false
	}
	if fails {
		return activities.Result{}, &activities.Failure{Code: code, Message: "as it should"}
	}
	output, _ := req.Config["gives"].(map[string]any)
	return activities.Result{Output: output}, nil
}

// TestRuns draws runs of the definitions in testdata/runs; the first line of each says what happens in it. A line "# cancel DURATION"
// cancels the run so long after its start, "# signal DURATION NAME" sends it a signal, and "# at DURATION" draws it as it stands then.
// What follows a line "---" are its subworkflows.
func TestRuns(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/runs/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d definitions (%v)", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := string(enginetest.Must(os.ReadFile(file)))
			synctest.Test(t, func(t *testing.T) { drawRun(t, strings.TrimSuffix(file, ".yaml"), text) })
		})
	}
}

func drawRun(t *testing.T, path, text string) {
	store := historymem.New()
	runner := enginetest.Closing(t, enginetest.Must(graph.New(store, graph.Options{
		Activities: activities.Composite{Step: activities.ExecutorFunc(worker)}, AllowInterruptInBranch: true,
	})))
	documents := strings.Split(text, "\n---\n")
	for _, child := range documents[1:] {
		document := enginetest.Define(t, child)
		program, _ := definition.Compile(document, definition.Options{})
		if err := runner.RegisterWorkflow(program.Name, document); err != nil {
			t.Fatal(err)
		}
	}
	doc := enginetest.Define(t, documents[0])
	program, findings := definition.Compile(doc, definition.Options{AllowInterruptInBranch: true})
	if program == nil {
		t.Fatal(findings)
	}
	began := time.Now()
	until := func(moment string) { time.Sleep(time.Until(began.Add(enginetest.Must(time.ParseDuration(moment))))) }
	go func() {
		if _, err := runner.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: doc}); err != nil {
			t.Error(err)
		}
	}()
	synctest.Wait()
	at := "1h"
	for line := range strings.Lines(documents[0]) {
		words := strings.Fields(line)
		if len(words) < 3 || words[0] != "#" {
			continue
		}
		var err error
		switch words[1] {
		case "at":
			at = words[2]
		case "cancel":
			until(words[2])
			_, err = runner.Cancel(t.Context(), graph.CancelRequest{ExecutionID: "r", Reason: "enough"})
		case "signal":
			until(words[2])
			_, err = runner.Signal(t.Context(), graph.SignalRequest{ExecutionID: "r", Name: words[3]})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	until(at)
	synctest.Wait()
	records, err := runner.History(t.Context(), graph.HistoryRequest{ExecutionID: "r"})
	if err != nil {
		t.Fatal(err)
	}
	line := timeline.New("r", strings.TrimSpace)
	line.Define("r", program)
	for i := range records {
		line.Record("r", &records[i])
	}
	run := line.Root()
	for _, extension := range []string{"txt", "mmd"} {
		requireGolden(t, path+"."+extension, formats[extension](program, run))
	}
	image := picture.SVG(program, run)
	texts(t, image)
	requireApart(t, path, image)
}

func requireGolden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(path); err != nil || got != string(want) {
		t.Errorf("%s differs (%v; go test ./internal/picture -update rewrites it)\n%s", path, err, got)
	}
}
