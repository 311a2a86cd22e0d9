package httpworkflow_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/httpworkflow"
)

// text is a small definition; the version tells two of them apart.
func text(version string) string {
	return `{"document":{"schema":"s","name":"child","version":"` + version + `"},"state_schema":{"type":"object"},
		"nodes":[{"id":"a","type":"start"},{"id":"z","type":"end"}],
		"edges":[{"source":"__start__","target":"a"},{"source":"a","target":"z"}]}`
}

// site serves definitions, and counts what it is asked.
type site struct {
	*httptest.Server
	mu    sync.Mutex
	asked []*http.Request
}

func serve(t *testing.T, handler http.HandlerFunc) *site {
	t.Helper()
	s := &site{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked = append(s.asked, r)
		s.mu.Unlock()
		handler(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *site) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked)
}

// loopback allows the servers of tests.
var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

func open(t *testing.T, c httpworkflow.Config) *httpworkflow.Resolver {
	t.Helper()
	if c.RetryPause == 0 {
		c.RetryPause = time.Nanosecond
	}
	r, err := httpworkflow.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// trusting allows a site as a whole.
func trusting(t *testing.T, s *site) *httpworkflow.Resolver {
	return open(t, httpworkflow.Config{Allow: []string{s.URL}, PrivateNetworks: loopback})
}

func resolve(t *testing.T, r *httpworkflow.Resolver, ref, pin, version string) {
	t.Helper()
	d, err := r.ResolveWorkflow(t.Context(), ref, pin)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(d.Canonical()); !strings.Contains(got, `"version":"`+version+`"`) {
		t.Errorf("got %s, want version %s", got, version)
	}
}

func refuse(t *testing.T, r *httpworkflow.Resolver, ref string, code problem.Code, says string) {
	t.Helper()
	_, err := r.ResolveWorkflow(t.Context(), ref, "")
	if !errors.Is(err, code) || !strings.Contains(fmt.Sprint(err), says) {
		t.Errorf("%s: got %v, want %s: …%s…", ref, err, code, says)
	}
}

func TestForms(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/json":
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			fmt.Fprint(w, text("1"))
		case "/text", "/query":
			w.Header().Set("Content-Type", "text/plain")
			fmt.Fprint(w, text(r.URL.RawQuery+"1"))
		case "/none":
			w.Header()["Content-Type"] = nil
			fmt.Fprint(w, text("1"))
		case "/typed":
			w.Header().Set("Content-Type", "application/yaml")
			fmt.Fprint(w, "document: {schema: s, name: child, version: '1'}\n")
		case "/named.yaml":
			fmt.Fprint(w, "document: {schema: s, name: child, version: '1'}\n")
		case "/moved":
			http.Redirect(w, r, "/json", http.StatusFound)
		}
	})
	r := trusting(t, s)
	for _, path := range []string{"/json", "/text", "/none", "/typed", "/named.yaml", "/moved", "/json#part"} {
		resolve(t, r, s.URL+path, "", "1")
	}
	resolve(t, r, s.URL+"/query?v=", "", "v=1")
	resolve(t, r, strings.Replace(s.URL, "http://", "HTTP://", 1)+"/json", "", "1")
}

// What a server can do wrong, one code for each.
func TestServersThatFail(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/page":
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<html>")
		case "/half":
			w.Header().Set("Content-Length", "5000")
			fmt.Fprint(w, text("1"))
		case "/announced":
			w.Header().Set("Content-Length", "100000000")
			fmt.Fprint(w, "{")
		case "/huge":
			for block := []byte(strings.Repeat(" ", 1<<20)); ; {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
		case "/broken":
			fmt.Fprint(w, `{"document":`)
		case "/twice":
			fmt.Fprint(w, `{"document":{},"document":{}}`)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case "/busy":
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	})
	r := trusting(t, s)
	refuse(t, r, s.URL+"/none", problem.WorkflowNotFound, "404")
	refuse(t, r, s.URL+"/page", problem.WorkflowNotFound, "web page (text/html)")
	refuse(t, r, s.URL+"/loop", problem.WorkflowNotFound, "redirected more than 5 times")
	refuse(t, r, s.URL+"/half", problem.WorkflowNotFound, "broke off")
	refuse(t, r, s.URL+"/huge", problem.ValidationError, "larger than 2097152 bytes")
	refuse(t, r, s.URL+"/announced", problem.ValidationError, "larger than 2097152 bytes")
	refuse(t, r, s.URL+"/broken", problem.ValidationError, "not a definition")
	refuse(t, r, s.URL+"/twice", problem.ValidationError, "not a definition")
	before := s.count()
	refuse(t, r, s.URL+"/busy", problem.WorkflowNotFound, "503")
	if n := s.count() - before; n != 3 {
		t.Errorf("asked %d times, want 3", n)
	}
	s.Close()
	refuse(t, r, s.URL+"/none", problem.WorkflowNotFound, "cannot be fetched")
}

func TestSlowServer(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "{")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	r := open(t, httpworkflow.Config{Allow: []string{s.URL}, PrivateNetworks: loopback, Timeout: 50 * time.Millisecond})
	refuse(t, r, s.URL+"/x", problem.WorkflowNotFound, "no whole answer within 50ms")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := trusting(t, s).ResolveWorkflow(ctx, s.URL+"/x", ""); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// A failure that passes does not show.
func TestFailuresThatPass(t *testing.T) {
	t.Parallel()
	var s *site
	s = serve(t, func(w http.ResponseWriter, _ *http.Request) {
		switch s.count() {
		case 1:
			w.WriteHeader(http.StatusBadGateway)
		case 2:
			w.Header().Set("Content-Length", "5000")
			fmt.Fprint(w, text("1"))
		default:
			fmt.Fprint(w, text("1"))
		}
	})
	resolve(t, trusting(t, s), s.URL, "", "1")
	if n := s.count(); n != 3 {
		t.Errorf("asked %d times", n)
	}
}
