package httpguard

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

// HealthPath is where servers answer Health.
const HealthPath = "/healthz"

// Health returns a handler that answers 200 while a program works, and 503 while it does not. It calls ask at most once
// a second; a nil ask always works.
func Health(ask func(context.Context) error) http.Handler { return &health{ask: ask} }

// health answers health checks.
type health struct {
	ask func(context.Context) error

	mu    sync.Mutex
	asked time.Time
	err   error
}

const (
	// healthEvery is how long a result is reused: any client may ask, at any rate.
	healthEvery = time.Second
	// healthTime bounds a check.
	healthTime = 2 * time.Second
)

func (h *health) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if err := h.now(r.Context()); err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, "unavailable\n")
		return
	}
	_, _ = io.WriteString(w, "ok\n")
}

func (h *health) now(ctx context.Context) error {
	if h.ask == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Since(h.asked) >= healthEvery {
		// A client that disconnects must not leave an error for the next one.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), healthTime)
		defer cancel()
		h.err = h.ask(ctx)
		h.asked = time.Now()
	}
	return h.err
}
