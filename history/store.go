package history

import (
	"context"
	"time"
)

// Store keeps the histories of runs. Implementations: historysql (SQLite) and historymem. Both pass the tests in
// historytest. All methods are safe for concurrent use, by several processes too where the store is a file.
//
// An id is compared byte by byte. A run begins under an id that is UTF-8 and has at most MaxIDBytes bytes, U+0000 and
// spaces included; a call for any other id finds no run. A store keeps times in milliseconds and returns them in UTC.
//
// Errors are *problem.Error: HISTORY_CONFLICT, LEASE_HELD, HISTORY_VERSION_UNSUPPORTED, HISTORY_CORRUPT,
// EXECUTION_NOT_FOUND, INVALID_LIST_CURSOR, VALIDATION_ERROR (a negative limit, or an id that no run may have),
// DEFINITION_REQUIRED (unknown definition), DELIVERY_NOT_FOUND, STORE_LOCKED, STORE_FULL, STORE_READ_ONLY, STORE_UNAVAILABLE,
// STORE_OUTCOME_UNKNOWN (a write that may be stored or not) and INTERNAL_ERROR, which wraps the context's error where that ended
// the call. A write that has begun to commit is not cancelled.
type Store interface {
	// Append adds a batch to one run's history in one durable transaction: all of it or nothing. A batch that Batch.Check
	// refuses is refused. Append fails with HISTORY_CONFLICT if the run's last seq is not b.ExpectedSeq; else with
	// LEASE_HELD if b.Owner is set and another process whose lease has not run out owns the run. A batch that is refused
	// changes nothing.
	// The given records' Seq members are ignored; the store assigns ExpectedSeq+1, ExpectedSeq+2, … The slice b.Records is
	// the caller's again afterwards; the values in it stay as they are.
	Append(ctx context.Context, b Batch) error

	// Read returns the records of a run with seq >= fromSeq in order, at most limit (0: all). An unknown run has none.
	// Records of one call may share values with each other, with nothing else.
	Read(ctx context.Context, executionID string, fromSeq int64, limit int) ([]Record, error)

	// Execution returns a run's projection, brought up to date if another engine wrote to its history.
	// EXECUTION_NOT_FOUND if the run has no records.
	Execution(ctx context.Context, executionID string) (Execution, error)

	// Position returns the newest stored machine position of a run: the seq it belongs to and its bytes; seq 0 and nil
	// if there is none.
	Position(ctx context.Context, executionID string) (seq int64, data []byte, err error)

	// Tree returns what a run and all subworkflows below it have used, by their projections as they are stored: what another
	// engine has just written counts once the projection includes it. An unknown run has used nothing. It takes time in
	// proportion to the number of these runs.
	Tree(ctx context.Context, executionID string) (TreeUse, error)

	// List returns a page of runs, newest first: by UpdatedAt, and by id byte by byte where that is equal.
	List(ctx context.Context, q ListQuery) (ListPage, error)

	// Definition returns a stored definition by its hash. DEFINITION_REQUIRED if it is not stored.
	Definition(ctx context.Context, hash string) (StoredDefinition, error)

	// DefinitionByName returns the definition stored last under a document name, of that version if version is not "".
	DefinitionByName(ctx context.Context, name, version string) (StoredDefinition, error)

	// PutDefinition stores a definition. Storing the same hash again adds its signatures to the stored ones (AddSignatures), and changes
	// nothing else.
	PutDefinition(ctx context.Context, d StoredDefinition) error

	// DueTimers returns the timers due at or before now, earliest first, at most limit (0: all). Their ExecutionID is set.
	DueTimers(ctx context.Context, now time.Time, limit int) ([]Timer, error)

	// NextTimer returns the earliest due time of all timers; ok is false when there is none.
	NextTimer(ctx context.Context) (due time.Time, ok bool, err error)

	// Now returns the store's time, by which it judges leases.
	Now(ctx context.Context) (time.Time, error)

	// Renew makes the lease of a process last for ttl from now, rounded up to the millisecond. It begins a lease that does
	// not exist or has run out; runs that another process has claimed meanwhile stay that process's. A process has a name
	// that is not "" and that no other process has, before or after it.
	Renew(ctx context.Context, process string, ttl time.Duration) error

	// Release ends the lease of a process at once: others can claim the runs that it owns. Until one does, the runs keep
	// its name. A lease that does not exist or has run out stays as it is.
	Release(ctx context.Context, process string) error

	// Claim makes process the owner of those of the runs that exist, have not ended and are owned by no other process
	// whose lease has not run out. It returns the runs that process owns now, in the order given. It is one transaction.
	// A process renews its lease before it claims: anybody may claim the runs of a process without one.
	Claim(ctx context.Context, process string, executionIDs ...string) (claimed []string, err error)

	// Disown gives up those of the runs that process owns, in one transaction.
	Disown(ctx context.Context, process string, executionIDs ...string) error

	// Owner returns who owns a run: the zero Owner for a run that is unknown, has ended or was never owned.
	Owner(ctx context.Context, executionID string) (Owner, error)

	// Owned returns the runs that a process owns, with the seq of the last record of each.
	Owned(ctx context.Context, process string) (map[string]int64, error)

	// Departed returns, in order, the processes that own runs and whose lease has run out or was released. It is asked
	// every second, so it costs next to nothing while there are none.
	Departed(ctx context.Context) ([]string, error)

	// Unowned returns the ids of runs that need a driver (Execution.Orphaned) and that no process whose lease has not run
	// out owns, at most limit (0: all). The run that has been without a driver longest comes first: since the lease of its
	// owner ended, else since it was disowned, else since its last record. Runs that wait for a host, a person, a signal
	// or a timer need no driver.
	Unowned(ctx context.Context, limit int) ([]string, error)

	// Links returns the links that a run is an end of, the oldest first: of the runs that have begun with its past, and of the run that it has
	// begun with the past of. They last as long as both runs.
	Links(ctx context.Context, executionID string) ([]Link, error)

	// Handle marks a run that has failed or was cancelled as handled, in place of an earlier mark. A run is marked too, unless it is already,
	// in the transaction in which a retry of its work completes, or in which it fails or is cancelled itself after one has: all runs that are tied
	// by retries, sisters too, do one work. A mark lasts as long as its run. EXECUTION_NOT_FOUND for an
	// unknown run, VALIDATION_ERROR for one in another phase or for a note that Handling.Check refuses.
	Handle(ctx context.Context, h Handling) error

	// Unhandle takes the mark off a run. A run that has none stays as it is. EXECUTION_NOT_FOUND for an unknown run.
	Unhandle(ctx context.Context, executionID string) error

	// Handled returns the marks of those of the runs that are handled, by their ids. A subworkflow has that of the run at the root of its tree,
	// unless it has one of its own.
	Handled(ctx context.Context, executionIDs ...string) (map[string]Handling, error)

	// DueDeliveries returns the pending deliveries to a target that are due at or before now and that no process is sending, the one
	// that has been due longest first, at most limit (0: all). They are without bodies.
	DueDeliveries(ctx context.Context, target string, now time.Time, limit int) ([]Delivery, error)

	// ClaimDelivery begins an attempt, which is stored with it, and keeps others from the delivery until the attempt is settled or
	// c.TTL is over by the store's clock. claimed is false if the delivery is not pending any more, another process is sending it,
	// or c.Attempt is not the number of its next attempt; and if it does not exist.
	ClaimDelivery(ctx context.Context, c DeliveryClaim) (d Delivery, claimed bool, err error)

	// SettleDelivery ends an attempt. A delivery that is not pending any more, or whose newest attempt is another one by now, keeps
	// its state, due time and step, unless the attempt has delivered it. DELIVERY_NOT_FOUND if it does not exist.
	SettleDelivery(ctx context.Context, s Settlement) error

	// ListDeliveries returns a page of deliveries, the newest first, with their attempts and without bodies.
	ListDeliveries(ctx context.Context, q DeliveryQuery) (DeliveryPage, error)

	// RequeueDelivery makes a delivery, whatever its state, pending again, due at a time, with all of its steps before it.
	// DELIVERY_NOT_FOUND if it does not exist.
	RequeueDelivery(ctx context.Context, deliveryID string, due time.Time) error

	Close() error
}

