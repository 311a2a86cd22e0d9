package mcpserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver/stdio"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// protocolMethods are the methods of all revisions, of both directions, with parameters that fit and such that do not. Those of tools stand in
// protocolParams.
var protocolMethods = map[string][]string{
	"initialize": {
		`{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`, `{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`,
		`{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}`, `{}`, `null`, `[]`, `{"protocolVersion":7}`,
	},
	"server/discover":                          {`{}`, `null`, `{"x":1}`},
	"ping":                                     {`{}`, `null`, `[1]`},
	"prompts/list":                             {`{}`, `{"cursor":"x"}`, `null`, `7`},
	"prompts/get":                              {`{"name":"drive_run","arguments":{}}`, `{"name":"none"}`, `{"name":1}`, `null`, `{}`},
	"tools/list":                               {`{}`, `{"cursor":"x"}`, `null`, `"x"`},
	"resources/list":                           {`{}`, `{"cursor":"x"}`, `null`},
	"resources/templates/list":                 {`{}`, `null`, `true`},
	"resources/read":                           {`{"uri":"workflow://guide"}`, `{"uri":"workflow://runs/none"}`, `{"uri":"%zz"}`, `{"uri":null}`, `{}`, `null`},
	"resources/subscribe":                      {`{"uri":"workflow://guide"}`, `{}`, `null`},
	"resources/unsubscribe":                    {`{"uri":"workflow://guide"}`, `{}`, `null`},
	"completion/complete":                      {`{"ref":{"type":"ref/prompt","name":"drive_run"},"argument":{"name":"execution_id","value":""}}`, `{"ref":null,"argument":null}`, `{"ref":{"type":"x"}}`, `{}`, `null`},
	"logging/setLevel":                         {`{"level":"debug"}`, `{"level":"x"}`, `{}`, `null`},
	"subscriptions/listen":                     {`{"notifications":{"toolsListChanged":true}}`, `{}`, `null`},
	"sampling/createMessage":                   {`{"messages":[],"maxTokens":1}`, `{}`},
	"elicitation/create":                       {`{"message":"m","requestedSchema":{"type":"object"}}`, `{}`},
	"roots/list":                               {`{}`},
	"no/such":                                  {`{}`, `null`, `[]`},
	"":                                         {`{}`},
	"notifications/initialized":                {`{}`, `null`, `[]`},
	"notifications/cancelled":                  {`{"requestId":"none"}`, `{"requestId":{}}`, `null`},
	"notifications/progress":                   {`{"progressToken":1,"progress":1}`, `{}`, `null`},
	"notifications/roots/list_changed":         {`{}`, `null`},
	"notifications/tools/list_changed":         {`{}`},
	"notifications/message":                    {`{"level":"debug","data":1}`, `null`},
	"notifications/elicitation/complete":       {`{"elicitationId":"x"}`, `null`},
	"notifications/subscriptions/acknowledged": {`{}`},
	"notifications/no/such":                    {`null`},
}

// protocolArguments are given to every tool in turn.
var protocolArguments = []string{
	`{"definition":{"name":"d","version":"1","nodes":{"a":{"type":"step"},"e":{"type":"end"}},"edges":[{"from":"a","to":"e"}],"start":"a"},"input":{}}`,
	`{"execution_id":"none"}`, `{"execution_id":7,"node":"x","output":{}}`, `{}`, `null`, `[]`, `"{}"`, `"{"`, `{"wait_ms":-1}`, `{"definition":{"nodes":null}}`, `{"definition":"x"}`, `{"topic":"jq"}`,
}

// protocolMeta is what requests of the revisions without sessions carry.
const protocolMeta = `{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`

// protocolMessage is a message without its id.
type protocolMessage struct{ method, params string }

// notifies reports whether the message has no id.
func (m protocolMessage) notifies() bool { return strings.HasPrefix(m.method, "notifications/") }

func (m protocolMessage) text(id string) string {
	text := `{"jsonrpc":"2.0"`
	if id != "" {
		text += `,"id":` + id
	}
	if m.method != "" {
		text += fmt.Sprintf(`,"method":%q`, m.method)
	}
	return text + `,"params":` + m.params + `}`
}

