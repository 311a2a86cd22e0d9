package cli

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/internal/config"
)

// tool check lists the tools of a server that answers, and goes on after one that does not.
func TestManifestCheck(t *testing.T) {
	t.Parallel()
	server := mcp.NewServer(&mcp.Implementation{Name: "remote", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "double", Description: "Doubles a number.", InputSchema: map[string]any{"type": "object"}}, nil)
	site := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	t.Cleanup(site.Close)
	folder := t.TempDir()
	text := fmt.Sprintf(`{"mcpServers":{"a":{"command":"uvx"},"b":{"url":%q}}}`, site.URL)
	if err := os.WriteFile(filepath.Join(folder, "mcp.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	a := &app{
		stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr, now: time.Now,
		env: config.Environment{GOOS: runtime.GOOS, Home: folder, Directory: folder, ReadFile: os.ReadFile},
	}
	if got := a.execute(t.Context(), []string{"mcp-manifest", "check", "mcp.json"}); got != exitFailed {
		t.Errorf("status %d", got)
	}
	if got, want := stdout.String(), "b: 1 tool\n  double  Doubles a number.\n"; got != want {
		t.Errorf("stdout %q, want %q", got, want)
	}
	if !strings.Contains(stderr.String(), `command "uvx" may not be started`) {
		t.Errorf("stderr %q", stderr.String())
	}
}
