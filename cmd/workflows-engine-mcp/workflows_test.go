package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// workflowFile writes a definition that asks a person, or what breaks it.
func workflowFile(t *testing.T, folder, name, version string) {
	t.Helper()
	text := strings.Replace(asks, `"name":"asks","version":"1"`, fmt.Sprintf(`"name":%q,"version":%q`, name, version), 1)
	if version == "" {
		text = "{\n"
	}
	if err := os.WriteFile(filepath.Join(folder, name+".workflow.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestWorkflowsWhileServed changes the workflow folder of a server that is running: the client is told, the tools follow, a broken
// file is logged once and its last good version stays.
func TestWorkflowsWhileServed(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	workflowFile(t, folder, "one", "1")
	cmd := command(t, "--store=memory", "--expose-workflows")
	cmd.Env = append(cmd.Env, "WORKFLOW_ENGINE_WORKFLOW_DIR="+folder)
	stderr := new(tail)
	cmd.Stderr = stderr
	changes := make(chan struct{}, 100)
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "0"}, &mcp.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changes <- struct{}{} },
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	tools := func() string {
		t.Helper()
		list, err := session.ListTools(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, tool := range list.Tools {
			if strings.HasPrefix(tool.Name, "run_") {
				names = append(names, tool.Name)
			}
		}
		return strings.Join(names, " ")
	}
	call := func(name string, args object) object {
		t.Helper()
		res, err := session.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: args})
		if err != nil {
			t.Fatal(err)
		}
		return answerOf(t, res)
	}
	changed := func() { // found by the server itself, which looks from time to time
		t.Helper()
		select {
		case <-changes:
		case <-ctx.Done():
			t.Fatalf("the client was not told of a change\n%s", stderr)
		}
	}
	if got := tools(); got != "run_one" {
		t.Fatalf("tools %q\n%s", got, stderr)
	}
	workflowFile(t, folder, "two", "1")
	changed()
	if got := tools(); got != "run_one run_two" {
		t.Errorf("tools %q", got)
	}
	workflowFile(t, folder, "one", "")
	broken, _ := call("workflow_catalog", nil)["broken"].([]any)
	if len(broken) != 1 || broken[0].(object)["kept_version"] != "1" {
		t.Errorf("broken: %v", broken)
	}
	if got := call("run_one", nil); got["status"] != "interrupted" {
		t.Errorf("run_one: %v", got)
	}
	if n := strings.Count(stderr.String(), "workflow file invalid"); n != 1 || !strings.Contains(stderr.String(), "one.workflow.json") {
		t.Errorf("logged %d times:\n%s", n, stderr)
	}
	workflowFile(t, folder, "one", "2")
	changed() // its title has the version
	if got := call("workflow_status", object{"execution_id": call("run_one", nil)["execution_id"]}); got["definition_version"] != "2" {
		t.Errorf("mended: %v", got)
	}
	if err := os.Remove(filepath.Join(folder, "two.workflow.json")); err != nil {
		t.Fatal(err)
	}
	changed()
	if got := tools(); got != "run_one" {
		t.Errorf("tools %q", got)
	}
	if err := session.Close(); err != nil || !cmd.ProcessState.Success() {
		t.Errorf("close: %v, %v\n%s", err, cmd.ProcessState, stderr)
	}
}

// TestAListenerDoesNotHoldUpTheEnd: a client that listens for changes has a request in flight for as long as it lives; the server ends
// with its input all the same.
func TestAListenerDoesNotHoldUpTheEnd(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	workflowFile(t, folder, "one", "1")
	p := spawn(t, "--store=memory", "--expose-workflows", "--workflow-dir", folder)
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"0"}}`
	p.write(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{`+meta+`}}`,
		`{"jsonrpc":"2.0","id":2,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},`+meta+`}}`)
	for range 2 {
		if m := p.read(); m["error"] != nil {
			t.Fatalf("answered %v", m)
		}
	}
	workflowFile(t, folder, "two", "1")
	if m := p.read(); m["method"] != "notifications/tools/list_changed" {
		t.Errorf("told %v", m)
	}
	p.stdin.Close()
	if m := p.read(); m["id"] != 2.0 {
		t.Errorf("answered %v", m)
	}
	if status := p.end(); status != 0 {
		t.Errorf("exit status %d\n%s", status, p.stderr)
	}
}

// Who leaves the tool out that starts runs is told that others start them.
func TestExposedWorkflowsBesideAList(t *testing.T) {
	t.Parallel()
	for tools, warned := range map[string]bool{"workflow_status": true, "core": false} {
		p := spawn(t, "--store=memory", "--expose-workflows", "--workflow-dir", t.TempDir(), "--tools", tools)
		p.stdin.Close()
		if status := p.end(); status != 0 {
			t.Errorf("exit status %d", status)
		}
		if got := strings.Contains(p.stderr.String(), "warning: --tools leaves out workflow_start"); got != warned {
			t.Errorf("%s: %s", tools, p.stderr.String())
		}
	}
}

// Without a folder there is nothing to expose: the host is told, and what to do.
func TestExposeNeedsAFolder(t *testing.T) {
	t.Parallel()
	p := spawn(t, "--store=memory", "--expose-workflows")
	p.write(hello, toolCall(1, "workflow_list", `{}`))
	p.read()
	if text := fmt.Sprint(p.read()); !strings.Contains(text, "--expose-workflows requires --workflow-dir") || !strings.Contains(text, "--workflow-dir") {
		t.Error(text)
	}
	p.stdin.Close()
	if status := p.end(); status != exitUsage {
		t.Errorf("exit status %d", status)
	}
}
