package historysql_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/history/historytest"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// workFile makes the test binary do some work on this file, and say what it was told; see workOn.
const workFile = "HISTORYSQL_TEST_WORK"

func init() { // TestMain is that of all systems
	if path := os.Getenv(workFile); path != "" {
		workOn(path)
		os.Exit(0)
	}
}

// workOn opens a store, appends to a run, and closes it. It prints "ok SEQ", or the code of a call that failed, and then looks at
// the run before it goes on. Work with faults goes on until five batches are stored, or ten calls have failed.
func workOn(path string) {
	runtime.LockOSThread() // strace counts the calls of each thread
	ctx := context.Background()
	lift := limitFileSize()
	second := "C ScheduleNode a"
	if os.Getenv(sizeLimit) != "" { // the log is to outgrow the file
		second = fmt.Sprintf(`E StateUpdated a {"state":{"s":%q}}`, strings.Repeat("long ", 4_000))
	}
	s, err := historysql.Open(ctx, path, historysql.Options{})
	fmt.Println("open", codeOf(err))
	if err != nil {
		return
	}
	for range 10 {
		e, err := s.Execution(ctx, "x")
		if errors.Is(err, problem.ExecutionNotFound) {
			e, err = history.Execution{ID: "x"}, nil
		}
		if err != nil {
			fmt.Println("look", codeOf(err), err)
			continue
		}
		if e.Seq >= 10 {
			break
		}
		b := history.Batch{ExecutionID: "x", ExpectedSeq: e.Seq}
		for _, line := range []string{"E ExecutionStarted", second} {
			r, err := historytest.ParseRecord(line)
			if err != nil {
				panic(err)
			}
			r.CreatedAt = historytest.Begin
			e.Apply(r)
			b.Records = append(b.Records, r)
		}
		b.Execution = e
		if err := s.Append(ctx, b); err != nil {
			fmt.Println("append", codeOf(err), e.Seq)
			lift()
			continue
		}
		fmt.Println("ok", e.Seq)
	}
	fmt.Println("close", codeOf(s.Close()))
}

// sizeLimit bounds the size of files, so that the write that crosses it is short, until a call has failed.
const sizeLimit = "HISTORYSQL_TEST_FILE_SIZE"

func limitFileSize() (lift func()) {
	limit, err := strconv.ParseUint(os.Getenv(sizeLimit), 10, 64)
	if err != nil {
		return func() {}
	}
	signal.Ignore(syscall.SIGXFSZ)
	var was syscall.Rlimit
	if err := errors.Join(syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was),
		syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: was.Max})); err != nil {
		panic(err)
	}
	return func() { _ = syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was) }
}

// TestShortWrites: a write that the disk takes a part of leaves nothing that counts, and the store goes on when there is room again.
func TestShortWrites(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short leaves out what starts processes")
	}
	atRest := filepath.Join(t.TempDir(), "runs.db")
	if err := openFile(t, atRest, historysql.Options{}).Close(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(atRest)
	if err != nil {
		t.Fatal(err)
	}
	failed := 0
	step := soak.Size(3_001, 6_001, 101)
	for limit := len(content) + 1; limit < len(content)+60_000; limit += step {
		path := filepath.Join(t.TempDir(), "runs.db")
		write(t, path, content)
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), workFile+"="+path, sizeLimit+"="+strconv.Itoa(limit))
		cmd.Stderr = t.Output()
		text, err := cmd.Output()
		if err != nil {
			t.Fatalf("limit %d: %v\n%s", limit, err, text)
		}
		if strings.Contains(string(text), "append ") {
			failed++
			if !strings.Contains(string(text), "ok 10") {
				t.Errorf("limit %d: the store does not go on: %q", limit, text)
			}
		}
		wantStored(t, path, fmt.Sprintf("limit %d", limit), strings.Split(strings.TrimSpace(string(text)), "\n"))
	}
	t.Logf("%d appends met the limit", failed)
	if failed == 0 {
		t.Error("no write was short")
	}
}

func codeOf(err error) problem.Code {
	if err == nil {
		return "OK"
	}
	if e, ok := problem.As(err); ok {
		return e.Code
	}
	return problem.Code("NO_CODE: " + err.Error())
}

