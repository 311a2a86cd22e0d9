package toolcall_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/toolcall"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/leaktest"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// class is one way in which a tool server fails, and what a run makes of it.
type class struct {
	name, script, tool string
	// arguments are JSON, "" for none; node holds further members of the node.
	arguments, node string
	edit            func(*toolcall.Config)
	// site makes the server one with a URL, whose calls of tools this handler answers.
	site http.HandlerFunc
	// repeats is how many of these calls are repetitions within an attempt.
	repeats int
	// attempts are the outcomes of the node's attempts: "ok", or a code, with + if it was tried again.
	attempts string
	// says is a part of the last failure's text.
	says string
	// retryAfter is the wait that the first failure asks for.
	retryAfter time.Duration
	// unusable says that no call of the server can work, so that none is made afterwards.
	unusable bool
	// slow classes run on the main path alone.
	slow bool
}

const (
	tries = "retry: {max_attempts: 2, initial_interval: 1ms, backoff_coefficient: 1}"
	// patience is for the calls that are to work, on a busy machine and under the short limits of some classes.
	patience = "retry: {max_attempts: 10, initial_interval: 1ms, backoff_coefficient: 1}"
)

// classes names every class of failure. Each runs through a Runner over a file, on the main path and in a branch.
func classes() []class {
	return []class{
		{name: "tool reports an error", tool: "failing", node: tries, attempts: "MCP_TOOL_EXECUTION_ERROR+ MCP_TOOL_EXECUTION_ERROR", says: "disk full"},
		{name: "refused key", tool: "key", attempts: "MCP_TOOL_EXECUTION_ERROR", says: "the key [REDACTED] is refused", edit: func(c *toolcall.Config) {
			c.Servers["s"].Env["API_KEY"] = "literal:sk-sentinel-123456"
		}},
		{name: "server refuses the call", tool: "refuse", node: tries, attempts: "MCP_PROTOCOL_ERROR", says: "not today"},
		{name: "server is in trouble", tool: "speaking", node: tries, attempts: "MCP_PROTOCOL_ERROR+ MCP_PROTOCOL_ERROR", says: "out of memory",
			arguments: `{"logs": [], "error": {"code": -32000, "message": "out of memory"}}`},
		{name: "tool asks to wait", tool: "speaking", node: tries, attempts: "MCP_TOOL_EXECUTION_ERROR+ MCP_TOOL_EXECUTION_ERROR", says: "Too many", retryAfter: 200 * time.Millisecond,
			arguments: `{"logs": [], "result": {"isError": true, "content": [{"type": "text", "text": "Too many requests"}], "_meta": {"retryAfterMs": 200}}}`},
		{name: "tool that does not exist", tool: "ecko", node: tries, attempts: "MCP_PROTOCOL_ERROR", says: `did you mean "echo"?`},
		{name: "server that is not configured", tool: "echo", node: tries, attempts: "MCP_SERVER_NOT_CONFIGURED", says: "not configured", unusable: true, edit: func(c *toolcall.Config) {
			c.Servers = map[string]toolcall.Server{"t": c.Servers["s"]}
		}},
		{name: "command that is not allowed", tool: "echo", node: tries, attempts: "MCP_COMMAND_NOT_ALLOWED", says: "Config.AllowCommands", unusable: true, edit: func(c *toolcall.Config) {
			c.AllowCommands = "node"
		}},
		{name: "server that does not start", script: "stillborn", tool: "echo", node: tries, attempts: "MCP_CONNECTION_CLOSED+ MCP_CONNECTION_CLOSED", says: "no such database", unusable: true},
		{name: "server dies mid-call", tool: "die_once", node: tries, attempts: "MCP_CONNECTION_CLOSED+ ok"},
		{name: "server dies at each call", tool: "die", node: tries, attempts: "MCP_CONNECTION_CLOSED+ MCP_CONNECTION_CLOSED", says: "exit status 3"},
		{name: "half a message", tool: "half", attempts: "MCP_CONNECTION_CLOSED", says: "has ended"},
		{name: "the node's timeout", tool: "hang", node: tries + "\n    timeout: 200ms", attempts: "TIMEOUT+ TIMEOUT"},
		{name: "never an answer", tool: "hang", attempts: "ACTIVITY_TIMEOUT", says: "in time", edit: limit(700 * time.Millisecond)},
		{name: "never an answer to initialize", script: "mute", tool: "echo", attempts: "ACTIVITY_TIMEOUT", says: "has not answered initialize within", edit: limit(700 * time.Millisecond), unusable: true, slow: true},
		{name: "invalid JSON", tool: "garbage", attempts: "ACTIVITY_TIMEOUT", says: "a line that is not a message", edit: limit(3 * time.Second), slow: true},
		{name: "no result of a tool", tool: "malformed", attempts: "MCP_CLIENT_ERROR"},
		{name: "output of 20 MB", tool: "huge", arguments: `{"mib": 20}`, node: tries, attempts: "ACTIVITY_OUTPUT_TOO_LARGE"},

		{name: "HTTP: refused key", tool: "echo", node: tries, attempts: "MCP_CLIENT_ERROR", says: "status 401 Unauthorized: Bearer [REDACTED] is refused", repeats: 1, site: func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, r.Header.Get("Authorization")+" is refused", http.StatusUnauthorized)
		}},
		{name: "HTTP: key refused once", tool: "echo", attempts: "ok", repeats: 1, site: status(401)},
		{name: "HTTP: 429", tool: "echo", node: tries, attempts: "MCP_CLIENT_ERROR+ MCP_CLIENT_ERROR", says: "Too Many Requests", site: status(429)},
		{name: "HTTP: 429 with Retry-After", tool: "echo", node: tries, attempts: "MCP_CLIENT_ERROR+ ok", retryAfter: 300 * time.Millisecond, site: status(429, "Retry-After-Ms", "300")},
		{name: "HTTP: 500", tool: "echo", node: tries, attempts: "MCP_CLIENT_ERROR+ MCP_CLIENT_ERROR", says: "Internal Server Error", site: status(500)},
		{name: "HTTP: invalid JSON", tool: "echo", attempts: "MCP_CLIENT_ERROR", site: body("not JSON")},
		{name: "HTTP: half a body", tool: "echo", attempts: "MCP_CLIENT_ERROR", site: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "500")
			body(`{"jsonrpc":"2.0","id":`)(w, r)
		}},
		{name: "HTTP: server dies mid-call", tool: "echo", attempts: "MCP_CONNECTION_CLOSED", site: func(w http.ResponseWriter, _ *http.Request) {
			if connection, _, err := w.(http.Hijacker).Hijack(); err == nil {
				connection.Close()
			}
		}},
		{name: "HTTP: never an answer", tool: "echo", slow: true, attempts: "ACTIVITY_TIMEOUT", edit: limit(700 * time.Millisecond), site: func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
		}},
		{name: "HTTP: nobody is there", tool: "echo", node: tries, attempts: "MCP_CLIENT_ERROR+ MCP_CLIENT_ERROR", says: "refused", unusable: true, edit: func(c *toolcall.Config) {
			gone := httptest.NewServer(http.NotFoundHandler())
			gone.Close()
			c.Servers["s"] = toolcall.Server{URL: gone.URL + "/mcp?key=sk-sentinel-123456"}
		}},
		{name: "HTTP: output of 70 MB", tool: "echo", slow: true, attempts: "ACTIVITY_OUTPUT_TOO_LARGE", site: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			piece := strings.Repeat(" ", 1<<20)
			for range 70 {
				if _, err := io.WriteString(w, piece); err != nil {
					return
				}
			}
		}},
	}
}

