package storeclock

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// OfMachine returns the Uptime of this machine, or nil if it is unknown or this process uses simulated time.
func OfMachine() Uptime {
	var real unix.Timespec
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil || unix.ClockGettime(unix.CLOCK_REALTIME, &real) != nil || !isNow(time.Unix(real.Unix())) {
		return nil
	}
	space, _ := os.Readlink("/proc/self/ns/time") // each time namespace has its own uptime
	return counting(unix.CLOCK_BOOTTIME, strings.TrimSpace(string(id))+space)
}