// injected runs the work with a fault in a system call on the file or its WAL, and returns what it printed, and how many faults
// there were; without a fault, how many calls of the kind it made.
func injected(t *testing.T, path, call, fault string) (out []string, calls int) {
	t.Helper()
	trace := filepath.Join(t.TempDir(), "trace")
	args := []string{"-f", "-qq", "-o", trace, "-e", "trace=" + call, "-P", path, "-P", path + "-wal", "-P", path + "-journal"}
	if fault != "" {
		args = append(args, "-e", "inject="+call+":"+fault)
	}
	cmd := exec.CommandContext(t.Context(), "strace", append(args, os.Args[0])...)
	cmd.Env = append(os.Environ(), workFile+"="+path)
	cmd.Stderr = t.Output()
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", call, fault, err, text)
	}
	traced, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	out = strings.Split(strings.TrimSpace(string(text)), "\n")
	if fault != "" {
		return out, bytes.Count(traced, []byte("INJECTED"))
	}
	return out, bytes.Count(traced, []byte(call+"("))
}

// TestEachSystemCallFailsOnce has each call that writes, flushes, cuts or reads the database fail once, as a disk fails. Every call of
// the store answers with a code, what was reported as stored is there, and nothing else is but whole batches.
func TestEachSystemCallFailsOnce(t *testing.T) {
	t.Parallel()
	if testing.Short() || soak.UnderRace && !soak.On() {
		t.Skip("-short and the race detector leave out what starts many processes")
	}
	if err := exec.CommandContext(t.Context(), "strace", "-o", os.DevNull, "true").Run(); err != nil {
		t.Skipf("strace injects the faults, and does not run here: %v", err)
	}
	limit := soak.Size(4, 4, 1000)
	for call, faults := range map[string][]string{
		"fsync": {"error=EIO"}, "ftruncate": {"error=EIO"}, "pread64": {"error=EIO"},
		"pwrite64": {"error=EIO", "error=ENOSPC"},
	} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			_, calls := injected(t, filepath.Join(t.TempDir(), "runs.db"), call, "")
			step := max(1, calls/limit)
			struck := 0
			for _, fault := range faults {
				for at := calls; at > 0; at -= step { // the last ones are the appends'
					path := filepath.Join(t.TempDir(), "runs.db")
					out, n := injected(t, path, call, fmt.Sprintf("%s:when=%d", fault, at))
					struck += min(n, 1)
					wantStored(t, path, fmt.Sprintf("%s %s, call %d of %d", call, fault, at, calls), out)
				}
			}
			t.Logf("%d calls, %d of them failed", calls, struck)
			if struck == 0 {
				t.Error("no call failed")
			}
		})
	}
}

// TestFailedFlushes: one failed flush is made good; if all of them fail, the outcome is unknown, and told so.
func TestFailedFlushes(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short leaves out what starts processes")
	}
	if err := exec.CommandContext(t.Context(), "strace", "-o", os.DevNull, "true").Run(); err != nil {
		t.Skipf("strace injects the faults, and does not run here: %v", err)
	}
	_, calls := injected(t, filepath.Join(t.TempDir(), "runs.db"), "fsync", "")
	for when, unknown := range map[string]bool{strconv.Itoa(calls - 3): false, fmt.Sprintf("%d+", calls-3): true} {
		path := filepath.Join(t.TempDir(), "runs.db")
		out, n := injected(t, path, "fsync", "error=EIO:when="+when)
		text := strings.Join(out, "\n")
		if n == 0 || strings.Contains(text, "append "+string(problem.StoreOutcomeUnknown)) != unknown || !unknown && strings.Contains(text, "append") {
			t.Errorf("flush %s of %d: %q", when, calls, out)
		}
		wantStored(t, path, "flush "+when, out)
	}
}

// wantStored compares a file with what a process was told that worked on it.
func wantStored(t *testing.T, path, what string, out []string) {
	t.Helper()
	reported, unknown := int64(0), false
	for _, line := range out {
		var seq int64
		if n, _ := fmt.Sscanf(line, "ok %d", &seq); n == 1 {
			reported = max(reported, seq)
		}
		unknown = unknown || strings.Contains(line, string(problem.StoreOutcomeUnknown))
		corrupt := strings.Contains(line, "CORRUPT") && !strings.HasPrefix(what, "pread64") // so SQLite calls a read that fails
		if strings.Contains(line, "NO_CODE") || strings.Contains(line, string(problem.Internal)) || corrupt {
			t.Errorf("%s: %s", what, line)
		}
	}
	s, err := historysql.Open(t.Context(), path, historysql.Options{})
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	defer func() { _ = s.Close() }()
	records := mustRead(t, s, "x")
	if n := int64(len(records)); n%2 != 0 || n < reported || n > reported && !unknown {
		t.Errorf("%s: %d records are stored, %d were reported: %q", what, n, reported, out)
	}
	if _, err := s.Verify(t.Context(), "", false, func(f history.Finding) { t.Errorf("%s: %+v", what, f) }); err != nil {
		t.Errorf("%s: verify: %v", what, err)
	}
}
