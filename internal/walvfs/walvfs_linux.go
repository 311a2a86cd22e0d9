//go:build linux && (amd64 || arm64)

package walvfs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

const (
	// frameHeader is the size of what stands before each page in the log, and commitField where in it the size of the
	// database stands if the page is the last of its transaction, and otherwise 0 (https://sqlite.org/fileformat2.html, 4.1).
	frameHeader = 24
	commitField = 4
	// bufferSize is how much is gathered before it is written: SQLite's own file system writes less than 128 KiB at once.
	bufferSize = 127 << 10
	// The file grows by as much as it has, within these bounds. The commit that it grows with takes 0.1 to 0.4 ms longer.
	minStep, maxStep = 64 << 10, 256 << 10
)

// VFS is a file system of SQLite for one connection.
type VFS struct {
	name  string
	tls   *libc.TLS
	block uintptr // of a block
}

// block is a file system as SQLite knows it, and what open needs. Like logFile it lies in the memory of the C library, where
// SQLite looks for it and Go's collector does not.
type block struct {
	sqlite3.Tsqlite3_vfs
	base      uintptr // the file system that does the work
	log       uintptr // the open log, or 0
	gathering bool
}

// logFile stands behind what the base's file system keeps of an open log.
type logFile struct {
	methods sqlite3.Tsqlite3_io_methods
	base    uintptr // its methods
	block   uintptr // of the file system
	buffer  uintptr
	used    int
	at      int64 // where in the file the buffer begins
	last    bool  // the header that was written says that its page is the last one
	size    int64 // of the file, as far as is known
}

var registered atomic.Int64

// New registers a file system in front of SQLite's own. It has to be closed.
func New() (*VFS, error) { return newBefore("") }

// newBefore is New with the file system of the name given; "" is SQLite's own.
func newBefore(base string) (*VFS, error) {
	v := &VFS{name: fmt.Sprintf("walvfs-%d", registered.Add(1)), tls: libc.NewTLS()}
	if err := v.register(base); err != nil {
		v.free()
		return nil, fmt.Errorf("SQLite's file system: %w", err)
	}
	return v, nil
}

func (v *VFS) register(base string) error {
	var baseName uintptr
	if base != "" {
		var err error
		if baseName, err = libc.CString(base); err != nil {
			return err
		}
		defer libc.Xfree(v.tls, baseName)
	}
	found := sqlite3.Xsqlite3_vfs_find(v.tls, baseName)
	if found == 0 {
		return errors.New("there is none")
	}
	name, err := libc.CString(v.name)
	if err != nil {
		return err
	}
	v.block = libc.Xmalloc(v.tls, libc.Tsize_t(unsafe.Sizeof(block{})))
	if v.block == 0 {
		libc.Xfree(v.tls, name)
		return errors.New("there is no memory for it")
	}
	b := at[block](v.block)
	*b = block{Tsqlite3_vfs: behind(at[sqlite3.Tsqlite3_vfs](found)), base: found}
	b.FzName = name
	b.FszOsFile = int32(logOffset(b) + unsafe.Sizeof(logFile{}))
	b.FxOpen = address(open)
	if rc := sqlite3.Xsqlite3_vfs_register(v.tls, v.block, 0); rc != sqlite3.SQLITE_OK {
		return fmt.Errorf("it is refused (%d)", rc)
	}
	return nil
}

// behind is a file system that does everything as the base does. It is not a copy: SQLite may be changing the base's link to
// the next one, under a lock of its own.
func behind(base *sqlite3.Tsqlite3_vfs) sqlite3.Tsqlite3_vfs {
	return sqlite3.Tsqlite3_vfs{
		FiVersion:          base.FiVersion,
		FszOsFile:          base.FszOsFile,
		FmxPathname:        base.FmxPathname,
		FpAppData:          base.FpAppData,
		FxOpen:             base.FxOpen,
		FxDelete:           base.FxDelete,
		FxAccess:           base.FxAccess,
		FxFullPathname:     base.FxFullPathname,
		FxDlOpen:           base.FxDlOpen,
		FxDlError:          base.FxDlError,
		FxDlSym:            base.FxDlSym,
		FxDlClose:          base.FxDlClose,
		FxRandomness:       base.FxRandomness,
		FxSleep:            base.FxSleep,
		FxCurrentTime:      base.FxCurrentTime,
		FxGetLastError:     base.FxGetLastError,
		FxCurrentTimeInt64: base.FxCurrentTimeInt64,
		FxSetSystemCall:    base.FxSetSystemCall,
		FxGetSystemCall:    base.FxGetSystemCall,
		FxNextSystemCall:   base.FxNextSystemCall,
	}
}

