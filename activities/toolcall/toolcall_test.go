package toolcall_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/toolcall"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// The rows of the result mapping (spec: activities, 6.5), all through one session.
func TestResults(t *testing.T) {
	t.Parallel()
	h := open(t, "plain", nil)
	for _, c := range []struct {
		tool      string
		arguments any
		want      string
	}{
		{"echo", object{"a": 1.0, "b": object{"c": []any{nil}}}, `{"a":1,"b":{"c":[null]}}`},
		{"echo", nil, `{}`},
		{"text", nil, `{"content":[{"data":"AA==","mimeType":"image/png","type":"image"}],"text":"one\ntwo"}`},
		{"json", nil, `{"text":"{\"a\":1}"}`},
		{"image", nil, `{"content":[{"data":"AA==","mimeType":"image/png","type":"image"}]}`},
		{"blank", nil, `{"content":[{"text":" \n","type":"text"}]}`},
		{"nothing", nil, `{"content":[]}`},
		{"list", nil, `{"value":[1,2]}`},
		{"number", nil, `{"value":7}`},
	} {
		if got := h.execute(tool(c.tool, c.arguments)); got != c.want {
			t.Errorf("%s: %s, want %s", c.tool, got, c.want)
		}
	}
	if n := len(h.started()); n != 1 {
		t.Errorf("%d processes for one server", n)
	}
}

// The rows of the failure mapping (spec: activities, 6.6 and 16.2) that leave the session as it is.
func TestFailuresThatKeepTheSession(t *testing.T) {
	t.Parallel()
	h := open(t, "plain", nil)
	ctx := t.Context()
	failing := h.refuse(ctx, tool("failing", nil), "MCP_TOOL_EXECUTION_ERROR")
	if failing.Error() != "disk full\nreally" {
		t.Errorf("the tool's text is %q", failing)
	}
	wants(t, h.refuse(ctx, tool("failing_silently", nil), "MCP_TOOL_EXECUTION_ERROR"), "without a text")
	refused := h.refuse(ctx, tool("refuse", nil), "MCP_PROTOCOL_ERROR")
	wants(t, refused, `"s"`, "-32001", "not today", "rain")
	if refused.Retryable != activities.RetryPointless {
		t.Error("a refusal is to be tried again")
	}
	wants(t, h.refuse(ctx, tool("ecco", nil), "MCP_PROTOCOL_ERROR"), `did you mean "echo"?`)

	calling, stop := context.WithCancel(ctx)
	req := tool("progress", nil)
	req.Heartbeat = func(map[string]any) { stop() }
	h.refuse(calling, req, "ACTIVITY_CANCELLED")
	h.refuse(calling, tool("echo", nil), "ACTIVITY_CANCELLED") // cancelled before it begins
	h.execute(tool("echo", nil))
	if n := len(h.started()); n != 1 {
		t.Errorf("%d processes, want the first to be kept", n)
	}
}

func TestRefusedBeforeAnythingStarts(t *testing.T) {
	t.Parallel()
	h := open(t, "plain", func(c *toolcall.Config) {
		c.Servers["node"] = toolcall.Server{Command: "node"}
		c.Servers["off"] = toolcall.Server{Command: "node", Disabled: true}
	})
	request := func(edit func(*activities.Request)) activities.Request {
		req := tool("echo", nil)
		edit(&req)
		return req
	}
	config := func(name string, value any) func(*activities.Request) {
		return func(r *activities.Request) { r.Config[name] = value }
	}
	for _, c := range []struct {
		edit func(*activities.Request)
		code string
		text string
	}{
		{func(r *activities.Request) { r.NodeType = "step" }, "ACTIVITY_EXECUTOR_UNSUPPORTED_NODE", "step"},
		{config("server", ""), "INVALID_TOOL_CALL_CONFIG", "config.server"},
		{config("server", 5.0), "INVALID_TOOL_CALL_CONFIG", "config.server"},
		{config("tool", nil), "INVALID_TOOL_CALL_CONFIG", "config.tool"},
		{config("arguments", []any{}), "INVALID_TOOL_CALL_CONFIG", "not an object"},
		{config("server", "nodes"), "MCP_SERVER_NOT_CONFIGURED", `did you mean "node"?`},
		{config("server", "toString"), "MCP_SERVER_NOT_CONFIGURED", "configured: node, off, s"},
		{config("server", "off"), "MCP_SERVER_NOT_CONFIGURED", "disabled"},
		{config("server", "node"), "MCP_COMMAND_NOT_ALLOWED", "Config.AllowCommands"},
	} {
		failure := h.refuse(t.Context(), request(c.edit), c.code)
		wants(t, failure, c.text)
		if failure.Retryable != activities.RetryPointless {
			t.Errorf("%s is to be tried again", c.code)
		}
	}
	// What another process may have is left to it.
	for server, want := range map[string]bool{"s": true, "": true, "nodes": false, "off": false, "node": false} {
		can := h.Capabilities(activities.Node{Type: "tool_call", Config: map[string]any{"server": server, "tool": "x"}})
		if got := can.Missing == activities.MissingNothing; got != want {
			t.Errorf("server %q: performed %v", server, got)
		}
		if got := can.Targets(); !slices.Equal(got, []string{"s"}) {
			t.Errorf("targets %q", got)
		}
	}
	if n := len(h.started()); n != 0 {
		t.Errorf("%d processes", n)
	}
}

