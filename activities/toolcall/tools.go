package toolcall

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

const (
	// maxTools bounds the list that is read from a server.
	maxTools = 10_000
	// listLimit is how long a server may take to list its tools before a call continues without the list.
	listLimit = 5 * time.Second
)

// Tool describes a tool as its server declared it; it is untrusted.
type Tool struct {
	Name, Title, Description string
	// InputSchema is the JSON Schema of the arguments; nil if it is not an object.
	InputSchema map[string]any
	// ReadOnly is set if the tool changes nothing, Idempotent if a repeated call changes nothing more.
	ReadOnly, Idempotent bool
}

// toolList caches the tools of a session's server.
type toolList struct {
	mu sync.Mutex
	// asked counts how often the server was asked; names is nil if it had no answer.
	asked int
	names []string
	known map[string]*contract
	// stale is set when the server reports a change of its list.
	stale atomic.Bool
}

// knows checks that the server lists a tool, and rejects a call of another one. A server that lists nothing
// is called all the same, and then the contract is nil. The list is read once, and once more for each tool that is not
// on it or where the server says that it has changed. asked says which reading of the list the contract comes from.
func (x *session) knows(ctx context.Context, tool string) (c *contract, asked int, err error) {
	x.tools.mu.Lock()
	defer x.tools.mu.Unlock()
	if x.mcp.InitializeResult().Capabilities.Tools == nil {
		return nil, 0, nil
	}
	if x.tools.asked == 0 || x.tools.stale.Load() || x.tools.names != nil && x.tools.known[tool] == nil {
		if err := x.readTools(ctx); err != nil {
			return nil, 0, err
		}
	}
	if c = x.tools.known[tool]; c != nil || len(x.tools.names) == 0 {
		return c, x.tools.asked, nil
	}
	advice := ""
	if hint := suggest.DidYouMean(tool, x.tools.names); hint != "" {
		advice = "; " + hint
	}
	return nil, 0, activities.Fail(problem.MCPProtocolError, "the server has no tool %q%s", tool, advice)
}

// readTools reads the list. A server that does not answer is not an error. The caller holds the lock.
func (x *session) readTools(ctx context.Context) error {
	x.tools.stale.Store(false)
	listing, stop := context.WithTimeout(ctx, listLimit)
	defer stop()
	tools, err := x.list(listing)
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	x.tools.asked++
	x.tools.names, x.tools.known = nil, map[string]*contract{}
	if err != nil {
		return nil
	}
	for _, t := range tools {
		x.tools.names = append(x.tools.names, t.Name)
		x.tools.known[t.Name] = &contract{tool: t, log: x.log}
	}
	return nil
}

// admits rejects arguments that break the tool's input schema. The schema may have changed since the list was read, so
// the list is read again before a call is rejected.
func (x *session) admits(ctx context.Context, tool string, arguments map[string]any) (*contract, error) {
	c, asked, err := x.knows(ctx, tool)
	if err != nil || c == nil {
		return nil, err
	}
	violations := c.input().check(arguments)
	if violations == "" {
		return c, nil
	}
	x.tools.mu.Lock()
	if x.tools.asked == asked {
		err = x.readTools(ctx)
	}
	x.tools.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if c, _, err = x.knows(ctx, tool); err != nil || c == nil {
		return nil, err
	}
	if violations = c.input().check(arguments); violations == "" {
		return c, nil
	}
	return nil, activities.Fail(problem.MCPArgumentsInvalid, "the arguments of tool %q break its input schema: %s", tool, violations)
}

// list asks the server for its tools, in its order.
func (x *session) list(ctx context.Context) ([]*mcp.Tool, error) {
	var tools []*mcp.Tool
	for t, err := range x.mcp.Tools(ctx, nil) {
		if err != nil {
			return nil, err
		}
		if len(tools) == maxTools {
			return nil, activities.Fail(problem.MCPProtocolError, "the server lists more than %d tools", maxTools)
		}
		tools = append(tools, t)
	}
	return tools, nil
}
