package streamable

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/workflows-engine/workflows-engine/internal/mcpserver/frame"
)

const (
	// maxSessions limits the sessions. For a new one the session that has been idle the longest is closed.
	maxSessions = 256
	// idleTime is how long a session without a pending request stays; a client that listens has one.
	idleTime = 24 * time.Hour
)

// sessionHeader names the session of a request.
const sessionHeader = "Mcp-Session-Id"

// ErrClosed is the cause when the life of a session ends.
var ErrClosed = errors.New("the session was closed")

type lifeKey struct{}

// LifeOf returns the life of the session that a request opens: a context that ends before the session is closed, so that nothing
// pending keeps it from closing. It is nil for any other request.
func LifeOf(r *http.Request) context.Context {
	life, _ := r.Context().Value(lifeKey{}).(context.Context)
	return life
}

// Sessions bounds the number of sessions of a handler, and how long an idle session stays.
type Sessions struct {
	// Handler keeps the sessions. It names a new one in the header of its answer. It gets no DELETE requests.
	Handler http.Handler
	// Close closes a session of the handler, once its life has ended.
	Close func(id string)

	mu   sync.Mutex
	open map[string]*session
	// opening counts the requests that open a session.
	opening int
}

type session struct {
	requests int
	last     time.Time
	// idle closes the session; it runs while there are no requests.
	idle *time.Timer
	end  context.CancelCauseFunc
}

// ServeHTTP implements http.Handler. m is the message of a POST.
func (s *Sessions) ServeHTTP(w http.ResponseWriter, r *http.Request, m *Message) {
	id := r.Header.Get(sessionHeader)
	switch {
	case id != "" && r.Method == http.MethodDelete:
		if !s.remove(id) {
			refuseUnknown(w, m)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	case id != "":
		if !s.begin(id) {
			refuseUnknown(w, m)
			return
		}
		defer s.end(id)
		s.Handler.ServeHTTP(w, r)
	case r.Method != http.MethodPost:
		s.Handler.ServeHTTP(w, r) // which reports the missing id
	default: // a batch opens no session: initialize is sent by itself
		if call, ok := m.Message.(*jsonrpc.Request); !ok || call.Method != "initialize" {
			refusal := frame.Refuse(jsonrpc.CodeInvalidRequest, "missing %s header: send initialize first, then the session id of its answer", sessionHeader)
			refusal.ID = m.id()
			refuse(w, http.StatusBadRequest, refusal)
			return
		}
		if !s.makeRoom() {
			w.Header().Set("Retry-After", "10")
			refuse(w, http.StatusServiceUnavailable, frame.Refuse(jsonrpc.CodeInternalError, "all %d sessions are in use: try again later", maxSessions))
			return
		}
		life, end := context.WithCancelCause(context.Background())
		n := &naming{ResponseWriter: w, opened: func(id string) { s.opened(id, end) }}
		s.Handler.ServeHTTP(n, r.WithContext(context.WithValue(r.Context(), lifeKey{}, life)))
		n.name()
		s.end(n.id)
	}
}

func refuseUnknown(w http.ResponseWriter, m *Message) {
	refusal := frame.Refuse(jsonrpc.CodeInvalidRequest, "session not found: send initialize without a session id")
	refusal.ID = m.id()
	refuse(w, http.StatusNotFound, refusal)
}

// naming reports the session that an answer names before the client can read it and send the next request.
type naming struct {
	http.ResponseWriter
	opened func(id string)
	told   bool
	id     string
}

// Unwrap is for http.ResponseController.
func (n *naming) Unwrap() http.ResponseWriter { return n.ResponseWriter }

func (n *naming) name() {
	if n.told {
		return
	}
	n.told, n.id = true, n.Header().Get(sessionHeader)
	n.opened(n.id)
}

func (n *naming) WriteHeader(status int) {
	n.name()
	n.ResponseWriter.WriteHeader(status)
}

func (n *naming) Write(p []byte) (int, error) {
	n.name()
	return n.ResponseWriter.Write(p)
}

// begin counts a request of a session, and reports whether the session exists.
func (s *Sessions) begin(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.open[id]
	if known == nil {
		return false
	}
	known.requests++
	known.idle.Stop()
	return true
}

func (s *Sessions) end(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.open[id]
	if known == nil { // it was closed
		return
	}
	known.requests--
	known.last = time.Now()
	if known.requests == 0 {
		known.idle.Reset(idleTime)
	}
}

// remove closes a session, and reports whether it existed.
func (s *Sessions) remove(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[id] == nil {
		return false
	}
	s.drop(id)
	return true
}

// makeRoom reports whether there is room for another session. It may close an idle one.
func (s *Sessions) makeRoom() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open)+s.opening >= maxSessions {
		oldest := ""
		for id, one := range s.open {
			if one.requests == 0 && (oldest == "" || one.last.Before(s.open[oldest].last)) {
				oldest = id
			}
		}
		if oldest == "" {
			return false
		}
		s.drop(oldest)
	}
	s.opening++
	return true
}

// opened adds the session that a pending request has opened, "" if it has not. end ends its life.
func (s *Sessions) opened(id string, end context.CancelCauseFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opening--
	if id == "" {
		end(ErrClosed)
		return
	}
	if s.open == nil {
		s.open = map[string]*session{}
	}
	s.open[id] = &session{requests: 1, end: end, idle: time.AfterFunc(idleTime, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if one := s.open[id]; one != nil && one.requests == 0 {
			s.drop(id)
		}
	})}
}

// drop closes a session in the background. Its pending calls end first.
func (s *Sessions) drop(id string) {
	s.open[id].idle.Stop()
	s.open[id].end(ErrClosed)
	delete(s.open, id)
	go s.Close(id)
}
