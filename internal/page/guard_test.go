package page

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/internal/fragment"
	"github.com/workflows-engine/workflows-engine/internal/httpguard"
)

// TestALinkOpensOnce: a token lets one browser in, once and for ten minutes, and never from the query of an address.
func TestALinkOpensOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := browse(t)
		b.want(b.do("GET", "/", nil), http.StatusUnauthorized)
		if page := b.want(b.do("GET", "/in", nil), http.StatusOK); !strings.Contains(page, `action="/in"`) {
			t.Errorf("no form: %s", page)
		}
		token := b.token()
		res := b.do("POST", "/in", url.Values{"t": {token}, "to": {"/runs?phase=failed"}})
		b.want(res, http.StatusSeeOther)
		if at := res.Header.Get("Location"); at != "/runs?phase=failed" {
			t.Errorf("led to %s", at)
		}
		set := res.Header.Get("Set-Cookie")
		for _, part := range []string{"workflows-engine-8123=", "HttpOnly", "SameSite=Strict", "Path=/"} {
			if !strings.Contains(set, part) {
				t.Errorf("no %s in the cookie %s", part, set)
			}
		}
		b.want(b.do("POST", "/in", url.Values{"t": {token}}), http.StatusForbidden)

		whole := Link(testOrigin, b.key, time.Now(), "/runs/a%2Fb")
		res = b.do("POST", "/in", url.Values{"t": {whole}}) // pasted
		b.want(res, http.StatusSeeOther)
		if at := res.Header.Get("Location"); at != "/runs/a%2Fb" {
			t.Errorf("led to %s", at)
		}

		leaked := b.token()
		b.want(b.do("GET", "/in?t="+leaked, nil), http.StatusBadRequest)
		b.want(b.do("POST", "/in", url.Values{"t": {leaked}}), http.StatusForbidden)
		b.want(b.do("POST", "/in?t="+b.token(), url.Values{}), http.StatusForbidden)

		late := b.token()
		time.Sleep(linkTime + time.Second)
		b.want(b.do("POST", "/in", url.Values{"t": {late}}), http.StatusForbidden)
		other := browse(t)
		b.want(b.do("POST", "/in", url.Values{"t": {other.token()}}), http.StatusForbidden)
		forged := []byte(b.token())
		forged[3] ^= 1
		b.want(b.do("POST", "/in", url.Values{"t": {string(forged)}}), http.StatusForbidden)

		b.cookie, _, _ = strings.Cut(set, ";")
		b.want(b.do("GET", "/", nil), http.StatusOK)
		time.Sleep(sessionTime)
		b.want(b.do("GET", "/", nil), http.StatusUnauthorized)
	})
}

// TestALinkLeadsNowhereElse: a link cannot send the browser to another site.
func TestALinkLeadsNowhereElse(t *testing.T) {
	t.Parallel()
	b := browse(t)
	for _, to := range []string{"//evil.example/", "https://evil.example", `/\evil.example`, "/a\nb", "", "runs", "/\t/evil.example"} {
		res := b.do("POST", "/in", url.Values{"t": {b.token()}, "to": {to}})
		if at := res.Header.Get("Location"); at != "/" {
			t.Errorf("%q led to %q", to, at)
		}
	}
}

// TestRebinding: a name of another site that resolves to this machine gets nothing, whatever else it sends.
func TestRebinding(t *testing.T) {
	t.Parallel()
	b := browse(t).letIn()
	b.start("a")
	for _, host := range []string{"evil.example:8123", "w1.localhost", "w1.localhost:9000", "localhost:8123", "127.0.0.1:8123", "w2.localhost:8123", ""} {
		other := func(r *http.Request) { r.Host = host }
		for _, path := range []string{"/", "/in", "/runs/a", "/events?view=/", staticPath + "/page.js"} {
			if text := b.want(b.do("GET", path, nil, other), http.StatusMisdirectedRequest); strings.Contains(text, "<") {
				t.Errorf("%s %s: %s", host, path, text)
			}
		}
		b.want(b.do("POST", "/runs/a/cancel", b.runForm("a"), other), http.StatusMisdirectedRequest)
	}
	if run := b.status("a"); run.Status != machine.Interrupted {
		t.Errorf("the run is %s", run.Status)
	}
}

