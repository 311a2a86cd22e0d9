//go:build !linux

package main

import "testing"

func smallDisk(t *testing.T, _ string) {
	t.Helper()
	t.Skip("a small file system is mounted on Linux only")
}
