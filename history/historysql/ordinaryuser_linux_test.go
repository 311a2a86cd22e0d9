package historysql_test

import (
	"os"
	"runtime"
	"syscall"
	"testing"
	"unsafe"
)

// asOrdinaryUser does something in dir as a user whose rights count: of a test that runs as root, the thread that does
// it gives up what sets root above the rights of files. It still owns the folders, wherever those for tests are.
func asOrdinaryUser(t *testing.T, _ string, do func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		do()
		return
	}
	failed := make(chan syscall.Errno, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		errno := giveUpOverride()
		failed <- errno
		if errno == 0 {
			do()
		}
	}()
	errno := <-failed
	<-done
	if errno != 0 {
		t.Skipf("this root cannot give its rights up (%v); run the test as an ordinary user", errno)
	}
}

// giveUpOverride takes CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH and CAP_FOWNER from the calling thread; see capabilities(7).
func giveUpOverride() syscall.Errno {
	header := struct {
		version uint32
		pid     int32
	}{version: 0x20080522} // 0 is the calling thread
	var sets [2]struct{ effective, permitted, inheritable uint32 }
	for _, call := range []uintptr{syscall.SYS_CAPGET, syscall.SYS_CAPSET} {
		if _, _, errno := syscall.RawSyscall(call, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&sets)), 0); errno != 0 {
			return errno
		}
		const overrides = 1<<1 | 1<<2 | 1<<3
		sets[0].effective &^= overrides
	}
	return 0
}
