// Package historymem keeps runs in memory, for tests and for embedders without a file.
//
// It behaves exactly like the SQLite store (both pass the tests in package historytest). It keeps payloads as text, so a caller that changes
// its arguments or results does not change the stored data. Listing a page, and every query about owners except Owner, takes time
// proportional to the number of runs; every query about ready runs, to the number of these.
package historymem

import (
	"context"
	"sync"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/internal/storeclock"
)

// Store is a history.Store in memory. Create it with New. All methods are safe for concurrent use.
type Store struct {
	mu          sync.Mutex
	runs        map[string]*run
	begun       int64 // number of the newest run
	ready       map[*run]bool
	processes   map[string]process
	definitions []stored // in insertion order
	watches     map[chan change]bool
	wakes       map[chan struct{}]bool
	keys        map[string][]byte
	links       []history.Link // in insertion order
	handled     map[string]history.Handling
	limits      map[string]*history.LimitUse
	deliveries  []*delivery // in insertion order
	numbered    int64       // number of the newest delivery
	defined     int64       // number of the newest definition
	closed      bool
	clock       *storeclock.Clock
}

// Options configures a store. The zero value is ready to use.
type Options struct {
	// Now is the machine's clock; Uptime returns the time since boot and an id of the boot. nil means the real ones, but with a custom Now a
	// nil Uptime means an unknown uptime. The store's time does not step back with Now. Leases use Uptime.
	Now    func() time.Time
	Uptime func() (boot string, up time.Duration)
}

var _ history.Store = (*Store)(nil)

// run is the history of one run with the data stored beside it.
type run struct {
	id string
	// number orders runs by age.
	number int64
	rows   []row
	// text is the run's stored projection; parsed caches it for execution.
	text        []byte
	parsed      *history.Execution
	bytes       int64
	position    []byte
	positionSeq int64
	timers      []history.Timer
	// owner is the process that owns the run, or "". disowned is when the last owner released it.
	owner    string
	disowned time.Time
	// place is the run's place among the ready runs, which has a meaning while Store.ready contains the run.
	place place
}

// process is a process with the end of its lease, in whole milliseconds, and its description.
type process struct {
	end   time.Time
	about []byte
}

// stored is a definition with its number, which cursors hold, and the time when it was stored.
type stored struct {
	history.StoredDefinition
	number int64
	at     time.Time
}

// execution returns the run's projection. Do not return it to callers, because it shares maps. Return text instead; its parser reports its
// faults.
func (x *run) execution() *history.Execution {
	if x.parsed == nil {
		e, _ := history.ParseExecution(x.id, x.text)
		e.ID, x.parsed = x.id, &e
	}
	return x.parsed
}

// row is a record in its stored form.
type row struct {
	kind    history.Kind
	name    history.Name
	payload []byte
	at      time.Time
	// foreign marks a record that another engine wrote.
	foreign bool
}

// New creates an empty store.
func New() *Store { return NewWith(Options{}) }

// NewWith creates an empty store with options.
func NewWith(o Options) *Store {
	s := &Store{
		runs: map[string]*run{}, ready: map[*run]bool{}, processes: map[string]process{}, watches: map[chan change]bool{}, wakes: map[chan struct{}]bool{},
		keys: map[string][]byte{}, handled: map[string]history.Handling{}, limits: map[string]*history.LimitUse{},
	}
	if o.Now == nil && o.Uptime == nil {
		begun := time.Now()
		o.Uptime = func() (string, time.Duration) { return "", time.Since(begun) }
	}
	s.clock = storeclock.New(o.Now, o.Uptime)
	return s
}

// Close deletes all data. The store cannot be used afterwards.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for changes := range s.watches {
		close(changes)
	}
	for wake := range s.wakes {
		close(wake)
	}
	s.runs, s.ready, s.processes, s.definitions, s.watches, s.wakes, s.keys, s.deliveries = nil, nil, nil, nil, nil, nil, nil, nil
	s.closed = true
	return nil
}

var errClosed = problem.New(problem.Internal, "the store is closed")

// enter locks the store for one call. Without an error the caller must unlock it.
func (s *Store) enter(ctx context.Context) error {
	if ctx.Err() != nil {
		return problem.New(problem.Internal, "the store was not asked").WithCause(context.Cause(ctx))
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return errClosed
	}
	return nil
}

// do makes a call that cannot fail, with the store locked.
func (s *Store) do(ctx context.Context, call func()) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	call()
	return nil
}
