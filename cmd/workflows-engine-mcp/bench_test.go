package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// BenchmarkColdStart measures what a host waits for: from the spawn of the built server, with a database of its own, to
// the answer of initialize. On Linux it also reports the memory resident then.
func BenchmarkColdStart(b *testing.B) {
	dir := b.TempDir()
	bin := filepath.Join(dir, "server")
	build := exec.Command("go", "build", "-o", bin, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("build: %v\n%s", err, out)
	}
	request := []byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"0"}}}` + "\n")
	var waited time.Duration
	var resident, starts float64
	for b.Loop() {
		cmd := exec.Command(bin, "--store-path", filepath.Join(dir, fmt.Sprintf("%d.db", int(starts))))
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
		if _, err := in.Write(request); err != nil {
			b.Fatal(err)
		}
		answer, err := bufio.NewReader(out).ReadBytes('\n')
		waited += time.Since(begun)
		if err != nil || !bytes.Contains(answer, []byte(`"serverInfo"`)) {
			b.Fatalf("answer %q, %v", answer, err)
		}
		resident += residentMiB(cmd.Process.Pid)
		starts++
		_ = in.Close()
		_, _ = io.Copy(io.Discard, out)
		if err := cmd.Wait(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(waited.Microseconds())/1000/starts, "ms/initialize")
	if resident > 0 {
		b.ReportMetric(resident/starts, "MiB-resident")
	}
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
