package mcphost_test

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/mcphost"
)

func machine(goos string, variables map[string]string) mcphost.Machine {
	m := mcphost.Machine{GOOS: goos, Home: "/home/kim", Directory: "/home/kim/p", Variable: func(n string) string { return variables[n] }}
	switch goos {
	case "darwin":
		m.Home, m.Directory = "/Users/kim", "/Users/kim/p"
	case "windows":
		m.Home, m.Directory = `C:\Users\kim`, `D:\p`
	}
	return m
}

// TestFiles: where each host keeps its file, by system.
func TestFiles(t *testing.T) {
	t.Parallel()
	roaming := map[string]string{"APPDATA": `C:\Users\kim\AppData\Roaming`}
	for _, c := range []struct {
		goos      string
		variables map[string]string
		scope     mcphost.Scope
		want      map[string]string // "" for none
	}{
		{"linux", nil, mcphost.User, map[string]string{
			"claude-code": "/home/kim/.claude.json", "claude-desktop": "", "cursor": "/home/kim/.cursor/mcp.json",
			"vscode": "/home/kim/.config/Code/User/mcp.json", "codex": "/home/kim/.codex/config.toml",
			"windsurf": "/home/kim/.codeium/windsurf/mcp_config.json", "opencode": "/home/kim/.config/opencode/opencode.json", "zed": "/home/kim/.config/zed/settings.json",
		}},
		{"linux", map[string]string{"XDG_CONFIG_HOME": "/c", "CODEX_HOME": "/x", "CLAUDE_CONFIG_DIR": "/cc"}, mcphost.User, map[string]string{
			"claude-code": "/cc/.claude.json", "vscode": "/c/Code/User/mcp.json", "codex": "/x/config.toml", "zed": "/c/zed/settings.json", "opencode": "/c/opencode/opencode.json",
		}},
		{"darwin", nil, mcphost.User, map[string]string{
			"claude-code":    "/Users/kim/.claude.json",
			"claude-desktop": "/Users/kim/Library/Application Support/Claude/claude_desktop_config.json",
			"vscode":         "/Users/kim/Library/Application Support/Code/User/mcp.json", "zed": "/Users/kim/.config/zed/settings.json",
			"opencode": "/Users/kim/.config/opencode/opencode.json",
		}},
		{"windows", roaming, mcphost.User, map[string]string{
			"claude-code":    `C:\Users\kim\.claude.json`,
			"claude-desktop": `C:\Users\kim\AppData\Roaming\Claude\claude_desktop_config.json`,
			"cursor":         `C:\Users\kim\.cursor\mcp.json`, "vscode": `C:\Users\kim\AppData\Roaming\Code\User\mcp.json`,
			"codex": `C:\Users\kim\.codex\config.toml`, "zed": `C:\Users\kim\AppData\Roaming\Zed\settings.json`,
			"opencode": `C:\Users\kim\.config\opencode\opencode.json`,
		}},
		{"windows", nil, mcphost.User, map[string]string{"vscode": `C:\Users\kim\AppData\Roaming\Code\User\mcp.json`}},
		{"linux", nil, mcphost.Project, map[string]string{
			"claude-code": "/home/kim/p/.mcp.json", "claude-desktop": "", "cursor": "/home/kim/p/.cursor/mcp.json",
			"vscode": "/home/kim/p/.vscode/mcp.json", "codex": "/home/kim/p/.codex/config.toml", "windsurf": "", "opencode": "/home/kim/p/opencode.json", "zed": "/home/kim/p/.zed/settings.json",
		}},
		{"windows", nil, mcphost.Project, map[string]string{"vscode": `D:\p\.vscode\mcp.json`}},
	} {
		for name, want := range c.want {
			got, err := find(t, name).File(machine(c.goos, c.variables), c.scope)
			if got != want || (err == nil) != (want != "") {
				t.Errorf("%s %s %s: %q %v, want %q", c.goos, c.scope, name, got, err, want)
			}
		}
	}
	m := machine("linux", nil)
	m.Home = ""
	for _, h := range mcphost.Known() {
		if file, err := h.File(m, mcphost.User); err == nil {
			t.Errorf("without a home folder: %s", file)
		}
	}
}

func TestInstalled(t *testing.T) {
	t.Parallel()
	m := machine("linux", nil)
	m.Home = t.TempDir()
	if err := os.MkdirAll(filepath.Join(m.Home, ".cursor"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, h := range mcphost.Known() {
		if h.Installed(m) != (h.Name == "cursor") {
			t.Errorf("%s: %v", h.Name, h.Installed(m))
		}
	}
}

// TestLinks decodes the addresses as the hosts do.
func TestLinks(t *testing.T) {
	t.Parallel()
	e := mcphost.Entry{Command: `C:\a b\we+1.exe`, Args: []string{"--db", "ü&?"}}
	u, err := url.Parse(find(t, "cursor").Link("my server", e))
	if err != nil || u.Scheme != "cursor" || u.Host+u.Path != "anysphere.cursor-deeplink/mcp/install" || u.Query().Get("name") != "my server" {
		t.Fatalf("%v %v", u, err)
	}
	text, err := base64.StdEncoding.DecodeString(u.Query().Get("config"))
	if want := `{"command":"C:\\a b\\we+1.exe","args":["--db","ü&?"]}`; err != nil || string(text) != want {
		t.Errorf("%s %v", text, err)
	}
	query, ok := strings.CutPrefix(find(t, "vscode").Link("my server", e), "vscode:mcp/install?")
	decoded, err := url.PathUnescape(query) // decodeURIComponent
	var got map[string]any
	if !ok || err != nil || json.Unmarshal([]byte(decoded), &got) != nil || got["name"] != "my server" || got["command"] != e.Command {
		t.Errorf("%s %v", decoded, err)
	}
	if link := find(t, "zed").Link("x", e); link != "" {
		t.Error(link)
	}
}

func TestPrint(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{
		"cursor":   "{\n  \"mcpServers\": {\n    \"w\": {\n      \"command\": \"/x\"\n    }\n  }\n}\n",
		"opencode": "{\n  \"mcp\": {\n    \"w\": {\n      \"type\": \"local\",\n      \"command\": [\n        \"/x\"\n      ]\n    }\n  }\n}\n",
		"codex":    "[mcp_servers.w]\ncommand = '/x'\n",
	} {
		if got := find(t, host).Print("w", mcphost.Entry{Command: "/x"}); got != want {
			t.Errorf("%s: %q", host, got)
		}
	}
}