// TestOtherSites: pages of other sites, and other servers of this machine, can lead a person here and nothing else. A link of theirs does not
// carry the cookie: it is answered with a page that shows nothing and comes again, once.
func TestOtherSites(t *testing.T) {
	t.Parallel()
	b := browse(t).letIn()
	for _, site := range []string{"cross-site", "same-site"} {
		from := header("Sec-Fetch-Site", site)
		first := b.want(b.do("GET", "/runs", nil, from, header("Cookie", "")), http.StatusOK)
		if !strings.Contains(first, `http-equiv="refresh" content="0"`) || strings.Contains(first, "<main") {
			t.Errorf("the first page is %s", first)
		}
		if second := b.want(b.do("GET", "/runs", nil), http.StatusOK); !strings.Contains(second, "<main") {
			t.Errorf("the second page is %s", second)
		}
		again := b.want(b.do("GET", "/runs", nil, header("Cookie", "")), http.StatusUnauthorized)
		if strings.Contains(again, "refresh") {
			t.Errorf("the page comes again and again: %s", again)
		}
		b.want(b.do("GET", "/runs", nil, from, header("Sec-Fetch-Dest", "iframe")), http.StatusForbidden)
		b.want(b.do("GET", "/runs/a/graph.svg", nil, from, header("Sec-Fetch-Mode", "no-cors"), header("Sec-Fetch-Dest", "image")), http.StatusForbidden)
		b.want(b.do("GET", "/events?view=/", nil, from, header("Sec-Fetch-Mode", "cors"), header("Sec-Fetch-Dest", "empty")), http.StatusForbidden)
		b.want(b.do("POST", "/runs/a/cancel", b.runForm("a"), from), http.StatusForbidden)
		b.want(b.do("POST", "/in", url.Values{"t": {b.token()}}, from), http.StatusForbidden)
	}
}

// TestHeaders: every answer, of whatever kind, forbids foreign scripts, frames and copies.
func TestHeaders(t *testing.T) {
	t.Parallel()
	b := browse(t).letIn()
	for path, kept := range map[string]bool{
		"/": false, "/in": false, "/in?t=x": false, "/nothing": false, "/runs/none": false, "/favicon.ico": false, "/static/x/page.js": false,
		staticPath + "/page.js": true, staticPath + "/graph.js": true, staticPath + "/style.css": true, staticPath + "/idiomorph.LICENSE": true,
	} {
		h := b.do("GET", path, nil).Header
		for name, want := range map[string]string{
			"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "same-origin",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if h.Get(name) != want {
				t.Errorf("%s: %s is %q", path, name, h.Get(name))
			}
		}
		if cache := h.Get("Cache-Control"); kept == (cache == "no-store") {
			t.Errorf("%s: Cache-Control is %q", path, cache)
		}
	}
	for _, unsafe := range []string{"unsafe-inline", "unsafe-eval", "data:", "*", "http"} {
		if strings.Contains(policy, unsafe) {
			t.Errorf("the policy has %s", unsafe)
		}
	}
}

// posts are all addresses that change something, with the values of a form that would be taken.
func posts(b *browser) map[string]url.Values {
	return map[string]url.Values{
		"/runs/a/questions/ask%231": b.questionForm("a", "f0", "true"),
		"/runs/a/cancel":            b.runForm("a"),
		"/runs/a/signal":            b.runForm("a", "name", "x"),
		"/runs/a/fork":              b.runForm("a", "seq", "2"),
		"/runs/a/retry":             b.runForm("a"),
		"/runs/a/handle":            b.runForm("a", "note", "x"),
		"/run?id=a&view=cancel":     b.runForm("a"),
		"/workflows/asks/start":     b.form(func(r *http.Request) fragment.FormToken { return b.page.startToken(r, "asks") }, fragment.JSONField, "{}"),
		"/workflow/start?name=..":   b.form(func(r *http.Request) fragment.FormToken { return b.page.startToken(r, "..") }, fragment.JSONField, "{}"),
		"/system/redeliver":         b.form(b.page.systemToken, "delivery", "1"),
	}
}

