package history

import (
	"context"
	"encoding/json"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Store keeps the histories of runs. Implementations: historysql (SQLite) and historymem. Both pass the tests in historytest. All methods are
// safe for concurrent use, also by several processes if the store is a file.
//
// Ids are compared byte by byte. A new run's id must be UTF-8 of at most MaxIDBytes bytes, and may contain U+0000 and spaces; a call with any
// other id finds no run. A store keeps times in milliseconds and returns them in UTC.
//
// Errors are *problem.Error: HISTORY_CONFLICT, LEASE_HELD, HISTORY_VERSION_UNSUPPORTED, HISTORY_CORRUPT, EXECUTION_NOT_FOUND,
// INVALID_LIST_CURSOR, VALIDATION_ERROR (a negative limit, or an invalid id), DEFINITION_REQUIRED (unknown definition), DELIVERY_NOT_FOUND,
// STORE_LOCKED, STORE_FULL, STORE_READ_ONLY, STORE_UNAVAILABLE, STORE_OUTCOME_UNKNOWN (a write that may be stored or not) and INTERNAL_ERROR,
// which wraps the context's error if that ended the call. A write that has begun to commit is not cancelled.
type Store interface {
	// Append adds a batch to one run's history in one durable transaction, all or nothing. It first returns the error of Batch.Check, if any.
	// It returns HISTORY_CONFLICT if the run's last seq is not b.ExpectedSeq, else LEASE_HELD if b.Owner is set and another process with a
	// live lease owns the run. A refused batch changes nothing. Append ignores the Seq of the given records and assigns ExpectedSeq+1,
	// ExpectedSeq+2, … The caller may reuse the slice b.Records afterwards, but must not change the values in it.
	Append(ctx context.Context, b Batch) error

	// Read returns the records of a run with seq >= fromSeq in order, at most limit (0: all). An unknown run has no records. Records of one
	// call may share values with each other, but not with other data.
	Read(ctx context.Context, executionID string, fromSeq int64, limit int) ([]Record, error)

	// Execution returns a run's projection, updated if another engine wrote to its history. It returns EXECUTION_NOT_FOUND if the run has no
	// records.
	Execution(ctx context.Context, executionID string) (Execution, error)

	// Position returns the newest stored machine position of a run: its seq and its bytes; 0 and nil without a position.
	Position(ctx context.Context, executionID string) (seq int64, data []byte, err error)

	// Tree returns the total use of a run and all subworkflows below it, from the stored projections: records of another engine count once
	// the projection includes them. The use of an unknown run is zero. The time is proportional to the number of these runs.
	Tree(ctx context.Context, executionID string) (TreeUse, error)

	// List returns a page of runs, newest first: by UpdatedAt; runs with equal times are ordered by id, byte by byte. With q.Oldest the
	// times ascend.
	List(ctx context.Context, q ListQuery) (ListPage, error)

	// Count returns how many runs a query selects, but at most most, which must not be negative: the time is proportional to most. It ignores
	// Limit, Cursor and Oldest.
	Count(ctx context.Context, q ListQuery, most int) (int, error)

	// Definition returns a stored definition by its hash. It returns DEFINITION_REQUIRED for an unknown hash.
	Definition(ctx context.Context, hash string) (StoredDefinition, error)

	// DefinitionByName returns the definition stored last under a document name and, if version is not "", with that version.
	DefinitionByName(ctx context.Context, name, version string) (StoredDefinition, error)

	// Definitions returns a page of the stored definitions, newest first: the one stored last comes first. limit and cursor are as in
	// ListQuery.
	Definitions(ctx context.Context, cursor string, limit int) (DefinitionPage, error)

	// PutDefinition stores a definition. If the hash is stored already, only new signatures are added (AddSignatures).
	PutDefinition(ctx context.Context, d StoredDefinition) error

	// DueTimers returns the timers due at or before now, earliest first, at most limit (0: all). Their ExecutionID is set.
	DueTimers(ctx context.Context, now time.Time, limit int) ([]Timer, error)

	// Now returns the store's time, which decides when leases end.
	Now(ctx context.Context) (time.Time, error)

	// Renew makes the lease of a process last for ttl from now, rounded up to the millisecond. It begins a lease if the process has no live
	// one. Runs that another process has claimed meanwhile stay with that process. The name of a process is not "" and is never used by
	// another process.
	Renew(ctx context.Context, process string, ttl time.Duration) error

	// Release ends the lease of a process at once: other processes can claim its runs. Until then, the process remains their recorded owner.
	// Release does nothing without a live lease.
	Release(ctx context.Context, process string) error

	// Claim makes process the owner of the given runs, except runs that do not exist, have ended, or are owned by another process with a live
	// lease. It returns the given runs that process now owns, in the order given. It is one transaction. A process must renew its lease
	// before it claims: any process may claim the runs of a process without a lease.
	Claim(ctx context.Context, process string, executionIDs ...string) (claimed []string, err error)

	// Disown gives up the given runs, as far as process owns them, in one transaction.
	Disown(ctx context.Context, process string, executionIDs ...string) error

	// Owner returns the owner of a run: the zero Owner for a run that is unknown, has ended or was never owned.
	Owner(ctx context.Context, executionID string) (Owner, error)

	// Owned returns the runs that a process owns, with the seq of each run's last record.
	Owned(ctx context.Context, process string) (map[string]int64, error)

	// Overview answers the questions that a process repeats, in one read; process is its name, "" before it has one. Idle workers call it
	// every second, so it must cost almost nothing.
	Overview(ctx context.Context, process string) (Overview, error)

	// Unowned returns the ids of runs that need a driver (Execution.Orphaned) and are not owned by a process with a live lease, at most limit
	// (0: all). Runs that have been without a driver longest come first: since the end of their owner's lease, else since they were disowned,
	// else since their last record. Runs that wait for a host, a person, a signal or a timer need no driver. Ready runs are
	// omitted; see Queue.
	Unowned(ctx context.Context, limit int) ([]string, error)

	// Links returns the links that start or end at a run, oldest first: to its forks and retries, and from its origin. A link exists as long
	// as both runs.
	Links(ctx context.Context, executionID string) ([]Link, error)

	// Handle marks a failed or cancelled run as handled, and replaces an earlier mark. The store also marks an unmarked run when a retry of
	// its work completes, or when the run itself fails or is cancelled after such a completion, in the same transaction. All runs connected
	// by retries, siblings included, do the same work. A mark lasts as long as its run. Handle returns EXECUTION_NOT_FOUND for an unknown
	// run, and VALIDATION_ERROR for a run in another phase or for a note that Handling.Check refuses.
	Handle(ctx context.Context, h Handling) error

	// Unhandle removes the mark of a run, if any. It returns EXECUTION_NOT_FOUND for an unknown run.
	Unhandle(ctx context.Context, executionID string) error

	// Handled returns the marks of the handled runs among the given ones, by id. A subworkflow without a mark has the mark of its tree's
	// root.
	Handled(ctx context.Context, executionIDs ...string) (map[string]Handling, error)

	// DueDeliveries returns the pending deliveries to a target that are due at or before now and not being sent, longest due first, at most
	// limit (0: all). They omit the bodies.
	DueDeliveries(ctx context.Context, target string, now time.Time, limit int) ([]Delivery, error)

	// ClaimDelivery begins an attempt and stores it. Other processes cannot claim the delivery until the attempt is settled or c.TTL has
	// passed by the store's clock. claimed is false if the delivery does not exist, is no longer pending or is being sent by another process,
	// or if c.Attempt is not the number of its next attempt.
	ClaimDelivery(ctx context.Context, c DeliveryClaim) (d Delivery, claimed bool, err error)

	// SettleDelivery ends an attempt. If the delivery is no longer pending or has a newer attempt, its state, due time and step stay
	// unchanged, unless the attempt delivered it. It returns DELIVERY_NOT_FOUND for an unknown delivery.
	SettleDelivery(ctx context.Context, s Settlement) error

	// ListDeliveries returns a page of deliveries, newest first, with their attempts.
	ListDeliveries(ctx context.Context, q DeliveryQuery) (DeliveryPage, error)

	// RequeueDelivery makes a delivery in any state pending again, with a due time and a Step of 0. It returns DELIVERY_NOT_FOUND for an
	// unknown delivery.
	RequeueDelivery(ctx context.Context, deliveryID string, due time.Time) error

	Close() error
}

// Batch is the input of one Append, committed as a whole.
type Batch struct {
	ExecutionID string
	// ExpectedSeq is the seq of the run's last record, 0 for a new run.
	ExpectedSeq int64
	// Records are the records to add, in order. CreatedAt must be set and is truncated to milliseconds. A batch without records only replaces
	// the timers and the position of an existing run: SetTimers must be true, and Owner and the definitions must be empty.
	Records []Record
	// Execution is the projection after Records; see Execution.Apply.
	Execution Execution
	// Prior is the run's state before Records. It allows a store to write a large state as a difference.
	Prior Prior
	// Bytes, unless nil, is set to the run's Execution.Bytes after the batch; a refused batch does not change it. A store may compute it by
	// adding the size of the batch to Execution.Bytes of this batch, which is the value that the store returned before.
	Bytes *int64
	// Definition is stored too unless nil, and so are Subworkflows, the definitions named in Payload.Subworkflows.
	Definition   *StoredDefinition
	Subworkflows []StoredDefinition
	// Position is the machine's position after Records; nil keeps the stored one, which then belongs to an older seq. A batch that ends the
	// run deletes it.
	Position []byte
	// Timers is the complete set of the run's open timers after Records if SetTimers is true; otherwise the stored set is kept. A batch that
	// ends the run deletes them. Their ExecutionID is ignored.
	SetTimers bool
	Timers    []Timer
	// Owner, unless "", is the process that appends as the run's owner. The append claims the run for this process, unless the batch ends the
	// run. It is refused with LEASE_HELD if another process with a live lease owns the run. An owner may append after the end of its own
	// lease, until another process claims the run; an append never renews a lease. With "" the run keeps its owner. A batch that ends the run
	// removes the owner.
	Owner string
	// Disown gives the run up in the same transaction. Owner must be set.
	Disown bool
	// Ready, unless nil, makes the run ready if it is open and has no owner after the batch; see Queue. A run that has been ready keeps its
	// turn, unless its lane or priority changes. A store without a Queue ignores it.
	Ready *Ready
	// Deliveries are the events of the records, one delivery for each target. Their ExecutionID, Seq, State, Step and Attempts are ignored:
	// they are pending deliveries of this run. Deliveries of one event share its EventID and Body.
	Deliveries []Delivery
	// Link, for the batch that begins a fork or retry, names its origin. A retry is refused with ALREADY_RETRIED while another retry of the
	// same work (see Retries) is open or has completed, unless Again is set.
	Link *Link
}

// Prior is the state of a stored StateUpdated. With the zero value, large states are stored whole.
type Prior struct {
	// Seq is the seq of the run's newest StateUpdated before the batch.
	Seq int64
	// State equals the state in the record. The new states may share parts with it, and are compared with it by identity first: do not change
	// either in place after reading or writing it.
	State map[string]any
}

// Timer is an open timer of a run.
type Timer struct {
	ExecutionID string
	// Key is the machine's name of the timer, UTF-8 and unique within the run.
	Key string
	// Due is stored rounded up to the millisecond, so that a timer is never early.
	Due time.Time
}

// StoredDefinition is a definition as stored beside the histories.
type StoredDefinition struct {
	// Hash is the definition hash; Text is the canonical JSON that is hashed.
	Hash    string
	Name    string
	Version string
	Text    []byte
	// Signatures are the definition's signature blocks in the order of arrival, each a JSON object without line ends; nil if it never had a
	// signature. The store does not verify them.
	Signatures [][]byte
}

// DefinitionEntry describes a stored definition without its text.
type DefinitionEntry struct {
	Hash, Name, Version string
	// StoredAt is the store's time when the definition was stored first; zero if unknown, as for definitions stored by older versions.
	StoredAt time.Time
}

// DefinitionPage is one page of definitions.
type DefinitionPage struct {
	Definitions []DefinitionEntry
	// NextCursor is "" on the last page.
	NextCursor string
}

// ListQuery selects runs. Zero values do not filter.
type ListQuery struct {
	// Phase and Phases select the runs in any of these phases; see OpenPhases and EndedPhases.
	Phase          Phase
	Phases         []Phase
	DefinitionName string
	// Below selects the subworkflows below this run, at any depth.
	Below string
	// Roots omits subworkflows.
	Roots bool
	// Unhandled omits handled runs.
	Unhandled bool
	// Ready selects ready runs; see Queue. A store without a queue has no ready runs.
	Ready bool
	// Labels selects the runs that have all these labels with these values; "" matches any value.
	Labels map[string]string
	// UpdatedAfter and UpdatedBefore are inclusive.
	UpdatedAfter, UpdatedBefore time.Time
	// Oldest lists the runs that changed longest ago first.
	Oldest bool
	// Limit is 1 to 100; 0 means 50.
	Limit int
	// Cursor is ListPage.NextCursor of the previous page. A cursor of a list in the other order is invalid.
	Cursor string
}

// ListPage is one page of runs.
type ListPage struct {
	Executions []Execution
	// NextCursor is "" on the last page; otherwise Cursor.String of the last item.
	NextCursor string
}

// Prober is a Store that can test a write.
type Prober interface {
	// Probe commits a write that does not change any data. It returns the error of the write, such as STORE_FULL.
	Probe(ctx context.Context) error
}

// Watcher is a Store that notices the writes of other processes.
type Watcher interface {
	// Watch calls changed for each run that any process has appended to, with the seq of its last record. It returns nil when ctx ends, or
	// the store's error; UNSUPPORTED_BY_BACKEND if the store was opened in a way that it cannot notice writes. A call of changed is a hint: it
	// may come twice, late or never. changed must return soon and must not close the store.
	Watch(ctx context.Context, changed func(executionID string, seq int64)) error
}

// Follower is a Store that may read a replica of its database.
type Follower interface {
	// Lag tells how far behind the original the data are that the store reads.
	Lag(ctx context.Context) (Lag, error)
}

// Lag describes what a store reads.
type Lag struct {
	// Replica is false if the store reads the original.
	Replica bool
	// Behind is the most that the replica can be behind; 0 if it has everything that it has received from an original that it follows. Known is false if
	// the replica cannot tell.
	Behind time.Duration
	Known  bool
}

// String describes a replica, as in "at most 3s behind".
func (l Lag) String() string {
	switch {
	case !l.Known:
		return "behind by an unknown time"
	case l.Behind <= 0:
		return "up to date"
	case l.Behind < time.Second:
		return "less than 1s behind"
	}
	return "at most " + l.Behind.Round(time.Second).String() + " behind"
}

// Roster is a Store that lists its processes. Both stores of this module implement it.
type Roster interface {
	// Processes returns the processes with a live lease, in the order of their names.
	Processes(ctx context.Context) ([]Process, error)
	// Describe replaces the description of a process with a live lease. It does nothing for any other process.
	Describe(ctx context.Context, process string, a About) error
}

// Process is a process with a live lease.
type Process struct {
	Name string
	// Left is the remaining time of its lease by the store's clock.
	Left time.Duration
	// Runs is the number of open runs that it owns.
	Runs int
	// About is the last description; zero without one, as for processes of older versions.
	About
}

// About is how a process describes itself to others.
type About struct {
	// Host is the name of its machine, PID its number there.
	Host string `json:"host,omitempty"`
	PID  int    `json:"pid,omitempty"`
	// Version is that of its program.
	Version string `json:"version,omitempty"`
	// Started is the time of its start.
	Started time.Time `json:"started,omitzero"`
	// Work tells which runs it performs: "own", "all" or "none".
	Work string `json:"work,omitempty"`
	// Queues are the queues that it serves; nil means all.
	Queues []string `json:"queues,omitempty"`
	// Performs names the executors that it has, such as "step:charge", in order; a name without ":" stands for all of its kind, one that ends
	// in ":" for nodes of its kind that name no handler, server or agent.
	Performs []string `json:"performs,omitempty"`
	// Lacks names the executors of ready runs that it was found to lack, although Performs seems to include them.
	Lacks []string `json:"lacks,omitempty"`
	// Capacity is the largest number of attempts in flight; 0 means no limit.
	Capacity int `json:"capacity,omitempty"`
	// InFlight is the number of attempts in flight, and Waiting of those that wait in the process for their turn, at the last description.
	InFlight int `json:"in_flight,omitempty"`
	Waiting  int `json:"waiting,omitempty"`
	// Full: all of the capacity was used then.
	Full bool `json:"full,omitempty"`
}

// AppendText appends the description as JSON, the form in which a store keeps it.
func (a About) AppendText(dst []byte) ([]byte, error) {
	if !a.Started.IsZero() {
		a.Started = a.Started.UTC().Truncate(time.Millisecond)
	}
	text, err := json.Marshal(a)
	if err != nil {
		return dst, problem.New(problem.Internal, "the description of a process cannot be written").WithCause(err)
	}
	return append(dst, text...), nil
}

// ParseAbout returns the description with a text; zero for a text that cannot be read.
func ParseAbout(text []byte) About {
	var a About
	if json.Unmarshal(text, &a) != nil {
		return About{}
	}
	return a
}

// KeyBytes is the length of a key of a Keyring.
const KeyBytes = 32

// Keyring is a Store that keeps random keys for its users. Both stores of this module implement it.
type Keyring interface {
	// Key returns the key with a name: KeyBytes random bytes, created on first use, and the same for every process that uses the store, also
	// after a restart. A key is not part of a run: exports omit it and gc keeps it.
	Key(ctx context.Context, name string) ([]byte, error)
}

// Wrap returns a store that calls outer, which calls inner. It keeps the optional interfaces of inner (Attacher, Follower, Importer, Keyring, Limiter, Prober, Pruner,
// Queue, Roster, Shrinker, Verifier, Watcher) that outer does not implement. A struct that only embeds a Store, for metrics or faults, loses them:
// it could not be pruned or verified.
//
//	store = history.Wrap(timed{Store: store}, store)
func Wrap(outer, inner Store) Store { return wrapped{outer, inner} }

type wrapped struct {
	Store
	inner Store
}

// As returns a store's implementation of the optional interface T: the store itself, or a store that it wraps. The result is false without
// one.
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
