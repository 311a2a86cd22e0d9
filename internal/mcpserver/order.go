package mcpserver

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/internal/arrival"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver/frame"
)

// Calls about one run are applied in the order of their arrival. The SDK handles each request in its own goroutine, so
// a call gets its turn where messages are read one by one: a place in the queue of its run, for which its handler
// waits. A turn ends when the engine has applied the call, before the call waits for the run. A call with large
// arguments finds out its queue in its handler, because reading must not be slow; until then the turns behind it are in
// no queue. Over HTTP a turn is taken once the request has been read, in the queue of its session and run.

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
	// listens holds the ids of listening requests.
	listens sync.Map
}

// Read takes a turn for a message that is a call about a run, or a call whose arguments were taken out.
func (c *orderedConnection) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if req, ok := m.(*jsonrpc.Request); ok && err == nil && req.Method == listenMethod {
		c.listens.Store(req.ID, true)
	}
	if req, ok := m.(*jsonrpc.Request); ok && err == nil && req.IsCall() && req.Method == "tools/call" {
		extra := &mcp.RequestExtra{}
		large, _ := req.Extra.(frame.Arguments)
		if given, ok := req.Extra.(*mcp.RequestExtra); ok {
			*extra = *given
		}
		run := ""
		if large == nil {
			run = rootNamedBy(jsonvalue.MemberText(req.Params, "arguments"))
		}
		if run != "" || large != nil {
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
			_ = c.Connection.Write(ctx, m) // a client stops listening when it disconnects, and reads no answer then
			return nil
		}
	}
	return c.Connection.Write(ctx, m)
}

// listenMethod is the request that stays in flight while a client listens for changes.
const listenMethod = "subscriptions/listen"

// turnHeader passes the number of a turn from the connection to the handler: the SDK forwards only headers and token
// information of a request.
const turnHeader = "Workflows-Engine-Turn"

// rootNamedBy returns the run in the arguments of a call, or the root of the subworkflow; "" if absent.
func rootNamedBy(arguments []byte) string {
	if len(arguments) > 0 && arguments[0] == '"' { // some hosts encode arguments twice
		arguments = jsonvalue.StringText(arguments)
	}
	run := jsonvalue.StringText(jsonvalue.MemberText(arguments, "execution_id"))
	root, _, _ := strings.Cut(string(run), ":sub:")
	return root
}

// turns holds the calls that have not been applied, by their run; over HTTP by session and run.
type turns struct {
	mu     sync.Mutex
	last   uint64
	byRun  map[string][]*turn
	byText map[string]*turn
	byID   map[jsonrpc.ID]*turn
	// held holds the first turn whose run is unknown and all turns behind it; they are in no queue yet.
	held []*turn
}

type turn struct {
	run, text string
	id        jsonrpc.ID
	// arguments are those taken out of the call. They are nil again, or known is set, once their run is known.
	arguments []byte
	known     bool
	// ready is closed when every earlier turn of the run has ended.
	ready chan struct{}
	// begun is set once the call's handler runs.
	begun bool
	// came is when the call arrived.
	came arrival.Mark
}

func newTurns() *turns {
	return &turns{byRun: map[string][]*turn{}, byText: map[string]*turn{}, byID: map[jsonrpc.ID]*turn{}}
}

// take adds a turn to the queue of a run, or of the run in arguments if there are any, and returns its number. A call
// without a run waits for no turn.
func (q *turns) take(id jsonrpc.ID, run string, arguments []byte) string {
	return q.add(&turn{run: run, id: id, arguments: arguments})
}

// add adds a turn and returns its number.
func (q *turns) add(t *turn) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.last++
	t.text, t.ready, t.came = strconv.FormatUint(q.last, 10), make(chan struct{}), arrival.Now()
	q.byText[t.text], q.byID[t.id] = t, t
	q.held = append(q.held, t)
	q.line()
	return t.text
}

// line moves the turns that are no longer held into the queues of their runs.
func (q *turns) line() {
	for len(q.held) > 0 && (q.held[0].arguments == nil || q.held[0].known) {
		t := q.held[0]
		q.held = q.held[1:]
		if t.run != "" {
			q.byRun[t.run] = append(q.byRun[t.run], t)
		}
		if len(q.byRun[t.run]) <= 1 {
			close(t.ready)
		}
	}
}

// named sets the run of a turn.
func (q *turns) named(t *turn, run string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t.run, t.arguments = run, nil
	q.line()
}

// begin returns the turn of a request whose handler starts, or nil.
func (q *turns) begin(req mcp.Request) *turn {
	extra := req.GetExtra()
	if extra == nil {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.byText[extra.Header.Get(turnHeader)]
	if t != nil {
		t.begun = true
	}
	return t
}

// leave ends a turn whose call will not reach its handler.
func (q *turns) leave(t *turn) {
	q.mu.Lock()
	begun := t.begun
	q.mu.Unlock()
	if !begun {
		q.end(t)
	}
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
	if i := slices.Index(q.held, t); i >= 0 {
		q.held = slices.Delete(q.held, i, i+1)
		q.line()
		return
	}
	queue := q.byRun[t.run]
	if i := slices.Index(queue, t); i >= 0 {
		queue = slices.Delete(queue, i, i+1)
		if i == 0 && len(queue) > 0 {
			close(queue[0].ready)
		}
	}
	if q.byRun[t.run] = queue; len(queue) == 0 {
		delete(q.byRun, t.run)
	}
}

type appliedKey struct{}

// inTurn makes the calls wait for their turns.
func (q *turns) inTurn(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if t := q.begin(req); t != nil {
			defer q.end(t)
			if call, ok := req.(*mcp.CallToolRequest); ok && t.arguments != nil {
				call.Params.Arguments = t.arguments
				if !t.known {
					q.named(t, rootNamedBy(t.arguments))
				}
			}
			select {
			case <-t.ready:
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
			ctx = context.WithValue(arrival.With(ctx, t.came), appliedKey{}, func() { q.end(t) })
		}
		return next(ctx, method, req)
	}
}
