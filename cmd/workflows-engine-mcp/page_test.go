package main

import (
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/page"
)

// TestTheOriginToWhichAnswersLink is that of any page on this machine for the host that started the server, and that of the server itself for
// HTTP clients, unless they may be on other machines.
func TestTheOriginToWhichAnswersLink(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	token := filepath.Join(folder, "token")
	if err := os.WriteFile(token, []byte(httpToken), 0o600); err != nil {
		t.Fatal(err)
	}
	at := regexp.MustCompile(`serves the page at (http://[^/]+)`)
	for name, tt := range map[string]struct {
		args  []string
		links string // own, none, or those of others
	}{
		"stdio":              {nil, "others"},
		"no page":            {[]string{"--transport", "http", "--listen", "127.0.0.1:0"}, "none"},
		"page":               {[]string{"--transport", "http", "--listen", "127.0.0.1:0", "--page"}, "own"},
		"behind a proxy":     {[]string{"--transport", "http", "--listen", "127.0.0.1:0", "--page", "--allow-host", "flows.example.com"}, "none"},
		"for other machines": {[]string{"--transport", "http", "--listen", "0.0.0.0:0", "--page", "--token-file", token}, "none"},
	} {
		c, err := parse(append(tt.args, "--store-path", filepath.Join(folder, "runs.db")), io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		var said strings.Builder
		if _, err := c.open(nil, io.Discard, notices{lines: &said}); err != nil {
			t.Fatal(err)
		}
		switch got := ""; {
		case c.pageOrigin == nil:
			if tt.links != "none" {
				t.Errorf("%s: no function", name)
			}
		default:
			if got = c.pageOrigin(t.Context()); tt.links == "none" || tt.links == "others" && got != "" {
				t.Errorf("%s: %q", name, got)
			}
			if m := at.FindStringSubmatch(said.String()); tt.links == "own" && m[1] != got {
				t.Errorf("%s: links to %q, serves at %q", name, got, m[1])
			}
		}
	}
}

// TestHTTPPage: with --page the server of MCP clients has the web page, for the same token; without it there is none.
func TestHTTPPage(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(httpToken), 0o600); err != nil {
		t.Fatal(err)
	}
	visit := func(method, address, cookie string, form url.Values) (*http.Response, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		if method == http.MethodPost {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set("Origin", "http://"+r.Host)
		}
		r.Header.Set("Cookie", cookie)
		res, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, _ := io.ReadAll(res.Body)
		return res, string(text)
	}
	plain := spawnHTTP(t, nil, "--store-path", database(t), "--token-file", file)
	if res, text := visit("GET", strings.TrimSuffix(plain.url, "/mcp")+"/in", "", nil); res.StatusCode != http.StatusNotFound || !strings.Contains(text, "MCP clients connect to /mcp") {
		t.Errorf("without --page: status %d %s", res.StatusCode, text)
	}
	db := database(t)
	for name, args := range map[string][]string{"token": {"--token-file", file}, "link": nil} {
		s := spawnHTTP(t, nil, append([]string{"--page", "--store-path", db}, args...)...)
		origin, secret := strings.TrimSuffix(s.url, "/mcp"), httpToken
		if name == "link" {
			secret = regexp.MustCompile(`serves the page at (\S+)`).FindStringSubmatch(s.stderr.String())[1]
		}
		res, text := visit("POST", origin+"/in", "", url.Values{"t": {secret}})
		cookie, _, _ := strings.Cut(res.Header.Get("Set-Cookie"), ";")
		if res.StatusCode != http.StatusSeeOther || cookie == "" {
			t.Fatalf("%s: status %d %s", name, res.StatusCode, text)
		}
		if res, text = visit("GET", origin+"/system", cookie, nil); res.StatusCode != http.StatusOK || !strings.Contains(text, db) {
			t.Errorf("%s: status %d %s", name, res.StatusCode, text)
		}
		if got := page.RunningOrigin(t.Context(), db+".page"); got != origin {
			t.Errorf("%s: others find the page at %q", name, got)
		}
		if name == "token" {
			if _, err := s.connect(httpToken); err != nil {
				t.Errorf("MCP: %v", err)
			}
			if res, _ := visit("POST", s.url, cookie, nil); res.StatusCode != http.StatusUnauthorized {
				t.Errorf("MCP took a cookie: status %d", res.StatusCode)
			}
		}
		if status, _ := s.health(); status != http.StatusOK {
			t.Errorf("%s: health %d", name, status)
		}
	}
}
