package conformance_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/activities/chat/chattest"
	"github.com/workflows-engine/workflows-engine/activities/llmcall"
	"github.com/workflows-engine/workflows-engine/activities/toolcall"
	"github.com/workflows-engine/workflows-engine/delegate/agent"
	"github.com/workflows-engine/workflows-engine/delegate/agent/mcptools"
	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// shopLedger makes the test binary an MCP server, which writes each call of its tools into this file.
const shopLedger = "CONFORMANCE_TEST_SHOP_LEDGER"

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // runs leave little but garbage
	if file := os.Getenv(shopLedger); file != "" {
		serveShop(file)
		return
	}
	os.Exit(m.Run())
}

// marks are what a result of a tool says, for the model's script.
var marks = map[string]string{"price": "PRICED", "note": "NOTED", "refund": "REFUNDED", "ship": "SHIPPED", "mail": "MAILED", "report": "REPORT"}

func serveShop(file string) {
	server := mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "1"}, nil)
	for name, mark := range marks {
		type in struct {
			Item string `json:"item"`
		}
		hints := &mcp.ToolAnnotations{ReadOnlyHint: name == "price" || name == "report"}
		mcp.AddTool(server, &mcp.Tool{Name: name, Annotations: hints}, func(_ context.Context, req *mcp.CallToolRequest, in in) (*mcp.CallToolResult, object, error) {
			f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				return nil, nil, err
			}
			_, err = fmt.Fprintf(f, "%v\n", req.Params.Meta["idempotencyKey"])
			said := mark
			if name == "report" {
				said += " " + in.Item + strings.Repeat(" and so on", 300)
			}
			return nil, object{"item": in.Item, "mark": said}, errors.Join(err, f.Close())
		})
	}
	_ = server.Run(context.Background(), &mcp.StdioTransport{}) // until the engine closes it
}

// office is what agents of a crash case have around them: an endpoint at an address of this machine, and an MCP server, which is a process.
// Both stand outside of the bubble and outlive the engines in it.
type office struct {
	endpoint *chattest.Server
	calls    *toolcall.Executor
	ledger   string
	free     chan *line
}

// line carries a call out of a bubble. What waits for it is not durably blocked, so the bubble's clock stands still meanwhile; the pipes of
// a process that was started within the bubble would stop it for good.
type line struct {
	call    chan func()
	settled chan struct{}
}

func openOffice(t *testing.T) *office {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o := &office{endpoint: chattest.Serve(t), ledger: filepath.Join(t.TempDir(), "ledger"), free: make(chan *line, 16)}
	o.calls = enginetest.Closing(t, enginetest.Must(toolcall.New(toolcall.Config{AllowCommands: program, Environ: os.Environ(), Servers: map[string]toolcall.Server{
		"shop": {Command: program, Env: map[string]string{shopLedger: o.ledger, "GORACE": "atexit_sleep_ms=0"}},
	}})))
	for range cap(o.free) {
		l := &line{call: make(chan func()), settled: make(chan struct{})}
		o.free <- l
		go func() {
			for do := range l.call {
				do()
				l.settled <- struct{}{}
			}
		}()
		t.Cleanup(func() { close(l.call) })
	}
	return o
}

// outside performs do outside of the bubble that it is called in.
func (o *office) outside(do func()) {
	l := <-o.free
	l.call <- do
	<-l.settled
	o.free <- l
}

// begin clears the desks for another trial.
func (o *office) begin(t *testing.T, script []chattest.Reply) {
	t.Helper()
	o.endpoint.Play(script...)
	if err := os.WriteFile(o.ledger, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// made counts the calls that have reached the server, by their keys.
func (o *office) made(t *testing.T) map[string]int {
	t.Helper()
	text, err := os.ReadFile(o.ledger)
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]int{}
	for line := range strings.Lines(string(text)) {
		keys[strings.TrimSpace(line)]++
	}
	return keys
}

// asked counts the requests that have reached the endpoint, by their keys.
func (o *office) asked() map[string]int {
	keys := map[string]int{}
	for _, r := range o.endpoint.Asked() {
		keys[r.Key]++
	}
	return keys
}

// told reports whether the model was told something.
func (o *office) told(text string) bool {
	return slices.ContainsFunc(o.endpoint.Asked(), func(r chattest.Request) bool { return bytes.Contains(r.Body, []byte(text)) })
}

// tool is one tool of the server. Which may be repeated the server says; ship is for a person to decide.
func (o *office) tool(name string, options ...agent.Option) agent.Toolset {
	if name == "ship" {
		options = append(options, agent.WithOnCrash(agent.Ask))
	}
	return outsideTools{o, nil, mcptools.New(o.calls, "shop", []string{name}, options...)}
}

func (o *office) tools() []agent.Toolset {
	return []agent.Toolset{o.tool("price"), o.tool("note"), o.tool("refund"), o.tool("ship"), o.tool("report")}
}

// outsideTools are the tools of the server as a bubble reaches them, with the process that dies at a call of them.
type outsideTools struct {
	office *office
	trial  *trial
	tools  *mcptools.Toolset
}

func (s outsideTools) Tools(context.Context) (tools []agent.Tool, err error) {
	s.office.outside(func() { tools, err = s.tools.Tools(context.Background()) })
	return tools, err
}

func (s outsideTools) Call(_ context.Context, c agent.Call) (out any, err error) {
	c.Heartbeat = func(map[string]any) {}
	failed := s.trial.effect(c.Key, c.Name, func() {
		s.office.outside(func() { out, err = s.tools.Call(context.Background(), c) })
	})
	return out, errors.Join(failed, err)
}

// team returns the agents of a process.
func (x *trial) team() *agent.Agents {
	x.t.Helper()
	client := &http.Client{Transport: &mortal{x, &http.Transport{DisableKeepAlives: true}}}
	llm := enginetest.Must(llmcall.New(llmcall.Config{BaseURL: x.c.team.office.endpoint.URL, NoAuth: true, Client: client}))
	team := x.c.team.agents(x.c.team.office)
	for name, a := range team {
		for i, s := range a.Tools {
			set := s.(outsideTools)
			set.trial = x
			a.Tools[i] = set
		}
		team[name] = a
	}
	agents, err := agent.New(agent.Config{Models: map[string]agent.Model{"main": {Chat: llm, Model: agentloop.Model{Model: "m", ContextTokens: 3000, MaxTokens: 300}}}, Agents: team})
	if err != nil {
		x.t.Fatal(err)
	}
	return agents
}

// mortal sends requests to the endpoint, until its process dies.
type mortal struct {
	trial *trial
	next  http.RoundTripper
}

func (m *mortal) RoundTrip(req *http.Request) (*http.Response, error) {
	var response *http.Response
	var err error
	failed := m.trial.effect(req.Header.Get("Idempotency-Key"), "", func() {
		if response, err = m.next.RoundTrip(req); err != nil {
			return
		}
		var body []byte // the effect ends with the last byte of the answer
		body, err = io.ReadAll(response.Body)
		err = errors.Join(err, response.Body.Close())
		response.Body = io.NopCloser(bytes.NewReader(body))
	})
	if err = errors.Join(failed, err); err != nil {
		return nil, err
	}
	return response, nil
}
