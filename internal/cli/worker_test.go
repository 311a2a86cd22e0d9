package cli

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/internal/sdnotify"
)

// process is a running command of the program that this test binary also is; see TestMain.
type process struct {
	*exec.Cmd
	stdout, stderr lockedBuffer
}

// lockedBuffer is a buffer that a process fills while the test looks into it.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// launch starts a command in a folder, with more variables. It is killed with the test.
func launch(t *testing.T, folder string, variables []string, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(program, args...)}
	p.Dir, p.Stdout, p.Stderr = folder, &p.stdout, &p.stderr
	p.Env = append(os.Environ(), "HOME="+folder, "XDG_DATA_HOME="+folder, "NOTIFY_SOCKET=")
	p.Env = append(p.Env, variables...)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Process.Kill()
		p.Wait() // an error if the test has waited already
		if t.Failed() {
			t.Logf("%s\n%s", strings.Join(args, " "), &p.stderr)
		}
	})
	return p
}

// stop ends a process with SIGTERM and gives its exit status.
func (p *process) stop(t *testing.T) int {
	t.Helper()
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.Wait() // the state tells
	return p.ProcessState.ExitCode()
}

// wait gives the exit status of a process that ends by itself.
func (p *process) wait(t *testing.T) int {
	t.Helper()
	defer time.AfterFunc(20*time.Second, func() { p.Process.Kill() }).Stop()
	p.Wait() // the state tells
	return p.ProcessState.ExitCode()
}

// kill kills a process that drives runs of a database. Its lease, which runs out in half a minute, is made to have done so.
func kill(t *testing.T, p *process, db string) {
	t.Helper()
	p.Process.Kill()
	p.Wait() // reports the kill
	raw, err := sql.Open("sqlite", db)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	if _, err := raw.Exec("PRAGMA busy_timeout = 10000; UPDATE processes SET expires = 1"); err != nil {
		t.Fatal(err)
	}
}

// eventually looks again and again until something holds that another process brings about.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for begun := time.Now(); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Since(begun) > time.Minute {
			t.Fatalf("in vain waited for: %s", what)
		}
	}
}

// looker reads a database beside the processes that use it.
type looker struct {
	*testing.T
	store *historysql.Store
}

