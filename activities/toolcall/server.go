package toolcall

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/wait"
)

// server keeps the one session of a configured server.
type server struct {
	Server
	name   string
	config *Config
	log    *slog.Logger
	// wait counts the executor's goroutines.
	wait *sync.WaitGroup

	// changes counts how often the list of tools may have become another one.
	changes atomic.Int64

	mu       sync.Mutex
	current  *session
	dialling *dialling
	// failures counts starts and connections that failed in a row; notBefore is when the next start may be, and
	// lastErr why.
	failures  int
	notBefore time.Time
	lastErr   error
}

// dialling is an attempt to connect that others wait for.
type dialling struct {
	done chan struct{}
	// err is the error for all waiting calls; nil if they are to try again.
	err error
}

// acquire returns a session for one call; release returns it. The first caller connects, others wait for
// it, and share its failure.
func (s *server) acquire(ctx context.Context) (*session, error) {
	for {
		s.mu.Lock()
		switch x := s.current; {
		case x == nil:
		case x.alive():
			s.use(x)
			s.mu.Unlock()
			return x, nil
		default:
			s.current = nil
			s.failed(activities.Fail(problem.MCPConnectionClosed, "the server has just ended"))
		}
		if d := s.dialling; d != nil {
			s.mu.Unlock()
			select {
			case <-d.done:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			if d.err != nil {
				return nil, d.err
			}
			continue
		}
		if pause, lastErr := time.Until(s.notBefore), s.lastErr; pause > 0 {
			late, bounded := ctx.Deadline()
			hopeless := bounded && late.Before(s.notBefore)
			s.mu.Unlock()
			if hopeless {
				return nil, lastErr
			}
			if err := wait.For(ctx, pause); err != nil {
				return nil, err
			}
			continue
		}
		d := &dialling{done: make(chan struct{})}
		s.dialling = d
		s.mu.Unlock()
		return s.connect(ctx, d)
	}
}

// connect makes a session for acquire, and wakes the callers that wait.
func (s *server) connect(ctx context.Context, d *dialling) (*session, error) {
	x, err := s.dial(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	defer close(d.done)
	s.dialling = nil
	switch {
	case err == nil:
		s.current = x
		s.use(x)
	case ctx.Err() == nil:
		s.failed(err)
		d.err = err
	}
	return x, err
}

// use notes a call of the session. The caller holds the lock, as in the methods below.
func (s *server) use(x *session) {
	x.calls++
	if x.idle != nil {
		x.idle.Stop()
		x.idle = nil
	}
}

// failed notes a failure, after which the next start has to wait a while.
func (s *server) failed(err error) {
	pause := s.config.RestartDelay << min(s.failures, 20)
	s.failures++
	s.notBefore, s.lastErr = time.Now().Add(min(max(pause, 0), maxRestartDelay)), err
}

// discard stops a session in the background.
func (s *server) discard(x *session) {
	s.wait.Go(func() { x.stop(s.config.StopGrace) })
}

// release returns a session to the server. A session that is broken, or whose call got no answer, is not used again: it is
// stopped when its last call has ended. err is the cause of its failure, nil if it did not fail.
func (s *server) release(x *session, reuse bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x.calls--
	switch {
	case err != nil && s.current == x:
		s.failed(err)
	case reuse && err == nil:
		s.failures = 0
	}
	if !reuse {
		x.retired = true
		if s.current == x {
			s.current = nil
		}
	}
	switch {
	case x.calls > 0:
	case x.retired:
		s.discard(x)
	default:
		x.idle = time.AfterFunc(s.config.IdleTimeout, func() { s.expire(x) })
	}
}

// expire ends a session that has been idle for too long.
func (s *server) expire(x *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != x || x.calls > 0 {
		return
	}
	s.log.Info("MCP server was idle")
	s.current = nil
	s.discard(x)
}

// shut stops the session in the background, when no call uses it.
func (s *server) shut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.current; x != nil {
		s.current = nil
		if x.idle != nil {
			x.idle.Stop()
		}
		s.discard(x)
	}
}
