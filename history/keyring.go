package history

import "context"

// KeyBytes is the length of a key of a Keyring.
const KeyBytes = 32

// Keyring is a Store that keeps random keys for those who use it. Both stores of this module are.
type Keyring interface {
	// Key returns the key of a name: KeyBytes random bytes, made when they are first asked for, and the same for every process that
	// uses the store and after every restart. A key is not part of any run: exports do not have it, gc leaves it.
	Key(ctx context.Context, name string) ([]byte, error)
}