func look(t *testing.T, path string) looker {
	t.Helper()
	store, err := historysql.Open(t.Context(), path, historysql.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return looker{t, store}
}

func (l looker) names(id string) map[history.Name]int {
	l.Helper()
	records, err := l.store.Read(context.Background(), id, 1, 0)
	if err != nil {
		l.Fatal(err)
	}
	counts := map[history.Name]int{}
	for _, r := range records {
		counts[r.Name]++
	}
	return counts
}

func (l looker) phase(id string) history.Phase {
	e, err := l.store.Execution(context.Background(), id)
	if err != nil {
		return ""
	}
	return e.Phase
}

// napping is a definition that waits for a while.
func napping(t *testing.T, folder, duration string) string {
	t.Helper()
	path := filepath.Join(folder, "nap.workflow.json")
	text := fmt.Sprintf(`{"document":{"schema":"s","name":"nap","version":"1"},"state_schema":{"type":"object"},
 "nodes":[{"id":"a","type":"start"},{"id":"nap","type":"wait","config":{"kind":"duration","duration":%q}},
  {"id":"z","type":"end","config":{"output_mapping":"{rested: true}"}}],
 "edges":[{"source":"__start__","target":"a"},{"source":"a","target":"nap"},{"source":"nap","target":"z"}]}`, duration)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestWorkersFinishRunsWhoseDriversWereKilled kills the processes of several waiting runs, and has two workers look
// after the database at once: each timer is fired once.
func TestWorkersFinishRunsWhoseDriversWereKilled(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	db := filepath.Join(folder, "runs.db")
	nap := napping(t, folder, "5s") // longer than it takes to see that a process has begun it, and to kill that
	l := look(t, db)
	var ids []string
	for i := range 4 {
		id := fmt.Sprintf("n%d", i)
		ids = append(ids, id)
		p := launch(t, folder, nil, "run", nap, "--id", id, "--db", db)
		eventually(t, "the wait of "+id, func() bool {
			e, err := l.store.Execution(t.Context(), id)
			return err == nil && len(e.Waits) == 1
		})
		p.Process.Kill()
		p.Wait() // reports the kill
	}
	one, two := launch(t, folder, nil, "worker", "--db", db), launch(t, folder, nil, "worker", "--db", db, "--log-format", "json")
	for _, id := range ids {
		eventually(t, "the end of "+id, func() bool { return l.phase(id) == history.PhaseCompleted })
		if n := l.names(id); n[history.TimerFired] != 1 || n[history.ExecutionCompleted] != 1 {
			t.Errorf("%s: %v", id, n)
		}
	}
	if runtime.GOOS == "windows" {
		return // there are no signals to stop them with
	}
	if got := []int{one.stop(t), two.stop(t)}; got[0] != 0 || got[1] != 0 {
		t.Errorf("exit statuses %v", got)
	}
	told := one.stderr.String() + two.stderr.String()
	for _, want := range []string{`msg="worker ready"`, `"msg":"worker ready"`, " routing.step=", `"routing":{"llm_call":`, "worker stopped", "timer fired", "run ended"} {
		if !strings.Contains(told, want) {
			t.Errorf("the logs lack %s", want)
		}
	}
	if n := strings.Count(told, "run ended"); n != len(ids) {
		t.Errorf("%d lines of %d ends", n, len(ids))
	}
	if one.stdout.String()+two.stdout.String() != "" {
		t.Errorf("on standard output: %s%s", &one.stdout, &two.stdout)
	}
}

// models is a server of chat completions. The first call hangs for as long as its caller lives.
func models(t *testing.T) (variable string, calls *atomic.Int64) {
	t.Helper()
	calls = &atomic.Int64{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // or the end of the caller goes unnoticed
		if calls.Add(1) == 1 {
			select {
			case <-r.Context().Done():
			case <-t.Context().Done():
			}
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"id":"1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"hello"}}]}`)
	}))
	t.Cleanup(server.Close)
	return fmt.Sprintf(`WORKFLOW_ENGINE_LLM_CONFIG={"baseUrl":%q,"noAuth":true}`, server.URL), calls
}

// TestAWorkerTakesOverWhatItCanPerform kills a process in the middle of a model's call. A worker that knows no models
// leaves the run alone, one that does finishes it.
func TestAWorkerTakesOverWhatItCanPerform(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	db, path := filepath.Join(folder, "runs.db"), filepath.Join(folder, "ask.workflow.json")
	if err := os.WriteFile(path, []byte(`{"document":{"schema":"s","name":"ask","version":"1"},"state_schema":{"type":"object"},
 "nodes":[{"id":"a","type":"start"},{"id":"ask","type":"llm_call","config":{"model":"m","prompt":"hello?"}},
  {"id":"z","type":"end","config":{"output_mapping":"."}}],
 "edges":[{"source":"__start__","target":"a"},{"source":"a","target":"ask"},{"source":"ask","target":"z"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	variable, calls := models(t)
	l := look(t, db)
	p := launch(t, folder, []string{variable}, "run", path, "--id", "q", "--db", db)
	eventually(t, "the model's call", func() bool { return calls.Load() == 1 })
	kill(t, p, db)
	other := launch(t, folder, []string{`WORKFLOW_ENGINE_STEP_HANDLERS={"urn:x":{}}`}, "worker", "--db", db)
	eventually(t, "the refusal", func() bool { return strings.Contains(other.stderr.String(), "run not claimed") })
	if phase := l.phase("q"); phase != history.PhaseRunning {
		t.Fatalf("the run is %s", phase)
	}
	launch(t, folder, []string{variable}, "worker", "--db", db)
	eventually(t, "the end", func() bool { return l.phase("q") == history.PhaseCompleted })
	if n := l.names("q"); n[history.ActivityCompleted] != 1 || calls.Load() != 2 {
		t.Errorf("%v after %d calls", n, calls.Load())
	}
}

// TestAWorkerAnswersItsServiceManager is systemd's side of the conversation.
func TestAWorkerAnswersItsServiceManager(t *testing.T) {
	t.Parallel()
	folder, err := os.MkdirTemp("", "we") // the names of sockets are short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	path := filepath.Join(folder, "s")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Skip("no Unix datagram socket, which systemd talks through, can be made here: ", err)
	}
	defer socket.Close()
	socket.SetReadDeadline(time.Now().Add(time.Minute))
	heard := func() string {
		text := make([]byte, 1000)
		n, err := socket.Read(text)
		if err != nil {
			t.Fatal(err)
		}
		return string(text[:n])
	}
	db := filepath.Join(folder, "runs.db")
	p := launch(t, folder, []string{"NOTIFY_SOCKET=" + path, "WATCHDOG_USEC=200000"}, "worker", "--db", db)
	if got := heard(); got != "READY=1\nSTATUS=execution history store: sqlite ("+db+")" {
		t.Errorf("first heard %q", got)
	}
	for range 3 {
		if got := heard(); got != "WATCHDOG=1" {
			t.Errorf("then heard %q", got)
		}
	}
	if got := p.stop(t); got != 0 {
		t.Errorf("exit status %d", got)
	}
	for last := ""; last != "STOPPING=1"; last = heard() {
		if last != "" && last != "WATCHDOG=1" {
			t.Fatalf("heard %q", last)
		}
	}
}

// TestStopIsNoFaultOfTheDatabase: a read that the end of a worker breaks off is not told as an error.
func TestStopIsNoFaultOfTheDatabase(t *testing.T) {
	t.Parallel()
	l := look(t, filepath.Join(t.TempDir(), "runs.db"))
	ctx, stop := context.WithCancel(t.Context())
	stop()
	var text bytes.Buffer
	err := (&app{}).stay(ctx, &session{store: l.store}, sdnotify.Notifier{Watchdog: time.Hour}, slog.New(slog.NewTextHandler(&text, nil)))
	if err != nil || text.Len() > 0 {
		t.Errorf("%v, logged: %s", err, &text)
	}
}

// goneStore is a store whose database has been replaced.
type goneStore struct{ history.Store }

func (goneStore) Overview(context.Context, string) (history.Overview, error) {
	return history.Overview{}, problem.New(problem.StoreReplaced, "gone")
}

// TestAWorkerEndsWithItsDatabase: one that was replaced does not come back; a new process uses what is there.
func TestAWorkerEndsWithItsDatabase(t *testing.T) {
	t.Parallel()
	err := (&app{}).stay(t.Context(), &session{store: goneStore{}}, sdnotify.Notifier{}, slog.New(slog.DiscardHandler))
	if !errors.Is(err, problem.StoreReplaced) {
		t.Error(err)
	}
}

// TestAWorkerLogsRecordsAlone: with --log-format json every line is a record, warnings about settings and what ended the
// worker included.
func TestAWorkerLogsRecordsAlone(t *testing.T) {
	t.Parallel()
	run := func(ctx context.Context, format, db string) (status int, lines []string) {
		a, _, stderr := newTestApp(t, strings.NewReader(""), time.Now())
		a.env.Variables = []string{"WORKFLOW_ENGINE_STORE_PAHT=x.db"}
		status = a.execute(ctx, []string{"worker", "--log-format", format, "--db", db})
		return status, strings.Split(strings.TrimSpace(stderr.String()), "\n")
	}
	folder := t.TempDir()
	ended, end := context.WithCancel(t.Context())
	end() // a worker that begins is told to stop at once
	for _, tt := range []struct {
		ctx    context.Context
		db     string
		status int
		want   []string // of level, message and code, for each line
	}{
		{ended, filepath.Join(folder, "runs.db"), 0, []string{"WARN setting questionable <nil>", "INFO worker stopped <nil>"}},
		{t.Context(), filepath.Join(folder, "none", "runs.db"), 2, []string{"WARN setting questionable <nil>", "ERROR worker failed USAGE_ERROR"}},
	} {
		status, lines := run(tt.ctx, "json", tt.db)
		var got []string
		for _, line := range lines {
			var record map[string]any
			if err := json.Unmarshal([]byte(line), &record); err != nil {
				t.Fatalf("%s: not a record: %s", tt.db, line)
			}
			got = append(got, fmt.Sprint(record["level"], " ", record["msg"], " ", record["code"]))
			if record["msg"] == "setting questionable" && !strings.Contains(fmt.Sprint(record["warning"]), "WORKFLOW_ENGINE_STORE_PAHT") {
				t.Errorf("the record does not say which: %s", line)
			}
		}
		if status != tt.status || !slices.Equal(got, tt.want) {
			t.Errorf("%s: exit status %d, records %q", tt.db, status, got)
		}
	}
	if status, lines := run(t.Context(), "json", ":memory:"); status != 2 || len(lines) != 1 || !strings.Contains(lines[0], `"code":"USAGE_ERROR"`) {
		t.Errorf("refused settings: exit status %d, %q", status, lines)
	}
	if status, lines := run(t.Context(), "text", filepath.Join(folder, "none", "runs.db")); status != 2 || !strings.HasPrefix(lines[1], "error: ") {
		t.Errorf("for people: exit status %d, %q", status, lines)
	}
}

// TestRecoverGoesOnWhereAKilledProcessStood kills a process in the second of two nodes. A recover that has what the first
// one took leaves the run alone, and says what is missing; one that has what the second takes finishes it, with the request
// that is recorded, and needs nothing of what is done.
func TestRecoverGoesOnWhereAKilledProcessStood(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	db, path := filepath.Join(folder, "runs.db"), filepath.Join(folder, "two.workflow.json")
	if err := os.WriteFile(path, []byte(`{"document":{"schema":"s","name":"two","version":"1"},"state_schema":{"type":"object"},
 "nodes":[{"id":"s","type":"start"},{"id":"a","type":"step","config":{"handler":"urn:one"}},
  {"id":"b","type":"llm_call","config":{"model":"m","prompt":"hello?"}},{"id":"z","type":"end","config":{"output_mapping":"."}}],
 "edges":[{"source":"__start__","target":"s"},{"source":"s","target":"a"},{"source":"a","target":"b"},{"source":"b","target":"z"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	model, calls := models(t)
	step := `WORKFLOW_ENGINE_STEP_HANDLERS={"urn:one":{}}`
	l := look(t, db)
	p := launch(t, folder, []string{model, step}, "run", path, "--id", "q", "--db", db)
	eventually(t, "the model's call", func() bool { return calls.Load() == 1 })
	kill(t, p, db)
	before := l.names("q")
	call := func(variable string, args ...string) *process {
		p := launch(t, folder, []string{variable}, append(args, "--db", db)...)
		p.Wait() // the state tells
		return p
	}
	for _, args := range [][]string{{"recover", "--dry-run"}, {"recover"}} {
		p := call(step, args...)
		if want := len(args) % 2; p.ProcessState.ExitCode() != want || p.stdout.String() != "" ||
			!strings.Contains(p.stderr.String(), "left run q: node b: this command lacks an executor for llm_call nodes") {
			t.Errorf("%v: exit status %d\n%s%s", args, p.ProcessState.ExitCode(), &p.stdout, &p.stderr)
		}
	}
	if p := call(step, "status", "q"); !strings.Contains(p.stdout.String(), "b waits for the outcome of attempt 1\n  node b: this command lacks an executor for llm_call nodes") {
		t.Errorf("%s", &p.stdout)
	}
	if got := l.names("q"); !maps.Equal(got, before) || calls.Load() != 1 {
		t.Errorf("%v, %d calls", got, calls.Load())
	}
	if p := call(model, "recover", "--dry-run"); !strings.Contains(p.stdout.String(), "its owner is gone") || strings.Contains(p.stderr.String(), "left run") {
		t.Errorf("%s%s", &p.stdout, &p.stderr)
	}
	if p := call(model, "recover"); p.ProcessState.ExitCode() != 0 || p.stdout.String() != "q completed\n" {
		t.Errorf("exit status %d\n%s%s", p.ProcessState.ExitCode(), &p.stdout, &p.stderr)
	}
	if got := l.names("q"); got[history.ActivityRequested] != 2 || got[history.ActivityCompleted] != 2 || calls.Load() != 2 {
		t.Errorf("%v, %d calls", got, calls.Load())
	}
}

// TestAWorkerSaysWhatDefinitionsLack: what the definitions of its folder need and nothing here performs is one line at the start.
func TestAWorkerSaysWhatDefinitionsLack(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	text := `{"document":{"schema":"s","name":"two","version":"1"},"state_schema":{"type":"object"},
 "nodes":[{"id":"a","type":"start"},{"id":"k","type":"step","config":{"handler":"urn:known"}},{"id":"g","type":"step","config":{"handler":"urn:gone"}},{"id":"z","type":"end"}],
 "edges":[{"source":"__start__","target":"a"},{"source":"a","target":"k"},{"source":"k","target":"g"},{"source":"g","target":"z"}]}`
	if err := os.WriteFile(filepath.Join(folder, "two.workflow.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	w := launch(t, folder, []string{`WORKFLOW_ENGINE_STEP_HANDLERS={"urn:known":{}}`}, "worker", "--db", "runs.db", "--workflow-dir", ".")
	const said = `need missing executors: step handler \"urn:gone\" (node \"g\" of workflow \"two\"): add it to `
	eventually(t, "a line that says what is missing", func() bool { return strings.Contains(w.stderr.String(), said) })
	if status := w.stop(t); status != exitOK {
		t.Errorf("exit status %d", status)
	}
	if strings.Contains(w.stderr.String(), "urn:known") || strings.Count(w.stderr.String(), "level=WARN") != 1 {
		t.Errorf("expected one warning, of what is missing:\n%s", &w.stderr)
	}
}
