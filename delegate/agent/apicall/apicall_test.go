package apicall_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate/agent"
	"github.com/workflows-engine/workflows-engine/delegate/agent/apicall"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

type object = map[string]any

const token = "tok-very/secret+value 77"

func secret(value string) apicall.Secret {
	return func(context.Context) (string, error) { return value, nil }
}

// shop is a service that keeps the requests it gets.
type shop struct {
	*httptest.Server
	mu       sync.Mutex
	requests []*http.Request
	bodies   []string
}

func newShop(t *testing.T, handle http.HandlerFunc) *shop {
	t.Helper()
	s := &shop{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.requests, s.bodies = append(s.requests, r), append(s.bodies, string(body))
		s.mu.Unlock()
		if handle != nil {
			handle(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *shop) last() (*http.Request, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.requests) == 0 {
		return nil, ""
	}
	return s.requests[len(s.requests)-1], s.bodies[len(s.bodies)-1]
}

func (s *shop) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests)
}

func tools(t *testing.T, s apicall.Service, observe func(apicall.Report)) *apicall.Toolset {
	t.Helper()
	if s.AllowedPaths == nil {
		s.AllowedPaths = []string{"^/"}
	}
	apis := enginetest.Must(apicall.New(apicall.Config{Services: map[string]apicall.Service{"widgets": s}, Observe: observe}))
	t.Cleanup(func() { _ = apis.Close() })
	return enginetest.Must(apis.Tools([]string{"widgets"}))
}

func call(t *testing.T, set agent.Toolset, arguments object) (object, *activities.Failure) {
	t.Helper()
	if arguments["service"] == nil {
		arguments["service"] = "widgets"
	}
	out, err := set.Call(t.Context(), agent.Call{Name: apicall.Name, Arguments: arguments})
	if err != nil {
		failure, ok := errors.AsType[*activities.Failure](err)
		if !ok {
			t.Fatalf("%v: %v", arguments, err)
		}
		return nil, failure
	}
	if plain, err := jsonvalue.Normalize(out); err != nil || !jsonvalue.Equal(plain, out) {
		t.Errorf("the result is not plain JSON: %v", err)
	}
	return out.(object), nil
}

func TestCall(t *testing.T) {
	t.Parallel()
	s := newShop(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-RateLimit-Remaining", "7")
		w.Header().Set("Set-Cookie", "a=b")
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusCreated)
		}
		fmt.Fprint(w, `{"id": 7, "name": "tea"}`)
	})
	var seen []apicall.Report
	set := tools(t, apicall.Service{
		BaseURL: s.URL + "/v1/", Auth: apicall.Bearer(secret(token)), AllowedPaths: []string{"^/widgets(/[0-9]+)?$"}, AllowedMethods: []string{"GET", "POST"},
	}, func(r apicall.Report) { seen = append(seen, r) })
	out, failure := call(t, set, object{"method": "GET", "path": "/widgets/7", "query": "full=1&q=a%20b", "headers": object{"Accept": "application/json", "X-Trace": "9"}})
	want := object{"status": 200.0, "headers": object{"Content-Type": "text/plain; charset=utf-8", "X-Ratelimit-Remaining": "7"}, "body": object{"id": 7.0, "name": "tea"}}
	if failure != nil || !jsonvalue.Equal(out, want) {
		t.Errorf("%v, %v", out, failure)
	}
	r, _ := s.last()
	if r.URL.String() != "/v1/widgets/7?full=1&q=a%20b" || r.Header.Get("Authorization") != "Bearer "+token || r.Header.Get("X-Trace") != "9" || r.Header.Get("User-Agent") != "workflows-engine" {
		t.Errorf("%s %v", r.URL, r.Header)
	}
	for _, c := range []struct {
		more       object
		kind, body string
	}{
		{object{"body": object{"b": 1.0, "a": []any{"ü"}}}, "application/json", `{"a":["ü"],"b":1}`},
		{object{"body": "text"}, "application/json", `"text"`},
		{object{"body": "a=b", "bodyEncoding": "raw"}, "text/plain; charset=utf-8", "a=b"},
		{object{"body": "a=b", "bodyEncoding": "raw", "headers": object{"Content-Type": "application/x-www-form-urlencoded"}}, "application/x-www-form-urlencoded", "a=b"},
		{object{"body": nil}, "", ""},
	} {
		c.more["method"], c.more["path"] = "POST", "/widgets"
		out, failure := call(t, set, c.more)
		r, body := s.last()
		if failure != nil || out["status"] != 201.0 || body != c.body || r.Header.Get("Content-Type") != c.kind {
			t.Errorf("%v: %v, %v, %q as %q", c.more, out, failure, body, r.Header.Get("Content-Type"))
		}
	}
	if len(seen) != 6 || seen[0].Service != "widgets" || seen[0].Method != "GET" || seen[0].Path != "/widgets/7" || seen[0].Status != 200 || seen[0].BytesIn != 24 || seen[0].Latency <= 0 {
		t.Errorf("%+v", seen)
	}
}

