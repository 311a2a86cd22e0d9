package storeclock

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// OfMachine returns the Uptime of this machine, nil if it is not known or the time of this process is simulated.
func OfMachine() Uptime {
	var real unix.Timespec
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil || unix.ClockGettime(unix.CLOCK_REALTIME, &real) != nil || !isNow(time.Unix(real.Unix())) {
		return nil
	}
	space, _ := os.Readlink("/proc/self/ns/time") // in another one, the machine is up for another time
	return counting(unix.CLOCK_BOOTTIME, strings.TrimSpace(string(id))+space)
}