// limit sets Config.Timeout, which covers a start of the server, to d; on a busy machine to what four starts take there, at
// most 5 s: a call that hangs must end before the runner stops waiting for it.
func limit(d time.Duration) func(*toolcall.Config) {
	return func(c *toolcall.Config) {
		program := enginetest.Must(os.Executable())
		probe := enginetest.Must(toolcall.New(toolcall.Config{
			Servers:       map[string]toolcall.Server{"s": {Command: program, Env: map[string]string{scriptVariable: "plain"}}},
			AllowCommands: filepath.Base(program), Environ: os.Environ(),
		}))
		begun := time.Now()
		enginetest.Must(probe.Tools(context.Background(), "s"))
		c.Timeout = max(d, min(4*time.Since(begun), 5*time.Second))
		_ = probe.Close() // always nil
	}
}

// status answers with a status; headers are pairs.
func status(code int, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		http.Error(w, "no", code)
	}
}

func body(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, text)
	}
}

// newSite serves MCP over HTTP. The first call of tool "echo" is answered by trouble.
func newSite(t *testing.T, times int, trouble http.HandlerFunc) string {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "remote", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in object) (*mcp.CallToolResult, object, error) {
		return nil, in, nil
	})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	left := make(chan struct{}, times)
	for range times {
		left <- struct{}{}
	}
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(strings.NewReader(string(text)))
		if strings.Contains(string(text), `"tools/call"`) {
			select {
			case <-left:
				trouble(w, r)
				return
			default:
			}
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(site.Close)
	return site.URL
}

// TestFailureClasses runs every class on the main path and in a branch, under the race detector in one of the two. It is not
// parallel, because it looks for goroutines at its end.
func TestFailureClasses(t *testing.T) {
	t.Run("all", func(t *testing.T) {
		for _, c := range classes() {
			for _, place := range []string{"main path", "branch"} {
				if place == "branch" && c.slow || place == "main path" && !c.slow && soak.UnderRace {
					continue
				}
				t.Run(c.name+"/"+place, func(t *testing.T) {
					t.Parallel()
					c.run(t, place == "branch")
				})
			}
		}
	})
	leaktest.NoGoroutines(t, "workflows-engine/graph.", "activities/toolcall.", "net/http.(*persistConn)", "historysql.", "go-sdk/")
}