// Batch is what Append commits together.
type Batch struct {
	ExecutionID string
	// ExpectedSeq is the seq of the run's last record, 0 for a new run.
	ExpectedSeq int64
	// Records to add, in order. CreatedAt must be set; what is finer than a millisecond is cut off. Without any, nothing but
	// the timers and the position of a run that exists is replaced: SetTimers must be true, and neither an owner nor a
	// definition may be given.
	Records []Record
	// Execution is the projection as it is after Records; see Execution.Apply.
	Execution Execution
	// Prior is the run's state as it is before Records, which lets a store write a large state as what has changed.
	Prior Prior
	// Bytes, when not nil, is set to the run's Execution.Bytes after the batch; a batch that is refused leaves it alone. A
	// store may add what the batch takes to Execution.Bytes of the batch, which is what it returned before.
	Bytes *int64
	// Definition is stored along when not nil, and so are Subworkflows, the definitions that Payload.Subworkflows names.
	Definition   *StoredDefinition
	Subworkflows []StoredDefinition
	// Position is the machine's position after Records; nil keeps the stored one, which then belongs to an older seq.
	// A batch that ends the run drops it.
	Position []byte
	// Timers is the complete set of the run's open timers after Records when SetTimers is true; otherwise the stored
	// set is kept. A batch that ends the run drops them. Their ExecutionID is ignored: they are timers of this run.
	SetTimers bool
	Timers    []Timer
	// Owner, when not "", is the process that appends as the run's owner. The append claims the run for it, unless the
	// batch ends the run. It is refused with LEASE_HELD if another process whose lease has not run out owns the run. An
	// owner may append after its own lease has run out, as long as nobody has claimed the run; an append never renews a
	// lease. With "" the run keeps the owner that it has. A batch that ends the run leaves it without an owner.
	Owner string
	// Disown gives the run up in the same transaction. Owner must be set.
	Disown bool
	// Deliveries are the events that the records bring, for each target one. Their ExecutionID, Seq, State, Step and Attempts are
	// ignored: they are pending deliveries of this run. Those of one event share its EventID and Body.
	Deliveries []Delivery
	// Link, for the batch that begins a run, says of which other one it has its past. A retry is refused with ALREADY_RETRIED while another
	// one of the same work (see Retries) is open or has completed, unless Again is set.
	Link *Link
}

