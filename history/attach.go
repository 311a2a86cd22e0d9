package history

import "context"

// Attacher is a Store that takes over from another store what belongs to runs besides their records. All stores of this module implement it.
type Attacher interface {
	// Attach adds links, deliveries with their attempts, and keys, in one transaction. What exists already stays as it is, and what belongs to a
	// run that is not stored is left out: a call may be repeated. It returns how many of each were added.
	Attach(ctx context.Context, a Attachments) (Attached, error)

	// Keys returns all keys of the Keyring by their names.
	Keys(ctx context.Context) (map[string][]byte, error)
}

// Attachments are what another store has, as its Links, ListDeliveries with Bodies, and Keys return it.
type Attachments struct {
	Links      []Link
	Deliveries []Delivery
	Keys       map[string][]byte
}

// Attached counts what was added.
type Attached struct{ Links, Deliveries, Keys int }
