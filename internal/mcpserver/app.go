package mcpserver

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/internal/fragment"
)

// The extension MCP Apps (SEP-1865, 2026-01-26): a host shows the resource cardURI as a card in the chat, which calls
// tools. A client that does not declare the extension sees nothing of it.
const (
	appExtension = "io.modelcontextprotocol/ui"
	appType      = "text/html;profile=mcp-app"
	cardURI      = "ui://workflows-engine/run"
)

// showsCards reports whether the client of a request declares that it shows cards. Newer revisions declare it with each
// request.
func showsCards(req mcp.Request) bool {
	r, ok := req.(interface {
		ClientCapabilities() *mcp.ClientCapabilities
	})
	return ok && declaresCards(r.ClientCapabilities())
}

func declaresCards(c *mcp.ClientCapabilities) bool {
	if c == nil {
		return false
	}
	settings, _ := c.Extensions[appExtension].(map[string]any)
	types, _ := settings["mimeTypes"].([]any)
	return slices.Contains(types, any(appType))
}

// visibility returns the _meta.ui of a tool of the card.
func visibility(to ...any) mcp.Meta {
	return mcp.Meta{"ui": map[string]any{"resourceUri": cardURI, "visibility": to}}
}

// apps serves the extension to clients that declare it, and hides it from all others.
func (s *server) apps(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		shows := showsCards(req)
		switch r := req.(type) {
		case *mcp.CallToolRequest:
			if !shows && s.cardTools.has(r.Params.Name) {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("unknown tool %q", r.Params.Name)}
			}
		case *mcp.ReadResourceRequest:
			if shows && r.Params.URI == cardURI {
				return cardResource(), nil
			}
		case *mcp.ServerRequest[*mcp.InitializeParams]:
			shows = r.Params != nil && declaresCards(r.Params.Capabilities)
		}
		res, err := next(ctx, method, req)
		if err != nil {
			return res, err
		}
		switch r := res.(type) {
		case *mcp.ListToolsResult:
			if shows {
				r.Tools = s.withCards(r.Tools)
			}
		case *mcp.InitializeResult:
			r.Capabilities = withExtension(r.Capabilities, shows)
		case *mcp.DiscoverResult:
			r.Capabilities = withExtension(r.Capabilities, shows)
		}
		return res, nil
	}
}

func withExtension(c *mcp.ServerCapabilities, shows bool) *mcp.ServerCapabilities {
	if !shows || c == nil {
		return c
	}
	changed := *c
	changed.AddExtension(appExtension, map[string]any{})
	return &changed
}

// withCards returns the list of tools for a client that shows cards: those that start a run show one.
func (s *server) withCards(list []*mcp.Tool) []*mcp.Tool {
	out := make([]*mcp.Tool, 0, len(list)+len(s.cardTools))
	for _, t := range list {
		if known := s.tool(t.Name); known != nil && known.begins && known.name != "workflow_fork" {
			changed := *t
			changed.Meta = visibility("model", "app")
			for k, v := range t.Meta {
				changed.Meta[k] = v
			}
			t = &changed
		}
		out = append(out, t)
	}
	for _, t := range s.cardTools {
		listed := t.listed()
		listed.OutputSchema = nil
		listed.Meta = visibility("app")
		if t.name == "workflow_show" {
			listed.Meta = visibility("model", "app")
		}
		out = append(out, listed)
	}
	return out
}

var (
	//go:embed card.html
	cardPage string
	//go:embed card.js
	cardScript string
)

// cardHTML is the card: hosts allow style and script inside of it and nothing else.
var cardHTML = sync.OnceValue(func() string {
	var b strings.Builder
	err := template.Must(template.New("card").Parse(cardPage)).Execute(&b, map[string]any{
		"Style":  template.CSS(fragment.Style),                   //nolint:gosec // our own
		"Script": template.JS(fragment.GraphScript + cardScript), //nolint:gosec // our own
	})
	if err != nil {
		panic(errors.Join(errors.New("template of the card"), err))
	}
	return b.String()
})

func cardResource() *mcp.ReadResourceResult {
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{
		URI: cardURI, MIMEType: appType, Text: cardHTML(),
		Meta: mcp.Meta{"ui": map[string]any{"prefersBorder": true, "csp": map[string]any{}}},
	}}}
}
