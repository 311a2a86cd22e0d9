package historypg

import (
	"cmp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Durability of a committed batch.
const (
	// Full survives a crash of the server: every commit is flushed to the disk (synchronous_commit = on).
	Full = "full"
	// Normal loses the commits of the last moments if the server crashes, up to three times its wal_writer_delay of 0.2 s
	// (synchronous_commit = off). A crash of a process loses nothing. It is faster.
	Normal = "normal"
)

const (
	// DefaultSchema is the schema if the options name no other.
	DefaultSchema = "workflows_engine"

	defaultConns      = 8
	defaultWholeBytes = 64 << 10
	defaultValueBytes = 4 << 10
	// minValueBytes is larger than a reference to a blob.
	minValueBytes = 256
	// maxSchema is the maximum length of a name in PostgreSQL, in bytes.
	maxSchema = 63
)

// Options configures a store. The zero value is ready to use.
type Options struct {
	// Schema is the schema of the database that holds the tables; "" means DefaultSchema. Stores in different schemas share nothing.
	Schema string
	// Conns is the maximum number of connections of this process; 0 means 8. A watch uses one more.
	Conns int
	// Existing refuses a schema without a store (STORE_UNAVAILABLE) instead of creating the tables.
	Existing bool
	// ReadOnly opens an existing store without changing it. Writes fail with STORE_READ_ONLY. The URL may name a replica.
	ReadOnly bool
	// NoMigrate refuses a store of an older version (STORE_UNAVAILABLE) instead of migrating it, and does not create one.
	NoMigrate bool
	// NoNotify neither sends nor awaits notifications, which need a session: set it behind a transaction pooler. Watches then ask the server
	// every 100 ms. It is implied by default_query_exec_mode=exec or simple_protocol in the URL.
	NoNotify bool
	// Synchronous is Full or Normal; "" means Full. Behind a transaction pooler only the server's own setting has an effect, and Normal is
	// refused.
	Synchronous string
	// WholeBytes is the largest payload, in bytes, that is written whole; 0 means 64 KiB. In a larger payload the state is written as a
	// delta, and large values become blobs.
	WholeBytes int
	// ValueBytes is the smallest size of a value in such a payload that becomes a blob, stored once for all records of the run that contain
	// it; 0 means 4 KiB. The minimum is 256.
	ValueBytes int
	// Version is the version of the program. The server shows it in the name of the application, "workflows-engine/VERSION".
	Version string
	// Now replaces the server's clock in tests; nil means the server's clock. All processes that share the store must use the same clock.
	Now func() time.Time
}

func (o *Options) fill() error {
	if o.Synchronous = cmp.Or(o.Synchronous, Full); o.Synchronous != Full && o.Synchronous != Normal {
		return problem.New(problem.UsageError, "synchronous must be %q or %q, not %q", Full, Normal, o.Synchronous)
	}
	if o.Conns < 0 {
		return problem.New(problem.UsageError, "the number of connections must not be negative: %d", o.Conns)
	}
	if o.WholeBytes < 0 || o.ValueBytes < 0 || o.ValueBytes > 0 && o.ValueBytes < minValueBytes {
		return problem.New(problem.UsageError, "WholeBytes must not be negative, and ValueBytes must be 0 or at least %d", minValueBytes)
	}
	o.Schema = cmp.Or(o.Schema, DefaultSchema)
	if len(o.Schema) > maxSchema || !utf8.ValidString(o.Schema) || strings.ContainsFunc(o.Schema, func(r rune) bool { return r < ' ' }) ||
		strings.HasPrefix(o.Schema, "pg_") || o.Schema == "information_schema" {
		return problem.New(problem.UsageError, "%q cannot be the name of a schema", o.Schema).
			WithHint("Use at most %d letters, digits and underscores, such as %s.", maxSchema, DefaultSchema)
	}
	o.Conns = cmp.Or(o.Conns, defaultConns)
	o.WholeBytes = cmp.Or(o.WholeBytes, defaultWholeBytes)
	o.ValueBytes = cmp.Or(o.ValueBytes, defaultValueBytes)
	return nil
}
