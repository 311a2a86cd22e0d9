package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// askingLeaf performs a step and asks twice; mappedLeaf maps it.
const (
	askingLeaf = `{"document":{"schema":"s","name":"leaf","version":"1"},"state_schema":{"type":"object"},"nodes":[{"id":"begin","type":"start"},
		{"id":"work","type":"step","config":{"handler":"x"},"metadata":{"demo_output":{}}},
		{"id":"ask","type":"interrupt","config":{"prompt":"One?","resume_schema":{"type":"object"}}},
		{"id":"again","type":"interrupt","config":{"prompt":"Two?","resume_schema":{"type":"object"}}},{"id":"end","type":"end"}],
		"edges":[{"source":"__start__","target":"begin"},{"source":"begin","target":"work"},{"source":"work","target":"ask"},{"source":"ask","target":"again"},{"source":"again","target":"end"}]}`
	mappedLeaf = `{"document":{"schema":"s","name":"mapped","version":"1"},"x-workflows-engine":{"uses":["map"]},"state_schema":{"type":"object"},"nodes":[{"id":"begin","type":"start"},
		{"id":"m","type":"subworkflow","map":{"items":"[1,2,3]","concurrency":2,"collect":"out"},"config":{"workflow_ref":"leaf","input_mapping":{}}},{"id":"end","type":"end"}],
		"edges":[{"source":"__start__","target":"begin"},{"source":"begin","target":"m"},{"source":"m","target":"end"}]}`
)

// TestCommandsClaimSubworkflowsBesideAQuestion: a command that continues a run claims the subworkflow that an ended process has left in the
// middle of a step, although another subworkflow asks, and ends with status 3. Without the executor it ends, too, and names
// the executor.
func TestCommandsClaimSubworkflowsBesideAQuestion(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"resume", "r", "--payload", "{}", "--interrupt"},
		{"resume", "r", "--payload", "{}", "--wait", "1h", "--interrupt"},
		{"recover", "r"},
		{"recover"},
	} {
		t.Run(strings.Join(args[:min(3, len(args))], " "), func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			path := filepath.Join(folder, "runs.db")
			for name, text := range map[string]string{"leaf": askingLeaf, "mapped": mappedLeaf} {
				if err := os.WriteFile(filepath.Join(folder, name+".workflow.json"), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			asks := leaveOrphan(t, path)
			if args[len(args)-1] == "--interrupt" {
				args = append(args, asks)
			}
			command := func(args ...string) (exit int, output string) {
				a, stdout, stderr := newTestApp(t, strings.NewReader(""), time.Now())
				a.now = time.Now
				exit = a.execute(context.Background(), append(args, "--db", path, "--workflow-dir", folder))
				return exit, stdout.String() + stderr.String()
			}
			missing, paused := exitPaused, exitPaused
			if len(args) == 1 {
				missing, paused = exitFailed, exitOK // recover of all runs
			}
			if exit, output := command(args...); exit != missing || !strings.Contains(output, "lacks an executor for step nodes") {
				t.Fatalf("without the executor: exit %d\n%s", exit, output)
			}
			if exit, output := command(append(args, "--profile", "demo")...); exit != paused {
				t.Fatalf("exit %d\n%s", exit, output)
			}
			store := enginetest.Must(historysql.Open(t.Context(), path, historysql.Options{}))
			defer store.Close()
			if ids := enginetest.Must(store.Unowned(t.Context(), 10)); len(ids) > 0 {
				t.Errorf("orphaned runs are left: %v", ids)
			}
		})
	}
}

// leaveOrphan starts run r in a process that ends while a subworkflow performs its step and another one asks, and returns that question.
func leaveOrphan(t *testing.T, path string) (interruptID string) {
	t.Helper()
	store := enginetest.Must(historysql.Open(t.Context(), path, historysql.Options{}))
	defer store.Close()
	var calls atomic.Int32
	r := enginetest.Must(graph.New(store, graph.Options{Activities: activities.ExecutorFunc(
		func(ctx context.Context, _ activities.Request) (activities.Result, error) {
			if calls.Add(1) > 1 {
				<-ctx.Done()
				return activities.Result{}, context.Cause(ctx)
			}
			return activities.Result{Output: map[string]any{}}, nil
		})}))
	defer r.Close()
	if err := r.RegisterWorkflow("leaf", enginetest.Must(definition.Parse([]byte(askingLeaf)))); err != nil {
		t.Fatal(err)
	}
	d := enginetest.Must(definition.Parse([]byte(mappedLeaf)))
	run := enginetest.Must(r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: d, Wait: graph.Wait{Limit: graph.NoWait}}))
	for {
		var working bool
		interruptID = ""
		for _, p := range run.Pending {
			if p.NodeID == "ask" {
				interruptID = p.ID
			}
			working = working || p.NodeID == "work"
		}
		if interruptID != "" && working && calls.Load() == 2 {
			return interruptID
		}
		run = enginetest.Must(r.Status(t.Context(), graph.StatusRequest{ExecutionID: "r", Since: run.Seq, Wait: &graph.Wait{Limit: 20 * time.Millisecond}}))
	}
}

// TestWatchEndsWithoutAnOwner: watch --until-rest of a run that an ended process has left, and that no worker claims, ends with status 3 and names
// the command that continues the run.
func TestWatchEndsWithoutAnOwner(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	store := enginetest.Must(historysql.Open(t.Context(), path, historysql.Options{}))
	started := make(chan struct{})
	r := enginetest.Must(graph.New(store, graph.Options{Activities: activities.ExecutorFunc(
		func(ctx context.Context, _ activities.Request) (activities.Result, error) {
			close(started)
			<-ctx.Done()
			return activities.Result{}, context.Cause(ctx)
		})}))
	d := enginetest.Must(definition.Parse([]byte(askingLeaf)))
	enginetest.Must(r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: d, Wait: graph.Wait{Limit: graph.NoWait}}))
	<-started
	_, _ = r.Close(), store.Close()

	a, stdout, stderr := newTestApp(t, strings.NewReader(""), time.Now())
	began, calls := time.Now(), atomic.Int64{}
	a.now = func() time.Time { return began.Add(time.Duration(calls.Add(1)) * claimTime) }
	exit := a.execute(context.Background(), []string{"watch", "r", "--until-rest", "--profile", "demo", "--db", path})
	if output := stdout.String() + stderr.String(); exit != exitPaused || !strings.Contains(output, "workflows-engine recover r ") {
		t.Errorf("exit %d\n%s", exit, output)
	}
}