// Name is what the parameter vfs of the connection's URI has to be.
func (v *VFS) Name() string { return v.name }

// Gather begins to gather what the connection writes to the log, up to the last page of the transaction. The caller is
// about to commit.
func (v *VFS) Gather() { at[block](v.block).gathering = true }

// Release ends it. If the commit has failed, what it has left is forgotten.
func (v *VFS) Release() {
	b := at[block](v.block)
	b.gathering = false
	if b.log != 0 {
		logOf(b.log, b).used = 0
	}
}

// Close gives back what New took. The connection has to be closed already; if its log is open nevertheless, because
// SQLite waits for a statement that nobody has closed, the file system stays.
func (v *VFS) Close() {
	if at[block](v.block).log != 0 {
		return
	}
	sqlite3.Xsqlite3_vfs_unregister(v.tls, v.block)
	v.free()
}

func (v *VFS) free() {
	if v.block != 0 {
		libc.Xfree(v.tls, at[block](v.block).FzName)
		libc.Xfree(v.tls, v.block)
		v.block = 0
	}
	v.tls.Close()
}

// open opens a file as the base does, and comes between the log and its methods.
func open(tls *libc.TLS, vfs, name, file uintptr, flags int32, outFlags uintptr) int32 {
	b := at[block](vfs)
	rc := call[func(*libc.TLS, uintptr, uintptr, uintptr, int32, uintptr) int32](at[sqlite3.Tsqlite3_vfs](b.base).FxOpen)(
		tls, b.base, name, file, flags, outFlags)
	if rc != sqlite3.SQLITE_OK || flags&sqlite3.SQLITE_OPEN_WAL == 0 {
		return rc
	}
	opened, l := at[sqlite3.Tsqlite3_file](file), logOf(file, b)
	*l = logFile{
		methods: *at[sqlite3.Tsqlite3_io_methods](opened.FpMethods),
		base:    opened.FpMethods,
		block:   vfs,
		buffer:  libc.Xmalloc(tls, bufferSize),
	}
	if l.buffer == 0 {
		return sqlite3.SQLITE_OK // it works without
	}
	l.methods.FxClose, l.methods.FxRead, l.methods.FxWrite = address(closeLog), address(read), address(write)
	l.methods.FxTruncate, l.methods.FxSync, l.methods.FxFileSize = address(truncate), address(flush), address(fileSize)
	opened.FpMethods = uintptr(unsafe.Pointer(&l.methods))
	b.log = file
	return sqlite3.SQLITE_OK
}

// write is the file's xWrite.
func write(tls *libc.TLS, file, from uintptr, n int32, offset int64) int32 {
	l := logAt(file)
	if !at[block](l.block).gathering || int(n) > bufferSize {
		if rc := l.writeGathered(tls, file); rc != sqlite3.SQLITE_OK {
			return rc
		}
		return l.write(tls, file, from, n, offset)
	}
	if l.used > 0 && (offset != l.at+int64(l.used) || l.used+int(n) > bufferSize) {
		if rc := l.writeGathered(tls, file); rc != sqlite3.SQLITE_OK {
			return rc
		}
	}
	if l.used == 0 {
		l.at = offset
	}
	if offset == 0 { // it begins anew, perhaps because another connection has emptied the file
		l.size = 0
	}
	data := unsafe.Slice(at[byte](from), int(n))
	copy(unsafe.Slice(at[byte](l.buffer), bufferSize)[l.used:], data)
	l.used += int(n)
	if n == frameHeader {
		l.last = binary.BigEndian.Uint32(data[commitField:]) != 0
		return sqlite3.SQLITE_OK
	}
	if !l.last {
		return sqlite3.SQLITE_OK
	}
	l.last = false
	// What still comes, if pages were written before the commit already, are new checksums for them.
	at[block](l.block).gathering = false
	rc := l.writeGathered(tls, file)
	if rc == sqlite3.SQLITE_OK {
		l.grow(tls, file, offset+int64(n))
	}
	return rc
}

