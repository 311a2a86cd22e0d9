package historysql_test

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// asOrdinaryUser does something in dir as a user whose rights count: of a test that runs as root, the thread that does
// it gives up what sets root above the rights of files. It still owns the folders, wherever those for tests are.
func asOrdinaryUser(t *testing.T, _ string, do func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		do()
		return
	}
	failed := make(chan error, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		err := giveUpOverride()
		failed <- err
		if err == nil {
			do()
		}
	}()
	err := <-failed
	<-done
	if err != nil {
		t.Skipf("this root cannot give its rights up (%v); run the test as an ordinary user", err)
	}
}

// giveUpOverride takes CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH and CAP_FOWNER from the calling thread; see capabilities(7).
func giveUpOverride() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3} // process 0 is the calling thread
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return err
	}
	sets[0].Effective &^= 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH | 1<<unix.CAP_FOWNER
	return unix.Capset(&header, &sets[0])
}
