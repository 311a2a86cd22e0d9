package storeclock

import (
	"time"

	"golang.org/x/sys/unix"
)

// OfMachine returns the Uptime of this machine, or nil if it is unknown or this process uses simulated time.
func OfMachine() Uptime {
	var real unix.Timespec
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil || unix.ClockGettime(unix.CLOCK_REALTIME, &real) != nil || !isNow(time.Unix(real.Unix())) {
		return nil
	}
	return counting(unix.CLOCK_MONOTONIC, id)
}
