package httpguard_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/internal/httpguard"
)

// guarded is a server as they are built with this package: the health for every client, and next at /mcp behind the guard.
func guarded(access httpguard.Access, next http.HandlerFunc) http.Handler {
	mux := http.NewServeMux()
	mux.Handle(httpguard.HealthPath, httpguard.Health(nil))
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		refuse := func(status int, message string) { http.Error(w, message, status) }
		switch _, ok := access.Admit(w, r, refuse); {
		case !ok:
		case !httpguard.Enter(w, r):
			refuse(http.StatusServiceUnavailable, "full")
		default:
			_, _ = io.Copy(io.Discard, r.Body)
			next(w, r)
		}
	})
	return mux
}

// served is a server at an address of this machine that answers "hello".
type served struct {
	t    *testing.T
	addr string
}

func newServed(t *testing.T, tokens httpguard.Tokens) *served {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serve(t, l, tokens)
	return &served{t, l.Addr().String()}
}

func serve(t *testing.T, l net.Listener, tokens httpguard.Tokens) {
	h := guarded(httpguard.Access{Tokens: tokens}, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "hello") })
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- httpguard.Serve(ctx, l, h, slog.New(slog.DiscardHandler)) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// peer is one connection to the server.
type peer struct {
	net.Conn
	r *bufio.Reader
}

func (s *served) dial() *peer {
	s.t.Helper()
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	return &peer{c, bufio.NewReader(c)}
}

// get sends a request and returns the status, 0 if the connection is gone, and whether it goes on.
func (p *peer) get(path, token string) (status int, stays bool) {
	head := "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n"
	if token != "" {
		head += "Authorization: Bearer " + token + "\r\n"
	}
	if _, err := io.WriteString(p, head+"\r\n"); err != nil {
		return 0, false
	}
	answer, err := http.ReadResponse(p.r, nil)
	if err != nil {
		return 0, false
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	answer.Body.Close()
	return answer.StatusCode, !answer.Close
}

// TestStrangersShutNobodyOut: however many connections are held open that bring no request, or one that may not pass, the health is told,
// clients with the token come in, and those that are in stay.
func TestStrangersShutNobodyOut(t *testing.T) {
	t.Parallel()
	s := newServed(t, httpguard.OneToken("secret", ""))
	before := s.dial()
	if status, stays := before.get("/mcp", "secret"); status != http.StatusOK || !stays {
		t.Fatalf("%d, stays: %v", status, stays)
	}
	var held []*peer
	for i := range httpguard.MaxConnections + 100 {
		p := s.dial()
		if i%3 == 1 { // half a head
			_, _ = io.WriteString(p, "GET /mcp HTTP/1.1\r\nHost: local")
		}
		held = append(held, p)
	}
	for range 3 {
		if status, stays := s.dial().get("/mcp", "wrong"); status != http.StatusUnauthorized || stays {
			t.Errorf("without the token: %d, stays: %v", status, stays)
		}
		if status, stays := s.dial().get("/healthz", ""); status != http.StatusOK || stays {
			t.Errorf("the health: %d, stays: %v", status, stays)
		}
		if status, stays := s.dial().get("/mcp", "secret"); status != http.StatusOK || !stays {
			t.Errorf("with the token: %d, stays: %v", status, stays)
		}
	}
	if status, _ := before.get("/mcp", "secret"); status != http.StatusOK {
		t.Errorf("a client that was in: %d", status)
	}
	for _, p := range held[:len(held)-httpguard.MaxStrangers] {
		if _, err := p.r.ReadByte(); err == nil {
			t.Error("a stranger's connection has an answer")
		}
	}
	if status, _ := held[len(held)-2].get("/healthz", ""); status != http.StatusOK {
		t.Errorf("a young stranger: %d", status)
	}
}

// TestConnectionsAreBounded: a client beyond the limit is told so, the others and the health go on, and there is room again for whoever
// comes once one has gone. Nobody needs a token here.
func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	s := newServed(t, httpguard.Tokens{})
	var in []*peer
	for i := range httpguard.MaxConnections {
		p := s.dial()
		if status, stays := p.get("/mcp", ""); status != http.StatusOK || !stays {
			t.Fatalf("connection %d: %d, stays: %v", i, status, stays)
		}
		in = append(in, p)
	}
	for range 3 {
		if status, stays := s.dial().get("/mcp", ""); status != http.StatusServiceUnavailable || stays {
			t.Errorf("beyond the limit: %d, stays: %v", status, stays)
		}
	}
	if status, _ := s.dial().get("/healthz", ""); status != http.StatusOK {
		t.Errorf("the health: %d", status)
	}
	if status, stays := in[0].get("/healthz", ""); status != http.StatusOK || !stays {
		t.Errorf("the health, of a client: %d, stays: %v", status, stays)
	}
	in[1].Close()
	for {
		status, _ := s.dial().get("/mcp", "")
		if status == http.StatusOK {
			break
		}
		if status != http.StatusServiceUnavailable {
			t.Fatalf("with room again: %d", status)
		}
	}
}

// TestStrangersHaveAShortTime: a connection that brings no whole request is closed soon, one that was admitted stays.
func TestStrangersHaveAShortTime(t *testing.T) {
	t.Parallel()
	for _, sent := range []string{"", "GET /mcp HTTP/1.1\r\nHost: local", "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{"} {
		t.Run(fmt.Sprint(len(sent)), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				here, there := net.Pipe()
				l := &onePipe{make(chan net.Conn, 1), make(chan struct{})}
				l.conn <- there
				serve(t, l, httpguard.OneToken("secret", ""))
				began := time.Now()
				if _, err := io.WriteString(here, sent); err != nil {
					t.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, here)
				if took := time.Since(began); took > httpguard.StrangerTime+time.Second {
					t.Errorf("it was open for %s", took)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		l := &onePipe{make(chan net.Conn, 1), make(chan struct{})}
		l.conn <- there
		serve(t, l, httpguard.OneToken("secret", ""))
		p := &peer{here, bufio.NewReader(here)}
		for range 5 {
			if status, stays := p.get("/mcp", "secret"); status != http.StatusOK || !stays {
				t.Fatalf("%d, stays: %v", status, stays)
			}
			time.Sleep(4 * httpguard.StrangerTime) // of the bubble's clock
		}
		here.Close()
	})
}
