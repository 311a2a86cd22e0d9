package mcpserver

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/catalog"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver/elicit"
)

// Options configure a server. The zero value works.
type Options struct {
	// Version is the engine's version in the answer to initialize; "" means "devel".
	Version string
	// DefaultMode is the mode of runs started without one; "" means the engine's default, in process.
	DefaultMode machine.Mode
	// Definitions finds stored definitions for the resource that shows them; nil leaves the resource out. A
	// history.Store is one.
	Definitions Definitions
	// Ready is closed once the engine and Definitions may be called; nil means from the start. Until then the handshake and the
	// lists are answered, and calls and reads wait.
	Ready <-chan struct{}
	// Trouble is called before a tool call or a read of the engine; an error is the answer. With it Ready is closed
	// at the latest when it returns nil. It may be nil.
	Trouble func(context.Context) error
	// Known returns an error for the instructions that a connecting client gets. It may be nil.
	Known func(context.Context) error
	// Redaction hides secrets in answers; the zero value hides nothing.
	Redaction history.Redaction
	// Admit rejects starts and large calls while the process has no memory for them; nil admits all.
	Admit func() error
	// Elicit selects who answers interrupts; "" is elicit.Auto.
	Elicit elicit.Mode
	// Key returns the key of a name that the processes of a database share, such as a history.Keyring keeps; nil means a random one for
	// this server alone.
	Key func(ctx context.Context, name string) ([]byte, error)
	// StoreFlags are the flags that terminal commands need to reach the same runs; they may be nil.
	StoreFlags []string
	// WaitLimit is how long a call without wait_ms waits for a person. It should equal the engine's wait for a run. 0 means 20 s; a negative value
	// means no wait.
	WaitLimit time.Duration
	// AnswerBytes is the size of structured content for calls without answer_bytes; 0 means DefaultAnswerBytes,
	// FullAnswers no limit.
	AnswerBytes int
	// Tools selects the tools that the server offers.
	Tools Tools
	// Catalog holds the registered workflows that workflow_catalog lists; nil leaves the tool out. The engine resolves names by it, too.
	Catalog *catalog.Catalog
	// Agents lists the agents that run inside the engine. They appear as a resource and in the guide, in this order, and workflow_validate
	// compares agent_id with them. Nil omits both.
	Agents []Agent
	// ExposeWorkflows makes a tool of each registered workflow.
	ExposeWorkflows bool
	// Page returns the origin of the web page that shows the runs now, "" without one. Cards link to it. It may be nil.
	Page func(context.Context) string
	// Logger gets a line for each call (debug) and each fault (error); nil discards them.
	Logger *slog.Logger
}

// Agent is an agent that runs inside the engine.
type Agent struct {
	Name, Description string
	// Output is the JSON Schema of its answer; nil means {"text": …}.
	Output map[string]any
	// Skills are the names of its skills; nil without any.
	Skills []string
}

// server is shared by all tools.
type server struct {
	graph.Engine
	opts Options
	log  *slog.Logger
	seen seenStates
	// tools holds the tools that are always offered, registered those of registered workflows.
	tools      toolset
	registered registered
	// cardTools are for clients that show cards.
	cardTools toolset
	// beginning has a value for each call that is about to start a run.
	beginning chan struct{}
	// desk holds the questions to people, sessions the sessions whose end it learns of, key signs tickets (ask_ticket.go).
	desk     elicit.Desk
	sessions sync.Map
	keyMu    sync.Mutex
	key      []byte
}

