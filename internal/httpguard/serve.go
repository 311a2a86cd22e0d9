package httpguard

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// StopLimit bounds the wait for pending answers when the server stops, as with standard input and output.
	StopLimit = 2 * time.Second
	// headerTime is the time limit for the head of a request, keepTime for an unused connection.
	headerTime, keepTime = 10 * time.Second, 2 * time.Minute
	// ReadTime is how long the body of a request may take to come in.
	ReadTime = time.Minute
	// writeTime is the time limit for a client to read its answer.
	writeTime = time.Minute
	// maxHeaderBytes bounds the head of a request.
	maxHeaderBytes = 64 << 10
)

// Serve serves h at an address until ctx ends, then for StopLimit at most: h has to end the pending calls when ctx
// ends. Listening clients stay connected until those have been answered. It returns nil then, and closes the listener
// in any case.
func Serve(ctx context.Context, l net.Listener, h http.Handler, log *slog.Logger) error {
	var known connections
	calls := &counter{idle: make(chan struct{}, 1)}
	listen, endListening := context.WithCancel(context.Background())
	defer endListening()
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			// The server reads an unread body, to a limit, after the answer.
			if known.begin(w, r) {
				LimitRead(w, r)
				LimitWrite(w)
			} else {
				limitRead(w, r, strangerTime)
				limitWrite(w, strangerTime)
			}
			defer LimitWrite(w) // for the end of the answer
			if r.Method == http.MethodGet {
				listening, end := context.WithCancel(r.Context())
				defer end()
				defer context.AfterFunc(listen, end)()
				r = r.WithContext(listening)
			} else {
				calls.add(1)
				defer calls.add(-1)
			}
			h.ServeHTTP(w, r)
		}),
		ReadHeaderTimeout: headerTime, IdleTimeout: keepTime, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog:    slog.NewLogLogger(log.Handler(), slog.LevelInfo),
		ConnContext: known.accept,
		ConnState: func(c net.Conn, state http.ConnState) {
			if state == http.StateClosed || state == http.StateHijacked {
				known.ended(c)
			}
		},
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	patience, cancel := context.WithTimeout(context.Background(), StopLimit)
	defer cancel()
	go func() {
		calls.wait(patience)
		endListening()
	}()
	if err := server.Shutdown(patience); err != nil {
		log.Warn("closed before every request was answered")
		_ = server.Close()
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// LimitWrite sets a deadline for the next write: an answer that is not read would stay in memory.
func LimitWrite(w http.ResponseWriter) { limitWrite(w, writeTime) }

func limitWrite(w http.ResponseWriter, limit time.Duration) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(limit)) // not every writer has deadlines
}

// LimitRead sets a deadline for the unread body of a request, from now on. It ends with the body: while the request is being answered, the
// server reads ahead to notice that the client has gone, and a deadline would cancel this request and all later ones of its connection.
func LimitRead(w http.ResponseWriter, r *http.Request) { limitRead(w, r, ReadTime) }

func limitRead(w http.ResponseWriter, r *http.Request, limit time.Duration) {
	if r.Body == nil || r.Body == http.NoBody {
		return
	}
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Now().Add(limit)) // not every writer has deadlines
	r.Body = &limitedBody{r.Body, c}
}

// limitedBody is a body with a deadline.
type limitedBody struct {
	io.ReadCloser
	c *http.ResponseController
}

func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF { //nolint:errorlint // a reader returns it as it is
		_ = b.c.SetReadDeadline(time.Time{})
	}
	return n, err
}

// counter counts pending requests.
type counter struct {
	mu sync.Mutex
	n  int
	// idle gets a value when no request is pending any more.
	idle chan struct{}
}

func (c *counter) add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n += n
	if c.n == 0 {
		select {
		case c.idle <- struct{}{}:
		default:
		}
	}
}

// wait waits until no request is pending, or until ctx ends.
func (c *counter) wait(ctx context.Context) {
	for {
		c.mu.Lock()
		n := c.n
		c.mu.Unlock()
		if n == 0 {
			return
		}
		select {
		case <-c.idle:
		case <-ctx.Done():
			return
		}
	}
}
