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
)

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
