package historysql

import (
	"cmp"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history/internal/storeclock"
)

// What a committed batch survives.
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

// minValueBytes is more than a reference to a blob takes.
const minValueBytes = 256

// Options of a store. The zero value is ready to use.
type Options struct {
	// Synchronous is Full or Normal; "" means Full.
	Synchronous string
	// BusyTimeout is how long a write waits for other processes; 0 means 5 s.
	BusyTimeout time.Duration
	// Existing refuses a missing or empty file instead of creating or filling it. It is for callers that need existing
	// runs, and keeps a file that lost its content from being taken for a new one.
	Existing bool
	// ReadOnly opens an existing file without changing it, and refuses an empty one. Calls that write fail. A file of an older version is copied to the temporary folder and read
	// there, as it was when it was opened.
	ReadOnly bool
	// NoBackup migrates an older file without a copy of it; see Migration.
	NoBackup bool
	// Now is the machine's clock and Uptime how long it has been up, with a name of its start; nil means the machine's own. If Now
	// is given, no Uptime is known without this. All processes that share the file must have the same ones. The store's time
	// does not step back with Now, and leases go by Uptime.
	Now    func() time.Time
	Uptime func() (boot string, up time.Duration)
	// Readers is the number of reading connections; 0 means 4.
	Readers int
	// WholeBytes is the size up to which a payload is written whole; 0 means 64 KiB. In a
	// larger payload the state is written as what has changed, and large values become blobs.
	WholeBytes int
	// ValueBytes is the size from which on a value in such a payload becomes a blob, kept once for all records that hold
	// it; 0 means 4 KiB. The least is 256.
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
