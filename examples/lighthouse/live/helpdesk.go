package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// serveHelpdesk is an MCP server over standard input and output with the two tools that lighthouse calls.
func serveHelpdesk(ctx context.Context) error {
	server := mcp.NewServer(&mcp.Implementation{Name: "helpdesk", Version: "1.0.0"}, nil)
	desk := helpdesk{known: map[string]ticket{}}
	mcp.AddTool(server, &mcp.Tool{Name: "create_ticket", Description: "Open a ticket in a queue."}, desk.createTicket)
	mcp.AddTool(server, &mcp.Tool{Name: "search_articles", Description: "Find articles that may help a customer."}, desk.searchArticles)
	return server.Run(ctx, &mcp.StdioTransport{})
}

// helpdesk keeps its tickets in memory.
type helpdesk struct {
	mu sync.Mutex
	// known are the tickets by idempotency key: a call that is repeated after a crash opens no second one.
	known map[string]ticket
}

type ticket struct {
	ID    string `json:"id"`
	Queue string `json:"queue"`
}

type createTicketInput struct {
	Queue    string `json:"queue" jsonschema:"who takes care of it"`
	Priority string `json:"priority,omitempty" jsonschema:"low, normal or high"`
}

type createTicketOutput struct {
	Ticket ticket `json:"ticket"`
}

func (d *helpdesk) createTicket(_ context.Context, req *mcp.CallToolRequest, in createTicketInput) (*mcp.CallToolResult, createTicketOutput, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	key, _ := req.Params.Meta["idempotencyKey"].(string)
	t, repeated := d.known[key]
	if !repeated || key == "" {
		t = ticket{ID: fmt.Sprintf("SUP-%d", 4211+len(d.known)), Queue: in.Queue}
		d.known[key] = t
	}
	return nil, createTicketOutput{Ticket: t}, nil
}

type searchArticlesInput struct {
	Limit int `json:"limit" jsonschema:"how many at most"`
}

type searchArticlesOutput struct {
	Articles []string `json:"articles"`
}

func (d *helpdesk) searchArticles(_ context.Context, _ *mcp.CallToolRequest, in searchArticlesInput) (*mcp.CallToolResult, searchArticlesOutput, error) {
	articles := []string{"Resetting a stuck synchronisation", "Error codes of the desktop client", "Collecting a log file", "Signing in on a new computer"}
	return nil, searchArticlesOutput{Articles: articles[:max(0, min(in.Limit, len(articles)))]}, nil
}
