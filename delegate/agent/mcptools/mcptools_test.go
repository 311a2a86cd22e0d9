package mcptools_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/toolcall"
	"github.com/workflows-engine/workflows-engine/delegate/agent"
	"github.com/workflows-engine/workflows-engine/delegate/agent/mcptools"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

type object = map[string]any

// shop is an MCP server with tools of all kinds.
func shop(t *testing.T) *toolcall.Executor {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "1"}, nil)
	price := func(_ context.Context, _ *mcp.CallToolRequest, in struct {
		Item string `json:"item" jsonschema:"what to look up"`
	},
	) (*mcp.CallToolResult, object, error) {
		if in.Item == "nothing" {
			return nil, nil, errors.New("no such item")
		}
		return nil, object{"item": in.Item, "price": 3.5}, nil
	}
	mcp.AddTool(server, &mcp.Tool{Name: "read.price", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, price)
	mcp.AddTool(server, &mcp.Tool{Name: "set_price", Annotations: &mcp.ToolAnnotations{IdempotentHint: true}}, price)
	mcp.AddTool(server, &mcp.Tool{Name: "refund", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, DestructiveHint: new(true)}}, price) // contradicts itself
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	site := httptest.NewServer(handler)
	t.Cleanup(site.Close)
	calls := enginetest.Must(toolcall.New(toolcall.Config{Servers: map[string]toolcall.Server{"shop": {URL: site.URL}}}))
	t.Cleanup(func() { _ = calls.Close() })
	return calls
}

// TestTools: what a server says of its tools decides how their calls are made.
func TestTools(t *testing.T) {
	t.Parallel()
	calls := shop(t)
	for _, c := range []struct {
		set  *mcptools.Toolset
		want map[string]agent.Tool
	}{
		{mcptools.New(calls, "shop", nil), map[string]agent.Tool{
			"shop__read_price": {ReadOnly: true, Parallel: true, OnCrash: agent.Repeat},
			"shop__set_price":  {OnCrash: agent.Repeat},
			"shop__refund":     {OnCrash: agent.Report},
		}},
		{mcptools.New(calls, "shop", []string{"*fund"}, agent.WithGate(agent.Ask), agent.WithOnCrash(agent.Ask)), map[string]agent.Tool{
			"shop__refund": {OnCrash: agent.Ask, Gate: agent.Ask},
		}},
	} {
		tools, err := c.set.Tools(t.Context())
		if err != nil || len(tools) != len(c.want) {
			t.Fatalf("%+v, %v", tools, err)
		}
		for _, got := range tools {
			want := c.want[got.Name]
			if got.ReadOnly != want.ReadOnly || got.Parallel != want.Parallel || got.OnCrash != want.OnCrash || got.Gate != want.Gate ||
				got.Source != "mcp:shop" || got.Parameters["type"] != "object" {
				t.Errorf("%+v, want %+v", got, want)
			}
		}
	}
}

func TestCall(t *testing.T) {
	t.Parallel()
	set := mcptools.New(shop(t), "shop", nil) // which has not been asked for its tools, as after a restart
	got, err := set.Call(t.Context(), agent.Call{Name: "shop__read_price", Arguments: object{"item": "tea"}, Key: "r:n#1.1/t1.c1"})
	if err != nil || !jsonvalue.Equal(got, object{"item": "tea", "price": 3.5}) {
		t.Errorf("%v, %v", got, err)
	}
	for name, code := range map[string]string{"shop__read_price": "MCP_TOOL_EXECUTION_ERROR", "shop__gone": "MCP_PROTOCOL_ERROR"} {
		_, err := set.Call(t.Context(), agent.Call{Name: name, Arguments: object{"item": "nothing"}})
		if fail, ok := errors.AsType[*activities.Failure](err); !ok || fail.Code != code {
			t.Errorf("%s: %v, want %s", name, err, code)
		}
	}
}

// TestToolsThatShareAName: a call never reaches another tool than the one that was listed under its name.
func TestToolsThatShareAName(t *testing.T) {
	t.Parallel()
	server := mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "1"}, nil)
	var called []string
	add := func(name string) {
		mcp.AddTool(server, &mcp.Tool{Name: name}, func(context.Context, *mcp.CallToolRequest, object) (*mcp.CallToolResult, object, error) {
			called = append(called, name)
			return nil, object{}, nil
		})
	}
	add("pay.out")
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	site := httptest.NewServer(handler)
	t.Cleanup(site.Close)
	calls := enginetest.Must(toolcall.New(toolcall.Config{Servers: map[string]toolcall.Server{"shop": {URL: site.URL}}}))
	t.Cleanup(func() { _ = calls.Close() })
	set := mcptools.New(calls, "shop", nil)
	pay := agent.Call{Name: "shop__pay_out"}
	if _, err := set.Call(t.Context(), pay); err != nil {
		t.Fatal(err)
	}
	add("pay_out")
	if _, err := set.Tools(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := set.Call(t.Context(), pay)
	if fail, ok := errors.AsType[*activities.Failure](err); !ok || fail.Code != "AGENT_CONFIG_INVALID" || len(called) != 1 {
		t.Errorf("%v, called %q", err, called)
	}
	if _, err := mcptools.New(calls, "shop", []string{"pay.*"}).Call(t.Context(), pay); err != nil || called[1] != "pay.out" {
		t.Errorf("%v, called %q", err, called)
	}
	server.RemoveTools("pay.out")
	if _, err := set.Tools(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := set.Call(t.Context(), pay); err != nil || called[2] != "pay_out" {
		t.Errorf("%v, called %q", err, called)
	}
}

// Patterns that match no tool of the server are named, and so is a server that there is not.
func TestWarnings(t *testing.T) {
	t.Parallel()
	warnings, err := mcptools.New(shop(t), "shop", []string{"read*", "re_fund"}).Warnings(t.Context())
	if err != nil || len(warnings) != 1 || warnings[0] != `server "shop": the pattern "re_fund" matches none of its 3 tools: read.price, refund, set_price` {
		t.Errorf("%q, %v", warnings, err)
	}
	_, err = mcptools.New(nil, "shop", nil).Tools(t.Context())
	if fail, ok := errors.AsType[*activities.Failure](err); !ok || fail.Code != "MCP_SERVER_NOT_CONFIGURED" {
		t.Errorf("%v", err)
	}
}
