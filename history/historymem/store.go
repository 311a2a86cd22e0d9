// Package historymem keeps runs in memory, for tests and for embedders that want no file.
//
// It has the meaning of the SQLite store to the letter (both pass the tests in package historytest): payloads are kept
// as the text that a file would hold, so nothing that a caller does to what it gave or got changes what is stored.
// A page of a list, and every question about owners but Owner, costs time proportional to the number of runs.
package historymem

import (
	"context"
	"sync"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/internal/storeclock"
)

// Store is a history.Store in memory. New makes one. All methods are safe for concurrent use.
type Store struct {
	mu          sync.Mutex
	runs        map[string]*run
	processes   map[string]time.Time       // when the lease of each process ends or has ended, in whole milliseconds
	definitions []history.StoredDefinition // in the order in which they were stored
	watches     map[chan change]bool
	keys        map[string][]byte
	links       []history.Link // in the order in which they were stored
	handled     map[string]history.Handling
	deliveries  []*delivery // in the order in which they were stored
	numbered    int64       // the number of the newest
	closed      bool
	clock       *storeclock.Clock
}

// Options of a store. The zero value is ready to use.
type Options struct {
	// Now is the machine's clock and Uptime how long it has been up, with a name of its start; nil means the machine's own. If Now
	// is given, no Uptime is known without this. The store's time does not step back with Now, and leases go by Uptime.
	Now    func() time.Time
	Uptime func() (boot string, up time.Duration)
}

var _ history.Store = (*Store)(nil)

// run is the history of one run and what is kept beside it.
type run struct {
	id   string
	rows []row
	// text is the run's projection in its stored form, parsed what execution has made of it.
	text        []byte
	parsed      *history.Execution
	bytes       int64
	position    []byte
	positionSeq int64
	timers      []history.Timer
	// owner is the process that owns the run, "" if none does. disowned is when the last owner gave the run up.
	owner    string
	disowned time.Time
}

// execution returns the run's projection. It is never handed out, because it shares maps; text is, and whoever parses that
// reports its faults.
func (x *run) execution() *history.Execution {
	if x.parsed == nil {
		e, _ := history.ParseExecution(x.id, x.text)
		e.ID, x.parsed = x.id, &e
	}
	return x.parsed
}

// row is a record as it would be stored.
type row struct {
	kind    history.Kind
	name    history.Name
	payload []byte
	at      time.Time
	// foreign marks a record that another engine wrote.
	foreign bool
}

// New makes an empty store.
func New() *Store { return NewWith(Options{}) }

// NewWith makes an empty store with options.
func NewWith(o Options) *Store {
	s := &Store{runs: map[string]*run{}, processes: map[string]time.Time{}, watches: map[chan change]bool{}, keys: map[string][]byte{}, handled: map[string]history.Handling{}}
	if o.Now == nil && o.Uptime == nil {
		begun := time.Now()
		o.Uptime = func() (string, time.Duration) { return "", time.Since(begun) }
	}
	s.clock = storeclock.New(o.Now, o.Uptime)
	return s
}

// Close drops everything. The store cannot be used afterwards.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for changes := range s.watches {
		close(changes)
	}
	s.runs, s.processes, s.definitions, s.watches, s.keys, s.deliveries, s.closed = nil, nil, nil, nil, nil, nil, true
	return nil
}

var errClosed = problem.New(problem.Internal, "the store is closed")

// enter locks the store for one call; the caller unlocks it if there is no error.
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

// do makes a call that cannot fail while the store is locked.
func (s *Store) do(ctx context.Context, call func()) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	call()
	return nil
}
