package stepcommand_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/stepcommand"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/leaktest"
)

// harness is Commands with the handler "urn:x", a process of this test binary.
type harness struct {
	*stepcommand.Commands
	t    *testing.T
	pids string
}

// open makes Commands whose program follows a script. At the end of the test it is closed, and no process may be left.
func open(t *testing.T, script string, edit func(*stepcommand.Config, *stepcommand.Command)) *harness {
	t.Helper()
	h := &harness{t: t, pids: filepath.Join(t.TempDir(), "pids")}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := stepcommand.Command{Command: program, Env: map[string]string{
		scriptVariable: script, pidsVariable: h.pids,
		"GORACE": "atexit_sleep_ms=0", // under the race detector a program would sleep a second at its end
	}}
	c := stepcommand.Config{Environ: os.Environ(), StopGrace: 100 * time.Millisecond}
	if edit != nil {
		edit(&c, &command)
	}
	c.Commands = map[string]stepcommand.Command{" urn:x ": command}
	if h.Commands, err = stepcommand.New(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		for _, pid := range h.started() {
			h.until(fmt.Sprintf("process %d has ended", pid), func() bool { return !leaktest.Running(pid) })
		}
	})
	return h
}

// started returns the ids of all processes that were started, in order.
func (h *harness) started() []int {
	text, err := os.ReadFile(h.pids)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		h.t.Fatal(err)
	}
	var pids []int
	for field := range strings.FieldsSeq(string(text)) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			h.t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
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

func step() activities.Request {
	return activities.Request{
		ExecutionID: "run", NodeID: "n", NodeType: "step", Config: map[string]any{"handler": " urn:x", "size": 5.0},
		Metadata: map[string]any{"owner": "ops"}, Visit: 2, Attempt: 3, IdempotencyKey: "run:n#2.3",
		Branch: &activities.Branch{ParallelNodeID: "p", JoinTargetID: "j", Name: "b", EntryNodeID: "n"},
		State:  func() map[string]any { return map[string]any{"text": "a<b & ü", "n": 1e21} }, Heartbeat: func(map[string]any) {},
	}
}

func (h *harness) succeed() activities.Result {
	h.t.Helper()
	result, err := h.Execute(h.t.Context(), step())
	if err != nil {
		h.t.Fatal(err)
	}
	return result
}

func (h *harness) fail(ctx context.Context, code problem.Code) *activities.Failure {
	h.t.Helper()
	result, err := h.Execute(ctx, step())
	failure, ok := errors.AsType[*activities.Failure](err)
	if !ok || failure.Code != string(code) {
		h.t.Fatalf("got %v and %v, want code %s", result.Output, err, code)
	}
	return failure
}

