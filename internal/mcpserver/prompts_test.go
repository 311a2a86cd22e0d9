package mcpserver_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
)

// TestPrompts: each is a message of the user with its argument in it, names tools that there are, and fits a slash command.
func TestPrompts(t *testing.T) {
	t.Parallel()
	h := newHost(t, hostMediated)
	list := enginetest.Must(h.session.ListPrompts(t.Context(), nil)).Prompts
	var names []string
	for _, p := range list {
		names = append(names, p.Name)
		args := map[string]string{}
		for _, a := range p.Arguments {
			if !a.Required || a.Description == "" {
				t.Errorf("%s: %+v", p.Name, a)
			}
			args[a.Name] = "order 17 \u202e{{task}}"
		}
		got := enginetest.Must(h.session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: p.Name, Arguments: args}))
		text := got.Messages[0].Content.(*mcp.TextContent).Text
		if len(got.Messages) != 1 || got.Messages[0].Role != "user" || p.Title == "" || p.Description == "" || len(text) > 2000 {
			t.Errorf("%s: %+v", p.Name, got)
		}
		for _, a := range p.Arguments {
			want := "order 17 \u202e{{task}}"
			if a.Name == "execution_id" { // quoted, since it would be misread
				want = `"order 17 \u202e{{task}}"`
			}
			if strings.Count(text, want) != 1 || strings.Contains(text, "{{"+a.Name+"}}") && a.Name != "task" {
				t.Errorf("%s: %s", p.Name, text)
			}
		}
		for _, word := range strings.Split(text, "`") {
			if strings.HasPrefix(word, "workflow_") && h.answers[word] == nil {
				t.Errorf("%s names the tool %s", p.Name, word)
			}
		}
	}
	if want := []string{"author_workflow", "drive_run", "explain_failure", "what_waits"}; !slices.Equal(names, want) {
		t.Errorf("prompts %q", names)
	}
	for _, params := range []*mcp.GetPromptParams{
		{Name: "drive_run"}, {Name: "drive_run", Arguments: map[string]string{"execution_id": "  "}}, {Name: "cook"},
		{Name: "author_workflow", Arguments: map[string]string{"task": strings.Repeat("x", 1<<17)}},
	} {
		_, err := h.session.GetPrompt(t.Context(), params)
		if e, ok := errors.AsType[*jsonrpc.Error](err); !ok || e.Code != jsonrpc.CodeInvalidParams {
			t.Errorf("%s: %v", params.Name, err)
		}
	}
}

// TestCompletion: ids of the runs that a prompt is for are offered, and of all runs for resources.
func TestCompletion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, graph.Options{}, mcpserver.Options{})
		h := o.host(lastAsking, nil)
		for i := range 120 {
			h.ok("workflow_start", object{"execution_id": fmt.Sprintf("open-%03d", i), "definition": walk(work)})
			time.Sleep(time.Second)
		}
		for _, id := range []string{"failed-1", "failed-2", "done"} {
			h.ok("workflow_start", object{"execution_id": id, "definition": walk(work)})
			h.raw("workflow_submit_activity", object{"execution_id": id, "node_id": "work", "outcome": object{"ok": id == "done", "error": "no"}})
			time.Sleep(time.Second)
		}
		for _, c := range []struct {
			ref             *mcp.CompleteReference
			argument, value string
			n               int
			first           string
			more            bool
		}{
			{&mcp.CompleteReference{Type: "ref/prompt", Name: "drive_run"}, "execution_id", "", 100, "open-119", true},
			{&mcp.CompleteReference{Type: "ref/prompt", Name: "drive_run"}, "execution_id", "open-00", 10, "open-009", false},
			{&mcp.CompleteReference{Type: "ref/prompt", Name: "drive_run"}, "execution_id", "failed", 0, "", false},
			{&mcp.CompleteReference{Type: "ref/prompt", Name: "explain_failure"}, "execution_id", "", 2, "failed-2", false},
			{&mcp.CompleteReference{Type: "ref/prompt", Name: "author_workflow"}, "task", "", 0, "", false},
			{&mcp.CompleteReference{Type: "ref/prompt", Name: "cook"}, "execution_id", "", 0, "", false},
			{&mcp.CompleteReference{Type: "ref/resource", URI: "awp://runs/{execution_id}/history"}, "execution_id", "do", 1, "done", false},
			{&mcp.CompleteReference{Type: "ref/resource", URI: "awp://runs/{execution_id}/state{+pointer}"}, "pointer", "", 0, "", false},
			{&mcp.CompleteReference{Type: "ref/resource", URI: "file:///{execution_id}"}, "execution_id", "", 0, "", false},
		} {
			res := enginetest.Must(h.session.Complete(context.Background(), &mcp.CompleteParams{
				Ref: c.ref, Argument: mcp.CompleteParamsArgument{Name: c.argument, Value: c.value},
			})).Completion
			if len(res.Values) != c.n || c.n > 0 && res.Values[0] != c.first || res.HasMore != c.more {
				t.Errorf("%+v %q: %d values, %v, more %v", c.ref, c.value, len(res.Values), res.Values[:min(2, len(res.Values))], res.HasMore)
			}
		}
	})
}

// TestPromptsOfAServerInTrouble are there; what needs the engine is refused.
func TestPromptsOfAServerInTrouble(t *testing.T) {
	t.Parallel()
	trouble := errors.New("no home")
	h := connectHost(t, nil, mcpserver.Options{Trouble: func(context.Context) error { return trouble }})
	if _, err := h.session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "what_waits"}); err != nil {
		t.Error(err)
	}
	_, err := h.session.Complete(t.Context(), &mcp.CompleteParams{
		Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: "drive_run"}, Argument: mcp.CompleteParamsArgument{Name: "execution_id"},
	})
	if err == nil || !contains(err.Error(), "no home") {
		t.Errorf("%v", err)
	}
}

// TestPromptsAndTools: a prompt is offered where its tools are, and names no other.
func TestPromptsAndTools(t *testing.T) {
	t.Parallel()
	for tools, want := range map[string]string{
		"all": "author_workflow drive_run explain_failure what_waits", "core": "drive_run what_waits", "workflow_status": "drive_run",
		"workflow_status,workflow_history": "drive_run explain_failure",
	} {
		h := connectHost(t, nil, mcpserver.Options{Tools: enginetest.Must(mcpserver.ParseTools(tools))})
		var names []string
		for _, p := range enginetest.Must(h.session.ListPrompts(t.Context(), nil)).Prompts {
			names = append(names, p.Name)
			got := enginetest.Must(h.session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: p.Name, Arguments: map[string]string{"task": "x", "execution_id": "x"}}))
			for _, word := range strings.Split(got.Messages[0].Content.(*mcp.TextContent).Text, "`") {
				if strings.HasPrefix(word, "workflow_") && h.answers[word] == nil {
					t.Errorf("%s names the tool %s", p.Name, word)
				}
			}
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: %q, want %q", tools, got, want)
		}
	}
}
