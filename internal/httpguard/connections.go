package httpguard

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	// MaxConnections is how many admitted connections there are at once.
	MaxConnections = 1024
	// maxStrangers limits the connections without a permitted request. The oldest makes room for a new one: a
	// client that sends its request at once has been admitted by then, and idle connections block no client.
	maxStrangers = 128
	// strangerTime is how long such a connection may take to send its request, and to read the answer.
	strangerTime = 5 * time.Second
)

// connections holds the connections of a server. Every connection starts as a stranger and is admitted with its first permitted request; a stranger
// sends one request, in a short time. Health checks therefore use the strangers' limit, which admitted connections cannot exhaust.
type connections struct {
	mu       sync.Mutex
	all      map[net.Conn]*connection
	admitted int
	// strangers holds the connections without a request, the oldest first.
	strangers []*connection
	// serving holds the strangers whose request is being answered.
	serving int
}

// connection is one connection. Its variable fields are guarded by connections.mu.
type connection struct {
	of       *connections
	conn     net.Conn
	admitted bool
	// serving is set once its request has arrived.
	serving bool
	// late closes a connection that sends no request in time.
	late *time.Timer
}

type connectionKey struct{}

// accept adds a new connection, as a stranger.
func (cs *connections) accept(ctx context.Context, conn net.Conn) context.Context {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c := &connection{of: cs, conn: conn, late: time.AfterFunc(strangerTime, func() { _ = conn.Close() })}
	if cs.all == nil {
		cs.all = map[net.Conn]*connection{}
	}
	cs.all[conn] = c
	cs.strangers = append(cs.strangers, c)
	if len(cs.strangers)+cs.serving > maxStrangers {
		oldest := cs.strangers[0]
		cs.strangers = cs.strangers[1:]
		_ = oldest.conn.Close()
	}
	return context.WithValue(ctx, connectionKey{}, c)
}

// begin notes the head of a request. A stranger's connection ends with its answer, unless it is admitted meanwhile.
func (cs *connections) begin(w http.ResponseWriter, r *http.Request) (admitted bool) {
	c, ok := r.Context().Value(connectionKey{}).(*connection)
	if !ok {
		return true
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c.admitted {
		return true
	}
	c.late.Stop()
	if i := slices.Index(cs.strangers, c); i >= 0 {
		cs.strangers = slices.Delete(cs.strangers, i, i+1)
		cs.serving++
		c.serving = true
	}
	w.Header().Set("Connection", "close")
	return false
}

// ended forgets a connection that was closed.
func (cs *connections) ended(conn net.Conn) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c := cs.all[conn]
	if c == nil {
		return
	}
	delete(cs.all, conn)
	c.late.Stop()
	switch {
	case c.admitted:
		cs.admitted--
	case c.serving:
		cs.serving--
	default:
		cs.strangers = slices.DeleteFunc(cs.strangers, func(other *connection) bool { return other == c })
	}
}

// Enter makes the connection of a request that may pass one of those which stay, before its body is read. It reports whether there is room for it.
func Enter(w http.ResponseWriter, r *http.Request) bool {
	c, ok := r.Context().Value(connectionKey{}).(*connection)
	if !ok { // the server does not count connections
		return true
	}
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if c.admitted {
		return true
	}
	if c.of.admitted >= MaxConnections {
		return false
	}
	if c.serving {
		c.of.serving--
	}
	c.of.admitted++
	c.admitted, c.serving = true, false
	w.Header().Del("Connection")
	LimitRead(w, r)
	LimitWrite(w)
	return true
}
