package streamable_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/workflows-engine/workflows-engine/internal/mcpserver/streamable"
)

// keeper is a handler that keeps sessions: initialize opens one, GET listens until the request ends.
type keeper struct {
	streamable.Sessions
	opened int
	closed chan string
	lives  []context.Context
}

func newKeeper() *keeper {
	k := &keeper{closed: make(chan string, 1000)}
	k.Close = func(id string) { k.closed <- id }
	k.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodGet:
			<-r.Context().Done()
		case r.Header.Get("Mcp-Session-Id") == "":
			k.opened++
			k.lives = append(k.lives, streamable.LifeOf(r))
			w.Header().Set("Mcp-Session-Id", fmt.Sprint("s", k.opened))
		}
		fmt.Fprint(w, "ok")
	})
	return k
}

func (k *keeper) ask(t *testing.T, method, session, call string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(t.Context(), method, "/mcp", nil)
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	id, _ := jsonrpc.MakeID(1.0) // a number is one
	w := httptest.NewRecorder()
	k.ServeHTTP(w, r, &streamable.Message{Message: &jsonrpc.Request{ID: id, Method: call}})
	return w
}

// TestSessionsAreBounded: where there are as many as there can be, the one that has been idle the longest makes room for another, but
// none that has a request under way.
func TestSessionsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := newKeeper()
		for i := range streamable.MaxSessions {
			time.Sleep(time.Second)
			if got := k.ask(t, "POST", "", "initialize"); got.Code != 200 {
				t.Fatalf("session %d: %d", i, got.Code)
			}
		}
		time.Sleep(time.Second)
		k.ask(t, "POST", "s1", "ping")
		listens := func(id string) {
			go k.ask(t, "GET", id, "")
		}
		listens("s2")
		synctest.Wait()
		k.ask(t, "POST", "", "initialize")
		if got := <-k.closed; got != "s3" {
			t.Errorf("%s was closed, want that which nobody has used for longest", got)
		}
		if got := k.ask(t, "POST", "s3", "ping"); got.Code != 404 || !strings.Contains(got.Body.String(), "initialize") {
			t.Errorf("the session that was closed: %d %s", got.Code, got.Body)
		}
		if got := k.ask(t, "POST", "s1", "ping"); got.Code != 200 {
			t.Errorf("a session that is in use: %d", got.Code)
		}
		for i := 1; i <= streamable.MaxSessions+1; i++ {
			listens(fmt.Sprint("s", i))
		}
		synctest.Wait()
		got := k.ask(t, "POST", "", "initialize")
		if got.Code != 503 || got.Header().Get("Retry-After") == "" || len(k.closed) > 0 {
			t.Errorf("all are in use: %d %s, %d closed", got.Code, got.Body, len(k.closed))
		}
	})
}

// TestIdleSessionsAreClosed: after a day without a request; one whose client listens is not idle.
func TestIdleSessionsAreClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := newKeeper()
		for range 3 {
			k.ask(t, "POST", "", "initialize")
		}
		go k.ask(t, "GET", "s2", "")
		time.Sleep(23 * time.Hour)
		k.ask(t, "POST", "s3", "ping")
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if n := len(k.closed); n != 1 {
			t.Fatalf("%d were closed", n)
		}
		if got := <-k.closed; got != "s1" {
			t.Errorf("%s was closed", got)
		}
		var codes []int
		for i := 1; i <= 3; i++ {
			codes = append(codes, k.ask(t, "POST", fmt.Sprint("s", i), "ping").Code)
		}
		if !slices.Equal(codes, []int{404, 200, 200}) {
			t.Errorf("answered %v", codes)
		}
		alive := k.lives[2].Err() == nil
		if got := k.ask(t, "DELETE", "s3", ""); got.Code != 204 || <-k.closed != "s3" {
			t.Errorf("DELETE: %d", got.Code)
		}
		if !alive || context.Cause(k.lives[2]) != streamable.ErrClosed || k.lives[0].Err() == nil || k.lives[1].Err() != nil {
			t.Errorf("lives ended with %v, %v, %v", k.lives[0].Err(), k.lives[1].Err(), context.Cause(k.lives[2]))
		}
		if got := k.ask(t, "POST", "s3", "ping"); got.Code != 404 {
			t.Errorf("after DELETE: %d", got.Code)
		}
		time.Sleep(25 * time.Hour)
		k.ask(t, "POST", "s2", "ping")
	})
}

// TestOnlyInitializeOpensASession: anything else without a session is refused, with its id.
func TestOnlyInitializeOpensASession(t *testing.T) {
	t.Parallel()
	k := newKeeper()
	got := k.ask(t, "POST", "", "tools/list")
	if got.Code != 400 || !strings.Contains(got.Body.String(), `"id":1`) || !strings.Contains(got.Body.String(), "initialize") || k.opened > 0 {
		t.Errorf("%d %s, %d opened", got.Code, got.Body, k.opened)
	}
}

// TestADeletedSessionIsClosed while a request of it is under way, too; a second DELETE finds none.
func TestADeletedSessionIsClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := newKeeper()
		k.ask(t, "POST", "", "initialize")
		go k.ask(t, "GET", "s1", "")
		synctest.Wait()
		if got := k.ask(t, "DELETE", "s1", ""); got.Code != 204 || <-k.closed != "s1" || k.lives[0].Err() == nil {
			t.Errorf("DELETE: %d, life ended with %v", got.Code, k.lives[0].Err())
		}
		if got := k.ask(t, "DELETE", "s1", ""); got.Code != 404 {
			t.Errorf("once more: %d", got.Code)
		}
	})
}
