package page

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/fragment"
	"github.com/workflows-engine/workflows-engine/internal/httpguard"
)

const (
	writerToken = "0123456789abcdef"
	readerToken = "fedcba9876543210"
)

// served returns a browser of a page behind the address of a server, with the tokens of kim, who may change runs, and lee, who may not.
func served(t *testing.T, hosts ...string) *browser {
	t.Helper()
	tokens, findings := httpguard.ParseTokens([]byte(`{"tokens":[{"name":"kim","token":"`+writerToken+`"},{"name":"lee","token":"`+readerToken+`","readOnly":true}]}`), func(string) {})
	if findings != nil {
		t.Fatal(findings)
	}
	return browse(t, func(o *Options) {
		o.Origin, o.Actor = "", history.Actor{}
		o.Access = &httpguard.Access{Hosts: append(hosts, "w1.localhost"), Tokens: tokens}
	})
}

// with lets the browser in with a token.
func (b *browser) with(token string) *browser {
	b.Helper()
	res := b.do("POST", "/in", url.Values{"t": {token}, "to": {"/runs"}})
	b.want(res, http.StatusSeeOther)
	if at := res.Header.Get("Location"); at != "/runs" {
		b.Errorf("led to %s", at)
	}
	b.cookie, _, _ = strings.Cut(res.Header.Get("Set-Cookie"), ";")
	return b
}

// TestATokenLetsIn: a token of the file opens the page, more than once, for the person that it names; no link and no other token does.
func TestATokenLetsIn(t *testing.T) {
	t.Parallel()
	b := served(t)
	if page := b.want(b.do("GET", "/runs", nil), http.StatusUnauthorized); !strings.Contains(page, "token of this server") || strings.Contains(page, "ui --link") {
		t.Errorf("the entrance is %s", page)
	}
	for name, token := range map[string]string{"none": "", "another": "0123456789abcdee", "a link's": b.token()} {
		if set := b.do("POST", "/in", url.Values{"t": {token}}).Header.Get("Set-Cookie"); set != "" {
			t.Errorf("%s: let in with %s", name, set)
		}
	}
	b.want(b.do("GET", "/in?t="+writerToken, nil), http.StatusBadRequest)
	if page := b.want(b.do("GET", "/", nil, header("Authorization", "Bearer "+writerToken)), http.StatusUnauthorized); page == "" {
		t.Error("no entrance")
	}
	b.with(writerToken)
	if page := b.want(b.with(writerToken).do("GET", "/", nil), http.StatusOK); !strings.Contains(page, "you act as kim ·") {
		t.Errorf("the page is %s", page)
	}
	b.start("a")
	b.want(b.do("POST", fragment.QuestionPath("a", "ask#1"), b.questionForm("a", "f0", "true")), http.StatusSeeOther)
	if run := b.status("a"); run.Status != machine.Completed {
		t.Errorf("%s", run.Status)
	}
	by := history.Actor{}
	for _, r := range b.records("a") {
		if r.Payload.Actor != nil {
			by = *r.Payload.Actor
		}
	}
	if by.Via != "page" || by.Name != "kim" {
		t.Errorf("recorded for %v", by)
	}
}

// TestAReadOnlyToken shows pages without forms, and changes nothing.
func TestAReadOnlyToken(t *testing.T) {
	t.Parallel()
	b := served(t)
	b.start("a")
	b.with(readerToken)
	question := fragment.QuestionPath("a", "ask#1")
	for _, path := range []string{"/", "/runs/a", question, "/system"} {
		if page := b.want(b.do("GET", path, nil), http.StatusOK); strings.Count(page, `method="post"`) != strings.Count(page, `method="post" action="/out"`) || !strings.Contains(page, "reading only") {
			t.Errorf("%s has a form: %s", path, page)
		}
	}
	before := len(b.records("a"))
	for _, path := range []string{question, "/runs/a/cancel", "/workflows/pay/start", "/system/redeliver"} {
		form := b.questionForm("a", "f0", "true")
		if path != question {
			form = b.runForm("a", "reason", "x")
		}
		if text := b.want(b.do("POST", path, form), http.StatusForbidden); !strings.Contains(text, `the token of "lee" permits reading alone`) {
			t.Errorf("%s: %s", path, text)
		}
	}
	if len(b.records("a")) != before {
		t.Error("the run was changed")
	}
}