// The document that a program gets, member by member: it is a promise.
func TestWhatAProgramGets(t *testing.T) {
	t.Parallel()
	h := open(t, "echo", nil)
	got, _ := h.succeed().Output.(map[string]any)
	deadline, err := time.Parse(time.RFC3339, fmt.Sprint(got["deadline"]))
	if left := time.Until(deadline); err != nil || left <= 0 || left > stepcommand.DefaultTimeout {
		t.Errorf("deadline %v: %v", got["deadline"], err)
	}
	delete(got, "deadline")
	want := map[string]any{
		"protocol": "step-command/1", "handler": "urn:x", "execution_id": "run", "node_id": "n", "visit": 2.0, "attempt": 3.0,
		"idempotency_key": "run:n#2.3", "config": map[string]any{"handler": " urn:x", "size": 5.0},
		"metadata": map[string]any{"owner": "ops"}, "state": map[string]any{"text": "a<b & ü", "n": 1e21},
		"branch": map[string]any{"parallel_node_id": "p", "join_target_id": "j", "branch_name": "b", "branch_entry_node_id": "n"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		script string
		output any
		usage  map[string]any
		// code, text and again are those of the failure.
		code, text string
		again      activities.Retryable
		after      time.Duration
	}{
		{script: `print {"output":{"a":[1,null]}}`, output: map[string]any{"a": []any{1.0, nil}}},
		{script: `print {"output":5,"usage":{"rows":3},"later":true}`, output: 5.0, usage: map[string]any{"rows": 3.0}},
		{script: `print {"output":{"error":"data","output":1}}`, output: map[string]any{"error": "data", "output": 1.0}},
		{script: `print {"output":null}`, output: map[string]any{"value": nil}},
		{script: "print  \n", output: map[string]any{}},
		{script: "unread", output: map[string]any{}},

		{script: `print {"error":"no such image","usage":{"rows":1}}`, usage: map[string]any{"rows": 1.0}, code: "HANDLER_ERROR", text: "no such image"},
		{script: `print {"error":"busy","code":"BUSY","retryable":true,"retry_after_ms":1500}`, code: "BUSY", text: "busy", again: activities.RetrySensible, after: 1500 * time.Millisecond},
		{script: `fail {"error":"gone","code":"GONE","retryable":false}`, code: "GONE", text: "gone", again: activities.RetryPointless},
		{script: `print {"error":"x","retry_after_ms":1e300}`, code: "HANDLER_ERROR", text: "x", after: time.Hour},

		{script: `fail {"output":{}}`, code: "STEP_COMMAND_FAILED", text: "exit status 3; on standard error it printed: disk full"},
		{script: `fail Traceback`, code: "STEP_COMMAND_FAILED", text: "on standard output it printed: Traceback"},
		{script: "kill", code: "STEP_COMMAND_FAILED", text: "signal: killed"},

		{script: `print done`, code: "ACTIVITY_OUTPUT_INVALID", text: "line 1, column 1"},
		{script: `print {"output":{}`, code: "ACTIVITY_OUTPUT_INVALID", text: "line 1"},
		{script: `print {"output":{}} {}`, code: "ACTIVITY_OUTPUT_INVALID", text: "line 1"},
		{script: `print {"output":1,"output":2}`, code: "ACTIVITY_OUTPUT_INVALID", text: "output"},
		{script: `print []`, code: "ACTIVITY_OUTPUT_INVALID", text: "not an object"},
		{script: `print {"total":3}`, code: "ACTIVITY_OUTPUT_INVALID", text: "neither an output nor an error"},
		{script: `print {"ok":false,"output":1}`, code: "ACTIVITY_OUTPUT_INVALID", text: "ok is false"},
		{script: `print {"ok":true,"error":"x"}`, code: "ACTIVITY_OUTPUT_INVALID", text: "ok is true"},
		{script: `print {"output":1,"error":"x"}`, code: "ACTIVITY_OUTPUT_INVALID", text: "an output and an error"},
		{script: `print {"output":1,"usage":1}`, code: "ACTIVITY_OUTPUT_INVALID", text: "usage"},
		{script: `print {"error":1}`, code: "ACTIVITY_OUTPUT_INVALID", text: "error is not a string"},
		{script: `print {"error":"x","code":"a b"}`, code: "ACTIVITY_OUTPUT_INVALID", text: "code"},
		{script: `print {"error":"x","retryable":"no"}`, code: "ACTIVITY_OUTPUT_INVALID", text: "retryable"},
		{script: `print {"error":"x","retry_after_ms":-1}`, code: "ACTIVITY_OUTPUT_INVALID", text: "retry_after_ms"},
	} {
		t.Run(c.script, func(t *testing.T) {
			t.Parallel()
			h := open(t, c.script, nil)
			if c.code == "" {
				if got := h.succeed(); !reflect.DeepEqual(got.Output, c.output) || !reflect.DeepEqual(got.Usage, c.usage) {
					t.Errorf("got %v and %v, want %v and %v", got.Output, got.Usage, c.output, c.usage)
				}
				return
			}
			failure := h.fail(t.Context(), problem.Code(c.code))
			if !strings.Contains(failure.Error(), c.text) {
				t.Errorf("%q does not tell %q", failure.Error(), c.text)
			}
			if !reflect.DeepEqual(failure.Usage, c.usage) {
				t.Errorf("usage %v, want %v", failure.Usage, c.usage)
			}
			if failure.Retryable != c.again || failure.RetryAfter != c.after {
				t.Errorf("retryable %d after %v, want %d after %v", failure.Retryable, failure.RetryAfter, c.again, c.after)
			}
		})
	}
}

// What has no end is cut off, and nothing near its size is kept.
func TestFloodIsCutOff(t *testing.T) {
	t.Parallel()
	h := open(t, "flood", func(_ *stepcommand.Config, c *stepcommand.Command) { c.MaxOutputBytes = 1 << 20 })
	if failure := h.fail(t.Context(), problem.ActivityOutputTooLarge); failure.Retryable != activities.RetryPointless {
		t.Error("would be tried again")
	}
}

// However an attempt is ended, the program ends and so does everything it has started.
func TestNothingIsLeftBehind(t *testing.T) {
	t.Parallel()
	for _, script := range []string{"deaf", "parent"} {
		t.Run(script+" too late", func(t *testing.T) {
			t.Parallel()
			h := open(t, script, nil)
			ctx, cancel := context.WithCancelCause(t.Context())
			var wait sync.WaitGroup
			wait.Go(func() { h.fail(ctx, problem.Timeout) })
			h.until("both run", func() bool { return len(h.started()) == 2 })
			cancel(problem.New(problem.Timeout, "the attempt is over"))
			wait.Wait()
		})
		t.Run(script+" by cancelling", func(t *testing.T) {
			t.Parallel()
			h := open(t, script, nil)
			ctx, cancel := context.WithCancel(t.Context())
			var wait sync.WaitGroup
			wait.Go(func() { h.fail(ctx, problem.ActivityCancelled) })
			h.until("both run", func() bool { return len(h.started()) == 2 })
			cancel()
			wait.Wait()
		})
		t.Run(script+" by closing", func(t *testing.T) {
			t.Parallel()
			h := open(t, script, nil)
			var wait sync.WaitGroup
			wait.Go(func() { h.fail(t.Context(), problem.RunnerClosed) })
			h.until("both run", func() bool { return len(h.started()) == 2 })
			if err := h.Close(); err != nil {
				t.Error(err)
			}
			wait.Wait()
			h.fail(t.Context(), problem.RunnerClosed)
		})
	}
	t.Run("by its deadline", func(t *testing.T) {
		t.Parallel()
		h := open(t, "deaf", func(_ *stepcommand.Config, c *stepcommand.Command) { c.Timeout = 100 * time.Millisecond })
		if failure := h.fail(t.Context(), problem.Timeout); !errors.Is(failure, context.DeadlineExceeded) {
			t.Errorf("%v does not tell that the deadline has passed", failure)
		}
	})
	t.Run("by itself", func(t *testing.T) {
		t.Parallel()
		h := open(t, "leaver", nil)
		if got := h.succeed().Output; !reflect.DeepEqual(got, map[string]any{"left": true}) {
			t.Errorf("output %v", got)
		}
		if pids := h.started(); len(pids) != 2 {
			t.Errorf("processes %v, want two", pids)
		}
	})
}

func TestNotStarted(t *testing.T) {
	t.Parallel()
	h := open(t, "echo", func(_ *stepcommand.Config, c *stepcommand.Command) {
		c.Command = filepath.Join(t.TempDir(), "none")
	})
	h.fail(t.Context(), problem.StepCommandNotStarted)
	h = open(t, "echo", func(_ *stepcommand.Config, c *stepcommand.Command) { c.Directory = filepath.Join(t.TempDir(), "none") })
	h.fail(t.Context(), problem.StepCommandNotStarted)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	h.fail(cancelled, problem.ActivityCancelled)
	if pids := h.started(); len(pids) > 0 {
		t.Errorf("processes %v", pids)
	}
}

// A program gets what its configuration gives it, and of the engine's environment only what every child gets.
func TestSurroundings(t *testing.T) {
	t.Parallel()
	h := open(t, "environment", func(c *stepcommand.Config, command *stepcommand.Command) {
		c.Environ = []string{"PATH=/bin", "OPENAI_API_KEY=sk-1", "USER=u"}
		// A long secret would be masked in the output, as the last one is.
		c.Secret = func(reference string) (string, error) {
			return map[string]string{"env:STEP_TOKEN": "short", "env:LONG_TOKEN": "long-long-long-long"}[reference], nil
		}
		command.Env["TOKEN"], command.Env["LONG"] = "env:STEP_TOKEN", "env:LONG_TOKEN"
	})
	var names []string
	for _, entry := range h.succeed().Output.([]any) {
		name, value, _ := strings.Cut(entry.(string), "=")
		if names = append(names, name); name == "TOKEN" && value != "short" || name == "LONG" && value != "[REDACTED]" {
			t.Errorf("%s is %q", name, value)
		}
	}
	slices.Sort(names)
	if want := []string{"GORACE", "LONG", "PATH", pidsVariable, scriptVariable, "TOKEN", "USER", "WORKFLOWS_ENGINE_SESSION"}; !reflect.DeepEqual(names, want) {
		t.Errorf("environment %q, want %q", names, want)
	}

	folder, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h = open(t, "directory", func(_ *stepcommand.Config, c *stepcommand.Command) { c.Directory = folder })
	if got := h.succeed().Output; got != folder {
		t.Errorf("it runs in %v, not %s", got, folder)
	}
	h = open(t, "arguments", func(_ *stepcommand.Config, c *stepcommand.Command) { c.Args = []string{"$HOME", "a b;c"} })
	if got := h.succeed().Output; !reflect.DeepEqual(got, []any{"$HOME", "a b;c"}) {
		t.Errorf("arguments %v", got)
	}
}

// A secret shows neither in the log nor in a failure, and what is logged is bounded.
func TestLog(t *testing.T) {
	t.Parallel()
	const sentinel = "sentinel-4711"
	var log bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&log, nil))
	h := open(t, "fail", func(c *stepcommand.Config, command *stepcommand.Command) {
		c.Logger, c.Secret = logger, func(string) (string, error) { return sentinel, nil }
		command.Env["KEY"] = "env:STEP_KEY"
	})
	failure := h.fail(t.Context(), problem.StepCommandFailed)
	if text := failure.Error() + log.String(); strings.Contains(text, sentinel) || strings.Count(text, "disk full, key [REDACTED]") != 2 {
		t.Errorf("told and logged: %s", text)
	}
	for _, script := range []string{
		`print {"error":"x","code":"` + sentinel + `"}`,
		`print {"error":"` + strings.Repeat("x", 4<<10-5) + sentinel + `"}`,
	} {
		told := open(t, script, func(c *stepcommand.Config, command *stepcommand.Command) {
			c.Secret = func(string) (string, error) { return sentinel, nil }
			command.Env["KEY"] = "env:STEP_KEY"
		})
		if text := told.fail(t.Context(), problem.HandlerError).Error(); strings.Contains(text, "sent") {
			t.Errorf("told: %s", text[max(0, len(text)-100):])
		}
	}
	standing := open(t, "fail "+strings.Repeat("x", 495)+sentinel, func(c *stepcommand.Config, command *stepcommand.Command) {
		c.Secret = func(string) (string, error) { return sentinel, nil }
		command.Env["KEY"] = "env:STEP_KEY"
	})
	if text := standing.fail(t.Context(), problem.StepCommandFailed).Error(); strings.Contains(text, "xsent") {
		t.Errorf("told: %s", text)
	}
	var entry map[string]any
	if err := json.Unmarshal(log.Bytes(), &entry); err != nil || entry["handler"] != "urn:x" || entry["node_id"] != "n" || entry["execution_id"] != "run" {
		t.Errorf("log entry %v: %v", entry, err)
	}

	log.Reset()
	h = open(t, "loud", func(c *stepcommand.Config, _ *stepcommand.Command) { c.Logger, c.MaxLogBytes = logger, 200 })
	h.succeed()
	if log.Len() > 10_000 || !strings.Contains(log.String(), "more is not logged") {
		t.Errorf("%d bytes were logged", log.Len())
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]stepcommand.Config{
		"blank name":        {Commands: map[string]stepcommand.Command{" ": {Command: "x"}}},
		"no program":        {Commands: map[string]stepcommand.Command{"urn:x": {}}},
		"secret unresolved": {Commands: map[string]stepcommand.Command{"urn:x": {Command: "x", Env: map[string]string{"A": "env:B"}}}},
		"secret not readable": {
			Commands: map[string]stepcommand.Command{"urn:x": {Command: "x", Env: map[string]string{"A": "env:B"}}},
			Secret:   func(string) (string, error) { return "", errors.New("unset") },
		},
	} {
		if _, err := stepcommand.New(c); !errors.Is(err, problem.UsageError) {
			t.Errorf("%s: %v", name, err)
		}
	}
	h := open(t, "echo", nil)
	other := step()
	other.NodeType = "tool_call"
	unknown := step()
	unknown.Config = map[string]any{"handler": "urn:y"}
	for code, req := range map[string]activities.Request{"ACTIVITY_EXECUTOR_UNSUPPORTED_NODE": other, "HANDLER_NOT_FOUND": unknown} {
		if _, err := h.Execute(t.Context(), req); err == nil {
			t.Errorf("%s: performed", code)
		} else if failure, ok := errors.AsType[*activities.Failure](err); !ok || failure.Code != code {
			t.Errorf("%s: %v", code, err)
		}
	}
}

