package main

import (
	"syscall"
	"testing"
)

// smallDisk mounts a disk of 1 MiB on a folder, or skips the test if it may not.
func smallDisk(t *testing.T, dir string) {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("only who may mount a small file system can fill it: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
}
