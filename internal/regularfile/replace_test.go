package regularfile_test

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/internal/regularfile"
)

// lockedFile names, in the environment of a process of this test, the file that it locks until it is killed; changedFile the one that it adds a line to.
const lockedFile, changedFile = "REGULARFILE_TEST_LOCK", "REGULARFILE_TEST_CHANGE"

func TestMain(m *testing.M) {
	if path := os.Getenv(lockedFile); path != "" {
		if _, err := regularfile.Lock(path); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("locked")
		<-time.After(time.Hour) // without cgo, select {} counts as a deadlock
	}
	if path := os.Getenv(changedFile); path != "" {
		if err := addLine(path, fmt.Sprint(os.Getpid())); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// addLine adds a line to a file, which need not exist.
func addLine(path, line string) error {
	unlock, err := regularfile.Lock(path)
	if err != nil {
		return err
	}
	defer unlock()
	was, err := regularfile.Read(path, 0)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	r := regularfile.Replacement{Name: path, Was: was, Text: append([]byte(string(was)), line+"\n"...), Mode: 0o600}
	return r.ReplaceLocked()
}

// leftBehind fails the test if something else than the file is in its folder.
func leftBehind(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) > 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// process is a process of this test that finds a file named in its environment.
func process(t *testing.T, variable, path string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = append(os.Environ(), variable+"="+path)
	return cmd
}

func TestReplace(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	replace := func(was, text []byte) error {
		return (&regularfile.Replacement{Name: path, Was: was, Text: text, Mode: 0o640}).Replace()
	}
	if err := replace([]byte{}, []byte("x")); !errors.Is(err, regularfile.ErrChanged) {
		t.Errorf("a file that is gone: %v", err)
	}
	if err := replace(nil, []byte("one")); err != nil {
		t.Fatal(err)
	}
	for _, was := range [][]byte{nil, {}, []byte("on"), []byte("two")} {
		for _, text := range [][]byte{nil, []byte("x")} {
			if err := replace(was, text); !errors.Is(err, regularfile.ErrChanged) {
				t.Errorf("was %q: %v", was, err)
			}
		}
	}
	if err := replace([]byte("one"), []byte{}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != 0 || runtime.GOOS != "windows" && info.Mode() != 0o640 {
		t.Errorf("%v, %v", info, err)
	}
	leftBehind(t, path)
	if err := replace([]byte{}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

// TestChangesAtOnce: of many changes of a file, by this process and by others, none is lost.
func TestChangesAtOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	const here, processes = 12, 6
	var all sync.WaitGroup
	for i := range here {
		all.Go(func() {
			if err := addLine(path, fmt.Sprint("line ", i)); err != nil {
				t.Error(err)
			}
		})
	}
	for range processes {
		cmd := process(t, changedFile, path)
		all.Go(func() {
			if text, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, text)
			}
		})
	}
	all.Wait()
	text, err := regularfile.Read(path, 0)
	if n := strings.Count(string(text), "\n"); err != nil || n != here+processes {
		t.Errorf("%d lines, %v:\n%s", n, err, text)
	}
	leftBehind(t, path)
}

// TestALockEndsWithItsProcess: one that was killed keeps nobody away.
func TestALockEndsWithItsProcess(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	cmd := process(t, lockedFile, path)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "locked\n" {
		t.Errorf("%q, %v", line, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if err := addLine(path, "x"); err != nil {
		t.Error(err)
	}
	leftBehind(t, path)
}
