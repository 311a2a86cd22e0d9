package regularfile

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockFile locks an open file, unless another process has locked it.
func lockFile(f *os.File) (locked bool, err error) {
	err = windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &windows.Overlapped{})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return false, nil
	}
	return err == nil, err
}

// busy reports whether a lock file could not be opened because another process is about to remove it.
func busy(err error) bool {
	return errors.Is(err, windows.ERROR_SHARING_VIOLATION) || errors.Is(err, windows.ERROR_DELETE_PENDING) || errors.Is(err, windows.ERROR_ACCESS_DENIED)
}