// Arguments are literal unless the node asks for more.
func TestArguments(t *testing.T) {
	t.Parallel()
	h := open(t, "plain", nil)
	arguments := object{
		"a": "${ .x }", "b": object{"jq": ".x + 1"}, "c": []any{object{"literal": object{"jq": "."}}, "x ${ .x }", object{"d/e": "${ .name }"}}, "n": nil,
	}
	literal := string(enginetest.Must(json.Marshal(arguments)))
	if got := h.execute(tool("echo", arguments)); got != literal {
		t.Errorf("not asked for: %s", got)
	}
	req := tool("echo", arguments)
	req.Metadata = object{toolcall.TemplatesKey: true}
	if got, want := h.execute(req), `{"a":5,"b":6,"c":[{"jq":"."},"x ${ .x }",{"d/e":"Kim"}],"n":null}`; got != want {
		t.Errorf("asked for: %s, want %s", got, want)
	}
	req.Config["arguments"] = object{"jq": "{y: .x}"}
	if got := h.execute(req); got != `{"y":5}` {
		t.Errorf("arguments as a whole: %s", got)
	}
	req.Config["arguments"] = "${ .x }"
	h.refuse(t.Context(), req, "INVALID_TOOL_CALL_CONFIG")
	req.Config["arguments"] = object{"a": []any{object{"jq": ".x +"}}}
	wants(t, h.refuse(t.Context(), req, "EXPRESSION_INVALID"), "/a/0")
	req.Config["arguments"] = object{"a": object{"jq": ".name + 1"}}
	h.refuse(t.Context(), req, "EXPRESSION_FAILED")
	if literal != string(enginetest.Must(json.Marshal(arguments))) {
		t.Error("the definition was changed")
	}
}

// What goes out with a call beside its arguments.
func TestCallMetadata(t *testing.T) {
	t.Parallel()
	h := open(t, "plain", nil)
	var params struct {
		Meta object `json:"_meta"`
	}
	if err := json.Unmarshal([]byte(h.execute(tool("meta", nil))), &params); err != nil || params.Meta["idempotencyKey"] != "run:n#1.1" {
		t.Errorf("_meta is %v, %v", params.Meta, err)
	}
	beats := make(chan map[string]any, 3)
	ctx, stop := context.WithCancel(t.Context())
	req := tool("progress", nil)
	req.Heartbeat = func(details map[string]any) {
		if beats <- details; len(beats) == cap(beats) {
			stop() // the tool never answers
		}
	}
	h.refuse(ctx, req, "ACTIVITY_CANCELLED")
	if got := string(enginetest.Must(json.Marshal(<-beats))); got != `{"message":"working","progress":1,"total":3}` {
		t.Errorf("heartbeat %s", got)
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	h := open(t, "plain", func(c *toolcall.Config) {
		c.Environ = []string{"HOME=/h", "PATH=/p", "SECRET=engine", "LD_PRELOAD=x", "SHELL=() { x; }", "USER=kim"}
		s := c.Servers["s"]
		s.Directory = directory
		s.Env["TOKEN"], s.Env["LINK"], s.Env["FILE"], s.Env["USER"] = "env:T", "a${env:T}b", "literal:file:x", "own"
		c.Servers["s"] = s
		c.Secret = func(reference string) (string, error) {
			if reference != "env:T" {
				return "", problem.New(problem.UsageError, "no %s", reference)
			}
			return "s3cret", nil
		}
	})
	var got struct {
		Environ   []string
		Directory string
	}
	if err := json.Unmarshal([]byte(h.execute(tool("environment", nil))), &got); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range got.Environ {
		if !strings.HasPrefix(entry, "SCRIPTED_") && !strings.HasPrefix(entry, "WORKFLOWS_ENGINE_SESSION=") {
			names = append(names, entry)
		}
	}
	slices.Sort(names)
	want := []string{"FILE=file:x", "HOME=/h", "LINK=as3cretb", "PATH=/p", "TOKEN=s3cret", "USER=own"}
	if !slices.Equal(names, want) {
		t.Errorf("environment %q, want %q", names, want)
	}
	if !strings.HasSuffix(got.Directory, directory) {
		t.Errorf("directory %s", got.Directory)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]toolcall.Server{
		"nothing":       {},
		"both":          {Command: "node", URL: "http://localhost"},
		"no resolver":   {Command: "node", Env: map[string]string{"A": "env:X"}},
		"in the middle": {URL: "http://localhost", Headers: map[string]string{"A": "Bearer ${env:X}"}},
	} {
		_, err := toolcall.New(toolcall.Config{Servers: map[string]toolcall.Server{"s": s}})
		if e, ok := problem.As(err); !ok || e.Code != problem.UsageError {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := toolcall.New(toolcall.Config{Servers: map[string]toolcall.Server{"s": {Command: "node", Disabled: true, Env: map[string]string{"A": "env:X"}}}}); err != nil {
		t.Errorf("disabled: %v", err)
	}
}

func TestTools(t *testing.T) {
	t.Parallel()
	h := open(t, "plain", nil)
	tools, err := h.Tools(t.Context(), "s")
	if err != nil || len(tools) < 10 || tools[0].Name != "echo" || tools[0].Description != "does echo" || tools[0].InputSchema["type"] != "object" || tools[0].ReadOnly {
		t.Errorf("%v, %v", tools, err)
	}
	// What a server says of its tools is shown to people, without the keys that it was given.
	told := open(t, "plain", func(c *toolcall.Config) { c.Servers["s"].Env["API_KEY"] = "does-secretly" })
	if tools, err := told.Tools(t.Context(), "s"); err != nil || tools[0].Description != "[REDACTED] echo" {
		t.Errorf("%v, %v", tools, err)
	}
	// A server that lists nothing is called all the same, and is not asked for a list that it might never give.
	unlisted := open(t, "unlisted", func(c *toolcall.Config) { c.Timeout = 10 * time.Second })
	unlisted.execute(tool("echo", nil))
	wants(t, unlisted.refuse(t.Context(), tool("ecco", nil), "MCP_PROTOCOL_ERROR"), "-32602")
}
