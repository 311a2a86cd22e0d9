package httpworkflow_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/httpworkflow"
)

// FuzzAnswer fetches a workflow from a server that answers anything: there is a definition, or an error with a code that says nothing
// of the answer but what is wrong with it. What was kept is asked for again as its headers say.
func FuzzAnswer(f *testing.F) {
	f.Add(200, "application/json", "max-age=60", `"1"`, []byte(text("1")))
	f.Add(200, "application/yaml", "no-store", "", []byte("document: {schema: s, name: child, version: '1'}\n"))
	f.Add(304, "text/html; charset=utf-8", `private, Max-Age="99999999999999999999"`, "W/\"x\"", []byte("<html>"))
	f.Add(302, "", "no-cache", "", []byte(`{"document":{}}`))
	f.Add(503, "text/plain", "max-age=-1", "", []byte{})
	var status int
	var header http.Header
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for name, values := range header {
			w.Header()[name] = values
		}
		w.WriteHeader(status)
		_, _ = w.Write(body)
	}))
	f.Cleanup(server.Close)
	f.Fuzz(func(t *testing.T, code int, kind, caching, tag string, answer []byte) {
		status, body = 200+abs(code)%400, answer
		header = http.Header{"Content-Type": {oneLine(kind)}, "Cache-Control": {oneLine(caching)}, "Etag": {oneLine(tag)}, "Location": {"/" + url.PathEscape(tag)}}
		now := time.Unix(1_800_000_000, 0)
		r, err := httpworkflow.New(httpworkflow.Config{
			Allow: []string{server.URL}, PrivateNetworks: loopback, RetryPause: time.Nanosecond, MaxBytes: 4096, Now: func() time.Time { return now },
		})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			document, err := r.ResolveWorkflow(t.Context(), server.URL+"/a", "")
			p, coded := problem.As(err)
			switch {
			case (document == nil) != (err != nil):
				t.Fatalf("%v and %v", document, err)
			case err != nil && (!coded || p.Code != problem.WorkflowNotFound && p.Code != problem.ValidationError):
				t.Fatalf("refused without its code: %v", err)
			case err == nil && len(document.Canonical()) == 0:
				t.Fatal("an empty definition")
			}
			now = now.Add(30 * time.Second)
		}
	})
}

func abs(n int) int {
	if n < 0 {
		return -(n + 1)
	}
	return n
}

// oneLine is a text as a header can hold it.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, s)
}

// FuzzAddress asks for any address: no request is made for one outside of what is allowed, however it is spelt.
func FuzzAddress(f *testing.F) {
	for _, address := range []string{
		"/flows/a", "/flows/../b", "/flows/%2e%2e/b", "/flows//b", "/flows/..;/b", "/flows2", "/flows/%252e%252e/b", "@evil/flows/", `/flows/\..\b`,
		"/flows/a#/../b", "/flows/a?x=/../b", "/FLOWS/a", "/flows/%61", "/flows/a%00",
	} {
		f.Add(address)
	}
	var asked string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Path
		_, _ = io.WriteString(w, text("1"))
	}))
	f.Cleanup(server.Close)
	r, err := httpworkflow.New(httpworkflow.Config{Allow: []string{server.URL + "/flows"}, PrivateNetworks: loopback, RetryPause: time.Nanosecond})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, rest string) {
		asked = "/flows"
		document, err := r.ResolveWorkflow(t.Context(), server.URL+rest, "")
		if _, coded := problem.As(err); (document == nil) != (err != nil) || err != nil && !coded {
			t.Fatalf("%q: %v, %v", rest, document, err)
		}
		if asked != "/flows" && !strings.HasPrefix(asked, "/flows/") || strings.Contains(asked+"/", "/../") {
			t.Fatalf("%q: the server was asked for %q", rest, asked)
		}
	})
}