// TestSessionsOfATokenEndNoOthers: too many sessions of a token end the oldest of that token.
func TestSessionsOfATokenEndNoOthers(t *testing.T) {
	t.Parallel()
	b := served(t).with(writerToken)
	kim := b.cookie
	first := b.with(readerToken).cookie
	for range maxSessions {
		b.with(readerToken)
	}
	for cookie, want := range map[string]int{kim: http.StatusOK, first: http.StatusUnauthorized, b.cookie: http.StatusOK} {
		b.want(b.do("GET", "/system", nil, header("Cookie", cookie)), want)
	}
}

// TestTheNamesOfAServedPage are its own: those of --allow-host, localhost and addresses. A form comes from a page of the same name and port; a
// cookie of a page with TLS is sent with TLS alone.
func TestTheNamesOfAServedPage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		host, origin string
		status       int
		secure       bool
	}{
		{"127.0.0.1:8123", "http://127.0.0.1:8123", http.StatusSeeOther, false},
		{"localhost:8123", "http://localhost:8123", http.StatusSeeOther, false},
		{"[::1]:8123", "http://[::1]:8123", http.StatusSeeOther, false},
		{"flows.example.com", "https://flows.example.com", http.StatusSeeOther, true},
		{"flows.example.com:443", "https://flows.example.com", http.StatusSeeOther, true},
		{"evil.example.com", "http://evil.example.com", http.StatusMisdirectedRequest, false},
		{"127.0.0.1:8123", "http://127.0.0.1:9000", http.StatusForbidden, false},
		{"127.0.0.1:8123", "http://localhost:8123", http.StatusForbidden, false},
		{"flows.example.com", "https://app.example.com", http.StatusForbidden, false},
		{"127.0.0.1:8123", "vscode-webview://127.0.0.1:8123", http.StatusForbidden, false},
		{"flows.example.com", "null", http.StatusForbidden, false},
		{"flows.example.com", "", http.StatusForbidden, false},
	} {
		b := served(t, "flows.example.com")
		b.page.o.Access.Origins = []string{"https://app.example.com"} // may use the API of the server
		res := b.do("POST", "/in", url.Values{"t": {writerToken}}, header("Origin", c.origin), func(r *http.Request) { r.Host = c.host })
		b.want(res, c.status)
		if set := res.Header.Get("Set-Cookie"); strings.Contains(set, "Secure") != c.secure || (set == "") != (c.status != http.StatusSeeOther) {
			t.Errorf("%s from %s: cookie %q", c.host, c.origin, set)
		}
	}
}

// TestAServedPageWithoutTokens opens with the printed link, once.
func TestAServedPageWithoutTokens(t *testing.T) {
	t.Parallel()
	b := browse(t, func(o *Options) {
		o.Origin, o.Actor, o.Access = "", history.Actor{}, &httpguard.Access{Hosts: []string{"w1.localhost"}}
	})
	link := Entrance(addr("127.0.0.1:8772"), false, b.key, time.Now())
	if !strings.HasPrefix(link, "http://127.0.0.1:8772/in#t=") {
		t.Errorf("the link is %s", link)
	}
	b.want(b.do("POST", "/in", url.Values{"t": {link}}), http.StatusSeeOther)
	if page := b.want(b.do("POST", "/in", url.Values{"t": {link}}), http.StatusForbidden); !strings.Contains(page, "ui --link") {
		t.Errorf("refused with %s", page)
	}
	if at := Entrance(addr("127.0.0.1:8772"), true, b.key, time.Now()); at != "http://127.0.0.1:8772/" {
		t.Errorf("with tokens the page is at %s", at)
	}
}

type addr string

func (addr) Network() string  { return "tcp" }
func (a addr) String() string { return string(a) }

// TestBeside: the other handler has its paths and those below, and the page has all others.
func TestBeside(t *testing.T) {
	t.Parallel()
	h := served(t).page.Beside(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }), "/v1", "/healthz")
	for path, want := range map[string]int{
		"/v1": http.StatusTeapot, "/v1/executions": http.StatusTeapot, "/healthz": http.StatusTeapot,
		"/v1x": http.StatusUnauthorized, "/": http.StatusUnauthorized, "/.well-known/oauth-protected-resource": http.StatusNotFound,
	} {
		r := httptest.NewRequest("GET", path, nil)
		r.Host = "w1.localhost:8123"
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != want {
			t.Errorf("%s: status %d", path, w.Code)
		}
	}
}
