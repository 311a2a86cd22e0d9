// Command live runs the example agent-team: a lead, a coder and a reviewer who work on a file through an MCP server. The engine is killed
// while the coder works, and started again. The model is a script behind an
// endpoint; that and the server are part of the program.
//
//	go run ./examples/agent-team/live
//
// With OPENAI_API_KEY or OPENAI_BASE_URL set it asks that endpoint, for the model OPENAI_MODEL, and kills nothing.
package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	agentteam "github.com/workflows-engine/workflows-engine/examples/agent-team"
	"github.com/workflows-engine/workflows-engine/internal/agentdemo"
)

// The first content of the file, and the two versions by the scripted coder: the first one has a fault.
const (
	original = "greet() { echo hello; }\n"
	faulty   = "greet() { echo hello $2; }\n"
	right    = "greet() { echo hello \"$1\"; }\n"
)

func main() {
	call := func(tool string, arguments ...string) []agentdemo.Call {
		c := agentdemo.Call{Name: tool, Arguments: map[string]any{}}
		for i := 0; i < len(arguments); i += 2 {
			c.Arguments[arguments[i]] = arguments[i+1]
		}
		return []agentdemo.Call{c}
	}
	demo := agentdemo.Demo{
		Name: "agent-team", Files: agentteam.Files, Server: "repository", Tools: repository,
		Input: map[string]any{"task": "greet says hello; let it greet by name."},
		// The three agents ask the same endpoint, each with a conversation of its own.
		Script: []agentdemo.Reply{
			{When: "You write code.", Once: true, Calls: call("repository__read_file")},
			{When: "You write code.", Once: true, Calls: call("repository__write_file", "text", faulty)},
			{When: "You write code.", Once: true, Text: "greet takes a name now."},
			{When: "You write code.", Once: true, Calls: call("repository__write_file", "text", right)},
			{When: "You write code.", Once: true, Calls: call("repository__run_tests")},
			{When: "You write code.", Once: true, Text: "It takes the first argument now, and the tests pass."},
			{When: "You review code.", Once: true, Calls: call("repository__run_tests")},
			{When: "You review code.", Once: true, Text: "The test fails: it greets with the second argument."},
			{When: "You review code.", Once: true, Calls: call("repository__run_tests")},
			{When: "You review code.", Once: true, Text: "I am content."},
			{Once: true, Calls: call("agent__coder", "task", "Let greet greet by name.")},
			{Once: true, Calls: call("agent__reviewer", "task", "greet was to greet by name.")},
			{Once: true, Calls: call("agent__coder", "task", "greet takes the second argument. It was to greet by name.")},
			{Once: true, Calls: call("agent__reviewer", "task", "greet was to greet by name, and has been put right.")},
			{Once: true, Calls: call("repository__merge")},
			{Text: `{"merged": true, "summary": "greet says hello by name, and the tests pass."}`},
		},
		Answer: `{"decision":"approve"}`,
		KillAt: 3,
	}
	demo.Main()
}

// repository is an MCP server with one file, in a folder that outlives it.
func repository(server *mcp.Server, folder string) {
	file := filepath.Join(folder, "greet.sh")
	read := func() (string, error) {
		text, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) {
			return original, nil
		}
		return string(text), err
	}
	type nothing struct{}
	type content struct {
		Text string `json:"text" jsonschema:"the whole file"`
	}
	reads, again := &mcp.ToolAnnotations{ReadOnlyHint: true}, &mcp.ToolAnnotations{IdempotentHint: true}
	mcp.AddTool(server, &mcp.Tool{Name: "read_file", Description: "Reads greet.sh.", Annotations: reads},
		func(context.Context, *mcp.CallToolRequest, nothing) (*mcp.CallToolResult, content, error) {
			text, err := read()
			return nil, content{text}, err
		})
	mcp.AddTool(server, &mcp.Tool{Name: "write_file", Description: "Writes greet.sh.", Annotations: again},
		func(_ context.Context, _ *mcp.CallToolRequest, in content) (*mcp.CallToolResult, map[string]any, error) {
			return nil, map[string]any{"bytes": len(in.Text)}, os.WriteFile(file, []byte(in.Text), 0o600)
		})
	mcp.AddTool(server, &mcp.Tool{Name: "run_tests", Description: "Runs the tests of greet.sh.", Annotations: reads},
		func(context.Context, *mcp.CallToolRequest, nothing) (*mcp.CallToolResult, map[string]any, error) {
			text, err := read()
			passed := strings.Contains(text, "$1") // the code of a model is not run here
			return nil, map[string]any{"passed": passed, "test": "greet Ada prints hello Ada"}, err
		})
	mcp.AddTool(server, &mcp.Tool{Name: "merge", Description: "Merges what was written."},
		func(context.Context, *mcp.CallToolRequest, nothing) (*mcp.CallToolResult, map[string]any, error) {
			text, err := read()
			return nil, map[string]any{"merged": text != original}, err
		})
}
