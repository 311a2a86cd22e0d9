package mcpserver_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/catalog"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
)

// listening is a server that listens.
type listening struct {
	t     *testing.T
	url   string
	store history.Store
	stop  context.CancelFunc
	ended chan error
}

func listen(t *testing.T, o mcpserver.HTTPOptions) *listening {
	t.Helper()
	store := enginetest.Closing(t, historymem.New())
	runner := enginetest.Closing(t, enginetest.Must(graph.New(store, graph.Options{DefaultMode: machine.HostMediated})))
	l := listenOver(t, mcpserver.New(runner, mcpserver.Options{Definitions: store}), o)
	l.store = store
	return l
}

func listenOver(t *testing.T, server *mcp.Server, o mcpserver.HTTPOptions) *listening {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	l := &listening{t: t, url: "http://" + listener.Addr().String() + "/mcp", stop: stop, ended: make(chan error, 1)}
	go func() { l.ended <- mcpserver.ServeHTTP(ctx, server, listener, o) }()
	t.Cleanup(func() {
		stop()
		if err := <-l.ended; err != nil {
			t.Errorf("ServeHTTP: %v", err)
		}
	})
	return l
}

// connect connects the SDK's client, with a token if it is not "".
func (l *listening) connect(who *mcp.Implementation, revision, token string, o *mcp.ClientOptions) (*mcp.ClientSession, error) {
	client := &http.Client{Transport: withToken(token)}
	return mcp.NewClient(who, o).Connect(l.t.Context(), &mcp.StreamableClientTransport{Endpoint: l.url, HTTPClient: client, MaxRetries: -1}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
}

func (l *listening) host(who *mcp.Implementation, revision, token string, o *mcp.ClientOptions) *host {
	l.t.Helper()
	session, err := l.connect(who, revision, token, o)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { session.Close() })
	return &host{t: l.t, session: session, store: l.store}
}

type withToken string

func (token withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	if token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+string(token))
	}
	return http.DefaultTransport.RoundTrip(r)
}

// peer is a client that sends requests as they are.
type peer struct {
	t       *testing.T
	url     string
	headers []string
}

