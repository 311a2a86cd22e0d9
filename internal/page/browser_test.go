package page

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	runview "github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/fragment"
)

const testOrigin = "http://w1.localhost:8123"

// asks is a workflow that asks a person for a decision and a note.
var asks = enginetest.Linear("asks", `{"id":"begin","type":"start"}`, `{"id":"ask","type":"interrupt","config":{"prompt":"Pay?",
	"resume_schema":{"type":"object","required":["approve"],"additionalProperties":false,
	"properties":{"approve":{"type":"boolean"},"amount":{"type":"number","maximum":100}}}}}`, `{"id":"end","type":"end"}`)

// browser is a browser with the cookies of one page.
type browser struct {
	testing.TB
	page   *Server
	engine *graph.Runner
	key    Key
	cookie string
}

func browse(t testing.TB, options ...func(*Options)) *browser {
	t.Helper()
	engine := enginetest.Closing(t, enginetest.Must(graph.New(historymem.New(), graph.Options{DefaultMode: machine.HostMediated})))
	o := Options{Engine: engine, Origin: testOrigin, Key: NewKey(), Actor: history.Actor{Name: "kim"}}
	for _, change := range options {
		change(&o)
	}
	s := enginetest.Must(New(o))
	t.Cleanup(s.Close)
	return &browser{TB: t, page: s, engine: engine, key: o.Key}
}

// do sends a request as a browser does from a page of the server, changed by changes.
func (b *browser) do(method, path string, form url.Values, changes ...func(*http.Request)) *http.Response {
	b.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r := httptest.NewRequestWithContext(b.Context(), method, path, body)
	r.Host = strings.TrimPrefix(testOrigin, "http://")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set("Sec-Fetch-Mode", "navigate")
	r.Header.Set("Sec-Fetch-Dest", "document")
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", testOrigin)
	}
	if b.cookie != "" {
		r.Header.Set("Cookie", b.cookie)
	}
	for _, change := range changes {
		change(r)
	}
	w := httptest.NewRecorder()
	if out, ok := r.Context().Value(pipeKey{}).(io.Writer); ok { // a stream
		b.page.ServeHTTP(&piped{w, out}, r)
	} else {
		b.page.ServeHTTP(w, r)
	}
	return w.Result()
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) {
		if r.Header.Del(name); value != "" {
			r.Header.Set(name, value)
		}
	}
}

func (b *browser) want(res *http.Response, status int) string {
	b.Helper()
	text, _ := io.ReadAll(res.Body)
	if res.StatusCode != status {
		b.Errorf("status %d, want %d: %s", res.StatusCode, status, text)
	}
	return string(text)
}

// token returns the token of a new link.
func (b *browser) token() string {
	_, fragment, _ := strings.Cut(Link(testOrigin, b.key, time.Now(), ""), "#t=")
	return fragment
}

// letIn opens a link.
func (b *browser) letIn() *browser {
	b.Helper()
	res := b.do("POST", "/in", url.Values{"t": {b.token()}})
	b.want(res, http.StatusSeeOther)
	b.cookie, _, _ = strings.Cut(res.Header.Get("Set-Cookie"), ";")
	return b
}

// session returns the session of the browser, nil without one.
func (b *browser) session() *session {
	r := &http.Request{Host: strings.TrimPrefix(testOrigin, "http://"), Header: http.Header{"Cookie": {b.cookie}}}
	return b.page.sessions.of(r, cookieName(r))
}

// form returns the values of a form with its token.
func (b *browser) form(token func(r *http.Request) fragment.FormToken, values ...string) url.Values {
	form := url.Values{"form": {string(token(withSession(httptest.NewRequest("GET", "/", nil), b.session())))}}
	for i := 0; i < len(values); i += 2 {
		form.Set(values[i], values[i+1])
	}
	return form
}

func (b *browser) runForm(id string, values ...string) url.Values {
	return b.form(func(r *http.Request) fragment.FormToken { return b.page.runToken(r, id) }, values...)
}

func (b *browser) questionForm(id string, values ...string) url.Values {
	b.Helper()
	p := pendingQuestion(b.status(id), id, "ask#1")
	if p == nil {
		b.Fatal("no question is open")
	}
	return b.form(func(r *http.Request) fragment.FormToken { return b.page.questionToken(r, p) }, values...)
}

// start starts a run that asks.
func (b *browser) start(id string) {
	b.Helper()
	_, err := b.engine.Start(b.Context(), graph.StartRequest{ExecutionID: id, Definition: enginetest.Define(b, asks), Wait: graph.Wait{Limit: graph.NoWait}})
	if err != nil {
		b.Fatal(err)
	}
}

func (b *browser) records(id string) []history.Record {
	b.Helper()
	records, err := b.engine.History(b.Context(), graph.HistoryRequest{ExecutionID: id})
	if err != nil {
		b.Fatal(err)
	}
	return records
}

func (b *browser) status(id string) *runview.Run {
	b.Helper()
	run, err := b.engine.Status(b.Context(), graph.StatusRequest{ExecutionID: id})
	if err != nil {
		b.Fatal(err)
	}
	return run
}

// piped is an answer whose content is read while it is written.
type piped struct {
	*httptest.ResponseRecorder
	out io.Writer
}

func (p *piped) Write(text []byte) (int, error)       { return p.out.Write(text) }
func (p *piped) WriteString(text string) (int, error) { return io.WriteString(p.out, text) }
