package historysql

import (
	"cmp"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history/internal/storeclock"
)

// Durability of a committed batch.
const (
	// Full survives a power failure: every batch is flushed to the disk.
	Full = "full"
	// Normal survives a crash of the process, and loses the newest batches in a power failure. It is faster.
	Normal = "normal"
)

const (
	defaultBusyTimeout = 5 * time.Second
	defaultReaders     = 4
	defaultWholeBytes  = 64 << 10
	defaultValueBytes  = 4 << 10
)

// minValueBytes is larger than a reference to a blob.
const minValueBytes = 256

// Options configures a store. The zero value is ready to use.
type Options struct {
	// Synchronous is Full or Normal; "" means Full.
	Synchronous string
	// BusyTimeout is how long a write waits for other processes; 0 means 5 s.
	BusyTimeout time.Duration
	// Existing refuses a missing or empty file instead of creating it. Use it if the runs must exist: a file that lost its content is then
	// not mistaken for a new one.
	Existing bool
	// ReadOnly opens an existing file without changing it, and refuses an empty one. Writes fail. A file of an older version is copied to the
	// temporary folder when opened, and read there.
	ReadOnly bool
	// FollowWrites lets watches hear of writes by others from the kernel, on Linux, so that they hear of them within some milliseconds, and an idle
	// process does not poll. Otherwise they look every 50 ms. Within a bubble of testing/synctest a watch that waits for the kernel would stop the
	// time.
	FollowWrites bool
	// NoBackup migrates an older file without copying it; see Migration.
	NoBackup bool
	// Now is the machine's clock; Uptime returns the time since boot and an id of the boot. nil means the real ones, but with a custom Now a
	// nil Uptime means an unknown uptime. All processes that share the file must use the same clocks. The store's time does not step back
	// with Now. Leases use Uptime.
	Now    func() time.Time
	Uptime func() (boot string, up time.Duration)
	// Readers is the number of reading connections; 0 means 4.
	Readers int
	// WholeBytes is the largest payload, in bytes, that is written whole; 0 means 64 KiB. In a larger payload the state is written as a
	// delta, and large values become blobs.
	WholeBytes int
	// ValueBytes is the smallest size of a value in such a payload that becomes a blob, stored once for all records that contain it; 0 means
	// 4 KiB. The minimum is 256.
	ValueBytes int
}

func (o *Options) fill() error {
	if o.Synchronous = cmp.Or(o.Synchronous, Full); o.Synchronous != Full && o.Synchronous != Normal {
		return problem.New(problem.UsageError, "synchronous must be %q or %q, not %q", Full, Normal, o.Synchronous)
	}
	if o.BusyTimeout < 0 || o.Readers < 0 {
		return problem.New(problem.UsageError, "the busy timeout and the number of readers must not be negative")
	}
	if o.WholeBytes < 0 || o.ValueBytes < 0 || o.ValueBytes > 0 && o.ValueBytes < minValueBytes {
		return problem.New(problem.UsageError, "WholeBytes must not be negative, and ValueBytes must be 0 or at least %d",
			minValueBytes)
	}
	o.BusyTimeout = cmp.Or(o.BusyTimeout, defaultBusyTimeout)
	o.Readers = cmp.Or(o.Readers, defaultReaders)
	o.WholeBytes = cmp.Or(o.WholeBytes, defaultWholeBytes)
	o.ValueBytes = cmp.Or(o.ValueBytes, defaultValueBytes)
	if o.Now == nil && o.Uptime == nil {
		o.Uptime = storeclock.OfMachine()
	}
	return nil
}
