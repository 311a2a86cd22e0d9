package regularfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// ErrLocked is the cause of an error for a file that another process keeps locked.
var ErrLocked = errors.New("another process is changing it")

const (
	lockTime  = 10 * time.Second
	lockPause = 5 * time.Millisecond
)

// Lock keeps others that lock a file away from it until unlock is called, so that reading it, changing it and writing it are one step. The lock is that
// of a file beside it, and the operating system's: it ends with the process, however that ends. Programs that know nothing of it are kept from nothing.
func Lock(name string) (unlock func(), err error) {
	lock := filepath.Join(filepath.Dir(name), "."+filepath.Base(name)+".lock")
	for until := time.Now().Add(lockTime); ; time.Sleep(lockPause) {
		unlock, err := tryLock(lock)
		if unlock != nil || err != nil {
			return unlock, err
		}
		if time.Now().After(until) {
			return nil, &fs.PathError{Op: "lock", Path: name, Err: fmt.Errorf("%w (%s is locked)", ErrLocked, lock)}
		}
	}
}

// tryLock returns neither a lock nor an error where another process has the lock.
func tryLock(lock string) (unlock func(), err error) {
	f, err := os.OpenFile(lock, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		if busy(err) {
			return nil, nil
		}
		return nil, err
	}
	locked, err := lockFile(f)
	if locked && err == nil && !named(f, lock) { // whoever had it has removed it
		locked = false
	}
	if !locked || err != nil {
		_ = f.Close() // nothing was written
		return nil, err
	}
	return func() {
		removed := os.Remove(lock) // while it is locked: nobody else's is removed
		_ = f.Close()
		if removed != nil {
			_ = os.Remove(lock) // where an open file cannot be removed
		}
	}, nil
}

// named reports whether a name still leads to an open file.
func named(f *os.File, name string) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := os.Lstat(name)
	return err == nil && os.SameFile(a, b)
}
