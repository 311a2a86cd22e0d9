//go:build !linux && !darwin

package storeclock

// OfMachine returns nil: the uptime of this machine is unknown.
func OfMachine() Uptime { return nil }
