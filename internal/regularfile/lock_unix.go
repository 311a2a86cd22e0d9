//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package regularfile

import (
	"errors"
	"os"
	"syscall"
)

// lockFile locks an open file, unless another process has locked it. On a file system without locks it locks nothing.
func lockFile(f *os.File) (locked bool, err error) {
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return false, nil
	case errors.Is(err, syscall.ENOSYS), errors.Is(err, syscall.ENOTSUP), errors.Is(err, syscall.EOPNOTSUPP), errors.Is(err, syscall.ENOLCK):
		return true, nil
	}
	return err == nil, err
}

// busy reports whether a lock file could not be opened because another process is about to remove it.
func busy(error) bool { return false }