// newPeer opens a session.
func newPeer(t *testing.T, url, name string) *peer {
	t.Helper()
	p := &peer{t: t, url: url}
	answer := p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":%q,"version":"0"}}}`, name))
	p.headers = []string{"Mcp-Session-Id", answer.header.Get("Mcp-Session-Id"), "Mcp-Protocol-Version", "2025-11-25"}
	if got := p.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`); got.status != http.StatusAccepted {
		t.Fatalf("initialized: %+v", got)
	}
	return p
}

// httpAnswer is what a request is answered with: the last message of a stream.
type httpAnswer struct {
	status  int
	header  http.Header
	message map[string]any
	text    string
}

func (p *peer) send(body string, headers ...string) httpAnswer {
	p.t.Helper()
	got, err := p.try(p.t.Context(), http.MethodPost, strings.NewReader(body), headers...)
	if err != nil {
		p.t.Fatal(err)
	}
	return got
}

func (p *peer) try(ctx context.Context, method string, body io.Reader, headers ...string) (httpAnswer, error) {
	req, err := http.NewRequestWithContext(ctx, method, p.url, body)
	if err != nil {
		return httpAnswer{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	headers = append(append([]string{}, p.headers...), headers...)
	for i := 0; i < len(headers); i += 2 {
		if req.Header.Set(headers[i], headers[i+1]); headers[i] == "Host" {
			req.Host = headers[i+1]
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return httpAnswer{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	got := httpAnswer{status: resp.StatusCode, header: resp.Header, text: string(text)}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		for lines := bufio.NewScanner(strings.NewReader(got.text)); lines.Scan(); {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				text = []byte(data)
			}
		}
	}
	_ = json.Unmarshal(text, &got.message)
	return got, err
}

// content is the structured content of an answer.
func (a httpAnswer) content() map[string]any {
	result, _ := a.message["result"].(map[string]any)
	content, _ := result["structuredContent"].(map[string]any)
	return content
}

// code is the code of a JSON-RPC error, 0 if it is none.
func (a httpAnswer) code() int {
	failure, _ := a.message["error"].(map[string]any)
	code, _ := failure["code"].(float64)
	return int(code)
}

func rpc(id int, method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params)
}

func rpcCall(id int, tool string, args any) string {
	text, _ := json.Marshal(map[string]any{"name": tool, "arguments": args})
	return rpc(id, "tools/call", string(text))
}

// TestHTTPDrivesARun: clients of each revision list, start, hear of progress, answer and read over HTTP, and the records name them.
func TestHTTPDrivesARun(t *testing.T) {
	t.Parallel()
	const token = "a-token-of-some-length"
	l := listen(t, mcpserver.HTTPOptions{Token: token})
	for i, revision := range mcp.SupportedProtocolVersions() {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			l := *l
			l.t = t
			var heard atomic.Int32
			h := l.host(&mcp.Implementation{Name: "client of " + revision, Version: "1"}, revision, token, &mcp.ClientOptions{
				ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) { heard.Add(1) },
			})
			if list, err := h.session.ListTools(t.Context(), nil); err != nil || len(list.Tools) != len(order) {
				t.Fatalf("%v, %v", list, err)
			}
			id := fmt.Sprint("r", i)
			// A large input, which is taken out of the message.
			params := &mcp.CallToolParams{Name: "workflow_start", Arguments: object{
				"definition": waitsThenAsks(), "execution_id": id, "input": object{"note": strings.Repeat("x", 200_000)}, "wait_ms": 20_000,
			}}
			params.SetProgressToken(id)
			started, err := h.session.CallTool(t.Context(), params)
			if err != nil || started.IsError {
				t.Fatalf("%v, %v", started, err)
			}
			for heard.Load() == 0 {
				time.Sleep(time.Millisecond) // the client may deal with the answer first
			}
			done, err := h.session.CallTool(t.Context(), &mcp.CallToolParams{Name: "workflow_submit_activity", Arguments: object{
				"execution_id": id, "node_id": "work", "outcome": object{"ok": true, "result": object{"k": 1}},
			}})
			if err != nil || done.IsError || !strings.Contains(done.Content[0].(*mcp.TextContent).Text, "completed") {
				t.Fatalf("%v, %v", done, err)
			}
			if shown, err := h.session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "awp://runs/" + id + "/state/k"}); err != nil || shown.Contents[0].Text != "1" {
				t.Errorf("%v, %v", shown, err)
			}
			if a := records(t, h, id)[0].Payload.Actor; a == nil || a.Name != "client of "+revision {
				t.Errorf("the start was made by %v", a)
			}
		})
	}
}

// waitsThenAsks waits for half a second and then asks its host for a step.
func waitsThenAsks() json.RawMessage {
	return json.RawMessage(enginetest.Linear("waits", `{"id":"begin","type":"start"}`, `{"id":"nap","type":"wait","config":{"kind":"duration","duration_ms":500}}`,
		`{"id":"work","type":"step","config":{"handler":"urn:work"}}`, `{"id":"finish","type":"end"}`))
}

// TestHTTPRefuses holds who is let in: by token, Host and Origin. Each refusal is a JSON-RPC error, and WWW-Authenticate asks for a token.
func TestHTTPRefuses(t *testing.T) {
	t.Parallel()
	const token = "a-token-of-some-length"
	l := listen(t, mcpserver.HTTPOptions{Token: token, Origins: []string{"https://App.example.com:443"}, Hosts: []string{"flows.example.com"}})
	p := &peer{t: t, url: l.url}
	ping := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"p","version":"0"}}}`
	for _, c := range []struct {
		name    string
		headers []string
		status  int
		says    string
	}{
		{"no token", nil, 401, "missing bearer token"},
		{"another scheme", []string{"Authorization", "Basic " + token}, 401, "missing bearer token"},
		{"a wrong token", []string{"Authorization", "Bearer " + token + "x"}, 401, "invalid bearer token"},
		{"a token that begins well", []string{"Authorization", "Bearer " + token[:5]}, 401, "invalid bearer token"},
		{"the token", []string{"Authorization", "bearer  " + token}, 200, ""},
		{"a page of this machine", []string{"Authorization", "Bearer " + token, "Origin", "http://localhost:5173"}, 200, ""},
		{"a page of this machine, by address", []string{"Authorization", "Bearer " + token, "Origin", "http://[::1]:5173"}, 200, ""},
		{"a page that is allowed", []string{"Authorization", "Bearer " + token, "Origin", "https://app.example.com"}, 200, ""},
		{"the same host without TLS", []string{"Authorization", "Bearer " + token, "Origin", "http://app.example.com"}, 403, "--allow-origin"},
		{"a page of another site", []string{"Authorization", "Bearer " + token, "Origin", "https://evil.example"}, 403, "--allow-origin"},
		{"a page that looks like this machine", []string{"Authorization", "Bearer " + token, "Origin", "http://localhost.evil.example"}, 403, "--allow-origin"},
		{"a page without an origin", []string{"Authorization", "Bearer " + token, "Origin", "null"}, 403, "--allow-origin"},
		{"localhost", []string{"Authorization", "Bearer " + token, "Host", "localhost:1234"}, 200, ""},
		{"an address of this machine", []string{"Authorization", "Bearer " + token, "Host", "[::1]:80"}, 200, ""},
		{"an allowed name", []string{"Authorization", "Bearer " + token, "Host", "Flows.Example.com."}, 200, ""},
		{"a name of somebody", []string{"Authorization", "Bearer " + token, "Host", "rebound.example"}, 403, "--allow-host"},
		{"an address of another machine", []string{"Authorization", "Bearer " + token, "Host", "203.0.113.7"}, 403, "--allow-host"},
	} {
		got := p.send(ping, c.headers...)
		if got.status != c.status || !strings.Contains(got.text, c.says) || (got.code() == 0) != (c.status == 200) {
			t.Errorf("%s: %d %.300s", c.name, got.status, got.text)
		}
		if challenge := got.header.Get("WWW-Authenticate"); strings.HasPrefix(challenge, "Bearer ") != (c.status == 401) || strings.Contains(got.text+challenge, token) {
			t.Errorf("%s: WWW-Authenticate %q, %s", c.name, challenge, got.text)
		}
	}
	// A page asks before it sends a token.
	got, err := p.try(t.Context(), http.MethodOptions, nil, "Origin", "https://app.example.com", "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization,mcp-session-id")
	if err != nil || got.status != 204 || got.header.Get("Access-Control-Allow-Origin") != "https://app.example.com" || got.header.Get("Access-Control-Allow-Headers") != "authorization,mcp-session-id" {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err = p.try(t.Context(), http.MethodOptions, nil, "Origin", "https://evil.example", "Access-Control-Request-Method", "POST"); err != nil || got.status != 403 || got.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("%+v, %v", got, err)
	}
	other := *p
	other.url = strings.TrimSuffix(l.url, "/mcp") + "/other"
	if got := other.send(ping); got.status != 404 || !strings.Contains(got.text, "/mcp") {
		t.Errorf("another path: %+v", got)
	}
}

