package page

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/fragment"
	"github.com/workflows-engine/workflows-engine/internal/httpguard"
)

const (
	// linkTime is how long a link lets a browser in, sessionTime how long the browser stays in.
	linkTime    = 10 * time.Minute
	sessionTime = 12 * time.Hour
	// maxSessions limits the sessions of a token, and those that links opened: another one ends the oldest.
	maxSessions = 64
	// maxSent is how many forms a session remembers that were taken.
	maxSent = 256
	// maxRequests limits the requests of a session in progress, and maxStreams its event streams.
	maxRequests = 32
	maxStreams  = 4
)

// Key authenticates the links of one page server. A new one is made for each server.
type Key [32]byte

// NewKey returns a random key.
func NewKey() Key {
	var k Key
	_, _ = rand.Read(k[:]) // never fails
	return k
}

// Link returns an address that lets one browser in, once, until ten minutes after now. The token is in its fragment, which no browser sends
// to a server, so that no log, proxy or Referer header has it. to is the path of the page to show; "" means "/".
func Link(origin string, k Key, now time.Time, to string) string {
	token := make([]byte, nonceSize+8, nonceSize+8+sha256.Size)
	_, _ = rand.Read(token[:nonceSize])
	binary.BigEndian.PutUint64(token[nonceSize:], uint64(now.Add(linkTime).Unix())) //nolint:gosec // a time of this century
	link := origin + "/in#t=" + base64.RawURLEncoding.EncodeToString(append(token, k.sign("link", string(token))...))
	if to != "" && to != "/" {
		link += "&to=" + base64.RawURLEncoding.EncodeToString([]byte(to))
	}
	return link
}

const nonceSize = 16

// sign returns the MAC of texts, which the texts before one cannot be moved into.
func (k *Key) sign(texts ...string) []byte {
	mac := hmac.New(sha256.New, k[:])
	for _, text := range texts {
		_ = binary.Write(mac, binary.BigEndian, uint64(len(text))) // a hash takes all
		mac.Write([]byte(text))
	}
	return mac.Sum(nil)
}

// sessions are the browsers that were let in.
type sessions struct {
	key Key

	mu sync.Mutex
	// used has the nonces of tokens that were used, until they expire.
	used map[string]time.Time
	// open has the sessions by the hash of their cookie.
	open map[[sha256.Size]byte]*session
}

// session is a browser that was let in.
type session struct {
	// key authenticates the forms of the session.
	key     Key
	expires time.Time
	// caller is the holder of the token that let the browser in; empty for a link.
	caller httpguard.Caller
	// ended is closed when the session ends before it expires.
	ended chan struct{}

	mu       sync.Mutex
	requests int
	// streams are the event streams, the oldest first.
	streams []*stream
	// sent has the forms that were taken or are being answered, by their ids (see once); order has the ids, the oldest first.
	sent  map[string]*sentForm
	order []string
}

// sentForm is a form that a session has sent.
type sentForm struct {
	// answered is closed with the answer. to is then where it leads; "" after a refusal.
	answered chan struct{}
	to       string
}

// take checks the token of a link and uses it up. Each error has the same text: a guess learns nothing.
func (ss *sessions) take(token string) error {
	refused := problem.New(problem.UsageError, "this link is not valid: each works once, for ten minutes")
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(raw) != nonceSize+8+sha256.Size {
		return refused
	}
	signed, now := string(raw[:nonceSize+8]), time.Now()
	if !hmac.Equal(raw[nonceSize+8:], ss.key.sign("link", signed)) {
		return refused
	}
	expires := time.Unix(int64(binary.BigEndian.Uint64(raw[nonceSize:])), 0) //nolint:gosec // signed above
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for nonce, until := range ss.used {
		if !now.Before(until) {
			delete(ss.used, nonce)
		}
	}
	if _, has := ss.used[signed]; has || !now.Before(expires) {
		return refused
	}
	if ss.used == nil {
		ss.used = map[string]time.Time{}
	}
	ss.used[signed] = expires
	return nil
}

// begin opens a session and returns the value of its cookie.
func (ss *sessions) begin(caller httpguard.Caller) string {
	var value, key = NewKey(), NewKey()
	cookie := base64.RawURLEncoding.EncodeToString(value[:])
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.open == nil {
		ss.open = map[[sha256.Size]byte]*session{}
	}
	ss.purge()
	var oldest [sha256.Size]byte
	var until time.Time
	same := 0
	for hash, one := range ss.open {
		if one.caller != caller {
			continue
		}
		if same++; until.IsZero() || one.expires.Before(until) {
			oldest, until = hash, one.expires
		}
	}
	if same >= maxSessions {
		ss.end(oldest)
	}
	ss.open[sha256.Sum256([]byte(cookie))] = &session{key: key, expires: time.Now().Add(sessionTime), caller: caller, ended: make(chan struct{})}
	return cookie
}

// purge deletes the expired sessions. ss.mu is held.
func (ss *sessions) purge() {
	for hash, one := range ss.open {
		if one.expired() {
			ss.end(hash)
		}
	}
}

// end ends an open session and its event streams. ss.mu is held.
func (ss *sessions) end(hash [sha256.Size]byte) {
	close(ss.open[hash].ended)
	delete(ss.open, hash)
}

// leave ends a session, unless it has ended.
func (ss *sessions) leave(one *session) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for hash, other := range ss.open {
		if other == one {
			ss.end(hash)
		}
	}
}

func (one *session) expired() bool { return !time.Now().Before(one.expires) }