// instructions teach a model the loop once, so that the tools' descriptions and the answers can be short.
func (s toolset) instructions() string {
	return strings.Join([]string{
		`Use these tools for work of several steps that must not get lost or be done twice: tasks with waits, approvals by people, retries,
parallel parts, or more steps than one conversation holds. A definition (a graph of nodes) runs node by node; every step survives restarts.`,
		s.sentences(sentence{"workflow_start", "1. workflow_start with definition and input."}, sentence{"workflow_guide", "How to write one: workflow_guide."},
			sentence{"workflow_validate", "Check it with workflow_validate."}, sentence{"workflow_start", "Both are stored; do not send them again."}),
		"2. Read status and pending of the answer:" + s.lines(
			sentence{"workflow_submit_activity", " awaiting_activity: do what pending.config asks, then workflow_submit_activity"},
			sentence{"workflow_resume", " interrupted: a person decides: ask them pending.prompt, then workflow_resume with the answer; or the host asks them: follow next"},
			sentence{"workflow_signal", " awaiting_signal: workflow_signal once it has happened"},
			sentence{"", " running, awaiting_timer: workflow_status with wait_ms"}),
		`3. next is the call to make, arguments included: replace each <…>. Repeat until completed, failed or cancelled.
Large values are shown as {"$ref", "pointer", "head"}: workflow_status with read: ["/pointer"] or select (jq) reads them.`,
		s.sentences(sentence{"", "If a run waits for hours, tell the user when it is due and stop."}, sentence{"workflow_history", "After a failure workflow_history shows why."},
			sentence{"workflow_fork", "workflow_fork retries from there."}),
		s.sentences(sentence{"workflow_list", "Lost the thread? workflow_list, then"}, sentence{"", "workflow_status repeats everything needed to continue."},
			sentence{"", "A rejected call changes nothing; its text names the next step."}),
	}, "\n")
}

// listsFor is how long clients may cache the lists, which change only with a release, and changingFor the list of tools where it changes
// with files.
const (
	listsFor    = time.Hour
	changingFor = 10 * time.Second
)

// New makes a server over an engine. It serves any number of sessions; see Serve and ServeHTTP.
func New(engine graph.Engine, o Options) *mcp.Server {
	o.Elicit = cmp.Or(o.Elicit, elicit.Auto)
	if o.Key == nil {
		o.Key = func(context.Context, string) ([]byte, error) { return []byte(rand.Text()), nil }
	}
	s := &server{Engine: engine, opts: o, log: cmp.Or(o.Logger, slog.New(slog.DiscardHandler)), beginning: make(chan struct{}, beginAtOnce)}
	tools := o.Tools.of(allTools(o))
	s.tools, s.cardTools = tools, cardTools(tools)
	sdk := mcp.NewServer(&mcp.Implementation{
		Name:    "workflows-engine",
		Title:   "Workflows Engine",
		Version: cmp.Or(o.Version, "devel"),
	}, &mcp.ServerOptions{
		Instructions: tools.instructions() + tools.aboutRegistered(o),
		Logger:       s.log,
		// Only the list of tools can change, where workflows are tools. Nothing is logged to the client.
		Capabilities: &mcp.ServerCapabilities{
			Tools: &mcp.ToolCapabilities{ListChanged: o.ExposeWorkflows}, Resources: &mcp.ResourceCapabilities{}, Prompts: &mcp.PromptCapabilities{},
		},
		CompletionHandler: s.complete,
		SetCacheable: func(_ context.Context, req mcp.Request, c *mcp.Cacheable) {
			switch req.(type) {
			case *mcp.ReadResourceRequest:
			case *mcp.ListToolsRequest:
				c.TTLMs = int(listsFor.Milliseconds())
				if o.ExposeWorkflows {
					c.TTLMs = int(changingFor.Milliseconds())
				}
			default:
				c.TTLMs = int(listsFor.Milliseconds())
			}
		},
	})
	s.addTools(sdk, slices.Concat(s.tools, s.cardTools))
	s.addResources(sdk)
	s.addPrompts(sdk)
	if o.Catalog != nil && o.ExposeWorkflows {
		o.Catalog.OnChange(func(now *catalog.Snapshot) { s.expose(sdk, now) })
		o.Catalog.Look() // now: a client that is connected would be notified of a change
	}
	sdk.AddSendingMiddleware(hearAnswers)
	sdk.AddReceivingMiddleware(s.recovering, byLink, opening, byRevision, encodeAnswers, s.apps, s.listing(), s.warn, s.awaitEngine())
	return sdk
}