// Through a registry, which stands beside handlers written in Go.
func TestRegister(t *testing.T) {
	t.Parallel()
	h := open(t, `print {"output":1,"usage":{"rows":3}}`, nil)
	steps := activities.NewStepRegistry()
	if err := h.Register(steps); err != nil {
		t.Fatal(err)
	}
	result, err := steps.Execute(t.Context(), step())
	if err != nil || result.Output != 1.0 || result.Usage["rows"] != 3.0 {
		t.Errorf("%+v, %v", result, err)
	}
	if req := step(); steps.Capabilities(req.Node()).Immediate {
		t.Error("a program counts as immediate")
	}
	if err := h.Register(steps.Frozen()); !errors.Is(err, problem.StepConfigInvalid) {
		t.Errorf("frozen: %v", err)
	}
}

// TestSignsOfLife: lines on file descriptor 3 reach the engine, where the node has a heartbeat.
func TestSignsOfLife(t *testing.T) {
	t.Parallel()
	h := open(t, "sign", nil)
	ctx, end := context.WithCancel(t.Context())
	signs := make(chan bool, 1)
	req := step()
	req.Silence = time.Minute
	req.Heartbeat = func(map[string]any) {
		select {
		case signs <- true:
		default:
		}
	}
	go func() {
		for range 3 {
			<-signs
		}
		end()
	}()
	if _, err := h.Execute(ctx, req); err == nil {
		t.Error("the program cannot have succeeded")
	}
}
