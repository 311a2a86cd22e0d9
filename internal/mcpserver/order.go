package mcpserver

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver/stdio"
)

// Calls about one run are applied in the order in which the connection has brought them. The SDK handles each request in a goroutine
// of its own, so the order is taken where messages are read one by one: there a call gets a turn in the queue of its run, and its
// handler waits for that turn. A turn ends when the engine has applied the call, before the call waits for the run.

// ordered is a transport whose connection gives turns.
type ordered struct {
	mcp.Transport
	turns *turns
}

func (o ordered) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := o.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &orderedConnection{Connection: c, turns: o.turns}, nil
}

type orderedConnection struct {
	mcp.Connection
	turns *turns
	// listens are the requests with which the client listens, by id.
	listens sync.Map
}

// Read gives the message that it returns a turn, if it is a call about a run or one whose arguments have been taken out.
func (c *orderedConnection) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if req, ok := m.(*jsonrpc.Request); ok && err == nil && req.Method == listenMethod {
		c.listens.Store(req.ID, true)
	}
	if req, ok := m.(*jsonrpc.Request); ok && err == nil && req.IsCall() && req.Method == "tools/call" {
		extra := &mcp.RequestExtra{}
		large, _ := req.Extra.(stdio.Arguments)
		if given, ok := req.Extra.(*mcp.RequestExtra); ok {
			*extra = *given
		}
		arguments := []byte(large)
		if large == nil {
			arguments = jsonvalue.MemberText(req.Params, "arguments")
		}
		if run := rootNamedBy(arguments); run != "" || large != nil {
			if extra.Header = extra.Header.Clone(); extra.Header == nil {
				extra.Header = http.Header{}
			}
			extra.Header.Set(turnHeader, c.turns.take(req.ID, run, large))
			req.Extra = extra
		}
	}
	return m, err
}

// Write ends the turn of a request that is answered: not every request reaches a handler.
func (c *orderedConnection) Write(ctx context.Context, m jsonrpc.Message) error {
	if resp, ok := m.(*jsonrpc.Response); ok {
		c.turns.answered(resp.ID)
		if _, listened := c.listens.LoadAndDelete(resp.ID); listened {
			_ = c.Connection.Write(ctx, m) // a client ends to listen when it goes, and reads no answer then
			return nil
		}
	}
	return c.Connection.Write(ctx, m)
}

// listenMethod is the request that is in flight for as long as a client wants to be told of changes.
const listenMethod = "subscriptions/listen"

// turnHeader carries the number of a turn from the connection to the handler: of what a connection can add to a request, the SDK hands
// on nothing else that fits.
const turnHeader = "Workflows-Engine-Turn"

// rootNamedBy returns the run, or the root of the subworkflow, that the arguments of a call name, "" if none.
func rootNamedBy(arguments []byte) string {
	if len(arguments) > 0 && arguments[0] == '"' { // some hosts encode arguments twice
		if !bytes.Contains(arguments, []byte("execution_id")) {
			return ""
		}
		arguments = jsonvalue.StringText(arguments)
	}
	run := jsonvalue.StringText(jsonvalue.MemberText(arguments, "execution_id"))
	root, _, _ := strings.Cut(string(run), ":sub:")
	return root
}

// turns are the calls of a connection that have not been applied, by the run that they are about.
type turns struct {
	mu     sync.Mutex
	last   uint64
	byRun  map[string][]*turn
	byText map[string]*turn
	byID   map[jsonrpc.ID]*turn
}

type turn struct {
	run, text string
	id        jsonrpc.ID
	// arguments are those of the call where the connection has taken them out.
	arguments []byte
	// ready is closed when every earlier turn of the run has ended.
	ready chan struct{}
}

func newTurns() *turns {
	return &turns{byRun: map[string][]*turn{}, byText: map[string]*turn{}, byID: map[jsonrpc.ID]*turn{}}
}

// take adds a turn to the queue of a run and returns its number. A call about no run waits for none.
func (q *turns) take(id jsonrpc.ID, run string, arguments []byte) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.last++
	t := &turn{run: run, text: strconv.FormatUint(q.last, 10), id: id, arguments: arguments, ready: make(chan struct{})}
	q.byText[t.text], q.byID[id] = t, t
	if run != "" {
		q.byRun[run] = append(q.byRun[run], t)
	}
	if len(q.byRun[run]) <= 1 {
		close(t.ready)
	}
	return t.text
}

// of returns the turn of a request, nil if it has none.
func (q *turns) of(req mcp.Request) *turn {
	extra := req.GetExtra()
	if extra == nil {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.byText[extra.Header.Get(turnHeader)]
}

func (q *turns) answered(id jsonrpc.ID) {
	q.mu.Lock()
	t := q.byID[id]
	q.mu.Unlock()
	if t != nil {
		q.end(t)
	}
}

// end takes a turn out of its queue; the first of those left is ready. Only the first end of a turn counts.
func (q *turns) end(t *turn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.byText[t.text] != t {
		return
	}
	delete(q.byText, t.text)
	delete(q.byID, t.id)
	queue := q.byRun[t.run]
	for i := range queue {
		if queue[i] != t {
			continue
		}
		queue = append(queue[:i:i], queue[i+1:]...)
		if i == 0 && len(queue) > 0 {
			close(queue[0].ready)
		}
		break
	}
	if q.byRun[t.run] = queue; len(queue) == 0 {
		delete(q.byRun, t.run)
	}
}

type appliedKey struct{}

// inTurn makes the calls wait for their turns.
func (q *turns) inTurn(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if t := q.of(req); t != nil {
			defer q.end(t)
			if call, ok := req.(*mcp.CallToolRequest); ok && t.arguments != nil {
				call.Params.Arguments = t.arguments
			}
			select {
			case <-t.ready:
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
			ctx = context.WithValue(ctx, appliedKey{}, func() { q.end(t) })
		}
		return next(ctx, method, req)
	}
}
