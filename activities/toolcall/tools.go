package toolcall

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

const (
	// maxTools bounds the list that is read from a server.
	maxTools = 10_000
	// listLimit is how long a server may take to list its tools before a call goes on without the list.
	listLimit = 5 * time.Second
)

// Tool is a tool that a server offers.
type Tool struct{ Name, Title, Description string }

// toolList is what a session knows of its server's tools.
type toolList struct {
	mu sync.Mutex
	// asked is true once the server was asked; names is nil if it had no answer.
	asked bool
	names []string
}

// knows checks that the server has a tool, and refuses a call of one that it does not list. A server that lists nothing
// is called all the same. The list is read once, and once more for each tool that is not on it, since lists change.
func (x *session) knows(ctx context.Context, tool string) error {
	x.tools.mu.Lock()
	defer x.tools.mu.Unlock()
	if x.mcp.InitializeResult().Capabilities.Tools == nil {
		return nil
	}
	if !x.tools.asked || x.tools.names != nil && !slices.Contains(x.tools.names, tool) {
		listing, stop := context.WithTimeout(ctx, listLimit)
		defer stop()
		tools, err := x.list(listing)
		if err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
		x.tools.asked, x.tools.names = true, nil
		if err == nil {
			for _, t := range tools {
				x.tools.names = append(x.tools.names, t.Name)
			}
		}
	}
	if len(x.tools.names) == 0 || slices.Contains(x.tools.names, tool) {
		return nil
	}
	advice := ""
	if near := suggest.Nearest(tool, x.tools.names); near != "" {
		advice = fmt.Sprintf("; did you mean %q?", near)
	}
	return activities.Fail(problem.MCPProtocolError, "the server has no tool %q%s", tool, advice)
}

// list asks the server for its tools, in its order.
func (x *session) list(ctx context.Context) ([]Tool, error) {
	var tools []Tool
	for t, err := range x.mcp.Tools(ctx, nil) {
		if err != nil {
			return nil, err
		}
		if len(tools) == maxTools {
			return nil, activities.Fail(problem.MCPProtocolError, "the server lists more than %d tools", maxTools)
		}
		tools = append(tools, Tool{Name: t.Name, Title: t.Title, Description: t.Description})
	}
	return tools, nil
}
