package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/internal/config"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

const (
	stepText = `{"document":{"schema":"s","name":"child","version":"1"},"state_schema":{"type":"object"},
 "nodes":[{"id":"a","type":"start"},{"id":"do","type":"step","config":{"handler":"h"},"metadata":{"demo_output":{"done":true}}},
  {"id":"z","type":"end","config":{"output_mapping":"{ended: true}"}}],
 "edges":[{"source":"__start__","target":"a"},{"source":"a","target":"do"},{"source":"do","target":"z"}]}`
	parentText = `{"document":{"schema":"s","name":"parent","version":"1"},"state_schema":{"type":"object"},
 "nodes":[{"id":"a","type":"start"},{"id":"sub","type":"subworkflow","config":{"workflow_ref":"child","input_mapping":{}}},
  {"id":"z","type":"end","config":{"output_mapping":"{ended: true}"}}],
 "edges":[{"source":"__start__","target":"a"},{"source":"a","target":"sub"},{"source":"sub","target":"z"}]}`
)

// occupy gives the path of a database and a process that performs so many steps of its run r, to which no step comes to
// an end.
func occupy(t *testing.T, text string, steps int, lease time.Duration) (path string, process *graph.Runner) {
	t.Helper()
	ctx := t.Context()
	path = filepath.Join(t.TempDir(), "live.db")
	store, err := historysql.Open(ctx, path, historysql.Options{})
	if err != nil {
		t.Fatal(err)
	}
	busy := make(chan struct{}, steps)
	r, err := graph.New(store, graph.Options{
		Owner: "other", LeaseTTL: lease,
		Activities: activities.ExecutorFunc(func(ctx context.Context, _ activities.Request) (activities.Result, error) {
			busy <- struct{}{}
			<-ctx.Done()
			return activities.Result{}, context.Cause(ctx)
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); store.Close() })
	if err := r.RegisterWorkflow("child", enginetest.Define(t, stepText)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Start(ctx, graph.StartRequest{ExecutionID: "r", Definition: enginetest.Define(t, text), Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
		t.Fatal(err)
	}
	for range steps {
		<-busy
	}
	return path, r
}

// abandon gives the path of a database as a process leaves it that is killed while it performs so many steps of run r.
func abandon(t *testing.T, text string, steps int) string {
	t.Helper()
	path, process := occupy(t, text, steps, 1500*time.Millisecond)
	defer process.Close()
	left := filepath.Join(t.TempDir(), "left.db")
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(path + suffix)
		if err == nil {
			err = os.WriteFile(left+suffix, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return left
}

// call runs a command at a time that is later than now.
func call(t *testing.T, later time.Duration, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	return callAt(t, func(*notes) time.Time { return time.Now().Add(later) }, args...)
}

// callAt runs a command by a clock, which sees what the command has written to standard error by then.
func callAt(t *testing.T, now func(*notes) time.Time, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	return callWith(t, nil, now, args...)
}

// callWith is callAt with variables.
func callWith(t *testing.T, variables []string, now func(*notes) time.Time, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out bytes.Buffer
	var errs notes
	a := &app{
		stdin: strings.NewReader(""), stdout: &out, stderr: &errs,
		env: config.Environment{GOOS: runtime.GOOS, Home: t.TempDir(), Directory: t.TempDir(), ReadFile: os.ReadFile, Variables: variables},
		now: func() time.Time { return now(&errs) },
	}
	status = a.execute(t.Context(), args)
	return status, out.String(), errs.String()
}

// notes is a buffer that may be read while it is written to.
type notes struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (n *notes) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.buffer.Write(p)
}

func (n *notes) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.buffer.String()
}

// TestRecoverHeld: a run whose process was killed is taken over when its lease ends, and the command says when that is.
func TestRecoverHeld(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"step": stepText, "subworkflow": parentText} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun := time.Now()
			path := abandon(t, text, 1)
			// The lease does not run out before the command has seen it, however slow the machine is.
			held := func(told *notes) time.Time {
				if strings.Contains(told.String(), "held by") || strings.Contains(told.String(), "owned by") {
					return begun.Add(time.Minute)
				}
				return begun
			}
			asOf := func(*notes) time.Time { return begun }
			status, _, stderr := callAt(t, asOf, "recover", "--dry-run", "--store-path", path, "--profile", "demo")
			if status != exitOK || !strings.Contains(stderr, "held by other processes") || strings.Contains(stderr, "nothing") {
				t.Errorf("recover --dry-run: status %d\n%s", status, stderr)
			}
			status, _, stderr = callAt(t, held, "recover", "--store-path", path, "--profile", "demo")
			if status != exitOK || !regexp.MustCompile(`held by other processes, the first until \d{4}-.*: r`).MatchString(stderr) || strings.Contains(stderr, "nothing") {
				t.Errorf("recover: status %d\n%s", status, stderr)
			}
			status, stdout, stderr := callAt(t, held, "recover", "r", "--store-path", path, "--profile", "demo")
			if status != exitOK || !strings.Contains(stdout, `"ended": true`) {
				t.Errorf("recover r: status %d\n%s\n%s", status, stdout, stderr)
			}
			if n := strings.Count(stderr, "is owned by another process, until 2"); n != 1 {
				t.Errorf("said %d times\n%s", n, stderr)
			}
		})
	}
}

