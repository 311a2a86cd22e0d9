package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// BenchmarkColdStart measures what a host waits for: from the spawn of the built server, with a database of its own, to
// the answer of initialize. Beside each start it runs an empty Go program from its spawn to its end; the mark is a
// median of at most five times the median of that. On Linux it also reports the memory resident after the answer.
func BenchmarkColdStart(b *testing.B) {
	dir := b.TempDir()
	server := filepath.Join(dir, "server")
	build(b, server, ".")
	source, empty := filepath.Join(dir, "empty.go"), filepath.Join(dir, "empty")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	build(b, empty, source)
	var starts, empties []time.Duration
	var resident float64
	for b.Loop() {
		begun := time.Now()
		if err := exec.Command(empty).Run(); err != nil {
			b.Fatal(err)
		}
		empties = append(empties, time.Since(begun))
		waited, memory := coldStart(b, server, filepath.Join(dir, fmt.Sprintf("%d.db", len(starts))))
		starts = append(starts, waited)
		resident += memory
	}
	start, shortest := median(starts), median(empties)
	b.ReportMetric(start, "ms/initialize")
	b.ReportMetric(shortest, "ms/empty-program")
	b.ReportMetric(start/shortest, "x-empty-program")
	if resident > 0 {
		b.ReportMetric(resident/float64(len(starts)), "MiB-resident")
	}
}

// coldStart returns the time from the spawn of a server to its answer of initialize, and the MiB resident then.
func coldStart(b *testing.B, server, db string) (time.Duration, float64) {
	cmd := exec.Command(server, "--store-path", db)
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	const request = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"0"}}}` + "\n"
	if _, err := io.WriteString(in, request); err != nil {
		b.Fatal(err)
	}
	answer, err := bufio.NewReader(out).ReadBytes('\n')
	waited := time.Since(begun)
	if err != nil || !bytes.Contains(answer, []byte(`"serverInfo"`)) {
		b.Fatalf("answer %q, %v", answer, err)
	}
	memory := residentMiB(cmd.Process.Pid)
	_ = in.Close()
	_, _ = io.Copy(io.Discard, out)
	if err := cmd.Wait(); err != nil {
		b.Fatal(err)
	}
	return waited, memory
}

// build builds a package or a file as releases are built.
func build(b *testing.B, binary, source string) {
	cmd := exec.Command("go", "build", "-o", binary, source)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("build: %v\n%s", err, out)
	}
}

// median returns the median in milliseconds.
func median(durations []time.Duration) float64 {
	slices.Sort(durations)
	return float64(durations[len(durations)/2].Microseconds()) / 1000
}

// residentMiB reads the resident memory of a process, 0 where the system does not tell.
func residentMiB(pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		var kib float64
		if _, err := fmt.Sscanf(line, "VmRSS: %f kB", &kib); err == nil {
			return kib / 1024
		}
	}
	return 0
}
