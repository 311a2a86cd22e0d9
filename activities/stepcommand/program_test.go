package stepcommand_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Environment variables that make the test binary a step command.
const (
	scriptVariable = "STEP_SCRIPT"
	pidsVariable   = "STEP_PIDS"
)

// TestMain makes the test binary a step command where a test has started it as one.
func TestMain(m *testing.M) {
	if script := os.Getenv(scriptVariable); script != "" {
		os.Exit(perform(script))
	}
	os.Exit(m.Run())
}

// perform is the program. Its script says what it does.
func perform(script string) int {
	note()
	script, rest, _ := strings.Cut(script, " ")
	switch script {
	case "wait":
		hang()
	case "deaf":
		signal.Ignore(syscall.SIGTERM)
		spawn("deafchild")
		fmt.Fprintln(os.Stderr, "working")
		hang()
	case "deafchild":
		signal.Ignore(syscall.SIGTERM)
		hang()
	case "parent":
		spawn("wait")
		hang()
	case "leaver": // ends, and leaves a child that holds all pipes
		spawn("wait")
		fmt.Println(`{"output":{"left":true}}`)
		return 0
	case "flood":
		for block := strings.Repeat("x", 1<<20); ; {
			if _, err := io.WriteString(os.Stdout, block); err != nil {
				return 1
			}
		}
	case "unread": // does not read what it is given
		fmt.Println(`{"output":{}}`)
		return 0
	}
	var request map[string]any
	text, err := io.ReadAll(os.Stdin)
	if err == nil {
		err = json.Unmarshal(text, &request)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 9
	}
	switch script {
	case "echo":
		answer(map[string]any{"output": request})
	case "environment":
		answer(map[string]any{"output": os.Environ()})
	case "directory":
		folder, _ := os.Getwd()
		answer(map[string]any{"output": folder})
	case "arguments":
		answer(map[string]any{"output": os.Args[1:]})
	case "sign": // gives signs of life, as long as there is a reader
		for signs := os.NewFile(3, "signs"); ; time.Sleep(time.Millisecond) {
			if _, err := signs.WriteString("alive\n"); err != nil {
				return 1
			}
		}
	case "print":
		fmt.Print(rest)
	case "fail":
		fmt.Fprintln(os.Stderr, "disk full, key "+os.Getenv("KEY"))
		fmt.Print(rest)
		return 3
	case "loud":
		for i := range 100_000 {
			fmt.Fprintln(os.Stderr, "line", i)
		}
		answer(map[string]any{"output": map[string]any{}})
	case "kill":
		if self, err := os.FindProcess(os.Getpid()); err == nil {
			_ = self.Kill()
		}
		hang()
	}
	return 0
}

// hang does not return. An empty select would be taken for a deadlock.
func hang() {
	for {
		time.Sleep(time.Hour)
	}
}

func answer(v any) {
	if err := json.NewEncoder(os.Stdout).Encode(v); err != nil {
		panic(err)
	}
}

// spawn starts this program with another script and the same pipes, and waits until it runs.
func spawn(script string) {
	r, w, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), scriptVariable+"="+script)
	child.Stdin, child.Stdout, child.Stderr, child.ExtraFiles = os.Stdin, os.Stdout, os.Stderr, []*os.File{w}
	if err := child.Start(); err != nil {
		panic(err)
	}
	w.Close()
	// The child has noted its id when it closes the pipe.
	_, _ = io.ReadAll(r)
}

// note writes the process id down, so that the test can tell whether it is still there.
func note() {
	f, err := os.OpenFile(os.Getenv(pidsVariable), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		fmt.Fprintln(f, os.Getpid())
		f.Close()
	}
	os.NewFile(3, "started").Close()
}
