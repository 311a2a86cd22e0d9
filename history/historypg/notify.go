package historypg

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

const (
	// pollBlind is the interval in which a watch of the ready runs asks for them without notifications. It varies by a fifth, so that processes do
	// not ask at the same time.
	pollBlind = 100 * time.Millisecond
	// notifyEvery is the shortest time between two notifications of ready runs in one lane by one process.
	notifyEvery = 20 * time.Millisecond
	// reconnectEvery is the pause before a broken connection that listens is made again.
	reconnectEvery = time.Second
)

var _ history.Watcher = (*Store)(nil)

// channelOf returns the name of a channel of the schema; names have at most 63 bytes.
func channelOf(schema, kind string) string {
	if len(schema) > 48 {
		sum := sha256.Sum256([]byte(schema))
		schema = hex.EncodeToString(sum[:16])
	}
	return schema + "_" + kind
}

// notifies reports whether other processes may wait for the batch. A commit that notifies waits for all others that do, so that the steps of a run
// in the hands of its owner notify nobody, nor does the start of a run that waits for a process: it is announced as ready.
func (a *appending) notifies() bool {
	b := a.batch
	if b.ExpectedSeq == 0 && b.Ready != nil && !b.Execution.Phase.Terminal() {
		return false
	}
	return len(b.Records) > 0 && (b.Owner == "" || b.Disown || b.Execution.Phase != history.PhaseRunning || !b.Execution.NeedsDriver())
}

// recent remembers the lanes of which others were notified within notifyEvery, and whether more runs have become ready in them.
type recent struct {
	mu    sync.Mutex
	lanes map[history.Lane]bool
}

// notifiesReady reports whether a run that becomes ready in a lane is announced with its append: not if another one has just been. All those that
// follow soon are announced together.
func (s *Store) notifiesReady(l history.Lane) bool {
	r := &s.announced
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, just := r.lanes[l]; just {
		r.lanes[l] = true
		return false
	}
	if r.lanes == nil {
		r.lanes = map[history.Lane]bool{}
	}
	r.lanes[l] = false
	time.AfterFunc(notifyEvery, func() { s.announce(l) })
	return true
}

// announce notifies of the runs that have become ready in a lane since the last notification.
func (s *Store) announce(l history.Lane) {
	r := &s.announced
	r.mu.Lock()
	more := r.lanes[l]
	delete(r.lanes, l)
	r.mu.Unlock()
	if more && s.notifiesReady(l) {
		_ = s.write(s.closing, "the ready runs were not announced", true, func(ctx context.Context, c *pgxpool.Conn) error {
			_, err := c.Exec(ctx, sendReady, s.readyChannel)
			return err
		}) // others find them within a second
	}
}

// listener is the connection of a process that listens for notifications, as long as a watch wants them.
type listener struct {
	mu    sync.Mutex
	runs  map[*subscriber]bool
	stop  context.CancelFunc // nil while nobody listens
	ended chan struct{}
}

// subscriber is a call of a watch.
type subscriber struct {
	changed func(executionID string, seq int64) // nil if it does not want changed runs
	wake    func()                              // nil if it does not want ready runs
}

// subscribe adds a watch until the returned function is called.
func (s *Store) subscribe(w *subscriber) (end func()) {
	l := &s.listener
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.runs == nil {
		l.runs = map[*subscriber]bool{}
	}
	l.runs[w] = true
	if l.stop == nil {
		ctx, stop := context.WithCancel(s.closing)
		l.stop, l.ended = stop, make(chan struct{})
		go s.listen(ctx, l.ended)
	}
	return func() {
		l.mu.Lock()
		delete(l.runs, w)
		stop, ended := l.stop, l.ended
		if len(l.runs) > 0 {
			stop = nil
		} else {
			l.stop = nil
		}
		l.mu.Unlock()
		if stop != nil {
			stop()
			<-ended
		}
	}
}

// each calls f with the watches.
func (l *listener) each(f func(w *subscriber)) {
	l.mu.Lock()
	var all []*subscriber
	for w := range l.runs {
		all = append(all, w)
	}
	l.mu.Unlock()
	for _, w := range all {
		f(w)
	}
}

// listen receives notifications until ctx ends, on one connection after another.
func (s *Store) listen(ctx context.Context, ended chan struct{}) {
	defer close(ended)
	for ctx.Err() == nil {
		s.receive(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(reconnectEvery):
		}
	}
}

// receive receives notifications until the connection breaks.
func (s *Store) receive(ctx context.Context) {
	config := s.session.config.ConnConfig.Copy()
	delete(config.RuntimeParams, "statement_timeout")
	c, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return
	}
	defer func() {
		closing, done := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer done()
		_ = c.Close(closing)
	}()
	for _, channel := range []string{s.runsChannel, s.readyChannel} {
		if _, err := c.Exec(ctx, "LISTEN "+quoted(channel)); err != nil {
			return
		}
	}
	s.listener.each(func(w *subscriber) { // runs may have become ready meanwhile
		if w.wake != nil {
			w.wake()
		}
	})
	for {
		n, err := c.WaitForNotification(ctx)
		if err != nil {
			return
		}
		switch n.Channel {
		case s.readyChannel:
			s.listener.each(func(w *subscriber) {
				if w.wake != nil {
					w.wake()
				}
			})
		case s.runsChannel:
			number, id, _ := strings.Cut(n.Payload, "|")
			seq, err := strconv.ParseInt(number, 10, 64)
			if err != nil {
				continue
			}
			s.listener.each(func(w *subscriber) {
				if w.changed != nil {
					w.changed(unescaped(id), seq)
				}
			})
		}
	}
}

// Watch calls changed with runs that have grown; see history.Watcher. It hears of a run that has come to rest, has ended or was written to by a
// process that does not own it, and not of the steps in between. Without notifications it is UNSUPPORTED_BY_BACKEND.
func (s *Store) Watch(ctx context.Context, changed func(executionID string, seq int64)) error {
	if s.closing.Err() != nil {
		return errClosed
	}
	if s.runsChannel == "" {
		return problem.New(problem.Unsupported, "the store does not notify of changes").WithHint("Notifications are turned off, or the connection uses a transaction pooler. Poll for changes instead.")
	}
	defer s.subscribe(&subscriber{changed: changed})()
	select {
	case <-ctx.Done():
		return nil
	case <-s.closing.Done():
		return errClosed
	}
}

const anyReady = `SELECT 1 FROM @ready LIMIT 1`

// WatchReady calls wake whenever runs may have become ready; see history.Queue. Without notifications it asks.
func (s *Store) WatchReady(ctx context.Context, wake func()) error {
	if s.closing.Err() != nil {
		return errClosed
	}
	if s.readyChannel != "" {
		defer s.subscribe(&subscriber{wake: wake})()
		select {
		case <-ctx.Done():
			return nil
		case <-s.closing.Done():
			return errClosed
		}
	}
	for {
		found := false
		err := s.read(ctx, "the ready runs could not be read", func(q queries) (err error) {
			found, err = first(ctx, q, s.texts.of(anyReady), nil, new(int32))
			return err
		})
		if found && err == nil {
			wake()
		}
		if err != nil && ctx.Err() == nil && s.closing.Err() == nil {
			if p, ok := problem.As(err); !ok || p.Code != problem.StoreUnavailable && p.Code != problem.StoreLocked { // those may pass
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.closing.Done():
			return errClosed
		case <-time.After(pollBlind - pollBlind/10 + rand.N(pollBlind/5)):
		}
	}
}
