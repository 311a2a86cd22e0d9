//go:build !linux && !darwin

package storeclock

// OfMachine returns nil: the uptime of this machine is not known.
func OfMachine() Uptime { return nil }
