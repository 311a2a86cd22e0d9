package doctor

import "golang.org/x/sys/unix"

// networks are the magic numbers of network file systems.
var networks = map[int64]string{
	unix.NFS_SUPER_MAGIC: "nfs", unix.SMB_SUPER_MAGIC: "smb", unix.SMB2_SUPER_MAGIC: "smb2", unix.CIFS_SUPER_MAGIC: "cifs",
	unix.AFS_SUPER_MAGIC: "afs", unix.V9FS_MAGIC: "9p", unix.CEPH_SUPER_MAGIC: "ceph",
}

func look(folder string) disk {
	var s unix.Statfs_t
	if err := unix.Statfs(folder, &s); err != nil {
		return disk{}
	}
	return disk{
		known: true, free: s.Bavail * uint64(s.Bsize), network: networks[int64(s.Type)],
		readOnly: unix.Access(folder, unix.W_OK) != nil,
	}
}
