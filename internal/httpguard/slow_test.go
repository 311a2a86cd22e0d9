package httpguard_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
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

// TestTheReadLimitIsForReading: a request that has come in is not cancelled however long its answer takes, nor is a later one of the same
// connection; a body that does not come in ends after a minute.
func TestTheReadLimitIsForReading(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		l := &onePipe{make(chan net.Conn, 1), make(chan struct{})}
		l.conn <- there
		h := guarded(httpguard.Access{}, func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(10 * httpguard.ReadTime)
			_, _ = fmt.Fprint(w, r.Method, r.Context().Err())
		})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- httpguard.Serve(ctx, l, h, slog.New(slog.DiscardHandler)) }()
		in := bufio.NewReader(here)
		for i, request := range []string{
			"GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n",
			"GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n",
			"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello",
			"POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
			"GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n",
		} {
			if _, err := io.WriteString(here, request); err != nil {
				t.Fatal(err)
			}
			res, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatalf("request %d: %v", i, err)
			}
			said, err := io.ReadAll(res.Body)
			if method, _, _ := strings.Cut(request, " "); err != nil || string(said) != method+"<nil>" || res.Close {
				t.Errorf("request %d: %s, %v", i, said, err)
			}
		}
		began := time.Now()
		if _, err := io.WriteString(here, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhe"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, in); err != nil || time.Since(began) < httpguard.ReadTime || time.Since(began) > 12*httpguard.ReadTime {
			t.Errorf("the connection ends after %s: %v", time.Since(began), err)
		}
		here.Close()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
