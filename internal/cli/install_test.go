package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/internal/config"
)

// TestInstallAsks: without a host a person is asked, and only yes changes anything.
func TestInstallAsks(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]int{"n\n": exitFailed, "\n": exitFailed, "": exitFailed, "y\n": exitOK, " Yes\n": exitOK} {
		home := t.TempDir()
		if err := os.Mkdir(filepath.Join(home, ".cursor"), 0o700); err != nil {
			t.Fatal(err)
		}
		program := filepath.Join(home, server)
		if err := os.WriteFile(program, nil, 0o700); err != nil {
			t.Fatal(err)
		}
		var stdout, stderr bytes.Buffer
		a := &app{
			stdin: strings.NewReader(answer), stdout: &stdout, stderr: &stderr, interactive: true, now: time.Now,
			env: config.Environment{GOOS: runtime.GOOS, Home: home, Directory: home, ReadFile: os.ReadFile},
		}
		if got := a.execute(t.Context(), []string{"install", "--server", program}); got != want || !strings.Contains(stderr.String(), "Continue? [y/n]") {
			t.Errorf("%q: status %d\n%s%s", answer, got, &stdout, &stderr)
		}
		if _, err := os.Stat(filepath.Join(home, ".cursor", "mcp.json")); (err == nil) != (want == exitOK) {
			t.Errorf("%q: %v", answer, err)
		}
	}
}

// TestServerFileKeepsLinks: the link that a package manager makes is named, not the file of a version that it leads to.
func TestServerFileKeepsLinks(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	a := &app{env: config.Environment{GOOS: "linux", Home: folder, Directory: folder, Variables: []string{"PATH=" + filepath.Join(folder, "bin")}}}
	if got, err := a.serverFile(""); err == nil {
		t.Fatalf("found %s", got)
	}
	for _, sub := range []string{"bin", "1.2.3"} {
		if err := os.Mkdir(filepath.Join(folder, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "1.2.3", server), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(folder, "bin", server)
	if err := os.Symlink(filepath.Join("..", "1.2.3", server), link); err != nil {
		t.Skipf("this user may make no symbolic links: %v", err)
	}
	if got, err := a.serverFile(""); err != nil || got != link {
		t.Errorf("%s %v, want %s", got, err, link)
	}
}

// TestInstallAtOnce: entries that many processes put into one file at the same time are all there afterwards, and those of others stay.
func TestInstallAtOnce(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	program, file := filepath.Join(home, server), filepath.Join(home, ".cursor", "mcp.json")
	err := os.Mkdir(filepath.Dir(file), 0o700)
	if err == nil {
		err = os.WriteFile(program, nil, 0o700)
	}
	if err == nil {
		err = os.WriteFile(file, []byte(`{"mcpServers": {"theirs": {"command": "x"}}}`), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	const processes = 12
	var all sync.WaitGroup
	for i := range processes {
		all.Go(func() {
			var out bytes.Buffer
			a := &app{
				stdin: strings.NewReader(""), stdout: &out, stderr: &out, now: time.Now,
				env: config.Environment{GOOS: runtime.GOOS, Home: home, Directory: home, ReadFile: os.ReadFile},
			}
			if got := a.execute(t.Context(), []string{"install", "--host", "cursor", "--server", program, "--name", fmt.Sprint("engine-", i)}); got != exitOK {
				t.Errorf("status %d: %s", got, &out)
			}
		})
	}
	all.Wait()
	text, err := os.ReadFile(file)
	if n := strings.Count(string(text), `"engine-`); err != nil || n != processes || !strings.Contains(string(text), "theirs") {
		t.Errorf("%d entries, %v:\n%s", n, err, text)
	}
}