// What is not allowed is not sent: paths however they are written, methods, bodies.
func TestForbidden(t *testing.T) {
	t.Parallel()
	s := newShop(t, nil)
	set := tools(t, apicall.Service{
		BaseURL: s.URL, AllowedPaths: []string{"^/widgets(/[0-9]+)?$", "^/open/", "^/a|/b"}, AllowedMethods: []string{"GET", "POST"}, MaxBodyBytes: 10,
	}, nil)
	other := newShop(t, nil)
	for _, path := range []string{
		"", "widgets", "/", "/widget", "/widgets/7/x", "/widgets/7\n", "/widgets/x", "/x/widgets", "/Widgets", "/x/b",
		"/open/../widgets", "/open/..", "/open/%2e%2e/admin", "/open/%2E%2E/admin", "/open/.%2e/admin", "/open/..%2fadmin", "/open/%2f", "/open/..%5cadmin", `/open/..\admin`, "/open/%252e%252e/x",
		"/open/..;/admin", "/open/.;/x", "//open/x", "/open//x", "/open/./x", "/open/x#y", "/open/%zz", "/open/%", "/open/%00", "/open/%0d%0aX:y", "/open/\r\nX: y", "/open/%ff", "/open/\xff",
		other.URL + "/open/x", "//" + strings.TrimPrefix(other.URL, "http://") + "/open/x", "@" + strings.TrimPrefix(other.URL, "http://"), ":80/open/x", ".evil.example/open/x", "/open/" + strings.Repeat("x", 9000),
	} {
		if _, failure := call(t, set, object{"method": "GET", "path": path}); failure == nil || failure.Code != "API_PATH_FORBIDDEN" {
			t.Errorf("%q: %v", path, failure)
		}
	}
	for _, c := range []struct {
		arguments object
		code      string
	}{
		{object{"method": "DELETE", "path": "/widgets"}, "API_METHOD_FORBIDDEN"},
		{object{"method": "GET", "path": "/widgets?a=1", "query": "b=2"}, "API_PATH_FORBIDDEN"},
		{object{"method": "GET", "path": "/widgets", "query": "b=2#c"}, "API_PATH_FORBIDDEN"},
		{object{"method": "GET", "path": "/widgets", "query": "b=a b"}, "API_PATH_FORBIDDEN"},
		{object{"method": "", "path": "/widgets"}, "API_METHOD_FORBIDDEN"},
		{object{"method": "post", "path": "/widgets"}, "API_METHOD_FORBIDDEN"},
		{object{"method": " POST", "path": "/widgets"}, "API_METHOD_FORBIDDEN"},
		{object{"method": "PO\u017fT", "path": "/widgets"}, "API_METHOD_FORBIDDEN"},
		{object{"method": "GET", "path": "/widgets", "headers": object{"x-dry-run": "false"}}, "TOOL_ARGUMENTS_INVALID"},
		{object{"method": "GET", "path": "/widgets", "headers": object{"X-Dry-Run": "true", "X-DRY-RUN": "false"}}, "TOOL_ARGUMENTS_INVALID"},
		{object{"method": "GET", "path": "/widgets", "headers": object{"X-Dry-Run": "true", "X_Dry_Run": "false"}}, "TOOL_ARGUMENTS_INVALID"},
		{object{"method": "GET", "path": "/widgets", "headers": object{"X-Dry-Run": " true"}}, "TOOL_ARGUMENTS_INVALID"},
		{object{"method": "GET / HTTP/1.1\r\nX: y\r\n\r\nGET", "path": "/widgets"}, "API_METHOD_FORBIDDEN"},
		{object{"method": "POST", "path": "/widgets", "body": "12345678901", "bodyEncoding": "raw"}, "API_BODY_TOO_LARGE"},
		{object{"method": "POST", "path": "/widgets", "body": object{"a": "12345"}}, "API_BODY_TOO_LARGE"},
		{object{"method": "POST", "path": "/widgets", "body": object{"a": 1.0}, "bodyEncoding": "raw"}, "API_RAW_BODY_NOT_TEXT"},
		{object{"service": "other", "method": "GET", "path": "/widgets"}, "API_SERVICE_UNKNOWN"},
	} {
		if _, failure := call(t, set, c.arguments); failure == nil || failure.Code != c.code {
			t.Errorf("%v: %v", c.arguments, failure)
		}
	}
	if s.count() != 0 || other.count() != 0 {
		t.Errorf("%d and %d requests were sent", s.count(), other.count())
	}
	for path, sent := range map[string]string{"/widgets": "/widgets", "/widgets/12": "/widgets/12", "/open/a%20b": "/open/a%20b", "/open/%C3%BC?x=%22%3C": "/open/%C3%BC?x=%22%3C", "/open/x?q=a%26b+c&r=[1]": "/open/x?q=a%26b+c&r=[1]", "/open/x%3Fy": "/open/x%3Fy", "/open/x/": "/open/x/"} {
		if _, failure := call(t, set, object{"method": "GET", "path": path}); failure != nil {
			t.Errorf("%s: %v", path, failure)
		} else if r, _ := s.last(); r.RequestURI != sent {
			t.Errorf("%s became %s", path, r.RequestURI)
		}
	}
}