// TestHTTPMessagesThatAreRefused: what is no message is answered with a JSON-RPC error, with the id if it can be made out, and a session
// goes on.
func TestHTTPMessagesThatAreRefused(t *testing.T) {
	t.Parallel()
	const most = 300_000
	l := listen(t, mcpserver.HTTPOptions{MaxMessageBytes: most})
	p := newPeer(t, l.url, "p")
	long := strings.Repeat("x", most)
	for _, c := range []struct {
		name, body   string
		status, code int
		id           any
		says         string
	}{
		{"nothing", ``, 400, -32600, nil, "must have a message"},
		{"no JSON", `hello`, 400, -32700, nil, "not JSON"},
		{"broken behind the id", `{"jsonrpc":"2.0","id":7,"method":"ping",}`, 400, -32700, 7.0, "byte"},
		{"deep", `{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}}`, 400, -32700, 7.0, "levels deep"},
		{"not UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"p\xff\"}", 400, -32700, 7.0, "UTF-8"},
		{"an id that is none", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, 400, -32600, nil, `"id"`},
		{"version", `{"jsonrpc":"1.0","id":7,"method":"ping"}`, 400, -32600, 7.0, `"jsonrpc"`},
		{"too long, the id first", `{"jsonrpc":"2.0","id":7,"method":"` + long + `"}`, 413, -32600, 7.0, "longer than 300000 bytes"},
		{"too long, the id last", `{"method":"` + long + `","jsonrpc":"2.0","id":7}`, 413, -32600, 7.0, "longer"},
		{"far too long", `{"jsonrpc":"2.0","id":7,"method":"` + strings.Repeat(long, 3) + `"}`, 413, -32600, 7.0, "longer"},
		{"much beside the arguments", `{"jsonrpc":"2.0","id":7,"method":"ping","params":{"arguments":"` + long[:most/2] + `"}}`, 400, -32602, 7.0, "parameters of"},
		{"a batch", `[{"jsonrpc":"2.0","id":7,"method":"ping"}]`, 400, -32600, nil, "batching"},
		{"a broken batch", `[{"jsonrpc":"2.0","id":7,"method":"ping"},{"id":8}]`, 400, -32600, 8.0, "jsonrpc"},
		{"an unknown method", rpc(7, "x/y", `{}`), 200, -32601, 7.0, "x/y"},
		{"no parameters", `{"jsonrpc":"2.0","id":7,"method":"tools/call"}`, 400, -32600, 7.0, "params"},
		{"an unknown tool", rpc(7, "tools/call", `{"name":"rm","arguments":{}}`), 200, -32602, 7.0, "rm"},
		{"large arguments that are not JSON", rpc(7, "tools/call", `{"name":"workflow_list","arguments":{"a":[`+long[:most/2]+`]}}`), 200, -32700, 7.0, "not JSON"},
		{"a second handshake", `{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"p","version":"0"}}}`, 200, -32600, 7.0, "duplicate"},
		{"a handshake of other types", rpc(7, "initialize", `{"protocolVersion":"2025-11-25","clientInfo":{"version":0}}`), 400, -32602, 7.0, "clientInfo.version"},
		{"a handshake with null", rpc(7, "initialize", `null`), 400, -32602, 7.0, "missing"},
		{"a handshake without parameters", `{"jsonrpc":"2.0","id":7,"method":"initialize"}`, 400, -32602, 7.0, "missing"},
		{"a cancellation with an id", rpc(7, "notifications/cancelled", `{"requestId":99}`), 400, -32600, 7.0, "has no id"},
		{"a tool", rpcCall(7, "workflow_list", object{}), 200, 0, 7.0, "Listed 0"},
	} {
		for _, chunked := range []bool{false, true} {
			var body io.Reader = strings.NewReader(c.body)
			if chunked {
				body = io.MultiReader(body) // of which nobody knows the length
			}
			got, err := p.try(t.Context(), http.MethodPost, body)
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
				continue
			}
			if got.status != c.status || got.code() != c.code || got.message["id"] != c.id || !strings.Contains(got.text, c.says) {
				t.Errorf("%s, chunked %v: %d %.300s", c.name, chunked, got.status, got.text)
			}
		}
	}
	for _, c := range []struct {
		name, method string
		headers      []string
		status       int
	}{
		{"another type of content", "POST", []string{"Content-Type", "text/plain"}, 415},
		{"a client that accepts no stream", "POST", []string{"Accept", "application/json"}, 400},
		{"a session that is not there", "POST", []string{"Mcp-Session-Id", "x"}, 404},
		{"a stream of a session that is not there", "GET", []string{"Mcp-Session-Id", "x"}, 404},
		{"no session", "POST", []string{"Mcp-Session-Id", ""}, 400},
		{"no session, GET", "GET", []string{"Mcp-Session-Id", ""}, 400},
		{"a GET with a body", "GET", nil, 400},
		{"an unknown revision", "POST", []string{"Mcp-Protocol-Version", "2020-01-01"}, 400},
		{"a revision without sessions, GET", "GET", []string{"Mcp-Protocol-Version", "2026-07-28"}, 405},
		{"another HTTP method", "PUT", nil, 405},
	} {
		var body io.Reader
		if c.method == "POST" || strings.HasSuffix(c.name, "body") {
			body = strings.NewReader(rpcCall(7, "workflow_list", object{}))
		}
		got, err := p.try(t.Context(), c.method, body, c.headers...)
		if err != nil || got.status != c.status || got.code() == 0 {
			t.Errorf("%s: %d %s, %v", c.name, got.status, got.text, err)
		}
	}
	if got := p.send(rpcCall(9, "workflow_list", object{})); got.status != 200 || got.content() == nil {
		t.Errorf("the session is gone: %+v", got)
	}
	if got, err := p.try(t.Context(), http.MethodDelete, nil); err != nil || got.status != 204 {
		t.Errorf("%+v, %v", got, err)
	}
	if got := p.send(rpcCall(9, "workflow_list", object{})); got.status != 404 {
		t.Errorf("the session is still there: %+v", got)
	}
}