// of returns the session of a request; nil without one.
func (ss *sessions) of(r *http.Request, name string) *session {
	for _, c := range r.CookiesNamed(name) { // another server of the same host may have set one of this name
		if one := ss.known(c.Value); one != nil {
			return one
		}
	}
	return nil
}

// known returns the session with a cookie; nil without one.
func (ss *sessions) known(cookie string) *session {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if one := ss.open[sha256.Sum256([]byte(cookie))]; one != nil && !one.expired() {
		return one
	}
	return nil
}

// enter counts a request of the session, and reports whether there is room for it. leave ends it.
func (one *session) enter() bool {
	one.mu.Lock()
	defer one.mu.Unlock()
	if one.requests >= maxRequests {
		return false
	}
	one.requests++
	return true
}

func (one *session) leave() {
	one.mu.Lock()
	defer one.mu.Unlock()
	one.requests--
}

// follow adds an event stream, and pauses the oldest one beyond the limit.
func (one *session) follow(st *stream) {
	one.mu.Lock()
	defer one.mu.Unlock()
	if one.streams = append(one.streams, st); len(one.streams) > maxStreams {
		close(one.streams[0].paused)
		one.streams = slices.Delete(one.streams, 0, 1)
	}
}

func (one *session) unfollow(st *stream) {
	one.mu.Lock()
	defer one.mu.Unlock()
	one.streams = slices.DeleteFunc(one.streams, func(other *stream) bool { return other == st })
}

// send reports where a form leads that was taken before, waiting for one that is being answered. For any other form it returns a function to
// call with where the form leads, or with "" if it was refused: it may then be sent again.
func (one *session) send(id string) (to string, answered func(to string)) {
	for {
		one.mu.Lock()
		before := one.sent[id]
		if before == nil {
			break
		}
		one.mu.Unlock()
		<-before.answered
		if before.to != "" {
			return before.to, nil
		}
	}
	defer one.mu.Unlock()
	f := &sentForm{answered: make(chan struct{})}
	if one.sent == nil {
		one.sent = map[string]*sentForm{}
	}
	if len(one.order) >= maxSent {
		delete(one.sent, one.order[0])
		one.order = slices.Delete(one.order, 0, 1)
	}
	one.sent[id], one.order = f, append(one.order, id)
	return "", func(to string) {
		one.mu.Lock()
		defer one.mu.Unlock()
		if f.to = to; to == "" && one.sent[id] == f {
			delete(one.sent, id)
			one.order = slices.DeleteFunc(one.order, func(other string) bool { return other == id })
		}
		close(f.answered)
	}
}

// actor returns the author of the changes that a request makes.
func (s *Server) actor(r *http.Request) history.Actor {
	a := s.o.Actor
	if one := sessionOf(r); one != nil && one.caller.Name != "" {
		a.Name = one.caller.Name
	}
	return a
}

// readOnly reports whether a request may change nothing.
func (s *Server) readOnly(r *http.Request) bool {
	one := sessionOf(r)
	return s.o.ReadOnly || one != nil && one.caller.ReadOnly
}

type sessionKey struct{}

// shownTo is a page that is shown in a session.
type shownTo struct {
	*session
	// nonce distinguishes the page from others, so that a form that is sent twice is known as one.
	nonce string
}

func withSession(r *http.Request, one *session) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), sessionKey{}, shownTo{one, rand.Text()}))
}

func sessionOf(r *http.Request) *session {
	to, _ := r.Context().Value(sessionKey{}).(shownTo)
	return to.session
}

// formToken returns the hidden field "form" of a form that is sent to action. It belongs to the session of the request, to the action and to
// the texts about, and ends with the nonce of the page. A view without a session, in a test, gets "".
func (s *Server) formToken(r *http.Request, action string, about ...string) fragment.FormToken {
	to, found := r.Context().Value(sessionKey{}).(shownTo)
	if !found {
		return ""
	}
	return to.formToken(to.nonce, action, about)
}

func (one *session) formToken(nonce, action string, about []string) fragment.FormToken {
	return fragment.FormToken(base64.RawURLEncoding.EncodeToString(one.key.sign(append([]string{"form", action, nonce}, about...)...)) + "." + nonce)
}

// formed reports whether a POST carries the token of the form.
func (s *Server) formed(r *http.Request, action string, about ...string) bool {
	one, token := sessionOf(r), r.PostForm.Get("form")
	_, nonce, _ := strings.Cut(token, ".")
	return one != nil && hmac.Equal([]byte(one.formToken(nonce, action, about)), []byte(token))
}

// once returns an id that is the same for each time that a form of a page is sent, and another one if it is filled in differently.
func once(r *http.Request) string {
	id, _ := uuid.FromBytes(sessionOf(r).key.sign("once", r.URL.RequestURI(), r.PostForm.Encode())[:16]) // 16 bytes are an id
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80                                                      // the form of a random one
	return id.String()
}

// target returns the path that a browser is sent to after it was let in: that of encoded, if it is one of this server.
func target(encoded string) string {
	raw, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		return "/"
	}
	return localPath(string(raw))
}

// localPath returns a path of this server with its query, or "/" for everything else.
func localPath(path string) string {
	if !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || len(path) > maxPath ||
		strings.ContainsFunc(path, func(c rune) bool { return c <= ' ' || c == '\\' || c >= 0x7f }) {
		return "/"
	}
	return path
}

// maxPath limits a path in a form or query, in bytes.
const maxPath = 8 << 10
