package httpguard_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/httpguard"
)

// TestHostsBeyondThisMachine: a server that listens on another address than loopback can be addressed by any address, but by no name that
// is not allowed, because a page cannot have an address resolved.
func TestHostsBeyondThisMachine(t *testing.T) {
	t.Parallel()
	passed := 0
	h := guarded(httpguard.Access{Hosts: []string{"Flows.example.com:443"}}, func(http.ResponseWriter, *http.Request) { passed++ })
	for host, want := range map[string]bool{
		"192.0.2.7": true, "192.0.2.7:8770": true, "[2001:db8::1]:8770": true, "localhost": true, "flows.example.com": true, "flows.example.com:9": true,
		"evil.example": false, "flows.example.com.evil.example": false, "192.0.2.7.evil.example": false, "": false, "0x7f.1": false, "127.1": false,
	} {
		r := httptest.NewRequestWithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 8770}), "GET", "/mcp", nil)
		r.Host = host
		w := httptest.NewRecorder()
		passed = 0
		h.ServeHTTP(w, r)
		if (passed == 1) != want || (w.Code == 403) == want {
			t.Errorf("%q: %d %s", host, w.Code, w.Body)
		}
	}
}

// TestParseOrigin holds what an origin is.
func TestParseOrigin(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"https://App.Example.com": "https://app.example.com", "https://a.b:443": "https://a.b", "http://a.b:80": "http://a.b", "http://a.b:443": "http://a.b:443",
		"http://[::1]:80": "http://[::1]", "vscode-webview://1x": "vscode-webview://1x", "": "", "*": "", "null": "", "a.b": "", "https://": "", "https://a.b/": "",
		"https://a.b/x": "", "https://u@a.b": "", "https://a.b?x": "", "https://a.b#x": "", "https://:443": "", "https://a.b:x": "", "mailto:a@b": "",
	} {
		if got, err := httpguard.ParseOrigin(text); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
}

// FuzzOrigin: whatever an origin is, only this machine's pages and those that are allowed pass.
func FuzzOrigin(f *testing.F) {
	for _, seed := range []string{"http://localhost", "http://127.0.0.1:1", "https://app.example.com", "http://localhost@evil.example", "http://[::1%25x]", "http://127.0.0.1.evil.example", "null"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, origin string) {
		passed := false
		h := guarded(httpguard.Access{Origins: []string{"https://app.example.com"}, LocalPages: true}, func(http.ResponseWriter, *http.Request) { passed = true })
		r := httptest.NewRequest("GET", "/mcp", nil)
		r.Host = "127.0.0.1"
		r.Header.Set("Origin", origin)
		h.ServeHTTP(httptest.NewRecorder(), r)
		u, err := url.Parse(origin)
		if !passed || origin == "" {
			return
		}
		if err != nil {
			t.Fatalf("%q passed, and is none: %v", origin, err)
		}
		host := strings.ToLower(u.Hostname())
		ip := net.ParseIP(strings.Split(host, "%")[0])
		if host != "localhost" && host != "app.example.com" && (ip == nil || !ip.IsLoopback()) || u.User != nil {
			t.Errorf("%q passed", origin)
		}
	})
}

// TestLocalPagesAreAChoice: without LocalPages, a page of this machine is one of another site.
func TestLocalPagesAreAChoice(t *testing.T) {
	t.Parallel()
	for _, local := range []bool{false, true} {
		passed := false
		h := guarded(httpguard.Access{LocalPages: local}, func(http.ResponseWriter, *http.Request) { passed = true })
		r := httptest.NewRequest("GET", "/mcp", nil)
		r.Host = "127.0.0.1"
		r.Header.Set("Origin", "http://localhost:3000")
		h.ServeHTTP(httptest.NewRecorder(), r)
		if passed != local {
			t.Errorf("LocalPages %v: passed %v", local, passed)
		}
	}
}
