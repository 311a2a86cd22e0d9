package toolcall_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/toolcall"
)

// A server that dies during a call fails it with its exit status and last words, and is started again.
func TestServerDies(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	h := open(t, "plain", func(c *toolcall.Config) {
		c.Servers["s"].Env["API_KEY"] = "sk-123456"
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	failure := h.refuse(t.Context(), tool("die", nil), "MCP_CONNECTION_CLOSED")
	wants(t, failure, `"s"`, "exit status 3", "last words, key [REDACTED]")
	if failure.Retryable != activities.RetrySensible {
		t.Error("not to be tried again")
	}
	h.execute(tool("echo", nil))
	if n := len(h.started()); n != 2 {
		t.Errorf("%d processes, want 2", n)
	}
	if text := log.String(); strings.Contains(text, "sk-123456") || !strings.Contains(text, "server=s") || !strings.Contains(text, "last words") {
		t.Errorf("log:\n%s", text)
	}
}

func TestServerDoesNotStart(t *testing.T) {
	t.Parallel()
	h := open(t, "stillborn", nil)
	wants(t, h.refuse(t.Context(), tool("echo", nil), "MCP_CONNECTION_CLOSED"), "exit status 4", "no such database")
	h.refuse(t.Context(), tool("echo", nil), "MCP_CONNECTION_CLOSED")
	if n := len(h.started()); n != 2 {
		t.Errorf("%d processes, want 2", n)
	}

	absent := open(t, "plain", func(c *toolcall.Config) {
		c.Servers["s"] = toolcall.Server{Command: "/no/such/program"}
		c.AllowCommands = "program"
	})
	wants(t, absent.refuse(t.Context(), tool("echo", nil), "MCP_CLIENT_ERROR"), "cannot be started", "/no/such/program")

	ancient := open(t, "ancient", nil)
	wants(t, ancient.refuse(t.Context(), tool("echo", nil), "MCP_CLIENT_ERROR"), "1999-01-01")
}

// After a failure the next start waits; a call that cannot wait so long fails at once with the reason.
func TestRestartBacksOff(t *testing.T) {
	t.Parallel()
	h := open(t, "stillborn", func(c *toolcall.Config) { c.RestartDelay, c.Timeout = time.Hour, 20*time.Second })
	h.refuse(t.Context(), tool("echo", nil), "MCP_CONNECTION_CLOSED")
	begun := time.Now()
	wants(t, h.refuse(t.Context(), tool("echo", nil), "MCP_CONNECTION_CLOSED"), "exit status 4")
	if len(h.started()) != 1 || time.Since(begun) > 15*time.Second {
		t.Errorf("%d processes after %s", len(h.started()), time.Since(begun))
	}
}

// overdue is a context whose deadline passes when the test says so.
type overdue struct {
	context.Context
	passed chan struct{}
}

func (o overdue) Done() <-chan struct{} { return o.passed }

func (o overdue) Err() error {
	select {
	case <-o.passed:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// A call without an answer ends at its deadline. The server is replaced, and does not outlive the executor.
func TestNoAnswer(t *testing.T) {
	t.Parallel()
	for _, script := range []string{"plain", "mute", "deaf"} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			h := open(t, script, func(c *toolcall.Config) { c.Timeout = time.Minute })
			var ctx context.Context
			if script == "mute" {
				deadline := overdue{t.Context(), make(chan struct{})}
				go func() {
					defer close(deadline.passed)
					h.until("the server has started", func() bool { return len(h.started()) > 0 })
				}()
				ctx = deadline
			} else {
				h.execute(tool("echo", nil))
				var stop context.CancelFunc
				ctx, stop = context.WithTimeout(t.Context(), 200*time.Millisecond)
				defer stop()
			}
			failure := h.refuse(ctx, tool("hang", nil), "ACTIVITY_TIMEOUT")
			if !errors.Is(failure, context.DeadlineExceeded) {
				t.Errorf("%v does not wrap the context's error", failure)
			}
			first := h.started()
			if len(first) != 1 {
				t.Fatalf("%d processes", len(first))
			}
			h.gone(first[0])
			if script == "plain" {
				h.execute(tool("echo", nil))
			}
		})
	}
	t.Run("the executor's limit", func(t *testing.T) {
		t.Parallel()
		h := open(t, "plain", func(c *toolcall.Config) { c.Timeout = 500 * time.Millisecond })
		h.refuse(t.Context(), tool("hang", nil), "ACTIVITY_TIMEOUT")
	})
}

// A cancelled call ends at once, and so do calls at Close.
func TestCancel(t *testing.T) {
	t.Parallel()
	h := open(t, "plain", nil)
	h.execute(tool("echo", nil))
	ctx, stop := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, stop)
	h.refuse(ctx, tool("hang", nil), "ACTIVITY_CANCELLED")

	time.AfterFunc(50*time.Millisecond, func() { h.Close() })
	h.refuse(t.Context(), tool("hang", nil), "ENGINE_CLOSED")
	h.Close()
	h.refuse(t.Context(), tool("echo", nil), "ENGINE_CLOSED")
}

