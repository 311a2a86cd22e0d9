package toolcall_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/activities/toolcall"
)

// A server with a URL is called like any other; its headers come from references.
func TestStreamableHTTP(t *testing.T) {
	t.Parallel()
	released := make(chan struct{})
	server := mcp.NewServer(&mcp.Implementation{Name: "remote", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "double"}, func(_ context.Context, _ *mcp.CallToolRequest, in struct {
		N int `json:"n"`
	},
	) (*mcp.CallToolResult, object, error) {
		return nil, object{"n": 2 * in.N}, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "hang"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ object) (*mcp.CallToolResult, any, error) {
		select {
		case <-ctx.Done():
		case <-released: // the site waits for its handlers
		}
		return nil, nil, context.Canceled
	})
	mcp.AddTool(server, &mcp.Tool{Name: "huge"}, func(context.Context, *mcp.CallToolRequest, object) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strings.Repeat("x", 2<<20)}}}, nil, nil
	})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer s3cret" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(site.Close)
	t.Cleanup(func() { close(released) })
	remote := func(token string) *harness {
		return open(t, "plain", func(c *toolcall.Config) {
			c.Servers["s"] = toolcall.Server{URL: site.URL, Headers: map[string]string{"Authorization": "Bearer ${env:T}"}}
			c.Secret = func(string) (string, error) { return token, nil }
			c.MaxOutputBytes, c.Timeout = 1<<20, 10*time.Second
		})
	}
	h := remote("s3cret")
	if got := h.execute(tool("double", object{"n": 4.0})); got != `{"n":8}` {
		t.Errorf("output %s", got)
	}
	wants(t, h.refuse(t.Context(), tool("doubel", nil), "MCP_PROTOCOL_ERROR"), `did you mean "double"?`)
	h.refuse(t.Context(), tool("huge", nil), "ACTIVITY_OUTPUT_TOO_LARGE")
	ctx, stop := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer stop()
	h.refuse(ctx, tool("hang", nil), "ACTIVITY_TIMEOUT")
	h.execute(tool("double", object{"n": 1.0}))

	wrong := remote("other-secret")
	if failure := wrong.refuse(t.Context(), tool("double", nil), "MCP_CLIENT_ERROR"); strings.Contains(failure.Error(), "other-secret") {
		t.Errorf("the key is in the text: %v", failure)
	}
}
