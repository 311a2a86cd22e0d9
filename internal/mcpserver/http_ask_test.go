package mcpserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
)

// askedPeer is a peer whose host shows forms: each is a message of a stream, and the test is the person.
type askedPeer struct {
	*peer
	l      *listening
	server *mcp.Server
	engine *asked
}

func newAskedPeer(t *testing.T) *askedPeer {
	t.Helper()
	store := enginetest.Closing(t, historymem.New())
	engine := &asked{enginetest.Closing(t, enginetest.Must(graph.New(store, graph.Options{}))), make(chan struct{}, 1000)}
	server := mcpserver.New(engine, mcpserver.Options{Definitions: store})
	l := listenOver(t, server, mcpserver.HTTPOptions{})
	p := &peer{t: t, url: l.url}
	opened := p.send(rpc(0, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"p","version":"0"}}`))
	p.headers = []string{"Mcp-Session-Id", opened.header.Get("Mcp-Session-Id"), "Mcp-Protocol-Version", "2025-11-25"}
	p.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return &askedPeer{p, l, server, engine}
}

// stream sends a request and returns the messages that it is answered with, as they come.
func (p *askedPeer) stream(method, body string) <-chan map[string]any {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), method, p.url, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(p.headers); i += 2 {
		req.Header.Set(p.headers[i], p.headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		p.t.Fatalf("%v, %v", resp, err)
	}
	messages := make(chan map[string]any, 100)
	go func() {
		defer close(messages)
		defer resp.Body.Close()
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				var m map[string]any
				_ = json.Unmarshal([]byte(data), &m)
				messages <- m
			}
		}
	}()
	return messages
}

// form waits for a question among messages and returns its id.
func (p *askedPeer) form(messages <-chan map[string]any) any {
	p.t.Helper()
	m := <-messages
	if m["method"] != "elicitation/create" {
		p.t.Fatalf("found %v instead of a question", m)
	}
	return m["id"]
}

// tried is the person's answer to a form.
func (p *askedPeer) tried(form any, content object) {
	p.t.Helper()
	text, _ := json.Marshal(object{"jsonrpc": "2.0", "id": form, "result": object{"action": "accept", "content": content}})
	if got := p.send(string(text)); got.status != http.StatusAccepted {
		p.t.Fatalf("%+v", got)
	}
}

func resultOf(m map[string]any) object {
	result, _ := m["result"].(map[string]any)
	content, _ := result["structuredContent"].(map[string]any)
	return content
}

// gone waits until the server has no session any more.
func (p *askedPeer) gone() {
	p.t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		left := 0
		for range p.server.Sessions() {
			left++
		}
		if left == 0 {
			return
		}
		if time.Now().After(end) {
			p.t.Fatalf("%d sessions are left", left)
		}
	}
}

// TestHTTPSessionsAreClosed: neither a form that is open nor a call that waits keeps a session from being closed, whatever else its client
// says in the request.
func TestHTTPSessionsAreClosed(t *testing.T) {
	t.Parallel()
	closed := func(t *testing.T, p *askedPeer) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		got, err := p.try(ctx, http.MethodDelete, nil, "Mcp-Protocol-Version", "2020-01-01")
		if err != nil || got.status != http.StatusNoContent {
			t.Fatalf("DELETE: %d %s, %v", got.status, got.text, err)
		}
		p.gone()
		if got := p.send(rpc(9, "ping", `{}`)); got.status != http.StatusNotFound {
			t.Errorf("after it: %+v", got)
		}
		if got, err := p.try(t.Context(), http.MethodDelete, nil); err != nil || got.status != http.StatusNotFound {
			t.Errorf("once more: %+v, %v", got, err)
		}
	}
	t.Run("form", func(t *testing.T) {
		t.Parallel()
		p := newAskedPeer(t)
		messages := p.stream(http.MethodPost, rpcCall(1, "workflow_start", object{"definition": walk(approval), "execution_id": "r", "wait_ms": 300_000}))
		p.form(messages)
		closed(t, p)
	})
	t.Run("call", func(t *testing.T) {
		t.Parallel()
		p := newAskedPeer(t)
		p.send(rpcCall(1, "workflow_start", object{"definition": walk(goes), "execution_id": "r", "wait_ms": 0}))
		seq := p.send(rpcCall(2, "workflow_status", object{"execution_id": "r"})).content()["seq"]
		answered := make(chan error, 1)
		go func() {
			_, err := p.try(t.Context(), http.MethodPost, strings.NewReader(rpcCall(3, "workflow_status", object{"execution_id": "r", "wait_ms": 300_000, "since_seq": seq})))
			answered <- err
		}()
		<-p.engine.asked
		closed(t, p)
		if err := <-answered; err != nil {
			t.Error(err)
		}
	})
}

// TestHTTPStopsWithAnOpenForm: the server does not wait for a person when it stops.
func TestHTTPStopsWithAnOpenForm(t *testing.T) {
	t.Parallel()
	p := newAskedPeer(t)
	messages := p.stream(http.MethodPost, rpcCall(1, "workflow_start", object{"definition": walk(approval), "execution_id": "r", "wait_ms": 300_000}))
	p.form(messages)
	began := time.Now()
	p.l.stop()
	err := <-p.l.ended
	if p.l.ended <- nil; err != nil || time.Since(began) > mcpserver.LastWait {
		t.Errorf("ended with %v after %s", err, time.Since(began))
	}
}

// TestHTTPFormsAreWithdrawn: the host is told that nobody needs the answer any more, by the call that waits for it, else by the stream of a
// client that listens.
func TestHTTPFormsAreWithdrawn(t *testing.T) {
	t.Parallel()
	for _, waitMS := range []int{300_000, 0} {
		p := newAskedPeer(t)
		start := object{"definition": walk(approval), "execution_id": "r", "wait_ms": waitMS}
		by := p.stream(http.MethodGet, "")
		messages := p.stream(http.MethodPost, rpcCall(1, "workflow_start", start))
		if waitMS > 0 {
			by = messages
		}
		var form any
		select { // without a wait the call may be over before its question goes out
		case m := <-by:
			form = m["id"]
		case m := <-messages:
			if m["method"] == "elicitation/create" {
				form = m["id"]
			} else {
				form = p.form(by)
			}
		}
		if waitMS == 0 {
			for range messages { // until the call is answered
			}
		}
		p.send(rpcCall(2, "workflow_cancel", object{"execution_id": "r"}))
		m := <-by
		params, _ := m["params"].(map[string]any)
		if m["method"] != "notifications/cancelled" || params["requestId"] != form {
			t.Errorf("wait_ms %d: %v instead of the end of %v", waitMS, m, form)
		}
	}
}

// TestHTTPFormsThatDoNotGoOut: where there is nothing by which a question could reach the host, it is asked with the next call that waits,
// and not left to the model.
func TestHTTPFormsThatDoNotGoOut(t *testing.T) {
	t.Parallel()
	p := newAskedPeer(t)
	messages := p.stream(http.MethodPost, rpcCall(1, "workflow_start", object{"definition": walk(approval), "execution_id": "r", "wait_ms": 500}))
	form := p.form(messages)
	for range messages { // until the call is answered
	}
	p.tried(form, object{"approve": "perhaps"}) // which is told the person by another form, but the client does not listen
	var asked any
	for id := 2; asked == nil; id++ {
		for m := range p.stream(http.MethodPost, rpcCall(id, "workflow_status", object{"execution_id": "r", "wait_ms": 1000})) {
			switch {
			case m["method"] == "elicitation/create" && asked == nil:
				asked = m["id"]
				p.tried(asked, object{"approve": true})
			case strings.Contains(string(enginetest.Must(json.Marshal(m))), "could not ask"):
				t.Fatalf("%v", m)
			case resultOf(m) != nil && asked != nil && resultOf(m)["phase"] != "completed":
				t.Errorf("%v", m)
			}
		}
		if id > 10 {
			t.Fatal("not asked")
		}
	}
}

// TestHTTPBatchesOpenNoSessions: such a session would be counted nowhere.
func TestHTTPBatchesOpenNoSessions(t *testing.T) {
	t.Parallel()
	p := newAskedPeer(t)
	stranger := &peer{t: t, url: p.url}
	for _, batch := range []string{`[` + rpc(1, "initialize", `{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"p","version":"0"}}`) + `]`, `[` + rpc(1, "ping", `{}`) + `]`} {
		if got := stranger.send(batch); got.status != http.StatusBadRequest || got.code() == 0 || got.header.Get("Mcp-Session-Id") != "" {
			t.Errorf("%s: %+v", batch, got)
		}
	}
	sessions := 0
	for range p.server.Sessions() {
		sessions++
	}
	if sessions != 1 {
		t.Errorf("%d sessions instead of the one that was opened before", sessions)
	}
}