// TestRecoverGivenBack: a run whose process ends in order is taken over at once, however long its lease had been. The lease
// lasts an hour here, and the command would rather give up than wait for that.
func TestRecoverGivenBack(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"step": stepText, "subworkflow": parentText} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, process := occupy(t, text, 1, time.Hour)
			var end sync.Once
			now := func(told *notes) time.Time {
				if strings.Contains(told.String(), "is owned by another process") {
					end.Do(func() { process.Close() })
				}
				return time.Now()
			}
			status, stdout, stderr := callAt(t, now, "recover", "r", "--store-path", path, "--profile", "demo", "--wait", "1m")
			if status != exitOK || !strings.Contains(stdout, `"ended": true`) {
				t.Errorf("status %d\n%s\n%s", status, stdout, stderr)
			}
		})
	}
}

// TestRecoverHeldWait: --wait bounds the time until the lease ends.
func TestRecoverHeldWait(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	path := abandon(t, stepText, 1)
	called := time.Now()
	// A slow clock: the lease does not run out before the command gives up waiting.
	slow := func(*notes) time.Time { return begun.Add(time.Since(called) / 8) }
	status, _, stderr := callAt(t, slow, "recover", "r", "--store-path", path, "--profile", "demo", "--wait", "100ms")
	if status != exitPaused {
		t.Errorf("status %d\n%s", status, stderr)
	}
}

// TestRecoverPerformsItsPart: of a run whose process was killed in two branches at once, recover ID performs the one that it
// can, in a subworkflow, though the other one waits for what is missing here.
func TestRecoverPerformsItsPart(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	path := abandon(t, `{"document":{"schema":"s","name":"both","version":"1"},"state_schema":{"type":"object"},
 "nodes":[{"id":"s","type":"start"},{"id":"f","type":"parallel","config":{"join":"all","branches":[{"name":"x","entry":"other"},{"name":"y","entry":"sub"}]}},
  {"id":"other","type":"step","config":{"handler":"other"}},{"id":"sub","type":"subworkflow","config":{"workflow_ref":"child","input_mapping":{}}},
  {"id":"z","type":"end","config":{"output_mapping":"{ended: true}"}}],
 "edges":[{"source":"__start__","target":"s"},{"source":"s","target":"f"},{"source":"f","target":"z"},{"source":"other","target":"z"},{"source":"sub","target":"z"}]}`, 2)
	held := func(told *notes) time.Time {
		if strings.Contains(told.String(), "held by") || strings.Contains(told.String(), "owned by") {
			return begun.Add(time.Minute)
		}
		return begun
	}
	status, _, stderr := callWith(t, []string{`WORKFLOW_ENGINE_STEP_HANDLERS={"h":{}}`}, held, "recover", "r", "--store-path", path)
	if status != exitPaused || !strings.Contains(stderr, "✓ do") || !strings.Contains(stderr, `node other: this command lacks step handler "other"`) {
		t.Errorf("status %d\n%s", status, stderr)
	}
	later := func(*notes) time.Time { return begun.Add(2 * time.Minute) }
	status, stdout, stderr := callWith(t, []string{`WORKFLOW_ENGINE_STEP_HANDLERS={"other":{}}`}, later, "recover", "r", "--store-path", path)
	if status != exitOK || !strings.Contains(stdout, `"ended": true`) {
		t.Errorf("status %d\n%s\n%s", status, stdout, stderr)
	}
}

// TestRecoverSkips: what nothing here can perform is named and left as it is; the others are driven on.
func TestRecoverSkips(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"step": stepText, "subworkflow": parentText} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := abandon(t, text, 1)
			status, stdout, stderr := call(t, time.Minute, "recover", "--store-path", path)
			if status != exitFailed || strings.Contains(stdout, "r ") || !strings.Contains(stderr, "left run r") || !strings.Contains(stderr, "node do: this command lacks an executor for step nodes") {
				t.Errorf("status %d\n%s\n%s", status, stdout, stderr)
			}
			status, stdout, stderr = call(t, time.Minute, "recover", "--store-path", path, "--profile", "demo")
			if status != exitOK || !strings.Contains(stdout, "r completed\n") {
				t.Errorf("status %d\n%s\n%s", status, stdout, stderr)
			}
		})
	}
}
