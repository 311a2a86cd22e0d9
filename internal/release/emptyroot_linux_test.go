package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// runInAnEmptyRoot unpacks the archive into a folder that becomes the root of its programs: no library, shell, certificate or time zone is there, as in
// an empty container. A run asks a question there, and another process answers it.
func runInAnEmptyRoot(t *testing.T, dist string) {
	root := t.TempDir()
	archives, err := filepath.Glob(filepath.Join(dist, "*_"+runtime.GOOS+"_"+runtime.GOARCH+".tar.gz"))
	if err != nil || len(archives) != 1 {
		t.Fatalf("%v, %v", archives, err)
	}
	unpack(t, archives[0], root)
	folders, err := filepath.Glob(filepath.Join(root, "workflows-engine*"))
	if err != nil || len(folders) != 1 {
		t.Fatalf("%v, %v", folders, err)
	}
	home := "/" + filepath.Base(folders[0])
	inside := func(want int, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), home+"/workflows-engine", args...)
		cmd.Dir, cmd.Env = home, []string{"HOME=" + home}
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
		if os.Getuid() != 0 {
			cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
			cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
			cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
		}
		out, err := cmd.CombinedOutput()
		if errors.Is(err, syscall.EPERM) {
			t.Skipf("this machine permits no other root: %v", err)
		}
		if got := cmd.ProcessState.ExitCode(); got != want {
			t.Errorf("%v: exit status %d, %v\n%s", args, got, err, out)
		}
		return string(out)
	}
	if said := inside(0, "version"); !strings.Contains(said, "1.2.3") {
		t.Error(said)
	}
	inside(3, "run", "examples/refund/refund.workflow.yaml", "--profile", "demo", "--id", "r1", "--input", "order=A17")
	if said := inside(0, "resume", "r1", "--profile", "demo", "--payload", `{"ok":true}`); !strings.Contains(said, "completed") {
		t.Error(said)
	}
	if said := inside(0, "db", "verify"); strings.Contains(said, "error") {
		t.Error(said)
	}
}

func unpack(t *testing.T, archive, to string) {
	t.Helper()
	file, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	packed, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(packed); ; {
		h, err := r.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(to, filepath.FromSlash(h.Name))
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o700)
		} else if err = os.MkdirAll(filepath.Dir(path), 0o700); err == nil {
			var text []byte
			if text, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(path, text, os.FileMode(h.Mode)&0o700)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
