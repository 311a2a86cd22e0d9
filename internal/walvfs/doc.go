// Package walvfs writes what a commit adds to an SQLite database's write-ahead log at once, and lets the log grow in steps.
//
// SQLite gives the operating system two writes for every page of a commit: 24 bytes that describe the page, and the page.
// A commit of 25 workflows' steps has 60 pages, and its 120 writes take longer than its flush. A [VFS] stands before
// SQLite's own file system, as https://sqlite.org/vfs.html describes it ("shims"), and gathers these writes, which follow
// each other in the file, into a few.
//
// # What may be gathered
//
// Only what is written between [VFS.Gather] and [VFS.Release], which the caller puts around COMMIT. SQLite holds the lock
// of writers all that time, so nothing that waits here can meet what another connection writes. The page that ends the
// transaction says so, and with it everything is written, before SQLite tells other connections that the log is longer;
// so it does not matter whether it flushes (synchronous FULL) or not (NORMAL); nothing is gathered after it. Anything else
// that is asked of the log in between, reading and flushing above all, is done after what has been gathered was written.
// What a COMMIT that failed has left is forgotten: SQLite writes it again when it commits again.
//
// # How the log grows
//
// A flush of a file that has become longer takes about twice as long as one of a file that has not, because the file system
// has to write down where the new blocks are. That is so until the log is used again from its beginning, after some
// hundred commits: for all of a short session. So a commit that ends where the file ends is followed by zeros, flushed with
// it: as many as the log has bytes, but not more than 256 KiB. They have to be written: space that is only set aside is
// written down block by block when it is used. Whoever reads the log, after a crash too, stops at them, since no page has the
// number 0. Nobody else can have written there, under the same lock. A disk without space for them gets none,
// so that the last 256 KiB of a disk may be the log's and not the database's.
//
// The database itself, its journal, its lock file and other connections are none of its business.
package walvfs