// held is an engine whose first submit waits to be applied.
type held struct {
	graph.Engine
	begun, release chan struct{}
	order          chan string
}

func (e *held) SubmitActivity(_ context.Context, req graph.SubmitRequest) (*view.Run, error) {
	if req.NodeID == "first" {
		close(e.begun)
		<-e.release
	}
	e.order <- req.NodeID
	req.Wait.Applied()
	return nil, errors.New("applied")
}

// TestHTTPKeepsTheOrderOfASession: calls about one run are applied in the order in which their requests have come in, also where a header
// pretends to a turn. Those of another session do not wait for them, nor those about another run.
func TestHTTPKeepsTheOrderOfASession(t *testing.T) {
	t.Parallel()
	engine := &held{begun: make(chan struct{}), release: make(chan struct{}), order: make(chan string, 10)}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	handler, turns := mcpserver.HTTPServer(ctx, mcpserver.New(engine, mcpserver.Options{}), mcpserver.HTTPOptions{})
	served := httptest.NewServer(handler)
	defer served.Close()
	a, b := newPeer(t, served.URL+"/mcp", "a"), newPeer(t, served.URL+"/mcp", "b")
	answers := make(chan httpAnswer, 10)
	submit := func(p *peer, run, node string, id int) {
		args := object{"execution_id": run, "node_id": node, "outcome": object{"ok": true, "result": object{"note": strings.Repeat("x", id%2*100_000)}}}
		go func() {
			got, err := p.try(t.Context(), http.MethodPost, strings.NewReader(rpcCall(id, "workflow_submit_activity", args)), "Workflows-Engine-Turn", "1")
			if err != nil {
				t.Error(err)
			}
			answers <- got
		}()
	}
	submit(a, "r", "first", 1)
	<-engine.begun
	for i, node := range []string{"second", "third", "fourth"} {
		submit(a, []string{"r", "r:sub:s"}[i%2], node, i+2)
		for turns() < i+2 {
			time.Sleep(time.Millisecond) // until the request has come in
		}
	}
	submit(b, "r", "of b", 5)
	if got := <-engine.order; got != "of b" {
		t.Errorf("%s was applied while the first was not", got)
	}
	submit(a, "other", "of another run", 6)
	if got := <-engine.order; got != "of another run" {
		t.Errorf("%s was applied while the first was not", got)
	}
	close(engine.release)
	for _, want := range []string{"first", "second", "third", "fourth"} {
		if got := <-engine.order; got != want {
			t.Errorf("%s was applied, want %s", got, want)
		}
	}
	for range 6 {
		if got := <-answers; got.status != 200 || got.content() == nil {
			t.Errorf("%+v", got)
		}
	}
	if n := turns(); n > 0 {
		t.Errorf("%d turns are left", n)
	}
}

