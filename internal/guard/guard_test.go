package guard_test

import (
	"bytes"
	"log/slog"
	"runtime"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/guard"
)

// TestCallSurvivesWhatAFunctionDoes calls one that returns, one that panics and one that ends its goroutine.
func TestCallSurvivesWhatAFunctionDoes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, want, log string
		f               func()
	}{
		{name: "returns", f: func() {}},
		{name: "panics", want: "the hook panicked: boom", log: "guard_test.go", f: func() { panic("boom") }},
		{name: "exits", want: "the hook " + guard.Exited, log: "level=ERROR", f: runtime.Goexit},
	} {
		var log bytes.Buffer
		err := guard.Call(slog.New(slog.NewTextHandler(&log, nil)), "the hook", tt.f)
		if err == nil && tt.want != "" || err != nil && err.Error() != tt.want {
			t.Errorf("%s: %v", tt.name, err)
		}
		if (log.Len() > 0) != (tt.want != "") || !strings.Contains(log.String(), tt.log) {
			t.Errorf("%s: logged %s", tt.name, &log)
		}
	}
}

// TestCallFromALockedThread calls functions that return and panic while the caller is locked to its thread.
func TestCallFromALockedThread(t *testing.T) {
	t.Parallel()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	log := slog.New(slog.DiscardHandler)
	if err := guard.Call(log, "the hook", func() { runtime.Gosched() }); err != nil {
		t.Error(err)
	}
	if err := guard.Call(log, "the hook", func() { panic("boom") }); err == nil {
		t.Error("no failure")
	}
}

func BenchmarkCall(b *testing.B) {
	log, n := slog.New(slog.DiscardHandler), 0
	for b.Loop() {
		_ = guard.Call(log, "the hook", func() { n++ })
	}
}
