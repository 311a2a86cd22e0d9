package page

import (
	"cmp"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/httpguard"
)

// maxForm limits a form, in bytes.
const maxForm = 64 << 10

// policy is the content security policy: nothing runs or loads but the files of this server, and no other page frames this one.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'"

// protect sets the headers of every answer. Referrer-Policy is same-origin: with no-referrer, browsers send "Origin: null" with a form.
func protect(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	h.Set("Cache-Control", "no-store")
}

// ServeHTTP answers the requests of browsers.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	protect(w.Header())
	zipped := zip(w, r)
	w = zipped
	defer zipped.end()
	defer func() {
		if p := recover(); p != nil {
			if p == http.ErrAbortHandler {
				panic(p)
			}
			s.o.Log.Error("panic", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			http.Error(w, "internal error of the page, see its log", http.StatusInternalServerError)
		}
	}()
	if !s.answersTo(r) { // another name that was made to resolve to this address
		s.refuse(w, r, http.StatusMisdirectedRequest, "this page does not answer to the host name of the request")
		return
	}
	if refusal := foreign(r); refusal != "" {
		s.refuse(w, r, http.StatusForbidden, refusal)
		return
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		s.get(w, r)
	case http.MethodPost:
		s.post(w, r)
	default:
		w.Header().Set("Allow", "GET, HEAD, POST")
		s.refuse(w, r, http.StatusMethodNotAllowed, "the method is not allowed")
	}
}

// answersTo reports whether a request is addressed to this server by a name of its own.
func (s *Server) answersTo(r *http.Request) bool {
	if s.o.Access != nil {
		return s.o.Access.KnowsHost(r)
	}
	return "http://"+r.Host == s.o.Origin || "https://"+r.Host == s.o.Origin
}

// sentByPage reports whether a form was sent by a page of this server. A proxy may have taken the TLS off, but leaves the host as it is.
func (s *Server) sentByPage(r *http.Request) bool {
	given := r.Header.Get("Origin")
	if s.o.Access == nil {
		return given == s.o.Origin
	}
	origin, err := httpguard.ParseOrigin(given)
	if err != nil {
		return false
	}
	scheme, _, _ := strings.Cut(origin, "://")
	if scheme != "http" && scheme != "https" {
		return false
	}
	own, err := httpguard.ParseOrigin(scheme + "://" + r.Host)
	return err == nil && own == origin
}

// cookieName returns the name of the cookie. It holds the port, because cookies know no ports.
func cookieName(r *http.Request) string {
	_, port, _ := net.SplitHostPort(r.Host)
	return "workflows-engine-" + cmp.Or(port, "http")
}

// foreign returns why a request of another site's page is refused: it may only lead a person here. Browsers that send no Sec-Fetch-Site
// are kept out by the cookie alone.
func foreign(r *http.Request) string {
	switch {
	case !httpguard.OtherSite(r):
		return ""
	case r.Method == http.MethodPost:
		return "pages of other sites cannot send forms to this page"
	case httpguard.Opens(r):
		return ""
	}
	return "pages of other sites cannot load this page"
}

