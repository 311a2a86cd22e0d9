//go:build linux || darwin

package storeclock

import (
	"time"

	"golang.org/x/sys/unix"
)

// counting returns the Uptime that a clock of the system counts, nil if there is none.
func counting(clock int32, boot string) Uptime {
	var first unix.Timespec
	if unix.ClockGettime(clock, &first) != nil {
		return nil
	}
	return func() (string, time.Duration) {
		up := first
		_ = unix.ClockGettime(clock, &up) // which succeeded at first, and has no other reason to fail
		return boot, time.Duration(up.Nano())
	}
}

// isNow reports whether the time of this process is, to a second, that of the system: it is not in a test that simulates it.
func isNow(system time.Time) bool { return time.Until(system).Abs() < time.Second }
