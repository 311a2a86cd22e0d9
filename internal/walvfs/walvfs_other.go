//go:build !(linux && (amd64 || arm64))

package walvfs

// VFS stands for SQLite's own file system: on this platform nothing is gathered.
type VFS struct{}

// New gives SQLite's own file system.
func New() (*VFS, error) { return &VFS{}, nil }

// Name is "", which is SQLite's own file system.
func (*VFS) Name() string { return "" }

// Gather does nothing.
func (*VFS) Gather() {}

// Release does nothing.
func (*VFS) Release() {}

// Close does nothing.
func (*VFS) Close() {}