// protocolMessages are all messages, each as the revisions with sessions have it and as those without.
func protocolMessages(tools []string) (all []protocolMessage) {
	add := func(method, params string) {
		all = append(all, protocolMessage{method, params})
		if rest, isObject := strings.CutPrefix(params, "{"); isObject {
			if rest != "}" {
				rest = "," + rest
			}
			all = append(all, protocolMessage{method, `{"_meta":` + protocolMeta + rest})
		}
	}
	for _, method := range slices.Sorted(maps.Keys(protocolMethods)) {
		for _, p := range protocolMethods[method] {
			add(method, p)
		}
	}
	for i, tool := range slices.Concat(tools, []string{"none"}) {
		for j := range 3 {
			add("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, protocolArguments[(3*i+j)%len(protocolArguments)]))
		}
	}
	for _, params := range []string{`{}`, `null`, `{"name":7}`, `{"arguments":{}}`} {
		add("tools/call", params)
	}
	return all
}

// protocolServer is a server with a real engine, and a log in which no panic may stand.
func protocolServer(t *testing.T) *mcp.Server {
	store := enginetest.Closing(t, historymem.New())
	runner := enginetest.Closing(t, enginetest.Must(graph.New(store, graph.Options{DefaultMode: machine.HostMediated})))
	return mcpserver.New(runner, mcpserver.Options{
		Definitions: store, Known: func(context.Context) error { return errors.New("the disk is slow") },
		Logger: slog.New(slog.NewTextHandler(panicsOf{t}, nil)),
	})
}

// panicsOf fails a test whose log has a panic.
type panicsOf struct{ t *testing.T }

func (w panicsOf) Write(line []byte) (int, error) {
	if strings.Contains(string(line), "msg=panic") {
		w.t.Errorf("%s", line)
	}
	return len(line), nil
}

// TestEveryMethodInAnyOrder: whatever messages come in whatever order, also twice and in batches, the connection lives: each request is
// answered once, and no answer is a defect.
func TestEveryMethodInAnyOrder(t *testing.T) {
	t.Parallel()
	server := protocolServer(t)
	all := protocolMessages(order)
	first := uint64(soak.Setting("SOAK_SEED", 1))
	for seed := first; seed < first+uint64(soak.Size(30, 5, 5000)); seed++ {
		if playOrder(t, server, all, seed); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// playOrder sends the messages in the order of a seed.
func playOrder(t *testing.T, server *mcp.Server, all []protocolMessage, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 0))
	in, feed := io.Pipe()
	out, drain := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- mcpserver.Serve(context.Background(), server, &stdio.Transport{In: in, Out: drain})
		drain.Close()
	}()
	seen := newAnswers()
	go seen.read(out)

	n, owed := 0, []string{}
	next := func() string { n++; return fmt.Sprint(n) }
	for _, at := range random.Perm(len(all)) {
		m := all[at]
		switch {
		case m.notifies() && random.IntN(8) > 0:
			fmt.Fprintln(feed, m.text(""))
		case m.method == "subscriptions/listen": // answered to nobody
			fmt.Fprintln(feed, m.text(`"listen`+next()+`"`))
		case random.IntN(6) == 0: // the answer to a batch depends on the revision
			other := all[random.IntN(len(all))]
			if other.method == "subscriptions/listen" {
				other = m
			}
			fmt.Fprintf(feed, "[%s,%s,%s]\n", m.text(`"batch`+next()+`"`), other.text(`"batch`+next()+`"`), other.text(""))
		default:
			id := next()
			owed = append(owed, id)
			fmt.Fprintln(feed, m.text(id))
			if random.IntN(6) == 0 { // as a client that repeats itself
				fmt.Fprintln(feed, m.text(`"twice`+next()+`"`))
			}
		}
		if random.IntN(4) == 0 { // an answer is waited for, so that some orders are not pipelined
			id := next()
			fmt.Fprintln(feed, protocolMessage{"ping", `{}`}.text(id))
			if !seen.await(id) {
				t.Errorf("ping %s is not answered", id)
			}
		}
	}
	feed.Close()
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	<-seen.ended
	for _, id := range owed {
		if got := len(seen.byID[id]); got != 1 {
			t.Errorf("%d answers to request %s", got, id)
		}
	}
	for id, list := range seen.byID {
		for _, a := range list {
			if a.Error != nil && (a.Error.Code == 0 || a.Error.Code == jsonrpc.CodeInternalError) {
				t.Errorf("request %s: %d %s", id, a.Error.Code, a.Error.Message)
			}
		}
	}
}

type protocolAnswer struct {
	ID     json.RawMessage
	Method string
	Error  *jsonrpc.Error
}

// answers are those of one connection.
type answers struct {
	mu    sync.Mutex
	byID  map[string][]protocolAnswer
	more  *sync.Cond
	over  bool
	ended chan struct{}
}

func newAnswers() *answers {
	a := &answers{byID: map[string][]protocolAnswer{}, ended: make(chan struct{})}
	a.more = sync.NewCond(&a.mu)
	return a
}

