//go:build !unix

package leaktest

// Running cannot find out on this system whether a process exists.
func Running(int) bool { return false }
