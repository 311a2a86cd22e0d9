// Command live runs the example research-agent: an agent that reads files through an MCP server. The model is a script behind an endpoint; that
// and the server are part of the program.
//
//	go run ./examples/research-agent/live
//
// With OPENAI_API_KEY or OPENAI_BASE_URL set it asks that endpoint, for the model OPENAI_MODEL.
package main

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	researchagent "github.com/workflows-engine/workflows-engine/examples/research-agent"
	"github.com/workflows-engine/workflows-engine/internal/agentdemo"
)

func main() {
	read := func(name string) agentdemo.Call {
		return agentdemo.Call{Name: "files__read_file", Arguments: map[string]any{"name": name}}
	}
	demo := agentdemo.Demo{
		Name: "research-agent", Files: researchagent.Files, Server: "files", Tools: files,
		Input: map[string]any{"question": "Do heat pumps work in cold winters, and what do they cost?"},
		Script: []agentdemo.Reply{
			{When: "field test", Text: `{"answer": "Yes, down to -20 °C, for 14,000 to 22,000 euros.", "sources": ["heat-pumps.md", "prices.md"]}`},
			{When: "minutes.md", Calls: []agentdemo.Call{read("heat-pumps.md"), read("prices.md")}},
			{Calls: []agentdemo.Call{
				{Name: "files__list_files", Arguments: map[string]any{}},
				{Name: "search_knowledge", Arguments: map[string]any{"query": "coefficient of performance of a heat pump"}},
			}},
		},
	}
	demo.Main()
}

type file struct {
	Name string `json:"name" jsonschema:"as list_files gives it"`
}

// files is an MCP server with the files of the example. Its tools say that they only read: calls run side by side, and are repeated after
// a crash.
func files(server *mcp.Server, _ string) {
	reads := &mcp.ToolAnnotations{ReadOnlyHint: true}
	folder, err := fs.Sub(researchagent.Files, "files")
	if err != nil {
		return
	}
	mcp.AddTool(server, &mcp.Tool{Name: "list_files", Description: "Lists the files.", Annotations: reads},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, map[string]any, error) {
			names, err := fs.Glob(folder, "*")
			return nil, map[string]any{"files": names}, err
		})
	mcp.AddTool(server, &mcp.Tool{Name: "read_file", Description: "Reads a file.", Annotations: reads},
		func(_ context.Context, _ *mcp.CallToolRequest, in file) (*mcp.CallToolResult, map[string]any, error) {
			text, err := fs.ReadFile(folder, in.Name) // which takes no path out of the folder
			if err != nil {
				return nil, nil, fmt.Errorf("there is no file %q", in.Name)
			}
			return nil, map[string]any{"text": string(text)}, nil
		})
}
