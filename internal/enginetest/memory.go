package enginetest

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// Serve starts an HTTP server on a network in memory, reachable with its Client, and closes it with the test. In a bubble of
// testing/synctest, time passes only while both the handler and the client wait, not while a request or response is on its way.
func Serve(t testing.TB, handler http.Handler) *httptest.Server {
	t.Helper()
	network := &memory{arriving: make(chan net.Conn), closed: make(chan struct{})}
	s := &httptest.Server{Listener: network, Config: &http.Server{Handler: handler}}
	s.Start()
	s.Client().Transport = &http.Transport{DialContext: network.dial}
	t.Cleanup(s.Close)
	return s
}

// memory is a listener for pipes.
type memory struct {
	arriving chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

func (m *memory) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case m.arriving <- there:
		return here, nil
	case <-m.closed:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (m *memory) Accept() (net.Conn, error) {
	select {
	case c := <-m.arriving:
		return c, nil
	case <-m.closed:
		return nil, net.ErrClosed
	}
}

func (m *memory) Close() error {
	m.once.Do(func() { close(m.closed) })
	return nil
}

func (m *memory) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }
