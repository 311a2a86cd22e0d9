//go:build unix

package pgtest

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// folder returns where the folders of servers are made, "" for the temporary folder. Root's may lie below one that the user of the server must not
// enter.
func folder() string {
	for path := os.TempDir(); os.Getuid() == 0; path = filepath.Dir(path) {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o001 == 0 {
			return "/tmp"
		}
		if path == filepath.Dir(path) {
			break
		}
	}
	return ""
}

// becomeUser lets the server run as another user if this one is root, which the server refuses, and in a group of processes of its own, so that an
// interrupt at the terminal leaves its end to the watcher.
func (s *Server) becomeUser() error {
	s.own = &syscall.SysProcAttr{Setpgid: true}
	if os.Getuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return err
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			return err
		}
		s.own.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		return os.Chown(s.dir, int(uid), int(gid))
	}
	return fmt.Errorf("there is neither the user postgres nor nobody, and root cannot run the server")
}

// watching is a child that waits for the end of a pipe, then stops the server and removes its folder.
type watching struct {
	pipe io.WriteCloser
	cmd  *exec.Cmd
}

func watcher(pid int, dir string) (io.Closer, error) {
	cmd := exec.Command("/bin/sh", "-c", `read word; [ "$word" = dismissed ] || { kill -QUIT "$1"; sleep 0.2; rm -rf "$2"; }`, "sh", strconv.Itoa(pid), dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	pipe, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	return &watching{pipe, cmd}, err
}

// dismiss ends the child and nothing else.
func (w *watching) dismiss() error {
	if _, err := io.WriteString(w.pipe, "dismissed\n"); err != nil {
		return err
	}
	return w.Close()
}

// Close ends the child after its work.
func (w *watching) Close() error {
	_ = w.pipe.Close()
	return w.cmd.Wait()
}