// Lines on standard output that are no messages do no harm.
func TestStrayOutput(t *testing.T) {
	t.Parallel()
	h := open(t, "chatty", nil)
	h.execute(tool("echo", nil))
	ctx, stop := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer stop()
	wants(t, h.refuse(ctx, tool("hang", nil), "ACTIVITY_TIMEOUT"), "on standard output", "level")
}

func TestOutputLimit(t *testing.T) {
	t.Parallel()
	h := open(t, "plain", func(c *toolcall.Config) { c.MaxOutputBytes = 2 << 20 })
	if got := h.execute(tool("huge", object{"mib": 1.0})); len(got) < 1<<20 {
		t.Errorf("%d bytes", len(got))
	}
	failure := h.refuse(t.Context(), tool("huge", object{"mib": 20.0}), "ACTIVITY_OUTPUT_TOO_LARGE")
	if failure.Retryable != activities.RetryPointless || len(failure.Error()) > 500 {
		t.Errorf("%v", failure)
	}
	h.execute(tool("echo", nil))
	h.refuse(t.Context(), tool("malformed", nil), "MCP_CLIENT_ERROR")
}

// TestLargeMessagesEndNothing: an agent gets a result of 20 MiB, and a node is refused it; the server is neither ended nor started again.
func TestLargeMessagesEndNothing(t *testing.T) {
	t.Parallel()
	h := open(t, "plain", nil)
	got, err := h.Call(t.Context(), toolcall.Call{Server: "s", Tool: "huge", Arguments: object{"mib": 20.0}})
	if n := len(fmt.Sprint(got)); err != nil || n < 20<<20 {
		t.Errorf("%d bytes, %v", n, err)
	}
	failure := h.refuse(t.Context(), tool("huge", object{"mib": 20.0}), "ACTIVITY_OUTPUT_TOO_LARGE")
	if failure.Retryable != activities.RetryPointless {
		t.Errorf("%v", failure)
	}
	h.execute(tool("echo", nil))
	if n := len(h.started()); n != 1 {
		t.Errorf("%d starts", n)
	}
}

// What a server has started ends with it, whether it is stopped or dies.
func TestGroupEnds(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"close", "die"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			h := open(t, "plain", nil)
			h.execute(tool("leak", nil))
			h.until("both processes have begun", func() bool { return len(h.started()) == 2 })
			if end == "die" {
				h.refuse(t.Context(), tool("die", nil), "MCP_CONNECTION_CLOSED")
			} else {
				h.Close()
			}
			for _, pid := range h.started() {
				h.gone(pid)
			}
		})
	}
}

func TestIdleSessionEnds(t *testing.T) {
	t.Parallel()
	h := open(t, "plain", func(c *toolcall.Config) { c.IdleTimeout = time.Millisecond })
	h.execute(tool("echo", nil))
	h.gone(h.started()[0])
	h.execute(tool("echo", nil))
	if n := len(h.started()); n != 2 {
		t.Errorf("%d processes, want 2", n)
	}
}

// Calls side by side share a session, its start included.
func TestConcurrentCalls(t *testing.T) {
	t.Parallel()
	h := open(t, "plain", nil)
	var calls sync.WaitGroup
	for range 16 {
		calls.Go(func() {
			if _, err := h.Execute(t.Context(), tool("echo", object{"a": 1.0})); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	if n := len(h.started()); n != 1 {
		t.Errorf("%d processes", n)
	}
}

// lockedBuffer is a buffer for log lines of several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
