package doctor

import (
	"slices"

	"golang.org/x/sys/unix"
)

func look(folder string) disk {
	var s unix.Statfs_t
	if err := unix.Statfs(folder, &s); err != nil {
		return disk{}
	}
	d := disk{known: true, free: s.Bavail * uint64(s.Bsize), readOnly: unix.Access(folder, unix.W_OK) != nil}
	if name := unix.ByteSliceToString(s.Fstypename[:]); slices.Contains([]string{"nfs", "smbfs", "afpfs", "webdav"}, name) {
		d.network = name
	}
	return d
}
