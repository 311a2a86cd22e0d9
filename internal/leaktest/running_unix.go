//go:build unix

package leaktest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Running reports whether a process exists. A zombie does not count.
func Running(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return !errors.Is(err, os.ErrNotExist) || !exists("/proc/self")
	}
	_, after, _ := bytes.Cut(stat, []byte(") "))
	return !bytes.HasPrefix(after, []byte("Z"))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
