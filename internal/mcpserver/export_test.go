package mcpserver

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/internal/calls"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver/streamable"
)

// LastWait is how long a call may still wait when the input has ended.
const LastWait = lastWait

// ReadArguments reads the arguments of a tool as a call does and returns what is wrong with them.
func ReadArguments(tool string, raw []byte) error {
	for _, t := range allTools(Options{}) {
		if t.name != tool {
			continue
		}
		a := readArguments(raw, t)
		(&server{Engine: parser{}}).definition(a, t.invalid)
		calls.ReadObject(a.Get("input"))
		a.Get("wait_ms").Whole(0, calls.MaxWait.Milliseconds())
		a.Mode()
		a.Span("parallel_span")
		return a.Problem()
	}
	return nil
}

// parser is an engine that parses each definition.
type parser struct{ graph.Engine }

func (parser) ReadDefinition(text []byte) (*definition.Document, error) {
	return definition.Parse(text)
}

// Reporter makes a reporter that sends to send.
func Reporter(send func(progress float64, message string)) (report func(graph.Progress), stop func(context.Context)) {
	r := &reporter{send: send}
	return r.report, r.stop
}

// EncodeAnswer returns a result as it leaves the server's middleware.
func EncodeAnswer(r *mcp.CallToolResult) (mcp.Result, error) {
	made := func(context.Context, string, mcp.Request) (mcp.Result, error) { return r, nil }
	return encodeAnswers(made)(context.Background(), "tools/call", nil)
}

// InputSchema shows an input_schema as that of a tool.
var InputSchema = inputSchema

// HTTPServer returns the handler of a server that listens, and the number of its calls with a turn.
func HTTPServer(ctx context.Context, server *mcp.Server, o HTTPOptions) (h http.Handler, waiting func() int) {
	d := newHTTPServer(ctx, server, slog.New(slog.DiscardHandler))
	return streamable.Handler(o, d.serve), func() int {
		d.link.turns.mu.Lock()
		defer d.link.turns.mu.Unlock()
		return len(d.link.turns.byText)
	}
}
