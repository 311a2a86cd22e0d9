package streamable_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/mcpserver/streamable"
)

// TestAPanicIsAnswered: a handler that panics before it answers leaves a JSON-RPC error with the id of the request. One that panics in the
// middle of an answer has the connection closed.
func TestAPanicIsAnswered(t *testing.T) {
	t.Parallel()
	begin := false
	h := streamable.Handler(streamable.Options{}, func(w http.ResponseWriter, _ *http.Request, _ *streamable.Message) {
		if begin {
			_, _ = w.Write([]byte("half"))
		}
		panic("a stone")
	})
	play := func() (w *httptest.ResponseRecorder, panicked any) {
		defer func() { panicked = recover() }()
		r := httptest.NewRequest("POST", "/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":"a","method":"ping"}`))
		r.Host = "localhost"
		r.Header.Set("Content-Type", "application/json")
		w = httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w, nil
	}
	if w, panicked := play(); panicked != nil || w.Code != http.StatusInternalServerError ||
		!strings.HasPrefix(w.Body.String(), `{"jsonrpc":"2.0","id":"a","error":{"code":-32603,`) || strings.Contains(w.Body.String(), "stone") {
		t.Errorf("%d %s, panic %v", w.Code, w.Body, panicked)
	}
	begin = true
	if _, panicked := play(); panicked != http.ErrAbortHandler {
		t.Errorf("panic %v", panicked)
	}
}
