package httpguard_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/internal/httpguard"
)

// onePipe is a listener with a single connection.
type onePipe struct {
	conn   chan net.Conn
	closed chan struct{}
}

func (l *onePipe) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *onePipe) Close() error   { close(l.closed); return nil }
func (l *onePipe) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// TestClientsThatDoNotReadAreLeft: what is sent to a client that does not take it ends after a minute, not before; a stream on which
// nothing is sent for long goes on.
func TestClientsThatDoNotReadAreLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		l := &onePipe{make(chan net.Conn, 1), make(chan struct{})}
		l.conn <- there
		type end struct {
			err   error
			after time.Duration
		}
		wrote := make(chan end, 1)
		h := guarded(httpguard.Access{}, func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(time.Hour)
			for {
				began := time.Now()
				httpguard.LimitWrite(w)
				_, err := w.Write(make([]byte, 100_000))
				if took := time.Since(began); took > 0 || err != nil {
					wrote <- end{err, took}
					return
				}
			}
		})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- httpguard.Serve(ctx, l, h, slog.New(slog.DiscardHandler)) }()
		if _, err := io.WriteString(here, "GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(here, make([]byte, 200_000)); err != nil {
			t.Errorf("after an hour: %v", err)
		}
		if got := <-wrote; got.err == nil || got.after != time.Minute {
			t.Errorf("%v after %s", got.err, got.after)
		}
		here.Close()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
