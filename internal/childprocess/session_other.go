//go:build !linux

package childprocess

// killSession does nothing: other systems do not show the environment of processes. A process that has left the group
// continues.
func killSession(string) {}