// asked is an engine that tells of calls that wait for a change.
type asked struct {
	*graph.Runner
	asked chan struct{}
}

func (e *asked) Status(ctx context.Context, req graph.StatusRequest) (*view.Run, error) {
	if req.Wait != nil {
		e.asked <- struct{}{}
	}
	return e.Runner.Status(ctx, req)
}

// TestHTTPStops: a call that waits is cut short and answered, a stream that listens ends, nothing more is taken in, and the run is left
// as it was; all in less than the time that answers have.
func TestHTTPStops(t *testing.T) {
	t.Parallel()
	store := enginetest.Closing(t, historymem.New())
	engine := &asked{enginetest.Closing(t, enginetest.Must(graph.New(store, graph.Options{}))), make(chan struct{}, 10)}
	l := listenOver(t, mcpserver.New(engine, mcpserver.Options{}), mcpserver.HTTPOptions{})
	l.store = store
	p := newPeer(t, l.url, "p")
	modern := l.host(&mcp.Implementation{Name: "m", Version: "0"}, "2026-07-28", "", nil)
	stream := make(chan error, 1)
	listens, err := http.NewRequestWithContext(t.Context(), http.MethodGet, l.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	listens.Header.Set("Accept", "text/event-stream")
	listens.Header.Set("Mcp-Session-Id", p.headers[1])
	resp, err := http.DefaultClient.Do(listens)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("%v, %v", resp, err)
	}
	go func() {
		defer resp.Body.Close()
		_, err := io.Copy(io.Discard, resp.Body)
		stream <- err
	}()
	long := json.RawMessage(enginetest.Linear("long", `{"id":"begin","type":"start"}`, `{"id":"nap","type":"wait","config":{"kind":"duration","duration_ms":3600000}}`, `{"id":"finish","type":"end"}`))
	if got := p.send(rpcCall(1, "workflow_start", object{"definition": long, "execution_id": "r", "wait_ms": 0})); got.content()["status"] != "awaiting_timer" {
		t.Fatalf("%+v", got)
	}
	answer := make(chan httpAnswer, 1)
	go func() {
		got, err := p.try(t.Context(), http.MethodPost, strings.NewReader(rpcCall(2, "workflow_status", object{"execution_id": "r", "wait_ms": 300_000})))
		if err != nil {
			t.Error(err)
		}
		answer <- got
	}()
	waits := make(chan error, 1)
	go func() {
		_, err := modern.session.CallTool(t.Context(), &mcp.CallToolParams{Name: "workflow_status", Arguments: object{"execution_id": "r", "wait_ms": 300_000}})
		waits <- err
	}()
	<-engine.asked
	<-engine.asked
	began := time.Now()
	l.stop()
	if got := <-answer; got.status != 200 || got.content()["phase"] != "running" && !strings.Contains(got.text, "stopping") {
		t.Errorf("answered %+v", got)
	}
	if err := <-waits; err != nil && !strings.Contains(err.Error(), "stopping") {
		t.Errorf("answered %v", err)
	}
	if err := <-stream; err != nil {
		t.Errorf("the stream ended with %v", err)
	}
	err = <-l.ended
	if l.ended <- nil; err != nil || time.Since(began) > 2*time.Second {
		t.Errorf("ended with %v after %s", err, time.Since(began))
	}
	if _, err := p.try(t.Context(), http.MethodPost, strings.NewReader(rpc(3, "ping", `{}`))); err == nil {
		t.Error("still listens")
	}
	if run, err := l.store.Execution(context.Background(), "r"); err != nil || run.Phase != history.PhaseRunning {
		t.Errorf("the run is %+v, %v", run, err)
	}
}