// TestAPostNeedsAllProofs: without the cookie, the origin or the form's own token, and with those of another session, run or question, no
// form is taken.
func TestAPostNeedsAllProofs(t *testing.T) {
	t.Parallel()
	b := browse(t).letIn()
	b.start("a")
	b.start("b")
	before := len(b.records("a"))
	stranger := *b
	stranger.letIn()
	for path, form := range posts(b) {
		for name, c := range map[string]struct {
			form   url.Values
			change func(*http.Request)
			want   int
		}{
			"no cookie":          {form, header("Cookie", ""), http.StatusUnauthorized},
			"other cookie":       {form, header("Cookie", "workflows-engine-8123=AAAA"), http.StatusUnauthorized},
			"no origin":          {form, header("Origin", ""), http.StatusForbidden},
			"null origin":        {form, header("Origin", "null"), http.StatusForbidden},
			"other port":         {form, header("Origin", "http://w1.localhost:9000"), http.StatusForbidden},
			"other site":         {form, header("Origin", "https://evil.example"), http.StatusForbidden},
			"no token":           {without(form, "form"), header("X", ""), http.StatusForbidden},
			"empty token":        {with(form, "form", ""), header("X", ""), http.StatusForbidden},
			"token of run b":     {with(form, "form", b.runForm("b").Get("form")), header("X", ""), http.StatusForbidden},
			"token of question":  {with(form, "form", b.questionForm("b").Get("form")), header("X", ""), http.StatusForbidden},
			"another session's":  {with(form, "form", posts(&stranger)[path].Get("form")), header("X", ""), http.StatusForbidden},
			"token in the query": {without(form, "form"), func(r *http.Request) { r.URL.RawQuery += "&form=" + url.QueryEscape(form.Get("form")) }, http.StatusForbidden},
			"plain text":         {form, header("Content-Type", "text/plain"), http.StatusUnsupportedMediaType},
			"JSON":               {form, header("Content-Type", "application/json"), http.StatusUnsupportedMediaType},
			"too large":          {with(form, "note", strings.Repeat("x", maxForm)), header("X", ""), http.StatusRequestEntityTooLarge},
		} {
			if res := b.do("POST", path, c.form, c.change); res.StatusCode != c.want {
				t.Errorf("%s, %s: status %d, want %d", path, name, res.StatusCode, c.want)
			}
		}
		b.want(b.do("PUT", path, form), http.StatusMethodNotAllowed)
	}
	if run := b.status("a"); run.Status != machine.Interrupted || len(b.records("a")) != before {
		t.Errorf("the run has changed: %s", run.Status)
	}
}

// TestAGetChangesNothing: the same values in the query of a GET do nothing.
func TestAGetChangesNothing(t *testing.T) {
	t.Parallel()
	b := browse(t).letIn()
	b.start("a")
	before := len(b.records("a"))
	for path, form := range posts(b) {
		mark := "?"
		if strings.Contains(path, "?") {
			mark = "&"
		}
		b.do("GET", path+mark+form.Encode(), nil)
	}
	if len(b.records("a")) != before {
		t.Error("the run has changed")
	}
}

// TestReadOnly: the routes of POST requests do not exist.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	b := browse(t, func(o *Options) { o.ReadOnly = true }).letIn()
	b.start("a")
	before := len(b.records("a"))
	for path, form := range posts(b) {
		b.want(b.do("POST", path, form), http.StatusNotFound)
	}
	if len(b.records("a")) != before {
		t.Error("the run has changed")
	}
	if page := b.want(b.do("GET", "/", nil), http.StatusOK); !strings.Contains(page, "reading only") {
		t.Errorf("the page does not say so: %s", page)
	}
}

// outForm returns the form with which the browser signs out.
func (b *browser) outForm() url.Values {
	return b.form(func(r *http.Request) fragment.FormToken { return b.page.formToken(r, outPath) })
}

