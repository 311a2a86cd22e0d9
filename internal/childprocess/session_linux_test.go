package childprocess_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/internal/childprocess"
)

// TestMain: with HIDE set, this program is an engine with a secret that starts a curious child.
func TestMain(m *testing.M) {
	if os.Getenv("HIDE") == "" {
		os.Exit(m.Run())
	}
	if os.Getenv("HIDE") == "yes" {
		childprocess.HideEnvironment()
	}
	p, err := childprocess.Start(childprocess.Program{
		Command: "/bin/sh", Args: []string{"-c", "tr '\\000' '\\n' < /proc/$PPID/environ; echo end"}, Environment: childprocess.Environment(os.Environ(), nil),
	}, &childprocess.Tail{}, nil)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	_, _ = io.Copy(os.Stdout, p.Stdout)
	<-p.Exited()
	os.Exit(0)
}

// TestAChildDoesNotReadTheEnginesEnvironment: /proc/PID/environ of the engine is not the user's to read.
func TestAChildDoesNotReadTheEnginesEnvironment(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, hide := range []string{"no", "yes"} {
		cmd := exec.Command(program)
		cmd.Env = []string{"HIDE=" + hide, "PATH=" + os.Getenv("PATH"), "API_KEY=sentinel-4711"}
		if os.Geteuid() == 0 { // root reads everything
			cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
			cmd.Path = shared(t, program)
		}
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "end") {
			t.Skipf("this system does not let the test start as an ordinary user: %v, %s", err, out)
		}
		if read := strings.Contains(string(out), "sentinel-4711"); read != (hide == "no") {
			t.Errorf("hidden: %s; the child has read\n%s", hide, out)
		}
	}
}

// shared copies a program to where every user can start it.
func shared(t *testing.T, program string) string {
	t.Helper()
	folder, err := os.MkdirTemp("/tmp", "hide")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	text, err := os.ReadFile(program)
	if err == nil {
		err = os.Chmod(folder, 0o755)
	}
	path := filepath.Join(folder, "program")
	if err == nil {
		err = os.WriteFile(path, text, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestAChildInASessionOfItsOwnEndsWithItsProgram: setsid takes it out of the process group, and does not save it.
func TestAChildInASessionOfItsOwnEndsWithItsProgram(t *testing.T) {
	t.Parallel()
	setsid, err := exec.LookPath("setsid")
	if err != nil {
		t.Skipf("there is no program setsid: %v", err)
	}
	// The fifo is open for writing as long as one of the processes lives; reading it ends when the last one has ended.
	fifo := filepath.Join(t.TempDir(), "alive")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	other, err := childprocess.Start(childprocess.Program{Command: "/bin/cat"}, &childprocess.Tail{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := childprocess.Start(childprocess.Program{
		Command: "/bin/sh", Args: []string{"-c", `exec 3>"$0"; "$1" sh -c "echo here; exec sleep 600" >&3 2>&1 & read line`, fifo, setsid},
		Environment: childprocess.Environment(os.Environ(), nil),
	}, &childprocess.Tail{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	alive, err := os.Open(fifo)
	if err != nil {
		t.Fatal(err)
	}
	defer alive.Close()
	lines := bufio.NewReader(alive)
	if line, err := lines.ReadString('\n'); err != nil || line != "here\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if err := alive.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	p.Stop(time.Minute)
	if _, err := lines.ReadString('\n'); err != io.EOF {
		t.Errorf("the end of the last process: %v", err)
	}
	if !strings.HasPrefix(echo(t, other), "still") {
		t.Error("another program was killed")
	}
	other.Stop(time.Minute)
}

// echo writes a line to a program and returns what it answers.
func echo(t *testing.T, p *childprocess.Process) string {
	t.Helper()
	if _, err := p.Stdin.WriteString("still\n"); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(p.Stdout).ReadString('\n')
	return line
}