// TestOneSpelling: a rule decides about the text that the model wrote, so there is one text for each address, and it is what is sent.
func TestOneSpelling(t *testing.T) {
	t.Parallel()
	s := newShop(t, nil)
	set := tools(t, apicall.Service{BaseURL: s.URL, AllowedMethods: []string{"GET", "POST"}}, nil)
	for given, sent := range map[string]string{
		"/%72efunds/1": "/refunds/1", "/refunds%2D1": "/refunds-1", "/a b": "/a%20b", "/\u00fc": "/%C3%BC", "/%c3%bc": "/%C3%BC", "/x?": "/x",
		"/x?f%6Frce=1": "/x?force=1", "/x?q=a b": "/x?q=a%20b", "/x?q=%2f": "/x?q=/", "/x?q=%5b": "/x?q=%5B", "/x?q=\u00fc": "/x?q=%C3%BC",
		"/items%28%27a%27%29": "/items('a')", "/a%21%2A%2b%2C%3b%3d%24%26%40%3A": "/a!*+,;=$&@:", "/a[(": "/a%5B(",
	} {
		for _, method := range []string{"GET", "POST"} {
			_, failure := call(t, set, object{"method": method, "path": given})
			if failure == nil || failure.Code != "API_PATH_FORBIDDEN" || !strings.Contains(failure.Message, sent) {
				t.Errorf("%q: %v, want a refusal that says %s", given, failure, sent)
			}
			if _, failure := call(t, set, object{"method": method, "path": sent}); failure != nil {
				t.Errorf("%s: %v", sent, failure)
			} else if r, _ := s.last(); r.RequestURI != sent || r.Method != method {
				t.Errorf("%s became %s %s", sent, r.Method, r.RequestURI)
			}
		}
	}
	list := enginetest.Must(set.Tools(t.Context()))
	method := list[0].Parameters["properties"].(object)["method"]
	if got := string(jsonvalue.Canonical(method)); got != `{"enum":["GET","POST"]}` {
		t.Errorf("the methods of the schema are %s", got)
	}
}

