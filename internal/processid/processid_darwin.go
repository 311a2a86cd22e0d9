package processid

import (
	"sync"
	"syscall"
)

// machine names the boot of this machine.
var machine = sync.OnceValue(func() string {
	boot, _ := syscall.Sysctl("kern.bootsessionuuid")
	return hash(boot)
})

// exists reports whether there is a process with a number, which may belong to another user.
func exists(pid int) bool { return syscall.Kill(pid, 0) != syscall.ESRCH }

func started(int) (ticks uint64, ended bool) { return 0, false }