// Prior is the state that a stored StateUpdated holds. The zero value says nothing; large states are then stored whole.
type Prior struct {
	// Seq is that of the run's newest StateUpdated before the batch.
	Seq int64
	// State is equal to what the record holds. The new states may share parts with it, and it is compared with them by
	// identity first: neither may have been changed in place since it was read or written.
	State map[string]any
}

// Timer is an open timer of a run.
type Timer struct {
	ExecutionID string
	// Key is the machine's name of the timer, UTF-8 and unique within the run.
	Key string
	// Due is stored rounded up to the millisecond: a timer is never early.
	Due time.Time
}

// StoredDefinition is a definition as kept beside the histories.
type StoredDefinition struct {
	// Hash is the definition hash; Text is the canonical JSON it is computed over.
	Hash    string
	Name    string
	Version string
	Text    []byte
	// Signatures are the signature blocks with which the definition came, the first first, each a JSON object without line ends; nil if
	// it never had any. The store does not verify them.
	Signatures [][]byte
}

// ListQuery selects runs. Zero values do not filter.
type ListQuery struct {
	// Phase and Phases select the runs in any of these; see OpenPhases and EndedPhases.
	Phase          Phase
	Phases         []Phase
	DefinitionName string
	// Below selects the subworkflows below this run, at any depth.
	Below string
	// Roots leaves subworkflows out.
	Roots bool
	// Unhandled leaves out runs that are handled.
	Unhandled bool
	// Labels are those that a run has, each with this value; with "" the run has the label with any value.
	Labels map[string]string
	// UpdatedAfter and UpdatedBefore are inclusive.
	UpdatedAfter, UpdatedBefore time.Time
	// Limit is 1 to 100; 0 means 50.
	Limit int
	// Cursor is ListPage.NextCursor of the page before.
	Cursor string
}

// ListPage is one page of runs.
type ListPage struct {
	Executions []Execution
	// NextCursor is "" on the last page; otherwise "<updated_at>|<execution_id>" of the last item.
	NextCursor string
}

// Prober is a Store that can try a write.
type Prober interface {
	// Probe commits a write that leaves nothing behind, as it leaves the store as it was. The error is that of a write: STORE_FULL, for
	// instance.
	Probe(ctx context.Context) error
}

// Watcher is a Store that notices what other processes write.
type Watcher interface {
	// Watch calls changed with runs to which records were appended, by any process, and the seq of the last of them. It
	// returns nil when ctx ends, or the store's error. A call of changed is a hint: it may come twice, late or never.
	// changed must return soon and must not close the store.
	Watch(ctx context.Context, changed func(executionID string, seq int64)) error
}

// KeyBytes is the length of a key of a Keyring.
const KeyBytes = 32

// Keyring is a Store that keeps random keys for those who use it. Both stores of this module are.
type Keyring interface {
	// Key returns the key of a name: KeyBytes random bytes, made when they are first asked for, and the same for every process that
	// uses the store and after every restart. A key is not part of any run: exports do not have it, gc leaves it.
	Key(ctx context.Context, name string) ([]byte, error)
}

// Wrap returns a store that answers as outer, which calls inner, and that keeps inner's optional interfaces (Importer, Keyring,
// Prober, Pruner, Shrinker, Verifier, Watcher) where outer does not implement them. A struct that embeds a Store, for metrics or faults, has
// none of them by itself: it could not be pruned or verified.
//
//	store = history.Wrap(timed{Store: store}, store)
func Wrap(outer, inner Store) Store { return wrapped{outer, inner} }

type wrapped struct {
	Store
	inner Store
}

// As returns a store as an optional interface T, if it has it: the store itself, or one that was wrapped.
func As[T any](s Store) (T, bool) {
	for {
		w, ok := s.(wrapped)
		if !ok {
			t, ok := s.(T)
			return t, ok
		}
		if t, ok := As[T](w.Store); ok {
			return t, true
		}
		s = w.inner
	}
}