// FuzzSpelling: what is accepted is sent as it was written.
func FuzzSpelling(f *testing.F) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Location", r.RequestURI) }))
	f.Cleanup(s.Close)
	apis := enginetest.Must(apicall.New(apicall.Config{Services: map[string]apicall.Service{"widgets": {BaseURL: s.URL, AllowedPaths: []string{"^/"}}}}))
	set := enginetest.Must(apis.Tools([]string{"widgets"}))
	for _, path := range []string{"/a", "/a%20b?c=%26", "/a;b=c,d/", "/%41", "/a?b?c", "/a(b)", "/*", "/:x", "/a?[]", "/~x", "/a?%"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		out, err := set.Call(t.Context(), agent.Call{Name: apicall.Name, Arguments: object{"service": "widgets", "method": "GET", "path": path}})
		if err != nil {
			return
		}
		if got := out.(object)["headers"].(object)["Location"]; got != path && len(path) < 1000 {
			t.Errorf("%q was sent as %q", path, got)
		}
	})
}

// Headers of the model that authorize, forge or reframe a request are not sent, however they are spelled.
func TestHeaders(t *testing.T) {
	t.Parallel()
	s := newShop(t, nil)
	set := tools(t, apicall.Service{BaseURL: s.URL, Auth: apicall.Header("x-widgets-key", secret(token))}, nil)
	headers := object{"Accept": "a/b", "Bad Name": "x", "Bad": "a\r\nb", "X-Count": "1"}
	for _, name := range []string{
		"authorization", "AUTHORIZATION", "Proxy-Authorization", "cookie", "X-API-Key", "api_key", "X_Widgets_Key", "X-WIDGETS-KEY", "Host", "Transfer-Encoding", "Content-Length", "Connection",
		"X-HTTP-Method-Override", "x_http_method_override", "X-Forwarded-For", "Accept-Encoding", "Upgrade", "Expect", "User-Agent",
	} {
		headers[name] = "forged"
	}
	out, failure := call(t, set, object{"method": "GET", "path": "/x", "headers": headers})
	r, _ := s.last()
	if failure != nil || r.Header.Get("X-Widgets-Key") != token || r.Header.Get("X-Count") != "1" || r.Header.Get("Accept") != "a/b" {
		t.Errorf("%v, %v", r.Header, failure)
	}
	for name, values := range r.Header {
		if strings.Contains(fmt.Sprint(values), "forged") {
			t.Errorf("%s: %q", name, values)
		}
	}
	if removed := out["headers_not_sent"].([]any); len(removed) != len(headers)-2 {
		t.Errorf("not sent: %v", removed)
	}
}

