package toolcall_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/toolcall"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/leaktest"
)

// harness is an executor whose servers are processes of this test binary.
type harness struct {
	*toolcall.Executor
	t    *testing.T
	pids string
}

// open makes an executor with a server "s" that follows a script. At the end of the test it is closed, and no process
// may be left.
func open(t *testing.T, script string, edit func(*toolcall.Config)) *harness {
	t.Helper()
	h := &harness{t: t, pids: filepath.Join(t.TempDir(), "pids")}
	program := enginetest.Must(os.Executable())
	c := toolcall.Config{
		Servers: map[string]toolcall.Server{"s": {
			Command: program, Env: map[string]string{scriptVariable: script, pidsVariable: h.pids},
		}},
		AllowCommands: filepath.Base(program), Environ: os.Environ(),
		StopGrace: 100 * time.Millisecond, RestartDelay: time.Millisecond,
	}
	if edit != nil {
		edit(&c)
	}
	h.Executor = enginetest.Must(toolcall.New(c))
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		for _, pid := range h.started() {
			h.gone(pid)
		}
	})
	return h
}

// started gives the ids of all processes that were started, in order.
func (h *harness) started() []int {
	text, err := os.ReadFile(h.pids)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		h.t.Fatal(err)
	}
	var pids []int
	for field := range strings.FieldsSeq(string(text)) {
		pids = append(pids, enginetest.Must(strconv.Atoi(field)))
	}
	return pids
}

// gone wants a process to have ended. One that was killed with its group may take a moment.
func (h *harness) gone(pid int) {
	h.t.Helper()
	h.until(fmt.Sprintf("process %d has ended", pid), func() bool { return !leaktest.Running(pid) })
}

// until waits for what another process does, which only looking again can tell.
func (h *harness) until(what string, true func() bool) {
	h.t.Helper()
	for begun := time.Now(); !true(); time.Sleep(time.Millisecond) {
		if time.Since(begun) > time.Minute {
			h.t.Fatalf("not so: %s", what)
		}
	}
}

// tool makes a request for a tool of server "s".
func tool(name string, arguments any) activities.Request {
	config := object{"server": "s", "tool": name}
	if arguments != nil {
		config["arguments"] = arguments
	}
	return activities.Request{
		ExecutionID: "run", NodeID: "n", NodeType: "tool_call", Config: config, Visit: 1, Attempt: 1,
		IdempotencyKey: "run:n#1.1", State: func() map[string]any { return object{"x": 5.0, "name": "Kim"} },
		Heartbeat: func(map[string]any) {},
	}
}

// execute wants a success and gives its output as JSON.
func (h *harness) execute(req activities.Request) string {
	h.t.Helper()
	result, err := h.Execute(h.t.Context(), req)
	if err != nil {
		h.t.Fatal(err)
	}
	return string(enginetest.Must(json.Marshal(result.Output)))
}

// refuse wants a failure with a code and gives it.
func (h *harness) refuse(ctx context.Context, req activities.Request, code string) *activities.Failure {
	h.t.Helper()
	result, err := h.Execute(ctx, req)
	failure, ok := errors.AsType[*activities.Failure](err)
	if !ok || failure.Code != code {
		h.t.Fatalf("got %v and %v, want code %s", result.Output, err, code)
	}
	return failure
}

// wants wants a failure's text to hold all parts.
func wants(t *testing.T, failure *activities.Failure, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(failure.Error(), part) {
			t.Errorf("%q does not tell %q", failure.Error(), part)
		}
	}
}
