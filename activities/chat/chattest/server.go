// Package chattest is a server of chat completions for tests of agents: it plays a script of replies, whole or streamed as each request asks,
// keeps the requests, and rejects conversations that strict providers reject.
//
//	server := chattest.Serve(t, chattest.Calls(chattest.Call("read", `{"path":"a"}`)), chattest.Text("done"))
//	model, err := openaichat.New(openaichat.Config{BaseURL: server.URL, NoAuth: true})
package chattest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// Server plays a script: each request gets the first reply whose When it contains, which is then used up. A request without a reply fails the
// test.
type Server struct {
	*httptest.Server
	t      testing.TB
	mu     sync.Mutex
	script []Reply
	asked  []Request
}

// Serve serves at an address of this machine until the test ends.
func Serve(t testing.TB, script ...Reply) *Server {
	t.Helper()
	s := &Server{t: t, script: slices.Clone(script)}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

// ServeInMemory is Serve for a bubble of testing/synctest. Only the server's Client reaches it.
func ServeInMemory(t testing.TB, script ...Reply) *Server {
	t.Helper()
	s := &Server{t: t, script: slices.Clone(script)}
	s.Server = enginetest.Serve(t, http.HandlerFunc(s.serve))
	return s
}

// Then continues the script.
func (s *Server) Then(replies ...Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = append(s.script, replies...)
}

// Play replaces the script, and clears Asked.
func (s *Server) Play(script ...Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script, s.asked = slices.Clone(script), nil
}

// Left returns the number of unused replies.
func (s *Server) Left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.script)
}

// Asked returns the requests so far, rejected ones included.
func (s *Server) Asked() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has disconnected
	}
	request, fault := read(r, body)
	s.mu.Lock()
	request.Number = len(s.asked) + 1
	s.asked = append(s.asked, request)
	i := slices.IndexFunc(s.script, func(reply Reply) bool { return strings.Contains(string(body), reply.When) })
	var reply Reply
	switch {
	case fault != "":
		s.t.Errorf("chattest: providers reject this request: %s", fault)
		reply = Fail(http.StatusBadRequest, fault)
	case i < 0:
		s.t.Errorf("chattest: the script has no reply to request %d: %s", len(s.asked), body)
		reply = Fail(http.StatusBadRequest, "the script has ended")
	default:
		if reply = s.script[i]; !reply.Always {
			s.script = slices.Delete(s.script, i, i+1)
		}
	}
	s.mu.Unlock()
	if !waited(r, reply) {
		return
	}
	if reply.Status != 0 {
		reply.refuse(w)
		return
	}
	if request.Stream {
		reply.stream(w, request)
		return
	}
	reply.whole(w, request)
}

// waited waits for the delay of a reply; false if the client has disconnected.
func waited(r *http.Request, reply Reply) bool {
	if reply.Hang {
		<-r.Context().Done()
		return false
	}
	if reply.Delay > 0 {
		timer := time.NewTimer(reply.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
			return false
		}
	}
	return true
}

func (r Reply) refuse(w http.ResponseWriter) {
	for name, values := range r.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(r.Status)
	_, _ = io.WriteString(w, r.Body)
}

// whole writes a whole answer, or half of it.
func (r Reply) whole(w http.ResponseWriter, request Request) {
	body, _ := json.Marshal(r.completion(request)) // of texts and numbers
	w.Header().Set("Content-Type", "application/json")
	if r.Break {
		_, _ = w.Write(body[:len(body)/2])
		abort(w)
	}
	_, _ = w.Write(body)
}

// stream writes an answer as events, or half of them.
func (r Reply) stream(w http.ResponseWriter, request Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	chunks := r.chunks(request)
	for i, chunk := range chunks {
		if r.Break && i == len(chunks)/2 {
			abort(w)
		}
		text, _ := json.Marshal(chunk)
		_, _ = io.WriteString(w, "data: "+string(text)+"\n\n")
		flush(w)
	}
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
}

func flush(w http.ResponseWriter) {
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
}

// abort closes the connection after it has flushed the written data.
func abort(w http.ResponseWriter) {
	flush(w)
	panic(http.ErrAbortHandler)
}
