//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

const (
	// asHost makes the test binary a host that starts a server with its own input and output and then waits.
	asHost = "WORKFLOWS_ENGINE_MCP_TEST_AS_HOST"
	// asStep makes it the program of a step: it writes its process id to the named file, and waits.
	asStep = "WORKFLOWS_ENGINE_MCP_TEST_AS_STEP"
)

func beHost() {
	os.Unsetenv(asHost)
	server := exec.Command(os.Args[0], os.Args[1:]...)
	server.Stdin, server.Stdout, server.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := server.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	<-time.After(time.Hour) // without cgo, select {} counts as a deadlock
}

func beStep() {
	file := os.Getenv(asStep)
	if err := os.WriteFile(file+".new", []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		os.Exit(1)
	}
	os.Rename(file+".new", file)
	time.Sleep(time.Minute)
}

const stepping = `{"document":{"schema":"s","name":"stepping","version":"1"},"state_schema":{"type":"object"},` +
	`"nodes":[{"id":"a","type":"start"},{"id":"t","type":"step","config":{"handler":"urn:slow"}},{"id":"z","type":"end"}],` +
	`"edges":[{"source":"__start__","target":"a"},{"source":"a","target":"t"},{"source":"t","target":"z"}]}`

// awaitStep returns the process id that the step's program has written, once it is another than before.
func awaitStep(t *testing.T, file string, before int) int {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		text, _ := os.ReadFile(file)
		if pid, err := strconv.Atoi(string(text)); err == nil && pid != before {
			return pid
		}
	}
	t.Fatal("the step's program was not started")
	return 0
}

func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// awaitGone waits for the end of a program. One whose parent has ended stays for a moment, until init has noticed.
func awaitGone(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(patience); !gone(pid); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the step's program %d stays", pid)
		}
	}
}

// TestNothingIsLeftBehind ends a server during a step in every way that a host can: by closing its input, by a signal, and by
// dying while another process holds the input open. The server and the step's program end, and the lease is released: another
// server performs the step at once.
func TestNothingIsLeftBehind(t *testing.T) {
	t.Parallel()
	// Calls that would wait for minutes are answered once the input has ended.
	const waiting = "end of input while calls wait"
	for name, end := range map[string]func(host *exec.Cmd, stdin io.WriteCloser){
		"end of input": func(_ *exec.Cmd, stdin io.WriteCloser) { stdin.Close() },
		waiting: func(_ *exec.Cmd, stdin io.WriteCloser) {
			io.WriteString(stdin, toolCall(2, "workflow_status", `{"execution_id":"r","wait_ms":300000}`)+"\n"+
				toolCall(3, "workflow_start", `{"execution_id":"r","allow_existing_execution_id":true,"wait_ms":300000,"definition":`+stepping+`}`)+"\n")
			stdin.Close()
		},
		"SIGTERM":   func(host *exec.Cmd, _ io.WriteCloser) { host.Process.Signal(syscall.SIGTERM) },
		"host dies": func(host *exec.Cmd, _ io.WriteCloser) { host.Process.Kill() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			pidFile := filepath.Join(folder, "pid")
			list, err := json.Marshal(map[string]any{"stepCommands": map[string]any{"urn:slow": map[string]any{
				"command": os.Args[0], "env": map[string]string{asStep: pidFile},
			}}})
			if err != nil {
				t.Fatal(err)
			}
			start := func() (*exec.Cmd, io.WriteCloser, *bufio.Reader, *tail) {
				cmd := command(t, "--store-path", filepath.Join(folder, "runs.db"))
				cmd.Env = append(cmd.Env, "WORKFLOW_ENGINE_STEP_COMMANDS="+string(list))
				if name == "host dies" {
					cmd.Env = append(cmd.Env, asHost+"=1")
				}
				stdin, err := cmd.StdinPipe()
				if err != nil {
					t.Fatal(err)
				}
				out, in, err := os.Pipe() // ends when the last process that has it ends
				if err != nil {
					t.Fatal(err)
				}
				stderr := new(tail)
				cmd.Stdout, cmd.Stderr = in, stderr
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				in.Close()
				late := time.AfterFunc(patience, func() { out.Close() })
				t.Cleanup(func() {
					late.Stop()
					cmd.Process.Kill()
					stdin.Close()
				})
				return cmd, stdin, bufio.NewReader(out), stderr
			}
			cmd, stdin, stdout, stderr := start()
			io.WriteString(stdin, hello+"\n"+toolCall(1, "workflow_start", `{"execution_id":"r","wait_ms":0,"definition":`+stepping+`}`)+"\n")
			for range 2 {
				if line, err := stdout.ReadString('\n'); err != nil || strings.Contains(line, `"isError":true`) {
					t.Fatalf("%s %v\n%s", line, err, stderr)
				}
			}
			step := awaitStep(t, pidFile, 0)
			end(cmd, stdin)
			rest, err := io.ReadAll(stdout)
			if err != nil {
				t.Fatalf("the server did not end: %q, %v\n%s", rest, err, stderr)
			}
			if name == waiting {
				for _, answer := range []string{`"phase":"running"`, `"status":"running"`} {
					if !strings.Contains(string(rest), answer) {
						t.Errorf("no %s among the last answers: %s\n%s", answer, rest, stderr)
					}
				}
			}
			awaitGone(t, step)
			cmd.Wait()
			_, again, _, _ := start()
			next := awaitStep(t, pidFile, step) // sooner than a lease that was not given back would have run out
			again.Close()
			awaitGone(t, next)
		})
	}
}

// TestWithParent: only the end of a parent ends the server; one that init started goes on.
func TestWithParent(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		first int
		ids   []int
		want  error
	}{
		{100, []int{100, 100, 1}, errOrphaned},
		{100, []int{100, 77}, errOrphaned}, // an orphan may be given to another process than the first
		{100, []int{1}, errOrphaned},       // dead before the first look
		{100, []int{100, 100, 100}, nil},
		{1, []int{1, 1, 1}, nil}, // started by init
		{0, []int{0, 0, 0}, nil}, // the first process of a container
		{1, []int{5, 5, 5}, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			ids := tt.ids
			watched := withParent(ctx, tt.first, func() int {
				id := ids[0]
				if len(ids) > 1 {
					ids = ids[1:]
				}
				return id
			}, time.Second)
			time.Sleep(time.Minute)
			synctest.Wait()
			if got := context.Cause(watched); got != tt.want {
				t.Errorf("%d, then %v: %v, want %v", tt.first, tt.ids, got, tt.want)
			}
		})
	}
}