func (a *answers) read(out io.Reader) {
	defer close(a.ended)
	for r := bufio.NewReader(out); ; {
		line, err := r.ReadBytes('\n')
		if err != nil {
			break
		}
		var list []protocolAnswer
		if line[0] != '[' {
			line = slices.Concat([]byte{'['}, line, []byte{']'})
		}
		_ = json.Unmarshal(line, &list)
		a.mu.Lock()
		for _, one := range list {
			if one.Method == "" {
				a.byID[string(one.ID)] = append(a.byID[string(one.ID)], one)
			}
		}
		a.mu.Unlock()
		a.more.Broadcast()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	a.more.Broadcast()
}

// await waits for the answer to a request.
func (a *answers) await(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for !a.over && len(a.byID[id]) == 0 {
		a.more.Wait()
	}
	return len(a.byID[id]) > 0
}

// TestEveryMethodInAnyOrderOverHTTP: the same holds for several clients at once.
func TestEveryMethodInAnyOrderOverHTTP(t *testing.T) {
	t.Parallel()
	l := listenOver(t, protocolServer(t), mcpserver.HTTPOptions{})
	all := protocolMessages(order)
	first := uint64(soak.Setting("SOAK_SEED", 1))
	var clients sync.WaitGroup
	for client := range uint64(3) {
		clients.Go(func() {
			for seed := first; seed < first+uint64(soak.Size(2, 1, 1000)) && !t.Failed(); seed++ {
				playOrderOverHTTP(t, l.url, all, seed, client)
			}
		})
	}
	clients.Wait()
	newPeer(t, l.url, "last")
}

func playOrderOverHTTP(t *testing.T, url string, all []protocolMessage, seed, client uint64) {
	random := rand.New(rand.NewPCG(seed, client))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var listening sync.WaitGroup
	defer listening.Wait()
	defer stop()
	revision := []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}[random.IntN(4)]
	p := &peer{t: t, url: url}
	opened, err := p.try(ctx, http.MethodPost, strings.NewReader(protocolMessage{"initialize", `{"protocolVersion":"` + revision + `","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`}.text("0")))
	if err != nil {
		t.Error(err)
		return
	}
	session := opened.header.Get("Mcp-Session-Id")
	for i, at := range random.Perm(len(all)) {
		m, id := all[at], fmt.Sprint(i+1)
		text := m.text(id)
		if m.notifies() {
			text = m.text("")
		}
		if random.IntN(8) == 0 {
			text = "[" + text + "," + m.text(`"b`+id+`"`) + "]"
		}
		var headers []string
		switch random.IntN(4) {
		case 0: // stands alone
			headers = []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", m.method}
		case 1:
			headers = []string{"Mcp-Session-Id", session}
		default:
			headers = []string{"Mcp-Session-Id", session, "Mcp-Protocol-Version", revision}
		}
		if m.method == "subscriptions/listen" { // which lasts for as long as the client listens
			listening.Go(func() { _, _ = p.try(ctx, http.MethodPost, strings.NewReader(text), headers...) })
			continue
		}
		got, err := p.try(ctx, http.MethodPost, strings.NewReader(text), headers...)
		noCode := got.message["error"] != nil && got.code() == 0
		if err != nil || got.status >= http.StatusInternalServerError || got.code() == jsonrpc.CodeInternalError || noCode {
			t.Errorf("seed %d of client %d: %s %v: %d %s, %v", seed, client, text, headers, got.status, got.text, err)
			return
		}
	}
	ping := strings.NewReader(protocolMessage{"ping", `{}`}.text("-1"))
	if got, err := p.try(ctx, http.MethodPost, ping, "Mcp-Session-Id", session, "Mcp-Protocol-Version", revision); err != nil || got.message["result"] == nil {
		t.Errorf("seed %d of client %d: the session has ended: %+v, %v", seed, client, got, err)
	}
	if got, err := p.try(ctx, http.MethodDelete, http.NoBody, "Mcp-Session-Id", session); err != nil || got.status != http.StatusNoContent {
		t.Errorf("seed %d of client %d: DELETE: %+v, %v", seed, client, got, err)
	}
}

// TestAPanicEndsItsRequestAlone: the request is answered, the log has the stack, and the session goes on.
func TestAPanicEndsItsRequestAlone(t *testing.T) {
	t.Parallel()
	var log logged
	server := mcpserver.New(nil, mcpserver.Options{
		Trouble: func(context.Context) error { panic("a stone") }, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	here, there := mcp.NewInMemoryTransports()
	go mcpserver.Serve(t.Context(), server, there)
	client := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	_, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "workflow_list"})
	if e, ok := errors.AsType[*jsonrpc.Error](err); !ok || e.Code != jsonrpc.CodeInternalError || strings.Contains(e.Message, "stone") {
		t.Errorf("answered %v", err)
	}
	if text := log.String(); !strings.Contains(text, "a stone") || !strings.Contains(text, "protocol_test.go") {
		t.Errorf("logged %s", text)
	}
	if err := session.Ping(t.Context(), nil); err != nil {
		t.Errorf("ping: %v", err)
	}
}

// logged is what a logger writes.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
