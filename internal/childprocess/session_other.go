//go:build !linux

package childprocess

// killSession does nothing: other systems do not show the environment of processes. What has left the process group lives on.
func killSession(string) {}