// grow makes the file longer if it ends where the transaction does. If there is no space, it stays as long as it has to be.
func (l *logFile) grow(tls *libc.TLS, file uintptr, end int64) {
	if end <= l.size {
		return
	}
	size := uintptr(unsafe.Pointer(&l.size))
	if rc := call[func(*libc.TLS, uintptr, uintptr) int32](l.baseMethods().FxFileSize)(tls, file, size); rc != sqlite3.SQLITE_OK || l.size > end {
		return
	}
	clear(unsafe.Slice(at[byte](l.buffer), bufferSize))
	for step := min(max(end, minStep), maxStep); step > 0; {
		n := min(step, bufferSize)
		if l.write(tls, file, l.buffer, int32(n), l.size) != sqlite3.SQLITE_OK {
			l.size = end
			call[func(*libc.TLS, uintptr, int64) int32](l.baseMethods().FxTruncate)(tls, file, end)
			return
		}
		l.size += n
		step -= n
	}
}

// writeGathered writes what has been gathered.
func (l *logFile) writeGathered(tls *libc.TLS, file uintptr) int32 {
	n := l.used
	if n == 0 {
		return sqlite3.SQLITE_OK
	}
	l.used = 0
	return l.write(tls, file, l.buffer, int32(n), l.at)
}

func (l *logFile) write(tls *libc.TLS, file, from uintptr, n int32, offset int64) int32 {
	return call[func(*libc.TLS, uintptr, uintptr, int32, int64) int32](l.baseMethods().FxWrite)(tls, file, from, n, offset)
}

// read is the file's xRead.
func read(tls *libc.TLS, file, to uintptr, n int32, offset int64) int32 {
	l := logAt(file)
	if rc := l.writeGathered(tls, file); rc != sqlite3.SQLITE_OK {
		return rc
	}
	return call[func(*libc.TLS, uintptr, uintptr, int32, int64) int32](l.baseMethods().FxRead)(tls, file, to, n, offset)
}

// truncate is the file's xTruncate.
func truncate(tls *libc.TLS, file uintptr, size int64) int32 {
	l := logAt(file)
	if rc := l.writeGathered(tls, file); rc != sqlite3.SQLITE_OK {
		return rc
	}
	l.size = 0 // it is looked at when it matters
	return call[func(*libc.TLS, uintptr, int64) int32](l.baseMethods().FxTruncate)(tls, file, size)
}

// flush is the file's xSync.
func flush(tls *libc.TLS, file uintptr, flags int32) int32 {
	l := logAt(file)
	if rc := l.writeGathered(tls, file); rc != sqlite3.SQLITE_OK {
		return rc
	}
	return call[func(*libc.TLS, uintptr, int32) int32](l.baseMethods().FxSync)(tls, file, flags)
}

// fileSize is the file's xFileSize.
func fileSize(tls *libc.TLS, file, size uintptr) int32 {
	l := logAt(file)
	if rc := l.writeGathered(tls, file); rc != sqlite3.SQLITE_OK {
		return rc
	}
	return call[func(*libc.TLS, uintptr, uintptr) int32](l.baseMethods().FxFileSize)(tls, file, size)
}

// closeLog is the file's xClose.
func closeLog(tls *libc.TLS, file uintptr) int32 {
	l := logAt(file)
	at[block](l.block).log = 0
	libc.Xfree(tls, l.buffer)
	at[sqlite3.Tsqlite3_file](file).FpMethods = l.base
	return call[func(*libc.TLS, uintptr) int32](l.baseMethods().FxClose)(tls, file)
}

func (l *logFile) baseMethods() *sqlite3.Tsqlite3_io_methods {
	return at[sqlite3.Tsqlite3_io_methods](l.base)
}

// logAt gives the logFile of an open log: its methods are the first thing in it.
func logAt(file uintptr) *logFile {
	return at[logFile](at[sqlite3.Tsqlite3_file](file).FpMethods)
}

// logOf gives the place for the logFile of a file of the file system.
func logOf(file uintptr, b *block) *logFile { return at[logFile](file + logOffset(b)) }

// logOffset is where in a file the logFile lies.
func logOffset(b *block) uintptr {
	const alignment = 8
	size := uintptr(at[sqlite3.Tsqlite3_vfs](b.base).FszOsFile)
	return (size + alignment - 1) &^ (alignment - 1)
}

// at is the value at an address of the C library's memory.
func at[T any](address uintptr) *T { return (*T)(*(*unsafe.Pointer)(unsafe.Pointer(&address))) }

// address is that of a function in the form in which translated C keeps it; call is its counterpart. The functions of this
// package are no closures, so nothing has to be kept alive.
func address[F any](f F) uintptr { return *(*uintptr)(unsafe.Pointer(&f)) }

func call[F any](address uintptr) F {
	return *(*F)(unsafe.Pointer(&struct{ address uintptr }{address}))
}