// TestHTTPCallsGoOnWithoutTheirClient: a client with a session that goes away does not cancel its call.
func TestHTTPCallsGoOnWithoutTheirClient(t *testing.T) {
	t.Parallel()
	l := listen(t, mcpserver.HTTPOptions{})
	p := newPeer(t, l.url, "p")
	gone, leave := context.WithCancel(t.Context())
	left := make(chan struct{})
	go func() {
		defer close(left)
		_, _ = p.try(gone, http.MethodPost, strings.NewReader(rpcCall(1, "workflow_start", object{"definition": waitsThenAsks(), "execution_id": "r", "wait_ms": 20_000})))
	}()
	for run, err := l.store.Execution(t.Context(), "r"); err != nil || run.Phase == ""; run, err = l.store.Execution(t.Context(), "r") {
		time.Sleep(time.Millisecond) // until the run has begun
	}
	leave()
	<-left
	got := p.send(rpcCall(2, "workflow_submit_activity", object{"execution_id": "r", "node_id": "work", "outcome": object{"ok": true, "result": object{}}, "wait_ms": 20_000}))
	for range 100 { // the node may not be asked for yet
		if got.content()["status"] == "completed" {
			break
		}
		got = p.send(rpcCall(2, "workflow_status", object{"execution_id": "r", "wait_ms": 20_000}))
		if pending, _ := got.content()["pending"].([]any); len(pending) > 0 && got.content()["phase"] == "awaiting_activity" {
			got = p.send(rpcCall(3, "workflow_submit_activity", object{"execution_id": "r", "node_id": "work", "outcome": object{"ok": true, "result": object{}}}))
		}
	}
	if got.content()["status"] != "completed" {
		t.Errorf("%+v", got)
	}
}

