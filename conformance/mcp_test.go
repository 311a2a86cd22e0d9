package conformance_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/conformance"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
)

// mcpSurface is the MCP server, driven by a real client over pipes in memory.
var mcpSurface = conformance.SurfaceFactory{Name: "mcp", Open: openMCP}

type mcpDoor struct {
	client *mcp.ClientSession
	server *mcp.ServerSession
}

func openMCP(ctx context.Context, runner *graph.Runner) (conformance.Surface, error) {
	clientEnd, serverEnd := mcp.NewInMemoryTransports()
	server, err := mcpserver.New(runner, mcpserver.Options{AnswerBytes: mcpserver.FullAnswers}).Connect(ctx, serverEnd, nil)
	if err != nil {
		return nil, err
	}
	client, err := mcp.NewClient(&mcp.Implementation{Name: "conformance", Version: "1"}, nil).Connect(ctx, clientEnd, nil)
	if err != nil {
		return nil, errors.Join(err, server.Close())
	}
	return mcpDoor{client, server}, nil
}

func (d mcpDoor) Close() error { return errors.Join(d.client.Close(), d.server.Wait()) }

func (d mcpDoor) Call(ctx context.Context, c conformance.Call) (conformance.Answer, error) {
	result, err := d.client.CallTool(ctx, &mcp.CallToolParams{Name: c.Tool(), Arguments: c.Arguments()})
	if err != nil {
		return conformance.Answer{}, err
	}
	text, err := json.Marshal(result.StructuredContent)
	if err != nil {
		return conformance.Answer{}, err
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		return conformance.Answer{}, fmt.Errorf("%s answered without an object: %w", c.Tool(), err)
	}
	if !result.IsError {
		return conformance.Answer{Fields: fields}, nil
	}
	failure, _ := fields["error"].(map[string]any)
	code, _ := failure["code"].(string)
	if code == "" {
		return conformance.Answer{}, fmt.Errorf("%s answered an error without code: %s", c.Tool(), text)
	}
	return conformance.Answer{IsError: true, Code: code}, nil
}
