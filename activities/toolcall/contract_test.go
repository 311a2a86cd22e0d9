package toolcall_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/toolcall"
)

// Arguments that break the tool's input schema are refused before a call, after the list was read again: the scripted
// server allows a size up to the number of times that it was asked for the list, and counts its calls.
func TestArgumentsAreHeldAgainstTheSchema(t *testing.T) {
	t.Parallel()
	h := open(t, "plain", nil)
	for _, bad := range []any{object{"size": 9}, object{}, nil} {
		failure := h.refuse(t.Context(), tool("strict", bad), "MCP_ARGUMENTS_INVALID")
		if failure.Retryable != activities.RetryPointless {
			t.Error("would be tried again")
		}
		wants(t, failure, `MCP server "s"`, `tool "strict"`, "size")
	}
	// Three refusals read the list four times.
	if got := h.execute(tool("strict", object{"size": 5.0})); got != `{"calls":1,"lists":5}` {
		t.Errorf("got %s", got)
	}
	if got := h.execute(tool("strict", object{"size": 5.0})); got != `{"calls":2,"lists":5}` {
		t.Errorf("a list that is good is not read again: %s", got)
	}
	if n := len(h.started()); n != 1 {
		t.Errorf("%d processes: the session is kept", n)
	}
}

func TestResultsAreHeldAgainstTheSchema(t *testing.T) {
	t.Parallel()
	h := open(t, "plain", nil)
	failure := h.refuse(t.Context(), tool("promising", object{"ok2": true}), "OUTPUT_SCHEMA_VIOLATION")
	wants(t, failure, `tool "promising"`, "ok")
	if got := h.execute(tool("promising", object{"ok": true})); got != `{"ok":true}` {
		t.Errorf("got %s", got)
	}
}

// A schema that cannot be used is told of once, and nothing is fetched for it.
func TestSchemasThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	var (
		mu  sync.Mutex
		log bytes.Buffer
	)
	h := open(t, "plain", func(c *toolcall.Config) {
		c.Logger = slog.New(slog.NewTextHandler(locked{&mu, &log}, &slog.HandlerOptions{Level: slog.LevelWarn}))
	})
	for range 2 {
		if got := h.execute(tool("elsewhere", object{"a": 1.0})); got != `{"a":1}` {
			t.Errorf("got %s", got)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if text := log.String(); strings.Count(text, "names another document") != 2 || strings.Count(text, "\n") != 2 {
		t.Errorf("logged %s", text)
	}
}

// locked is a writer for several goroutines.
type locked struct {
	mu *sync.Mutex
	w  *bytes.Buffer
}

func (l locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}