// The secret is in nothing that comes back, however the service spells it: values, names, numbers, headers, pages, redirects, errors.
func TestSecretIsMasked(t *testing.T) {
	t.Parallel()
	const digits = "123456789012"
	var elsewhere atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	t.Cleanup(other.Close)
	s := newShop(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Etag", r.Header.Get("Authorization"))
		_, auth, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		switch r.URL.Path {
		case "/json":
			escaped := ""
			for _, c := range token {
				escaped += fmt.Sprintf(`\u%04x`, c)
			}
			fmt.Fprintf(w, `{"sent": %q, "escaped": "%s", %q: 1, "list": [{"b": %q}], "n": %s, "text": "n %s"}`, r.Header.Get("Authorization"), escaped, token, auth, digits, digits)
		case "/exact":
			escaped := ""
			for _, c := range token {
				escaped += fmt.Sprintf(`\u%04x`, c)
			}
			fmt.Fprintf(w, `{"id": 12345678901234567890, "escaped": "%s"}`, escaped)
		case "/text":
			fmt.Fprintf(w, "You sent %s, %s, %s, %s", token, url.QueryEscape(token), url.PathEscape(token), auth)
		case "/spelled": // with small letters, a slash as it is, and everything escaped
			all := ""
			for i := range len(token) {
				all += fmt.Sprintf("%%%02x", token[i])
			}
			fmt.Fprintf(w, "100%% %%zz ?a=%s&b=%s&c=%s%%", "tok-very/secret%2bvalue%2077", "tok-very%2fsecret%2bvalue%2077", all)
		case "/zip":
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			fmt.Fprintf(z, "You sent %s", token)
			_ = z.Close()
		case "/redirect":
			http.Redirect(w, r, other.URL+"/?token="+url.QueryEscape(token), http.StatusFound)
		case "/error":
			http.Error(w, "bad token "+token, http.StatusForbidden)
		case "/die":
			if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
				fmt.Fprintf(c, "HTTP/1.1 %s\r\n\r\n", token)
				_ = c.Close()
			}
		}
	})
	custom := func(_ context.Context, target apicall.Target) (apicall.Credentials, error) {
		if target.Path == "/missing" {
			return apicall.Credentials{Secrets: []string{token}}, fmt.Errorf("no key for %s %s %s: %s", target.Service, target.Method, target.Path, token)
		}
		return apicall.Credentials{Header: http.Header{"Authorization": {"Custom " + token}}, Secrets: []string{digits}}, nil
	}
	for name, auth := range map[string]apicall.Auth{
		"bearer": apicall.Bearer(secret(token)), "header": apicall.Header("Authorization", secret(token)), "basic": apicall.Basic(secret("me"), secret(token)), "custom": custom,
	} {
		set := tools(t, apicall.Service{BaseURL: s.URL, Auth: auth}, nil)
		for _, path := range []string{"/json", "/exact", "/text", "/spelled", "/zip", "/redirect", "/error", "/die", "/missing"} {
			out, failure := call(t, set, object{"method": "GET", "path": path})
			text := string(jsonvalue.Canonical(out))
			if failure != nil {
				text = failure.Error()
			} else if path == "/redirect" && out["status"] != 302.0 || path == "/error" && out["status"] != 403.0 {
				t.Errorf("%s %s: %s", name, path, text)
			}
			basic := base64.StdEncoding.EncodeToString([]byte("me:" + token))
			for _, spelled := range []string{token, url.QueryEscape(token), url.PathEscape(token), basic, "very/secret"} {
				if strings.Contains(text, spelled) || strings.Contains(text, `\u0074`) {
					t.Errorf("%s %s: %s", name, path, text)
				}
			}
			if path == "/spelled" && !strings.Contains(text, "100% %zz ?a=[REDACTED]&b=[REDACTED]&c=[REDACTED]%") {
				t.Errorf("%s: %s", name, text)
			}
			if name == "custom" && path == "/json" && strings.Contains(text, digits) {
				t.Errorf("%s", text)
			}
			if path == "/die" && (failure == nil || failure.Code != "API_UNREACHABLE") || name == "custom" && path == "/missing" && (failure == nil || failure.Code != "API_CREDENTIALS_MISSING") {
				t.Errorf("%s %s: %v", name, path, failure)
			}
		}
	}
	if elsewhere.Load() != 0 {
		t.Error("a redirect was followed")
	}
}

// A secret is read at each call; one that cannot be read, or sent, is no call.
func TestCredentials(t *testing.T) {
	t.Parallel()
	s := newShop(t, nil)
	n := 0
	set := tools(t, apicall.Service{BaseURL: s.URL, Auth: apicall.Bearer(func(context.Context) (string, error) {
		n++
		return fmt.Sprint("token-", n), nil
	})}, nil)
	for _, want := range []string{"Bearer token-1", "Bearer token-2"} {
		_, _ = call(t, set, object{"method": "GET", "path": "/x"})
		if r, _ := s.last(); r.Header.Get("Authorization") != want {
			t.Errorf("%q", r.Header.Get("Authorization"))
		}
	}
	for says, auth := range map[string]apicall.Auth{
		"env:GONE is unset": apicall.Bearer(func(context.Context) (string, error) { return "", errors.New("env:GONE is unset") }),
		"is blank":          apicall.Header("X-Key", secret(" ")),
		"cannot be sent":    apicall.Header("X-Key", secret("a\r\nX: y")),
		"colon":             apicall.Basic(secret("a:b"), secret("c")),
	} {
		_, failure := call(t, tools(t, apicall.Service{BaseURL: s.URL, Auth: auth}, nil), object{"method": "GET", "path": "/x"})
		if failure == nil || failure.Code != "API_CREDENTIALS_MISSING" || !strings.Contains(failure.Message, says) || strings.Contains(failure.Message, "X: y") {
			t.Errorf("%s: %v", says, failure)
		}
	}
	if s.count() != 2 {
		t.Errorf("%d requests", s.count())
	}
}