// TestHTTPAsksThePerson: a client that can put questions to the person does so over HTTP too, by a request of the server that comes with
// the answer of a call, or by an answer that has the call made once more.
func TestHTTPAsksThePerson(t *testing.T) {
	t.Parallel()
	l := listen(t, mcpserver.HTTPOptions{})
	for _, revision := range askingRevisions {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			l := *l
			l.t = t
			p := says(accepts(object{"ok": true}))
			h := l.host(&mcp.Implementation{Name: "t", Version: "0"}, revision, "", &mcp.ClientOptions{ElicitationHandler: p.answer})
			asks := enginetest.Linear("asks", `{"id":"begin","type":"start"}`,
				`{"id":"ask","type":"interrupt","config":{"prompt":"Ship it?","resume_schema":{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}}}`, `{"id":"finish","type":"end"}`)
			got, err := h.session.CallTool(t.Context(), &mcp.CallToolParams{Name: "workflow_start", Arguments: object{"definition": json.RawMessage(asks), "execution_id": "r" + revision}})
			if err != nil || got.IsError || !strings.Contains(got.Content[0].(*mcp.TextContent).Text, "completed") {
				t.Fatalf("%v, %v", got, err)
			}
			if q := p.questions(); len(q) != 1 || !strings.Contains(q[0], "Ship it?") {
				t.Errorf("asked %q", q)
			}
		})
	}
}