func (s *server) addTools(sdk *mcp.Server, tools []*tool) {
	for _, t := range tools {
		sdk.AddTool(&mcp.Tool{Name: t.name, InputSchema: anyObject}, s.handler(t)) // see listing
	}
}

// tool returns a tool by name, nil if it does not exist.
func (s *server) tool(name string) *tool {
	for _, list := range [][]*tool{s.tools, s.cardTools, s.registered.list()} {
		if at := slices.IndexFunc(list, func(t *tool) bool { return t.name == name }); at >= 0 {
			return list[at]
		}
	}
	return nil
}

// anyObject is a tool's schema until the tools are listed.
var anyObject = json.RawMessage(`{"type":"object"}`)

// listing answers tools/list with the tools in the protocol's order (spec: mcp-tools, 3), where the SDK sorts them by
// name, and with their schemas. Those are built for the first list: the SDK parses each that it is given, which every
// start would wait for.
func (s *server) listing() mcp.Middleware {
	listed := sync.OnceValue(func() []*mcp.Tool { return listedTools(s.tools) })
	withTools := onResult(func(_ context.Context, _ string, _ mcp.Request, res mcp.Result) mcp.Result {
		if list, ok := res.(*mcp.ListToolsResult); ok {
			list.Tools = slices.Concat(listed(), listedTools(s.registered.list()))
		}
		return res
	})
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "tools/list" && s.opts.ExposeWorkflows {
				s.opts.Catalog.Look()
			}
			return withTools(next)(ctx, method, req)
		}
	}
}

func listedTools(tools []*tool) []*mcp.Tool {
	list := make([]*mcp.Tool, len(tools))
	for i, t := range tools {
		list[i] = t.listed()
	}
	return list
}

// handler is the SDK's side of a tool.
func (s *server) handler(t *tool) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		began := time.Now()
		if parent, ok := req.Params.Meta["traceparent"].(string); ok {
			ctx = graph.WithTraceParent(ctx, parent)
		}
		ctx = graph.WithActor(ctx, client(req))
		if err := s.admit(t, req); err != nil {
			return s.shown(s.rejection(err, t.invalid, "").result(s.usualBytes())), nil
		}
		enough := func() {}
		if t.begins {
			if enough = s.begin(ctx); enough == nil {
				return nil, context.Cause(ctx)
			}
			defer enough()
		}
		a := readArguments(t.callArguments(req.Params), t)
		if a.Broken != nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: "the arguments are not JSON: " + a.Broken.Error()}
		}
		a.client, a.tool, a.raw, a.asking = req.Session, t.name, req.Params.Arguments, s.asking(req)
		if err := a.asking.ticketOf(ctx, req); err != nil {
			return nil, err
		}
		a.usual = s.usualBytes()
		if l := linkOf(ctx); l != nil {
			a.hangup = l.hangup
			if l.oneCall {
				a.client = nil
			}
		}
		a.enough = enough
		if turn, ok := ctx.Value(appliedKey{}).(func()); ok {
			a.turn = turn
		}
		if r := newReporter(ctx, req); r != nil {
			a.progress, a.reporter = r.report, r
			defer r.stop(ctx)
		}
		answer, failed := s.perform(ctx, t, a)
		took := slog.Duration("took", time.Since(began))
		id := slog.String("execution_id", a.executionID())
		switch {
		case failed == nil:
			s.log.Debug("call", "tool", t.name, id, took)
			return s.shown(answer.result(readsStructured(req.Session), a.answerBytes())), nil
		case failed.code == problem.Internal && ctx.Err() == nil: // a client that cancels a call is no fault
			s.log.Error("call failed", "tool", t.name, id, took, "error", failed.message)
		default:
			s.log.Debug("call rejected", "tool", t.name, id, took, "code", string(failed.code), "error", failed.message)
		}
		return s.shown(failed.result(a.answerBytes())), nil
	}
}

// usualBytes returns the size of answers to calls without answer_bytes.
func (s *server) usualBytes() int { return cmp.Or(s.opts.AnswerBytes, DefaultAnswerBytes) }

