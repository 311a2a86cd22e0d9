package history

import "context"

// Prober is a Store that can try a write.
type Prober interface {
	// Probe commits a write that leaves nothing behind, as it leaves the store as it was. The error is that of a write: STORE_FULL, for
	// instance.
	Probe(ctx context.Context) error
}