func (s *Server) get(w http.ResponseWriter, r *http.Request) {
	one := s.sessions.of(r, cookieName(r))
	if one != nil && !httpguard.Enter(w, r) {
		s.crowded(w, r)
		return
	}
	switch {
	case strings.HasPrefix(r.URL.Path, staticPrefix):
		serveStatic(w, r)
		return
	case r.URL.Path == "/in":
		s.door(w, r)
		return
	case strings.HasPrefix(r.URL.Path, "/.well-known/"): // MCP clients look for it
		s.refuse(w, r, http.StatusNotFound, "not found")
		return
	case r.URL.Path == alivePath:
		s.showAlive(w, r)
		return
	case r.URL.Path == "/favicon.ico": // every browser asks for it
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if one == nil {
		s.stranger(w, r)
		return
	}
	if !one.enter() {
		s.crowded(w, r)
		return
	}
	defer one.leave()
	r = withSession(r, one)
	if r.URL.Path == "/events" {
		s.events(w, r, one)
		return
	}
	s.show(w, r)
}

// post answers a form. Every POST needs the Origin of this server, the cookie and the form's own token; act checks the last.
func (s *Server) post(w http.ResponseWriter, r *http.Request) {
	if !s.sentByPage(r) {
		s.refuse(w, r, http.StatusForbidden, "the form was not sent by this page")
		return
	}
	one := s.sessions.of(r, cookieName(r))
	if one != nil && !httpguard.Enter(w, r) {
		s.crowded(w, r)
		return
	}
	httpguard.LimitRead(w, r)
	most := int64(maxForm)
	if r.URL.Path == "/in" {
		most *= 4 // it may hold another form, escaped
	}
	r.Body = http.MaxBytesReader(w, r.Body, most)
	if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); !strings.EqualFold(strings.TrimSpace(kind), "application/x-www-form-urlencoded") {
		s.refuse(w, r, http.StatusUnsupportedMediaType, "a form must be application/x-www-form-urlencoded")
		return
	}
	if r.URL.Path == "/in" {
		if r.ParseForm() != nil {
			s.refuse(w, r, http.StatusBadRequest, "the form cannot be read")
			return
		}
		s.letIn(w, r)
		return
	}
	if one == nil {
		s.keep(w, r)
		return
	}
	if !one.enter() {
		s.crowded(w, r)
		return
	}
	defer one.leave()
	if one.caller.ReadOnly && r.URL.Path != outPath {
		s.refuse(w, r, http.StatusForbidden, fmt.Sprintf("the token of %q permits reading alone; nothing was changed", one.caller.Name))
		return
	}
	if err := r.ParseForm(); err != nil {
		status := http.StatusBadRequest
		if _, large := err.(*http.MaxBytesError); large {
			status = http.StatusRequestEntityTooLarge
		}
		s.refuse(w, r, status, fmt.Sprintf("the form cannot be read: it may have at most %d KiB", maxForm>>10))
		return
	}
	if r.URL.Path == outPath {
		s.letOut(w, withSession(r, one))
		return
	}
	for _, values := range r.PostForm { // browsers end the lines of a text area with CR and LF
		for i := range values {
			values[i] = strings.ReplaceAll(values[i], "\r\n", "\n")
		}
	}
	s.act(w, withSession(r, one))
}

// keep answers a form without a session: with the page that lets a person in, which holds the form meanwhile.
func (s *Server) keep(w http.ResponseWriter, r *http.Request) {
	if r.ParseForm() != nil {
		s.refuse(w, r, http.StatusBadRequest, "the form cannot be read")
		return
	}
	s.o.Log.Info("request refused", "status", http.StatusUnauthorized, "method", r.Method, "reason", "no session")
	in := signIn{Refusal: "Your session has ended, and nothing was changed. What you typed comes back when you are in."}
	if r.URL.Path != outPath {
		r.PostForm.Del("form")
		in.At, in.Kept = localPath(r.URL.RequestURI()), r.PostForm.Encode()
	}
	s.closed(w, http.StatusUnauthorized, in)
}

// comeBack shows the page of a form that keep has kept, as it was filled in. The form has no token, and is therefore not done.
func (s *Server) comeBack(w http.ResponseWriter, r *http.Request, one *session) (shown bool) {
	at, err := url.ParseRequestURI(localPath(r.PostForm.Get("at")))
	kept, broken := url.ParseQuery(r.PostForm.Get("kept"))
	if r.PostForm.Get("at") == "" || err != nil || broken != nil || s.o.ReadOnly || one == nil || one.caller.ReadOnly {
		return false
	}
	kept.Del("form")
	back := withSession(r, one)
	back.URL, back.RequestURI, back.PostForm, back.Form = at, at.RequestURI(), kept, kept
	s.acts.ServeHTTP(w, back)
	return true
}

// act answers a form. One that the session has sent before, with the same values, leads where it led then and does nothing more.
func (s *Server) act(w http.ResponseWriter, r *http.Request) {
	to, answered := sessionOf(r).send(once(r))
	if answered == nil {
		http.Redirect(w, r, to, http.StatusSeeOther)
		return
	}
	out := &acted{ResponseWriter: w}
	defer func() { answered(out.to) }()
	s.acts.ServeHTTP(out, r)
}

// acted notes where a form led that was taken.
type acted struct {
	http.ResponseWriter
	to string
}

// Unwrap is for http.ResponseController.
func (out *acted) Unwrap() http.ResponseWriter { return out.ResponseWriter }

func (out *acted) WriteHeader(status int) {
	if status == http.StatusSeeOther {
		out.to = out.Header().Get("Location")
	}
	out.ResponseWriter.WriteHeader(status)
}

// refuse answers with a line of text that says nothing of any run.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, status int, text string) {
	s.o.Log.Info("request refused", "status", status, "method", r.Method, "reason", text)
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n")
}

func (s *Server) crowded(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Retry-After", "1")
	s.refuse(w, r, http.StatusServiceUnavailable, "too many requests are in progress")
}

// stranger answers a GET without a session. A link of another site does not carry the cookie, which is SameSite=Strict: a page that
// reloads itself comes again with it, and then as a request of this site.
func (s *Server) stranger(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/events":
		s.refuse(w, r, http.StatusUnauthorized, "the session has ended")
	case r.Header.Get("Sec-Fetch-Site") == "cross-site" || r.Header.Get("Sec-Fetch-Site") == "same-site":
		writePage(w, http.StatusOK, reloading, nil)
	default:
		s.closed(w, http.StatusUnauthorized, signIn{To: localPath(r.URL.RequestURI())})
	}
}