// TestSigningOut ends the session of the browser on the server, whatever let it in, and no other one. The form needs the same as others.
func TestSigningOut(t *testing.T) {
	t.Parallel()
	for name, enter := range map[string]func() *browser{
		"link":             func() *browser { return browse(t).letIn() },
		"link, reading":    func() *browser { return browse(t, func(o *Options) { o.ReadOnly = true }).letIn() },
		"token":            func() *browser { return served(t).with(writerToken) },
		"token of readers": func() *browser { return served(t).with(readerToken) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := enter()
			other := b.page.sessions.begin(b.session().caller)
			page := b.want(b.do("GET", "/", nil), http.StatusOK)
			shown := regexp.MustCompile(`<form method="post" action="/out"><input type="hidden" name="form" value="([^"]+)"><button>Sign out</button>`).FindStringSubmatch(page)
			if shown == nil {
				t.Fatalf("no form in %s", page)
			}
			for what, refused := range map[string]*http.Response{
				"another origin": b.do("POST", outPath, b.outForm(), header("Origin", "http://evil.example")),
				"another site":   b.do("POST", outPath, b.outForm(), header("Sec-Fetch-Site", "cross-site")),
				"no token":       b.do("POST", outPath, url.Values{"x": {"y"}}),
				"another token":  b.do("POST", outPath, b.runForm("a")),
			} {
				if refused.StatusCode != http.StatusForbidden || refused.Header.Get("Set-Cookie") != "" {
					t.Errorf("%s: status %d", what, refused.StatusCode)
				}
			}
			b.do("GET", outPath+"?"+b.outForm().Encode(), nil)
			b.want(b.do("GET", "/", nil), http.StatusOK)

			form := url.Values{"form": {shown[1]}}
			res := b.do("POST", outPath, form)
			b.want(res, http.StatusSeeOther)
			set := res.Header.Get("Set-Cookie")
			if at := res.Header.Get("Location"); at != "/in" || !strings.HasPrefix(set, "workflows-engine-8123=;") || !strings.Contains(set, "Max-Age=0") || !strings.Contains(set, "Path=/") {
				t.Errorf("led to %s with %s", at, set)
			}
			b.want(b.do("GET", "/", nil), http.StatusUnauthorized)
			b.want(b.do("POST", outPath, form), http.StatusUnauthorized)
			b.want(b.do("GET", "/", nil, header("Cookie", "workflows-engine-8123="+other)), http.StatusOK)
		})
	}
}

// TestASessionIsLimited: requests in progress and sessions have a limit.
func TestASessionIsLimited(t *testing.T) {
	t.Parallel()
	b := browse(t).letIn()
	one := b.session()
	for range maxRequests {
		if !one.enter() {
			t.Fatal("no room")
		}
	}
	b.want(b.do("GET", "/", nil), http.StatusServiceUnavailable)
	one.leave()
	b.want(b.do("GET", "/", nil), http.StatusOK)
	for range maxSessions {
		b.page.sessions.begin(httpguard.Caller{})
	}
	b.want(b.do("GET", "/", nil), http.StatusUnauthorized)
	if n := len(b.page.sessions.open); n != maxSessions {
		t.Errorf("%d sessions", n)
	}
}

// TestAFormWithoutASession is answered by the page that lets people in. Its texts come back after that, and nothing is done before it is sent again.
func TestAFormWithoutASession(t *testing.T) {
	t.Parallel()
	for path, form := range map[string]func(*browser) url.Values{
		"/runs/a/questions/ask%231": func(b *browser) url.Values { return b.questionForm("a", "f0", "true", "f1", "17.5 & <more>") },
		"/runs/a/cancel":            func(b *browser) url.Values { return b.runForm("a", "reason", "17.5 & <more>") },
	} {
		b := browse(t).letIn()
		b.start("a")
		sent, before := form(b), len(b.records("a"))
		b.cookie = ""
		page := b.want(b.do("POST", path, sent), http.StatusUnauthorized)
		for _, want := range []string{"style.css", "Your session has ended, and nothing was changed", "ui --link", `name="at" value="` + path + `"`} {
			if !strings.Contains(page, want) {
				t.Errorf("no %s in %s", want, page)
			}
		}
		kept := url.Values{"at": {path}, "kept": {sent.Encode()}} // the page has it without the token
		b.want(b.do("POST", "/in", with(kept, "t", "AAAA")), http.StatusForbidden)
		res := b.do("POST", "/in", with(kept, "t", b.token()))
		b.cookie, _, _ = strings.Cut(res.Header.Get("Set-Cookie"), ";")
		again := b.want(res, http.StatusForbidden)
		if strings.Contains(path, "questions") && !strings.Contains(again, `value="17.5 &amp; &lt;more&gt;"`) {
			t.Errorf("the text has not come back: %s", again)
		}
		if len(b.records("a")) != before {
			t.Error("something was recorded")
		}
		b.want(b.do("GET", "/runs", nil), http.StatusOK)
	}
}

func with(form url.Values, name, value string) url.Values {
	changed := without(form, name)
	changed.Set(name, value)
	return changed
}

func without(form url.Values, name string) url.Values {
	changed := url.Values{}
	for k, v := range form {
		if k != name {
			changed[k] = v
		}
	}
	return changed
}
