package historysql_test

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// nobody is a user who owns nothing.
const nobody = 65534

// asOrdinaryUser does something in dir as a user whose rights count: of a test that runs as root, the thread that does
// it gives its rights up.
func asOrdinaryUser(t *testing.T, dir string, do func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		do()
		return
	}
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	changed := make(chan bool)
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		_ = syscall.Setfsuid(nobody)
		// The call tells no failure. Asked for what is no user, it changes nothing and gives the one that counts.
		now, _, _ := syscall.RawSyscall(syscall.SYS_SETFSUID, ^uintptr(0), 0, 0)
		changed <- now == nobody
		if now == nobody {
			do()
		}
	}()
	ok := <-changed
	<-done
	if !ok {
		t.Skip("this root may not act as another user; run the test as an ordinary one")
	}
}