// door answers GET /in. A token in the query may be in a log: it is used up.
func (s *Server) door(w http.ResponseWriter, r *http.Request) {
	if q := r.URL.Query(); len(q) > 0 {
		if s.o.hasTokens() {
			s.closed(w, http.StatusBadRequest, signIn{Refusal: "a token does not belong into an address: replace it in the token file, because logs may hold it now"})
			return
		}
		for _, values := range q {
			for _, token := range values {
				_ = s.sessions.take(token)
			}
		}
		s.closed(w, http.StatusBadRequest, signIn{Refusal: "the token belongs into the fragment of the address, after #: this link is no longer valid"})
		return
	}
	s.closed(w, http.StatusOK, signIn{})
}

// signIn is the page with the field for a token.
type signIn struct {
	// Refusal is why it is shown. To is the path that it leads to; "" means "/".
	Refusal, To string
	// At and Kept are the address and the values of a form that is shown again then.
	At, Kept string

	Static, WayIn, Field string
}

// closed shows the page with the field for a token.
func (s *Server) closed(w http.ResponseWriter, status int, in signIn) {
	in.Static, in.WayIn, in.Field, in.To = staticPath, s.wayIn(), "Link or token", cmp.Or(in.To, "/")
	if s.o.hasTokens() {
		in.Field = "Token"
	}
	writePage(w, status, entrance, in)
}

// hasTokens reports whether bearer tokens let browsers in, in place of links.
func (o *Options) hasTokens() bool { return o.Access != nil && !o.Access.Tokens.None() }

// wayIn describes how a person gets in.
func (s *Server) wayIn() string {
	if s.o.hasTokens() {
		return "Open the page with a token of this server."
	}
	return "Open the page with a link, which works once. To make another one, run workflows-engine ui --link."
}

// enter returns the caller whose token a browser sent, and uses up the token of a link.
func (s *Server) enter(token string) (caller httpguard.Caller, err error) {
	if !s.o.hasTokens() {
		return caller, s.sessions.take(token)
	}
	caller, found := s.o.Access.Tokens.Find(token)
	if !found {
		err = problem.New(problem.UsageError, "this is not a token of the server")
	}
	return caller, err
}

// letIn answers POST /in: the cookie in exchange for a token.
func (s *Server) letIn(w http.ResponseWriter, r *http.Request) {
	token, to := strings.TrimSpace(r.PostForm.Get("t")), r.PostForm.Get("to")
	if _, fragment, found := strings.Cut(token, "#"); found && !s.o.hasTokens() { // the whole link was pasted
		if q, err := url.ParseQuery(fragment); err == nil {
			token = q.Get("t")
			to = target(q.Get("to"))
		}
	}
	caller, err := s.enter(token)
	if err != nil {
		s.o.Log.Info("request refused", "status", http.StatusForbidden, "method", r.Method, "reason", err.Error())
		s.closed(w, http.StatusForbidden, signIn{Refusal: err.Error(), To: localPath(to), At: r.PostForm.Get("at"), Kept: r.PostForm.Get("kept")})
		return
	}
	s.o.Log.Info("session opened", "name", caller.Name)
	cookie := s.sessions.begin(caller)
	setCookie(w, r, cookie, int(sessionTime/time.Second))
	if s.comeBack(w, r, s.sessions.known(cookie)) {
		return
	}
	http.Redirect(w, r, localPath(to), http.StatusSeeOther)
}

// setCookie sets the cookie in an answer to a form of this server; one with a negative age deletes it.
func setCookie(w http.ResponseWriter, r *http.Request, value string, age int) {
	http.SetCookie(w, &http.Cookie{
		Name: cookieName(r), Value: value, Path: "/", MaxAge: age, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: strings.HasPrefix(r.Header.Get("Origin"), "https://"),
	})
}

// outPath is the address of the form that signs a person out.
const outPath = "/out"

// letOut answers POST /out: the session ends, with its event streams.
func (s *Server) letOut(w http.ResponseWriter, r *http.Request) {
	if !s.formed(r, outPath) {
		s.refuse(w, r, http.StatusForbidden, "the form is not of this session; nothing was changed")
		return
	}
	one := sessionOf(r)
	s.sessions.leave(one)
	s.o.Log.Info("session ended", "name", one.caller.Name)
	setCookie(w, r, "", -1)
	http.Redirect(w, r, "/in", http.StatusSeeOther)
}
