package processid

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// machine names the boot of this machine, and the namespaces of process numbers and of the clock that start times are read by.
var machine = sync.OnceValue(func() string {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	numbers, _ := os.Readlink("/proc/self/ns/pid")
	clock, err := os.Readlink("/proc/self/ns/time")
	if err != nil {
		clock = "the only one" // kernels before 5.6
	}
	return hash(strings.TrimSpace(string(boot)), numbers, clock)
})

// exists reports whether there is a process with a number, which may belong to another user.
func exists(pid int) bool { return syscall.Kill(pid, 0) != syscall.ESRCH }

// started returns the start of a process in clock ticks since boot, 0 if it cannot be read. ended is set for a process that has ended,
// but whose parent has not taken notice.
func started(pid int) (ticks uint64, ended bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	// The name of the program stands in parentheses and may contain any byte. The state follows, and the start is the 20th field from there.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 20 {
		return 0, false
	}
	ticks, _ = strconv.ParseUint(fields[19], 10, 64)
	return ticks, fields[0] == "Z" || fields[0] == "X"
}
