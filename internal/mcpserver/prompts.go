package mcpserver

import (
	"context"
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

//go:embed prompts/*.md
var promptFiles embed.FS

// prompt is something that a user asks of a model; hosts show it as a command. Its text is prompts/NAME.md.
type prompt struct {
	name, title, description string
	argument                 *mcp.PromptArgument // nil for a prompt without an argument
	// runs holds the phases of the runs that its argument may name, tools the tools that it needs.
	runs  []history.Phase
	tools []string
}

var prompts = []prompt{
	{"author_workflow", "Author a workflow", "Write a workflow for a task, check it, and run it.",
		&mcp.PromptArgument{Name: "task", Description: "The task.", Required: true}, nil, []string{"workflow_guide", "workflow_validate", "workflow_start"}},
	{"drive_run", "Drive a run to its end", "Continue a run until it has ended.",
		&mcp.PromptArgument{Name: runArgument, Description: "The run.", Required: true}, history.OpenPhases(), []string{"workflow_status"}},
	{"explain_failure", "Why did this run fail?", "Find out why a run has failed, and how to fix it.",
		&mcp.PromptArgument{Name: runArgument, Description: "The run.", Required: true}, []history.Phase{history.PhaseFailed}, []string{"workflow_status", "workflow_history"}},
	{"what_waits", "What waits for me?", "The runs that wait for a person or a host, the most urgent first.", nil, nil, []string{"workflow_list"}},
}

// runArgument is the argument that names a run.
const runArgument = "execution_id"

const (
	// maxPromptArgument is how long an argument of a prompt may be.
	maxPromptArgument = 64 << 10
	// maxCompletions is how many values a completion offers, by the protocol.
	maxCompletions = 100
)

// addPrompts adds the prompts whose tools the server offers.
func (s *server) addPrompts(sdk *mcp.Server) {
	for _, p := range prompts {
		if slices.ContainsFunc(p.tools, func(name string) bool { return !s.tools.has(name) }) {
			continue
		}
		listed := &mcp.Prompt{Name: p.name, Title: p.title, Description: p.description}
		if p.argument != nil {
			listed.Arguments = []*mcp.PromptArgument{p.argument}
		}
		sdk.AddPrompt(listed, p.get)
	}
}

// get returns the prompt with its argument, as a message of the user.
func (p *prompt) get(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	text, err := promptFiles.ReadFile("prompts/" + p.name + ".md")
	if err != nil {
		return nil, err
	}
	filled := string(text)
	if p.argument != nil {
		value := strings.TrimSpace(req.Params.Arguments[p.argument.Name])
		switch {
		case value == "":
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("prompt %q needs the argument %q", p.name, p.argument.Name)}
		case len(value) > maxPromptArgument:
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("argument %q exceeds %d bytes", p.argument.Name, maxPromptArgument)}
		case p.argument.Name == runArgument:
			value = shownID(problem.Excerpt(value, history.MaxIDBytes))
		}
		filled = strings.Replace(filled, "{{"+p.argument.Name+"}}", value, 1)
	}
	return &mcp.GetPromptResult{
		Description: p.description,
		Messages:    []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: filled}}},
	}, nil
}

// complete offers the runs that an argument of a prompt or a resource may name, the last changed first.
func (s *server) complete(ctx context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	res := &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{}}}
	phases, ok := completed(req.Params.Ref)
	if !ok || req.Params.Argument.Name != runArgument {
		return res, nil
	}
	q := history.ListQuery{Phases: phases, Limit: maxCompletions}
	for looked := 0; looked < 10; looked++ { // the search ends after ten pages
		page, err := s.List(ctx, q)
		if err != nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: s.opts.Redaction.String(inOneLine(err))}
		}
		for i := range page.Executions {
			if id := page.Executions[i].ID; strings.HasPrefix(id, req.Params.Argument.Value) && len(res.Completion.Values) < maxCompletions {
				res.Completion.Values = append(res.Completion.Values, id)
			}
		}
		if q.Cursor = page.NextCursor; q.Cursor == "" || len(res.Completion.Values) == maxCompletions {
			break
		}
	}
	res.Completion.HasMore = q.Cursor != ""
	return res, nil
}

// completed returns the phases of the runs that complete an argument of a prompt or resource; ok is false for other
// arguments.
func completed(ref *mcp.CompleteReference) (phases []history.Phase, ok bool) {
	if ref.Type == "ref/resource" {
		return nil, strings.HasPrefix(ref.URI, runPrefix)
	}
	for _, p := range prompts {
		if p.name == ref.Name {
			return p.runs, len(p.runs) > 0
		}
	}
	return nil, false
}