// TestHTTPTellsOfChanges: clients that listen over HTTP are told when a registered workflow becomes a tool.
func TestHTTPTellsOfChanges(t *testing.T) {
	t.Parallel()
	c := catalog.New(t.TempDir(), catalog.Options{})
	store := enginetest.Closing(t, historymem.New())
	runner := enginetest.Closing(t, enginetest.Must(graph.New(store, graph.Options{DefaultMode: machine.HostMediated, Workflows: c})))
	l := listenOver(t, mcpserver.New(runner, mcpserver.Options{Definitions: store, Catalog: c, ExposeWorkflows: true}), mcpserver.HTTPOptions{})
	told := map[string]chan struct{}{}
	hosts := map[string]*host{}
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		changed := make(chan struct{}, 10)
		told[revision] = changed
		hosts[revision] = l.host(&mcp.Implementation{Name: "t", Version: "0"}, revision, "", &mcp.ClientOptions{
			ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
		})
	}
	// A client listens by a request of its own, which may come in after the change: then there is another.
	for i := 0; len(told) > 0; i++ {
		if err := os.WriteFile(filepath.Join(c.Folder(), fmt.Sprintf("w%d.workflow.json", i)), []byte(enginetest.Linear(fmt.Sprint("w", i), `{"id":"begin","type":"start"}`, `{"id":"finish","type":"end"}`)), 0o600); err != nil {
			t.Fatal(err)
		}
		c.Look()
		for revision, changed := range told {
			select {
			case <-changed:
				delete(told, revision)
				list, err := hosts[revision].session.ListTools(t.Context(), nil)
				if err != nil || !slices.ContainsFunc(list.Tools, func(tool *mcp.Tool) bool { return tool.Name == "run_w0" }) {
					t.Errorf("%s: %v", revision, err)
				}
			case <-time.After(time.Second):
			}
		}
		if i > 20 {
			t.Fatalf("not told: %v", slices.Collect(maps.Keys(told)))
		}
	}
}

// TestHTTPHealth: anybody may ask whether the server works, and is told no more than that.
func TestHTTPHealth(t *testing.T) {
	t.Parallel()
	var trouble atomic.Pointer[error]
	l := listen(t, mcpserver.HTTPOptions{Token: "a-token-of-some-length", Healthy: func(context.Context) error {
		if err := trouble.Load(); err != nil {
			return *err
		}
		return nil
	}})
	ask := func(method string) httpAnswer {
		p := &peer{t: t, url: strings.TrimSuffix(l.url, "/mcp") + "/healthz"}
		got, err := p.try(t.Context(), method, nil, "Host", "10.1.2.3", "Origin", "https://evil.example")
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := ask("GET"); got.status != 200 || got.text != "ok\n" {
		t.Errorf("%+v", got)
	}
	err := errors.New("the disk of the payroll is full")
	trouble.Store(&err)
	for got := ask("GET"); got.status != 503 || got.text != "unavailable\n"; got = ask("GET") {
		if got.status != 200 {
			t.Fatalf("%+v", got)
		}
		time.Sleep(50 * time.Millisecond) // an answer holds for a second
	}
	if got := ask("POST"); got.status != 405 {
		t.Errorf("%+v", got)
	}
}

// TestHTTPSinceSeq: what a client with a session has seen is left out; of one without, nothing is known.
func TestHTTPSinceSeq(t *testing.T) {
	t.Parallel()
	l := listen(t, mcpserver.HTTPOptions{})
	for revision, want := range map[string]any{"2025-11-25": []any{"/note"}, "2026-07-28": nil} {
		h := l.host(&mcp.Implementation{Name: "t", Version: "0"}, revision, "", nil)
		status := func(args object) map[string]any {
			res, err := h.session.CallTool(t.Context(), &mcp.CallToolParams{Name: "workflow_status", Arguments: args})
			if err != nil || res.IsError {
				t.Fatalf("%v, %v", res, err)
			}
			return res.StructuredContent.(map[string]any)
		}
		id := "r" + revision
		_, err := h.session.CallTool(t.Context(), &mcp.CallToolParams{Name: "workflow_start", Arguments: object{
			"definition": definitionFile(t, "step"), "execution_id": id, "input": object{"note": strings.Repeat("x", 100)},
		}})
		if err != nil {
			t.Fatal(err)
		}
		seq := cmp.Or(status(object{"execution_id": id})["seq"], any(0.0))
		if got := status(object{"execution_id": id, "since_seq": seq, "wait_ms": 0})["unchanged"]; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: unchanged %v, want %v", revision, got, want)
		}
	}
}
