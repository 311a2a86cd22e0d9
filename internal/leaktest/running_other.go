//go:build !unix

package leaktest

// Running cannot tell on this system whether a process is there.
func Running(int) bool { return false }
