package toolcall_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/activities/toolcall"
)

// A key that was replaced while a session lives is read again when the server does not accept the old one, and the call is repeated once. The
// new key is masked as the old one is.
func TestHeadersAreReadAgain(t *testing.T) {
	t.Parallel()
	var accepted, known atomic.Value
	accepted.Store("the-first-key-of-all")
	known.Store("the-first-key-of-all")
	var calls, refused atomic.Int64
	server := mcp.NewServer(&mcp.Implementation{Name: "remote", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "count"}, func(_ context.Context, req *mcp.CallToolRequest, _ object) (*mcp.CallToolResult, object, error) {
		return nil, object{"calls": calls.Add(1), "sent": req.Extra.Header.Get("Authorization")}, nil
	})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+accepted.Load().(string) {
			refused.Add(1)
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(site.Close)
	h := open(t, "plain", func(c *toolcall.Config) {
		c.Servers["s"] = toolcall.Server{URL: site.URL, Headers: map[string]string{"Authorization": "Bearer ${env:T}"}}
		c.Secret = func(string) (string, error) { return known.Load().(string), nil }
	})
	if got := h.execute(tool("count", nil)); got != `{"calls":1,"sent":"Bearer [REDACTED]"}` {
		t.Errorf("output %s", got)
	}
	accepted.Store("the-second-key-of-all")
	known.Store("the-second-key-of-all")
	if got := h.execute(tool("count", nil)); got != `{"calls":2,"sent":"Bearer [REDACTED]"}` {
		t.Errorf("output %s", got)
	}
	if n := refused.Load(); n != 1 {
		t.Errorf("%d requests were refused, want 1", n)
	}
	// A key that stays wrong is tried once more and not again.
	accepted.Store("a-key-that-nobody-has")
	if f := h.refuse(t.Context(), tool("count", nil), "MCP_CLIENT_ERROR"); !strings.Contains(f.Message, "rejects the headers") || strings.Contains(f.Error(), "second-key") {
		t.Errorf("%v", f)
	}
	if n := refused.Load(); calls.Load() != 2 || n > 5 {
		t.Errorf("%d calls, %d refusals", calls.Load(), n)
	}
}