// beginAtOnce limits the calls that start runs at the same time: more of them would take the processors from all other calls.
var beginAtOnce = max(4, 2*runtime.GOMAXPROCS(0))

// begin waits until a call may start a run, and returns the function that admits the next one; nil if ctx has
// ended.
func (s *server) begin(ctx context.Context) (enough func()) {
	select {
	case s.beginning <- struct{}{}:
		return sync.OnceFunc(func() { <-s.beginning })
	case <-ctx.Done():
		return nil
	}
}

// client returns the actor of a call, as the client named itself when it connected.
func client(req *mcp.CallToolRequest) history.Actor {
	a := history.Actor{Via: "mcp"}
	if c := req.ClientInfo(); c != nil {
		a.Name, a.Title, a.Version = c.Name, c.Title, c.Version
	}
	return a
}

// shown hides the operator's secrets in a result.
func (s *server) shown(r *mcp.CallToolResult) *mcp.CallToolResult {
	if len(r.Content) == 0 { // a question: the person reads its texts unmasked
		return r
	}
	text := r.Content[0].(*mcp.TextContent)
	text.Text = s.opts.Redaction.String(text.Text)
	if raw := r.StructuredContent.(json.RawMessage); s.opts.Redaction.String(string(raw)) != string(raw) {
		r.StructuredContent = json.RawMessage(s.opts.Redaction.Text(raw))
	}
	return r
}

// largeCall is the size, in bytes, from which arguments need as much memory as a start. Smaller calls are admitted: they help a run to its end.
const largeCall = 64 << 10

// admit rejects a call for lack of memory before its arguments are decoded.
func (s *server) admit(t *tool, req *mcp.CallToolRequest) error {
	begins := t.begins && req.Params.RequestState == "" // with a state the call answers a question of an existing run
	if s.opts.Admit == nil || !begins && len(req.Params.Arguments) <= largeCall {
		return nil
	}
	return s.opts.Admit()
}

// perform calls a tool. A panic fails this call and does not end the server, which may drive other runs.
func (s *server) perform(ctx context.Context, t *tool, a *arguments) (ans *answer, failed *failure) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("panic", "tool", t.name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			ans, failed = nil, s.rejection(fmt.Errorf("a defect of the engine: %v", p), t.invalid, a.executionID())
		}
	}()
	ans, err := t.call(ctx, s, a)
	if err == nil {
		return ans, nil
	}
	if ended, ok := errors.AsType[*endedInFailure](err); ok {
		f := s.failedRun(ended.run, ended.bytes)
		f.addWarnings(ended.warnings)
		return nil, f
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	if a.NoLines {
		err = withoutLines(err)
	}
	return nil, s.rejection(err, t.invalid, a.executionID())
}

// executionID returns the run in the arguments, or "".
func (a *arguments) executionID() string {
	id, _ := a.Get("execution_id").Plain.(string)
	return id
}

// answer is the result of a successful call, or a question to the person.
type answer struct {
	// question is put to the person instead of an answer.
	question *mcp.CallToolResult
	headline string
	// lines follow the headline in the text, for people and for hosts that show a model the text alone.
	lines   []string
	content members
	// page is set if the answer is bounded already.
	page bool
}

// result is the tool result, in so many bytes. Clients whose revision has no structured content get it as the text.
func (a *answer) result(structured bool, bytes int) *mcp.CallToolResult {
	if a.question != nil {
		return a.question
	}
	lines := append([]string{a.headline}, a.lines...)
	if a.page {
		bytes = FullAnswers
	}
	if bytes != FullAnswers {
		lines[0] = clipText(lines[0], bytes/firstShare)
	}
	content, text := bound(a.content, bytes, 0), boundText(lines, bytes)
	raw := json.RawMessage(content.Append(nil))
	if !structured {
		text = lines[0] + "\n" + string(raw)
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}, StructuredContent: raw}
}

// endedInFailure makes a failed run an error answer.
type endedInFailure struct {
	run *view.Run
	// warnings about the definition, at start.
	warnings warnings
	bytes    int
}

func (e *endedInFailure) Error() string { return e.run.Error }
