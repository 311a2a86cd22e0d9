package processid_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/processid"
)

// TestMain prints the id of the process, and waits, if the tests start it.
func TestMain(m *testing.M) {
	if os.Getenv("PROCESSID_TEST") == "" {
		os.Exit(m.Run())
	}
	os.Stdout.WriteString(processid.Own() + "\n")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func known(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skipf("%s does not tell which process has ended", runtime.GOOS)
	}
}

// TestAnEndedProcessIsGone: a process is there until it has ended, whether or not its parent has noticed that, and however it ended.
func TestAnEndedProcessIsGone(t *testing.T) {
	t.Parallel()
	known(t)
	for _, end := range []string{"killed", "ended"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), "PROCESSID_TEST=1")
			stdin, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			line, _ := bufio.NewReader(stdout).ReadString('\n')
			id := strings.TrimSpace(line)
			if id == "" || processid.Gone(id) {
				t.Errorf("%q is gone while it runs", id)
			}
			if end == "killed" {
				_ = cmd.Process.Kill()
			}
			stdin.Close()
			_, _ = io.Copy(io.Discard, stdout) // until it has closed its end
			if runtime.GOOS == "linux" {
				for !processid.Gone(id) { // its parent, this process, has not asked for its status yet
					runtime.Gosched()
				}
			}
			_ = cmd.Wait()
			if !processid.Gone(id) {
				t.Errorf("%q has ended and is not gone", id)
			}
		})
	}
}

// TestWhatIsUnknownIsNotGone: an id that says nothing about a process of this machine never counts as gone.
func TestWhatIsUnknownIsNotGone(t *testing.T) {
	t.Parallel()
	own := processid.Own()
	number, rest, _ := strings.Cut(own, ".")
	start, machine, _ := strings.Cut(rest, ".")
	for _, id := range []string{
		"", "p", "p.", "p..", "p1", "p1.", "p1.2", "p1.2.", "p0." + rest, "p-1." + rest, "px." + rest, "p99999999999999999999." + rest,
		"p999999999.1.000000000000", "p999999999.1.", "host:1/ABC", strings.Repeat("p", 1000), "\x00", own + "0", own + ".1",
		number + "." + start + "." + strings.ToUpper(machine) + "x",
	} {
		if processid.Gone(id) {
			t.Errorf("%q is gone", id)
		}
	}
	if processid.Gone(own) {
		t.Errorf("%q, this process, is gone", own)
	}
}

// TestANumberThatAnotherProcessHas: after a process has ended, its number may be given to another one.
func TestANumberThatAnotherProcessHas(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells when a process started")
	}
	number, rest, _ := strings.Cut(processid.Own(), ".")
	_, machine, _ := strings.Cut(rest, ".")
	if id := number + ".1." + machine; !processid.Gone(id) {
		t.Errorf("%q is not gone, though another process has its number", id)
	}
	if id := "worker/host:1/ABC/p999999999.1." + machine; !processid.Gone(id) {
		t.Errorf("%q is not gone, though there is none", id)
	}
}
