package history

import "context"

// Watcher is a Store that notices what other processes write.
type Watcher interface {
	// Watch calls changed with runs to which records were appended, by any process, and the seq of the last of them. It
	// returns nil when ctx ends, or the store's error. A call of changed is a hint: it may come twice, late or never.
	// changed must return soon and must not close the store.
	Watch(ctx context.Context, changed func(executionID string, seq int64)) error
}