func TestResponses(t *testing.T) {
	t.Parallel()
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	_, _ = z.Write(make([]byte, 10<<20))
	_ = z.Close()
	s := newShop(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/large":
			_, _ = w.Write(make([]byte, 10<<20))
		case "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb.Bytes())
		case "/slow":
			<-r.Context().Done()
		case "/half":
			w.Header().Set("Content-Length", "500")
			_, _ = w.Write([]byte("half"))
		case "/latin":
			w.Header().Set("Content-Type", "text/plain; charset=ISO-8859-1")
			_, _ = w.Write([]byte("gr\xfc\xdfe"))
		case "/binary":
			w.Header().Set("Content-Type", "image/png")
			_, _ = w.Write([]byte("\x89PNG\x00\xff"))
		case "/broken":
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"a":`))
		case "/bom":
			_, _ = w.Write([]byte("\ufeff[1]"))
		case "/number":
			_, _ = w.Write([]byte(`{"id":12345678901234567890}`))
		case "/deep":
			_, _ = w.Write([]byte(strings.Repeat("[", 100_000)))
		}
	})
	var reports []apicall.Report
	set := tools(t, apicall.Service{BaseURL: s.URL, MaxResponseBytes: 200_000, Timeout: 300 * time.Millisecond}, func(r apicall.Report) { reports = append(reports, r) })
	for path, want := range map[string]any{
		"/latin": "grüße", "/broken": `{"a":`, "/bom": []any{1.0}, "/number": `{"id":12345678901234567890}`, "/deep": strings.Repeat("[", 100_000), "/empty": nil, "/binary": nil,
	} {
		out, failure := call(t, set, object{"method": "GET", "path": path})
		if failure != nil || !jsonvalue.Equal(out["body"], want) || path == "/binary" && out["body_bytes"] != 6.0 {
			t.Errorf("%s: %.100v, %v", path, out, failure)
		}
	}
	for path, code := range map[string]string{"/large": "API_RESPONSE_TOO_LARGE", "/bomb": "API_RESPONSE_TOO_LARGE", "/half": "API_UNREACHABLE", "/slow": "API_UNREACHABLE"} {
		_, failure := call(t, set, object{"method": "GET", "path": path})
		if failure == nil || failure.Code != code || strings.Contains(failure.Message, "127.0.0.1") {
			t.Errorf("%s: %v", path, failure)
		}
	}
	if last := reports[len(reports)-1]; len(reports) != 11 || last.Service != "widgets" {
		t.Errorf("%d reports", len(reports))
	}
	ctx, stop := context.WithCancelCause(t.Context())
	stop(errors.New("the run was cancelled"))
	if _, err := set.Call(ctx, agent.Call{Name: apicall.Name, Arguments: object{"service": "widgets", "method": "GET", "path": "/slow"}}); err == nil || err.Error() != "the run was cancelled" {
		t.Errorf("%v", err)
	}
}

// A name that resolves to a special address is dialled only where the operator has named the network.
func TestDialling(t *testing.T) {
	t.Parallel()
	s := newShop(t, nil)
	_, port, _ := strings.Cut(strings.TrimPrefix(s.URL, "http://"), ":")
	get := func(base string, networks ...netip.Prefix) *activities.Failure {
		_, failure := call(t, tools(t, apicall.Service{BaseURL: base, PrivateNetworks: networks, Timeout: 5 * time.Second}, nil), object{"method": "GET", "path": "/x"})
		return failure
	}
	for _, base := range []string{s.URL, "http://localhost:" + port, "http://LOCALHOST:" + port} {
		if failure := get(base); failure != nil {
			t.Errorf("%s: %v", base, failure)
		}
	}
	before := s.count()
	for _, base := range []string{"http://ip6-localhost:" + port, "http://0x7f.1:" + port, "http://2130706433:" + port} { // names, which some systems resolve to this machine
		if failure := get(base); failure == nil || failure.Code != "API_UNREACHABLE" {
			t.Errorf("%s: %v", base, failure)
		}
	}
	if s.count() != before {
		t.Error("a special address was dialled")
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	if failure := get(gone.URL); failure == nil || failure.Code != "API_UNREACHABLE" {
		t.Errorf("%v", failure)
	}
}

func TestTools(t *testing.T) {
	t.Parallel()
	apis := enginetest.Must(apicall.New(apicall.Config{Services: map[string]apicall.Service{
		"read": {BaseURL: "http://r", AllowedPaths: []string{"^/a$"}}, "write": {BaseURL: "http://w", AllowedPaths: []string{"^/b/"}, AllowedMethods: []string{"POST"}},
	}}))
	reading := enginetest.Must(enginetest.Must(apis.Tools([]string{"read"})).Tools(t.Context()))[0]
	if !reading.ReadOnly || !reading.Parallel || reading.OnCrash != agent.Repeat {
		t.Errorf("%+v", reading)
	}
	both := enginetest.Must(enginetest.Must(apis.Tools([]string{"read", "write"}, agent.WithGate(agent.Ask))).Tools(t.Context()))[0]
	if both.ReadOnly || both.Parallel || both.OnCrash != agent.Report || both.Gate != agent.Ask || !strings.Contains(both.Description, "- write: POST on paths that match ^/b/") {
		t.Errorf("%+v", both)
	}
	if none := enginetest.Must(enginetest.Must(apis.Tools(nil)).Tools(t.Context())); len(none) != 0 {
		t.Errorf("without a service there is %v", none)
	}
	if _, err := apis.Tools([]string{"raed"}); !errors.Is(err, problem.AgentConfigInvalid) {
		t.Errorf("%v", err)
	}
	for says, s := range map[string]apicall.Service{
		"base address": {BaseURL: "ftp://x", AllowedPaths: []string{"^/"}}, "no path": {BaseURL: "http://x"}, `begin with "^/"`: {BaseURL: "http://x", AllowedPaths: []string{"/x"}},
		"missing closing": {BaseURL: "http://x", AllowedPaths: []string{"^/("}}, "one of the methods": {BaseURL: "http://x", AllowedPaths: []string{"^/"}, AllowedMethods: []string{"TRACE"}},
	} {
		if _, err := apicall.New(apicall.Config{Services: map[string]apicall.Service{"x": s}}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}

// FuzzPath: whatever a model writes as a path, what is sent goes to the service, below its base, on a path that matches.
func FuzzPath(f *testing.F) {
	for _, path := range []string{"/open/x?y=z", "/open/%2e%2e/x", "//h/open", "/open/..;/x", "/open/\u2025/x", "http://h/open/", "/open/%c0%ae/"} {
		f.Add(path)
	}
	var sent atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { sent.Store(r.URL.Path) }))
	f.Cleanup(server.Close)
	apis := enginetest.Must(apicall.New(apicall.Config{Services: map[string]apicall.Service{"w": {BaseURL: server.URL + "/v1", AllowedPaths: []string{"^/open/"}}}}))
	set := enginetest.Must(apis.Tools([]string{"w"}))
	f.Fuzz(func(t *testing.T, path string) {
		sent.Store("")
		_, err := set.Call(t.Context(), agent.Call{Name: apicall.Name, Arguments: object{"service": "w", "method": "GET", "path": path}})
		if got := sent.Load().(string); err == nil && (!strings.HasPrefix(got, "/v1/open/") || strings.Contains(got, "/../") || strings.HasSuffix(got, "/..")) {
			t.Errorf("%q was sent as %q", path, got)
		}
	})
}
