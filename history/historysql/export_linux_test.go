package historysql

import "testing"

// Writes returns the channel that tells of writes, and the functions that follow a file and end it all.
func Writes(t testing.TB) (told <-chan struct{}, follow func(path string) bool, end func()) {
	w := newWrites()
	if w == nil {
		t.Skip("the kernel offers no more instances of inotify to this user (see /proc/sys/fs/inotify/max_user_instances)")
	}
	return w.C, w.follow, w.close
}
