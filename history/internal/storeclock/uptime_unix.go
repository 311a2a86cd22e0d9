//go:build linux || darwin

package storeclock

import (
	"time"

	"golang.org/x/sys/unix"
)

// counting returns the Uptime measured by a system clock, or nil if the clock does not exist.
func counting(clock int32, boot string) Uptime {
	var first unix.Timespec
	if unix.ClockGettime(clock, &first) != nil {
		return nil
	}
	return func() (string, time.Duration) {
		up := first
		_ = unix.ClockGettime(clock, &up) // it succeeded above, and cannot fail now
		return boot, time.Duration(up.Nano())
	}
}

// isNow reports whether the time of this process matches the system's, within a second. It does not in a test with simulated time.
func isNow(system time.Time) bool { return time.Until(system).Abs() < time.Second }
