// Package leaktest finds goroutines and processes that tests leave running.
package leaktest

import (
	"bufio"
	"io"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"
	"time"
)

// patience is how long goroutines that are about to end may take.
const patience = 10 * time.Second

// NoGoroutines fails the test if goroutines are left whose stack has one of the frames: parts of the names of functions,
// such as "net/http.(*persistConn)". Tests that are yet to run in parallel stand still meanwhile and do not count.
func NoGoroutines(t testing.TB, frames ...string) {
	t.Helper()
	var left []string
	for begun := time.Now(); time.Since(begun) < patience; time.Sleep(10 * time.Millisecond) {
		if left = goroutines(t, frames); len(left) == 0 {
			return
		}
	}
	t.Errorf("%d goroutines are left:\n%s", len(left), strings.Join(left, "\n"))
}

func goroutines(t testing.TB, frames []string) (found []string) {
	t.Helper()
	reader, writer := io.Pipe()
	go func() { writer.CloseWithError(pprof.Lookup("goroutine").WriteTo(writer, 2)) }()
	lines := bufio.NewScanner(reader)
	lines.Buffer(nil, 1<<20)
	var stack strings.Builder
	end := func() {
		text := stack.String()
		stack.Reset()
		has := func(frame string) bool { return strings.Contains(text, frame) }
		if slices.ContainsFunc(frames, has) && !has("testing.(*T).Run") && !has("testing.(*T).Parallel") {
			found = append(found, text)
		}
	}
	for lines.Scan() {
		if lines.Text() == "" {
			end()
			continue
		}
		stack.WriteString(lines.Text() + "\n")
	}
	end()
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}
