package httpbody_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/httpbody"
)

// TestSwitchingProtocols: an answer that makes another protocol of the connection, and then says nothing, is read at once.
func TestSwitchingProtocols(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/plain" {
			_, _ = io.WriteString(w, "text")
			return
		}
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = fmt.Fprint(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: talk\r\n\r\n")
		t.Cleanup(func() { _ = c.Close() })
	}))
	t.Cleanup(s.Close)
	for path, want := range map[string]string{"/": "", "/plain": "text"} {
		res, err := s.Client().Get(s.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(httpbody.Of(res)); err != nil || string(body) != want {
			t.Errorf("%s: %q, %v", path, body, err)
		}
		_ = res.Body.Close()
	}
}