func (c class) run(t *testing.T, inBranch bool) {
	outcomes := strings.Fields(c.attempts)
	script := c.script
	if script == "" {
		script = "plain"
	}
	h := open(t, script, func(config *toolcall.Config) {
		if c.site != nil {
			failures := strings.Count(c.attempts, "MCP_") + strings.Count(c.attempts, "ACTIVITY_") + c.repeats
			config.Servers["s"] = toolcall.Server{
				URL: newSite(t, failures, c.site), Headers: map[string]string{"Authorization": "Bearer ${env:T}"},
			}
			config.Secret = func(string) (string, error) { return "sk-sentinel-123456", nil }
		}
		if c.edit != nil {
			c.edit(config)
		}
	})
	store := enginetest.Closing(t, enginetest.Must(historysql.Open(t.Context(), filepath.Join(t.TempDir(), "runs.db"), historysql.Options{})))
	r := enginetest.Closing(t, enginetest.Must(graph.New(store, graph.Options{Activities: activities.Composite{ToolCall: h}, WaitLimit: time.Minute})))
	want := machine.Completed
	if outcomes[len(outcomes)-1] != "ok" {
		want = machine.Failed
	}
	run, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "one", Definition: enginetest.Define(t, c.definition(inBranch))})
	if err != nil {
		t.Fatal(err)
	}
	if run.Status != want {
		t.Fatalf("%s %s: %s, want %s", run.Status, run.ErrorCode, run.Error, want)
	}
	records := enginetest.Must(store.Read(t.Context(), "one", 0, 0))
	var got []string
	failure := ""
	for _, rec := range records {
		switch {
		case rec.Payload.NodeID != "call":
		case rec.Name == history.ActivityCompleted:
			got = append(got, "ok")
		case rec.Name == history.ActivityFailed && rec.Payload.WillRetry:
			got, failure = append(got, rec.Payload.Code+"+"), rec.Payload.Error
			if wait := rec.Payload.RetryAt.Sub(rec.CreatedAt); wait < c.retryAfter {
				t.Errorf("tried again after %v, want %v", wait, c.retryAfter)
			}
		case rec.Name == history.ActivityFailed:
			got, failure = append(got, rec.Payload.Code), rec.Payload.Error
		}
	}
	if strings.Join(got, " ") != c.attempts {
		t.Fatalf("attempts %v, want %s: %s", got, c.attempts, failure)
	}
	if !strings.Contains(failure, c.says) || strings.Contains(failure, "sentinel") || len(failure) > 1000 {
		t.Errorf("%q does not say %q", failure, c.says)
	}
	// What is stored about the run is what its records say, and the call said.
	projected := history.Project("one", records)
	stored := enginetest.Must(store.Execution(t.Context(), "one"))
	if stored.Phase != projected.Phase || string(stored.Phase) != string(run.Status) {
		t.Errorf("stored as %s, projected as %s, said to be %s", stored.Phase, projected.Phase, run.Status)
	}
	if want == machine.Failed && run.ErrorNodeID != "call" {
		t.Errorf("the run failed at %q: %s", run.ErrorNodeID, run.Error)
	}
	if status, err := r.Status(t.Context(), graph.StatusRequest{ExecutionID: "one"}); err != nil || status.Status != run.Status || status.Error != run.Error {
		t.Errorf("status %+v, %v", status, err)
	}
	if c.unusable {
		return
	}
	// The next call of the same executor works, whatever became of the server.
	next := enginetest.Define(t, class{tool: "echo", node: patience}.definition(inBranch))
	run, err = r.Start(t.Context(), graph.StartRequest{ExecutionID: "two", Definition: next})
	if err != nil || run.Status != machine.Completed {
		t.Errorf("the next run: %+v, %v", run, err)
	}
}

// definition has the node under test, in a branch or on the main path.
func (c class) definition(inBranch bool) string {
	node := fmt.Sprintf("  - id: call\n    type: tool_call\n    config: {server: s, tool: %s", c.tool)
	if c.arguments != "" {
		node += ", arguments: " + c.arguments
	}
	node += "}\n"
	if c.node != "" {
		node += "    " + c.node + "\n"
	}
	head := `
document: {schema: "https://agent-workflow.dev/schemas/workflow-definition.json", name: failing, version: 1.0.0}
state_schema: {type: object}
nodes:
  - {id: start, type: start}
  - {id: after, type: set_state, config: {assignments: {done: {literal: true}}}}
  - {id: end, type: end}
` + node
	if !inBranch {
		return head + `edges:
  - {source: __start__, target: start}
  - {source: start, target: call}
  - {source: call, target: after}
  - {source: after, target: end}
`
	}
	return head + `  - {id: fork, type: parallel, config: {join: all, branches: [{name: a, entry: call}, {name: b, entry: also}]}}
  - {id: also, type: set_state, config: {assignments: {also: {literal: true}}}}
edges:
  - {source: __start__, target: start}
  - {source: start, target: fork}
  - {source: call, target: after}
  - {source: also, target: after}
  - {source: fork, target: after}
  - {source: after, target: end}
`
}
