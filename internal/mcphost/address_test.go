package mcphost_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/mcphost"
)

// address is an entry of a server that listens.
var address = mcphost.Entry{URL: "http://127.0.0.1:8770/mcp", TokenEnv: "WF_TOKEN"}

// TestAddresses writes an address as each host reads it. It is read again as it was, a second time changes nothing, and taking it
// out restores the file.
func TestAddresses(t *testing.T) {
	t.Parallel()
	const header = `"headers":{"Authorization":"Bearer `
	for host, want := range map[string]string{
		"claude-code": `{"mcpServers":{"w":{"type":"http","url":"http://127.0.0.1:8770/mcp",` + header + `${WF_TOKEN}"}}}}`,
		"cursor":      `{"mcpServers":{"w":{"url":"http://127.0.0.1:8770/mcp",` + header + `${env:WF_TOKEN}"}}}}`,
		"vscode":      `{"servers":{"w":{"type":"http","url":"http://127.0.0.1:8770/mcp",` + header + `${env:WF_TOKEN}"}}}}`,
		"opencode":    `{"mcp":{"w":{"type":"remote","url":"http://127.0.0.1:8770/mcp",` + header + `{env:WF_TOKEN}"}}}}`,
		"windsurf":    `{"mcpServers":{"w":{"serverUrl":"http://127.0.0.1:8770/mcp",` + header + `${env:WF_TOKEN}"}}}}`,
	} {
		h := find(t, host)
		const before = "{}"
		got, err := h.Add("f", []byte(before), "w", address)
		shown := strings.ReplaceAll(strings.ReplaceAll(string(got), " ", ""), "Bearer", "Bearer ")
		if err != nil || strings.ReplaceAll(shown, "\n", "") != strings.ReplaceAll(want, "\n", "") {
			t.Errorf("%s: %v\n%s\nwant\n%s", host, err, shown, want)
		}
		if entries, err := h.Entries("f", got); err != nil || !reflect.DeepEqual(entries["w"], address) {
			t.Errorf("%s: read as %+v %v", host, entries["w"], err)
		}
		if again, err := h.Add("f", got, "w", address); err != nil || string(again) != string(got) {
			t.Errorf("%s: a second time: %v\n%s", host, err, again)
		}
		if undone, had, err := h.Undone("f", got, "w", [][]byte{[]byte(before)}); !had || err != nil || string(undone) != before {
			t.Errorf("%s: undone %q %v %v", host, undone, had, err)
		}
	}
}

// TestAddressInThePlaceOfAProgram leaves none of the members that start a program, and the other way round.
func TestAddressInThePlaceOfAProgram(t *testing.T) {
	t.Parallel()
	h := find(t, "vscode")
	started, err := h.Add("f", nil, "w", entry)
	if err != nil {
		t.Fatal(err)
	}
	connected, err := h.Add("f", started, "w", address)
	if fresh, _ := h.Add("f", nil, "w", address); err != nil || string(connected) != string(fresh) {
		t.Errorf("%v\n%s", err, connected)
	}
	if back, err := h.Add("f", connected, "w", entry); err != nil || string(back) != string(started) {
		t.Errorf("back: %v\n%s", err, back)
	}
}

// TestAddressKeepsWhatTheUserAdded: other headers and members stay, and the variable if no other is named.
func TestAddressKeepsWhatTheUserAdded(t *testing.T) {
	t.Parallel()
	h := find(t, "cursor")
	text := `{"mcpServers": {"w": {"url": "http://old/mcp", "headers": {"X": "1", "Authorization": "Bearer ${env:OLD}"}, "disabled": true}}}`
	got, err := h.Add("f", []byte(text), "w", mcphost.Entry{URL: "http://new/mcp"})
	if want := strings.Replace(text, "old/", "new/", 1); err != nil || string(got) != want {
		t.Errorf("%v\n%s", err, got)
	}
	got, err = h.Add("f", []byte(text), "w", mcphost.Entry{URL: "http://old/mcp", TokenEnv: "NEW"})
	if want := strings.Replace(text, "OLD", "NEW", 1); err != nil || string(got) != want {
		t.Errorf("%v\n%s", err, got)
	}
}

// TestHostsWithoutAddresses refuses what a host's file cannot say.
func TestHostsWithoutAddresses(t *testing.T) {
	t.Parallel()
	for host, e := range map[string]mcphost.Entry{"claude-desktop": {URL: address.URL}, "zed": address} {
		if _, err := find(t, host).Add("f", nil, "w", e); !errors.Is(err, problem.UsageError) {
			t.Errorf("%s: %v", host, err)
		}
	}
	if got, err := find(t, "zed").Add("f", nil, "w", mcphost.Entry{URL: address.URL}); err != nil || !strings.Contains(string(got), `"url": "http://127.0.0.1:8770/mcp"`) {
		t.Errorf("%s %v", got, err)
	}
}

// TestNPX: npx starts the server; what it is told itself is not among the server's flags, which are kept when the program changes.
func TestNPX(t *testing.T) {
	t.Parallel()
	h := find(t, "cursor")
	path := mcphost.Entry{Command: "/bin/workflows-engine-mcp", Args: []string{"--db", "x"}}
	text, err := h.Add("f", nil, "w", path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ goos, want string }{
		{"linux", "npx -y workflows-engine-mcp --db x"},
		{"windows", "cmd /c npx -y workflows-engine-mcp --db x"},
	} {
		byNPX, err := h.Add("f", text, "w", mcphost.NPX(c.goos, nil))
		entries, _ := h.Entries("f", byNPX)
		if e := entries["w"]; err != nil || !e.Starts() || strings.Join(append([]string{e.Command}, e.Args...), " ") != c.want {
			t.Errorf("%s: %+v %v", c.goos, e, err)
		}
		back, err := h.Add("f", byNPX, "w", mcphost.Entry{Command: path.Command})
		if entries, _ := h.Entries("f", back); err != nil || !reflect.DeepEqual(entries["w"], path) {
			t.Errorf("back: %+v %v", entries["w"], err)
		}
	}
	if e := mcphost.NPX("linux", []string{"--db", "y"}); strings.Join(e.Args, " ") != "-y workflows-engine-mcp --db y" {
		t.Errorf("%+v", e)
	}
}
