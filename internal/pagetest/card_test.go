package pagetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
)

// The card is tested in a chat with the real AppBridge of the extension. The chat is a page of the test (testdata/appbridge), which passes
// calls to the program workflows-engine-mcp, as an MCP host does.

// serverProgram is the built workflows-engine-mcp. It is removed with program.
var serverProgram = sync.OnceValues(func() (string, error) {
	path := filepath.Join(filepath.Dir(program), "workflows-engine-mcp")
	out, err := exec.Command("go", "build", "-C", filepath.Join("..", ".."), "-o", path, "./cmd/workflows-engine-mcp").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build: %w: %s", err, out)
	}
	return path, nil
})

// sandboxPolicy is the policy that the extension prescribes for a card that declares no origins.
const sandboxPolicy = "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
	"font-src 'self'; media-src 'self' data:; connect-src 'none'; frame-src 'none'; object-src 'none'; base-uri 'none'; form-action 'none'"

// chat is an MCP host: a client of the server, and the page that shows its cards.
type chat struct {
	*site
	session *mcp.ClientSession
	// origin is that of the chat's page, sandbox that of the cards' frames.
	origin, sandbox string
	// broken makes every call fail; reached counts requests of cards that a policy must stop.
	broken  atomic.Bool
	reached atomic.Int32
}

// person answers the forms of an MCP host.
type person func(*mcp.ElicitRequest) (*mcp.ElicitResult, error)

// newChat starts a server of the site's database and connects to it. p is nil for a host without forms.
func newChat(s *site, p person, args ...string) *chat {
	s.Helper()
	c := &chat{site: s}
	path, err := serverProgram()
	if err != nil {
		s.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Env, cmd.Dir = append(os.Environ(), "WORKFLOW_ENGINE_STORE_PATH="+s.db), s.dir
	capabilities := &mcp.ClientCapabilities{}
	capabilities.AddExtension("io.modelcontextprotocol/ui", map[string]any{"mimeTypes": []any{"text/html;profile=mcp-app"}})
	options := &mcp.ClientOptions{Capabilities: capabilities}
	if p != nil {
		options.ElicitationHandler = func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) { return p(req) }
	}
	c.session, err = mcp.NewClient(&mcp.Implementation{Name: "pagetest", Version: "1"}, options).
		Connect(context.Background(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = c.session.Close() })
	c.origin = c.listen(map[string]string{"/": "host.html", "/host.js": "host.js", "/appbridge.js": "appbridge.js"}, "")
	c.sandbox = c.listen(map[string]string{"/": "sandbox.html"}, sandboxPolicy)
	return c
}

// listen serves files of testdata/appbridge, and the calls of the chat's page.
func (c *chat) listen(files map[string]string, policy string) (origin string) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch file := files[r.URL.Path]; {
		case file != "":
			if policy != "" {
				w.Header().Set("Content-Security-Policy", policy)
			}
			http.ServeFile(w, r, filepath.Join("testdata", "appbridge", file))
		case r.URL.Path == "/rpc" && policy == "":
			c.forward(w, r)
		default:
			if r.URL.Path == "/stolen" {
				c.reached.Add(1)
			}
			http.NotFound(w, r)
		}
	}))
	c.Cleanup(server.Close)
	return server.URL
}

// forward makes a request of the server for the chat's page.
func (c *chat) forward(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Method string
		Params struct {
			URI, Name string
			Arguments json.RawMessage
		}
	}
	err := json.NewDecoder(r.Body).Decode(&req)
	var result any
	switch {
	case err != nil:
	case c.broken.Load():
		err = errors.New("the connection is lost.")
	case req.Method == "tools/list":
		result, err = c.session.ListTools(r.Context(), nil)
	case req.Method == "resources/read":
		result, err = c.session.ReadResource(r.Context(), &mcp.ReadResourceParams{URI: req.Params.URI})
	default:
		result, err = c.session.CallTool(r.Context(), &mcp.CallToolParams{Name: req.Params.Name, Arguments: req.Params.Arguments})
	}
	answer := map[string]any{"result": result}
	if err != nil {
		answer = map[string]any{"error": err.Error()}
	}
	_ = json.NewEncoder(w).Encode(answer) // else the page is gone
}

// card is a tab with the chat, in which the card of a run is shown. Its methods look into the card's frame.
type card struct {
	*tab
	mu     sync.Mutex
	frames []runtime.ExecutionContextID
}

// show opens the chat with the card of a run and waits until the card has read it. query adds to the address of the chat.
func (c *chat) show(t *testing.T, id, query string) *card {
	t.Helper()
	b := c.tab(t)
	c.reopen(b, id, query)
	return b
}

// tab opens a tab for the chat.
func (c *chat) tab(t *testing.T) *card {
	t.Helper()
	b := &card{tab: newProfile(t).tab(t)}
	b.must(chromedp.Listen(b.ctx, func(event any) {
		if e, ok := event.(*runtime.EventExecutionContextCreated); ok {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.frames = append(b.frames, e.Context.ID)
		}
	}))
	t.Cleanup(func() { // the frames of the extension have both permissions, which Chromium notes
		b.tab.mu.Lock()
		defer b.tab.mu.Unlock()
		b.faults = slices.DeleteFunc(b.faults, func(fault string) bool { return strings.Contains(fault, "allow-scripts and allow-same-origin") })
	})
	b.window(800, 1000, "light")
	return b
}

// address is that of the chat with the card of a run.
func (c *chat) address(id, query string) string {
	return c.origin + "/?" + url.Values{"run": {id}, "sandbox": {c.sandbox + "/"}}.Encode() + query
}

func (c *chat) reopen(b *card, id, query string) {
	b.Helper()
	b.open(c.address(id, query))
	b.until(`document.querySelector("header h1") && document.getElementById("said")`)
}

// in evaluates an expression in the card's frame, awaited. It reports false while there is no card.
func in[T any](b *card, expression string) (v T, ok bool) {
	b.mu.Lock()
	frames := slices.Clone(b.frames)
	b.mu.Unlock()
	ctx, end := context.WithTimeout(b.ctx, patience)
	defer end()
	for _, frame := range slices.Backward(frames) {
		within := func(p *runtime.EvaluateParams) { p.ContextID = frame }
		if yes, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`!!document.getElementById("said")`, within)); err != nil || !yes {
			continue
		}
		v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, within, chromedp.EvalAwaitPromise))
		if err != nil && !strings.Contains(err.Error(), "context") {
			b.Fatalf("%s: %v", expression, err)
		}
		return v, err == nil
	}
	return v, false
}

// value returns the value of an expression in the card's frame.
func value[T any](b *card, expression string) T {
	b.Helper()
	v, ok := in[T](b, expression)
	if !ok {
		b.Fatalf("%s: there is no card\n%s", expression, b.seen())
	}
	return v
}

// until waits until an expression is true in the card's frame.
func (b *card) until(expression string) {
	b.Helper()
	ctx, end := context.WithTimeout(b.ctx, patience)
	defer end()
	for {
		if yes, _ := in[bool](b, "!!("+expression+")"); yes {
			return
		}
		if ctx.Err() != nil {
			text, _ := in[string](b, "document.body.innerText")
			b.Fatalf("%s did not become true\n%s\ncard: %s", expression, b.seen(), text)
		}
		eval[bool](b.tab, "new Promise(done => setTimeout(() => done(true), 20))")
	}
}

// has waits until the card has a text.
func (b *card) has(text string) {
	b.Helper()
	b.until(`document.body.innerText.replace(/\s+/g, " ").includes(` + quoted(text) + `)`)
}

// press clicks the button or link of the card with a text, as the mouse does.
func (b *card) press(text string) {
	b.Helper()
	element := `[...document.querySelectorAll("button, a, summary")].find(e => e.innerText.trim() === ` + quoted(text) + ` && e.checkVisibility())`
	b.until(element)
	at := value[[]float64](b, `(() => { const e = `+element+`; e.scrollIntoView({block: "center", behavior: "instant"}); const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2] })()`)
	frame := eval[[]float64](b.tab, `(() => { const r = document.querySelector("iframe").getBoundingClientRect(); return [r.x, r.y] })()`)
	b.do(chromedp.MouseClickXY(at[0]+frame[0], at[1]+frame[1]))
}

// fill types into the field of the card with a label.
func (b *card) fill(label, text string) {
	b.Helper()
	b.until(`(() => { const l = [...document.querySelectorAll("label")].find(l => l.innerText.trim().replace(/ required$/, "") === ` + quoted(label) + `);
		l?.control.focus(); l?.control.select?.(); return l && document.activeElement === l.control })()`)
	b.do(chromedp.KeyEvent(text))
}

// chatted waits until an expression about the chat is true.
func (b *card) chatted(expression string) {
	b.Helper()
	b.tab.until(expression)
}

// picture writes a screenshot of the chat.
func (b *card) picture(name, scheme string) {
	b.Helper()
	(&site{TB: b.TB}).picture(b.tab, name, scheme, 800)
}

// answered checks that a question was answered once, by the way via, and what with.
func (c *chat) answered(id, via string, payload map[string]any) {
	c.Helper()
	list := c.answers(id)
	if len(list) != 1 || list[0].Payload.Actor == nil || list[0].Payload.Actor.Via != via || list[0].Payload.Actor.Name != "pagetest" {
		c.Fatalf("%s: answers %+v", id, list)
	}
	for name, want := range payload {
		if got := list[0].Payload.SignalPayload[name]; fmt.Sprint(got) != fmt.Sprint(want) {
			c.Errorf("%s: %s is %v, want %v", id, name, got, want)
		}
	}
}

// TestCard: the card asks, a press is recorded, and only another press tells the model.
func TestCard(t *testing.T) {
	t.Parallel()
	c := newChat(newDatabase(t, func(s *site) {
		s.start("pay", "pay-1", map[string]any{"supplier": "Ink & Co", "total": 12.5, "lines": []any{map[string]any{"item": "Ink, black", "price": 7.5}, map[string]any{"item": "Paper", "price": 5.0}}})
	}), nil)
	b := c.show(t, "pay-1", "&theme=light")
	b.has("Pay 12.5 € to Ink & Co?")
	b.has("Ink, black")
	b.has("Graph: 2 of 5 nodes visited")
	if got := eval[string](b.tab, `JSON.stringify(chat.meta)`); got != `{"ui":{"csp":{},"prefersBorder":true}}` {
		t.Error(got)
	}
	b.until(`document.documentElement.getBoundingClientRect().height <= innerHeight + 1`) // the host has made the frame as high as the card
	b.press("Approve")
	b.has("The answer is recorded.")
	b.has("completed")
	c.answered("pay-1", "app", map[string]any{"approved": true})
	b.chatted(`chat.contexts.length === 1`)
	if got := eval[string](b.tab, `chat.contexts[0]`); got != "The person answered a question of run pay-1 in its card: approved. Call workflow_status to continue." {
		t.Error(got)
	}
	if n := eval[int](b.tab, `chat.messages.length`); n != 0 {
		t.Errorf("%d messages before the press", n)
	}
	b.press("Continue in chat")
	b.chatted(`chat.messages.length === 1 && chat.messages[0].includes("pay-1")`)
	b.until(`document.getElementById("go").hidden`)
}

// TestCardForm: a refused form keeps what was typed and says what is wrong beside its field; then all of it is recorded.
func TestCardForm(t *testing.T) {
	t.Parallel()
	c := newChat(newDatabase(t, func(s *site) { s.start("claim", "claim-1", nil) }), nil)
	b := c.show(t, "claim-1", "")
	b.fill("Name", "Ada")
	b.fill("Days", "3")
	b.fill("Code", "abc")
	b.until(`(() => { for (const text of ["A train", "Yes"]) [...document.querySelectorAll("label")].find(l => l.innerText.trim() === text)?.click();
		const list = [...document.querySelectorAll("select")].find(s => [...s.options].some(o => o.text === "A train")); if (list) list.value = [...list.options].find(o => o.text === "A train").value; return true })()`)
	b.fill("City", "Ghent")
	b.do(chromedp.KeyEvent("\r")) // Enter answers nothing
	b.press("Send the answer")
	b.has("The answer was not recorded")
	b.until(`document.activeElement.getAttribute("aria-invalid") === "true" && document.activeElement.value === "abc"`)
	if got := value[string](b, `document.getElementById(document.activeElement.getAttribute("aria-describedby").split(" ").at(-1)).innerText`); got == "" {
		t.Error("no reason beside the field")
	}
	if got := value[string](b, `[...document.querySelectorAll("label")].find(l => l.innerText.startsWith("Name")).control.value`); got != "Ada" {
		t.Errorf("the name is %q", got)
	}
	if n := len(c.answers("claim-1")); n != 0 {
		t.Fatalf("%d answers", n)
	}
	b.fill("Code", "ABC")
	b.press("Send the answer")
	b.has("The answer is recorded.")
	c.answered("claim-1", "app", map[string]any{"name": "Ada", "days": 3, "code": "ABC", "category": "train", "approved": true})
}

// TestNoKeyAnswersInTheCard: Enter sends no answer from any control.
func TestNoKeyAnswersInTheCard(t *testing.T) {
	t.Parallel()
	c := newChat(newDatabase(t, func(s *site) { s.start("claim", "claim-1", nil) }), nil)
	b := c.show(t, "claim-1", "")
	b.until(fillClaim)
	for _, control := range controls {
		b.until(`(() => { const e = document.querySelector("form ` + control + `"); e?.focus(); return e })()`)
		b.do(chromedp.KeyEvent("\r"))
		if said := value[string](b, `document.getElementById("said").innerText`); said != "" {
			t.Fatalf("Enter in %s: %s", control, said)
		}
	}
	if n := len(c.answers("claim-1")); n != 0 {
		t.Fatalf("%d answers", n)
	}
	b.press("Send the answer")
	b.has("The answer is recorded.")
}

// TestCardTheme: the card takes the theme and the colours of the host, at the beginning and when they change.
func TestCardTheme(t *testing.T) {
	t.Parallel()
	c := newChat(newDatabase(t, func(s *site) { s.start("pay", "pay-1", map[string]any{"supplier": "Ink & Co", "total": 12.5}) }), nil)
	b := c.show(t, "pay-1", "&theme=dark")
	const look = `(() => { const s = getComputedStyle(document.documentElement); return s.colorScheme + " " + s.color + " " + getComputedStyle(document.querySelector(".buttons button")).backgroundColor })()`
	if got := value[string](b, look); got != "dark rgb(224, 240, 224) rgb(32, 48, 32)" {
		t.Errorf("dark: %s", got)
	}
	eval[bool](b.tab, `(chat.themed("light"), true)`)
	b.until(look + ` === "light rgb(16, 32, 16) rgb(228, 244, 228)"`)
	eval[bool](b.tab, `(chat.themed("dark"), true)`)
	b.until(look + ` === "dark rgb(224, 240, 224) rgb(32, 48, 32)"`)
}

// TestCardRequired: with --elicit required a press in the card is not an answer. A host without forms leads to the question's page; a host
// with forms has the person confirm.
func TestCardRequired(t *testing.T) {
	t.Parallel()
	fill := func(s *site) {
		for _, id := range []string{"pay-1", "pay-2", "pay-3"} {
			s.start("pay", id, map[string]any{"supplier": "Ink & Co", "total": 12.5})
		}
	}
	s := newDatabase(t, fill)
	c := newChat(s, nil, "--elicit", "required")
	b := c.show(t, "pay-1", "")
	b.press("Approve")
	b.has("Nothing was recorded: this server takes no answers from this card. Answer at a terminal: workflows-engine resume pay-1 --db")
	s.serve()
	c.reopen(b, "pay-2", "")
	b.press("Approve")
	b.has("Nothing was recorded")
	b.press("Answer on the page")
	b.chatted(`chat.links.length === 1`)
	address := eval[string](b.tab, `chat.links[0]`)
	if want := s.origin + "/runs/pay-2/questions/ask%231"; address != want {
		t.Errorf("the link leads to %s, want %s", address, want)
	}
	if n := len(c.answers("pay-1")) + len(c.answers("pay-2")); n != 0 {
		t.Fatalf("%d answers", n)
	}
	// The page asks for its cookie: the link alone lets nobody in, and a person who was let in answers there.
	p := s.enter(t)
	s.visit(p, strings.TrimPrefix(address, s.origin))
	p.press("Deny")
	p.at("/runs/pay-2")
	b.has("completed")

	asked := make(chan map[string]any, 1)
	c = newChat(s, func(req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		schema, _ := req.Params.RequestedSchema.(map[string]any)
		asked <- schema
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"approved": true}}, nil
	}, "--elicit", "required")
	b = c.show(t, "pay-3", "")
	b.press("Approve")
	b.has("The answer is recorded.")
	c.answered("pay-3", "elicitation", map[string]any{"approved": true})
	if schema := asJSON(<-asked); !strings.Contains(schema, `"default":true`) {
		t.Errorf("the form is not filled in: %s", schema)
	}
}

func asJSON(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}

// TestCardStays: the card follows a run of 60 steps, which another process performs, to its end: it is not loaded again, and then reads no more.
func TestCardStays(t *testing.T) {
	t.Parallel()
	s := newDatabase(t, nil)
	const steps = 60
	nodes, edges := []any{map[string]any{"id": "begin", "type": "start"}}, []any{map[string]any{"source": "__start__", "target": "begin"}}
	last := "begin"
	for i := range steps {
		id := fmt.Sprintf("step%d", i)
		nodes, edges = append(nodes, map[string]any{"id": id, "type": "step", "config": map[string]any{"handler": "work"}}), append(edges, map[string]any{"source": last, "target": id})
		last = id
	}
	nodes, edges = append(nodes, map[string]any{"id": "finish", "type": "end"}), append(edges, map[string]any{"source": last, "target": "finish"})
	text, err := json.Marshal(map[string]any{
		"document":     map[string]any{"schema": "https://agent-workflow.dev/schemas/workflow-definition.json", "name": "steps", "version": "1.0.0"},
		"state_schema": map[string]any{"type": "object"}, "nodes": nodes, "edges": edges,
	})
	if err != nil {
		t.Fatal(err)
	}
	document, err := definition.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.engine.Start(t.Context(), graph.StartRequest{ExecutionID: "steps-1", Definition: document, Input: map[string]any{}}); err != nil {
		t.Fatal(err)
	}
	c := newChat(s, nil)
	b := c.show(t, "steps-1", "")
	value[bool](b, `window.mark = true`)
	for i := range steps {
		s.perform("steps-1", fmt.Sprintf("step%d", i), map[string]any{})
		if i%20 == 10 {
			b.until(fmt.Sprintf(`document.getElementById("n-step%d").matches(".done") && document.getElementById("n-step%d").matches(".now")`, i, i+1))
		}
	}
	b.has("completed")
	b.has(fmt.Sprintf("Graph: %d of %d nodes visited", steps+2, steps+2))
	if !value[bool](b, `window.mark`) || eval[int](b.tab, `chat.initialized`) != 1 {
		t.Error("the card was loaded again")
	}
	reads := eval[int](b.tab, `chat.calls.length`)
	value[bool](b, `new Promise(done => setTimeout(() => done(true), 1000))`) // four times the pause between two reads
	if n := eval[int](b.tab, `chat.calls.length`); n != reads {
		t.Errorf("%d calls after the end", n-reads)
	}
	if status := s.status("steps-1").Status; status != machine.Completed {
		t.Errorf("the run is %s", status)
	}
}

// TestCardIsClosed: the card reaches no network, and hears only the window that embeds it.
func TestCardIsClosed(t *testing.T) {
	t.Parallel()
	c := newChat(newDatabase(t, func(s *site) {
		s.start("pay", "pay-1", map[string]any{"supplier": "Ink & Co", "total": 12.5})
		s.start("pay", "pay-2", map[string]any{"supplier": "Pens Ltd", "total": 9.0})
	}), nil)
	b := c.show(t, "pay-1", "&theme=light")
	for _, address := range []string{c.origin + "/stolen", c.sandbox + "/stolen"} {
		if got := value[string](b, `new Promise(done => { addEventListener("securitypolicyviolation", e => done(e.effectiveDirective), {once: true}); fetch(`+quoted(address)+`).then(() => done("fetched"), () => {}) })`); got != "connect-src" {
			t.Errorf("%s: %s", address, got)
		}
	}
	if got := value[string](b, `new Promise(done => { addEventListener("securitypolicyviolation", e => done(e.effectiveDirective), {once: true}); new Image().src = `+quoted(c.origin+"/stolen")+` })`); got != "img-src" {
		t.Errorf("an image: %s", got)
	}
	if n := c.reached.Load(); n != 0 {
		t.Errorf("%d requests of the card arrived", n)
	}
	b.tab.mu.Lock() // the console says what the policy has stopped
	for _, fault := range b.tab.faults {
		if !strings.Contains(fault, "Content Security Policy") && !strings.Contains(fault, "allow-same-origin") {
			t.Error(fault)
		}
	}
	b.tab.faults = nil
	b.tab.mu.Unlock()

	// The chat's own page is not the card's parent, and neither is the card itself.
	const attack = `(w => { for (const m of [
		{method: "ui/notifications/tool-result", params: {structuredContent: {execution_id: "pay-2"}}},
		{method: "ui/notifications/host-context-changed", params: {theme: "dark", displayMode: "fullscreen"}}, {method: "ui/resource-teardown", id: 7},
		...Array.from({length: 20}, (_, i) => ({id: i, result: {structuredContent: {html: "<h1>owned</h1>", seq: 99, ended: true, questions: []}}}))
	]) w.postMessage({jsonrpc: "2.0", ...m}, "*"); return true })`
	eval[bool](b.tab, attack+`(document.querySelector("iframe").contentWindow.frames[0])`)
	value[bool](b, attack+`(window)`)
	c.resume("pay-1", map[string]any{"approved": true}) // the card still follows its own run
	b.has("completed")
	if got := value[string](b, `document.documentElement.dataset.theme + " " + document.body.innerText`); !strings.HasPrefix(got, "light ") || strings.Contains(got, "pay-2") || strings.Contains(got, "owned") || strings.Contains(got, "Visits") {
		t.Errorf("the card heard a stranger: %s", got)
	}
}

// TestCardLosesTheServer: after three failures the card says that it is not live; the run can be shown again.
func TestCardLosesTheServer(t *testing.T) {
	t.Parallel()
	c := newChat(newDatabase(t, func(s *site) {
		s.start("tour", "tour-1", map[string]any{"cities": []any{"Ghent", "Lund", "Pisa"}})
	}), nil)
	b := c.show(t, "tour-1", "")
	b.has("Waits at draft")
	c.broken.Store(true)
	c.perform("tour-1", "draft", map[string]any{"good": true}) // ends the call that waits, if there is one; the run does not end
	b.has("Not live any more: the connection is lost. Ask for the run again to see it.")
	c.broken.Store(false)
	c.reopen(b, "tour-1", "")
	b.has("Waits at rate (activity), 3 times")
}

// TestCardFillsTheWindow: with the whole window the card adds the visits, and takes them away in the chat. A host without that mode offers no button.
func TestCardFillsTheWindow(t *testing.T) {
	t.Parallel()
	c := newChat(newDatabase(t, func(s *site) {
		s.start("tour", "tour-1", map[string]any{"cities": []any{"Ghent", "Lund", "Pisa"}})
		s.perform("tour-1", "draft", map[string]any{"good": true})
	}), nil)
	b := c.show(t, "tour-1", "&theme=light")
	b.has("Graph:")
	if value[bool](b, `!!document.querySelector(".visits")`) {
		t.Error("the card in the chat has visits")
	}
	b.press("Full screen")
	b.until(`document.querySelectorAll(".visit").length > 4`)
	if n := value[int](b, `document.querySelectorAll("main a").length - document.querySelectorAll("svg a").length`); n != 0 {
		t.Errorf("%d links", n)
	}
	b.picture("card-full", "light")
	c.perform("tour-1", "rate", map[string]any{"points": 1.0})
	b.has("1 of 3 items")
	b.press("Back to the chat")
	b.until(`!document.querySelector(".visits")`)
	c.reopen(b, "tour-1", "&small")
	b.has("Graph:")
	if !value[bool](b, `document.getElementById("full").hidden`) {
		t.Error("a button for a mode that the host does not have")
	}
}

// TestCardLinksToThePage: the link to the page comes and goes with the page, and lets nobody in.
func TestCardLinksToThePage(t *testing.T) {
	t.Parallel()
	s := newDatabase(t, func(s *site) {
		s.start("tour", "tour-1", map[string]any{"cities": []any{"Ghent", "Lund", "Pisa"}})
		s.perform("tour-1", "draft", map[string]any{"good": true})
	})
	c := newChat(s, nil)
	b := c.show(t, "tour-1", "")
	b.has("Graph:")
	has := `document.querySelector("#page a")`
	if value[bool](b, "!!"+has) {
		t.Fatal("a link without a page")
	}
	s.serve()
	s.perform("tour-1", "rate", map[string]any{"points": 1.0})
	b.until(has)
	b.press("Open the run in the browser")
	b.chatted(`chat.links.length === 1`)
	address := eval[string](b.tab, `chat.links[0]`)
	if address != s.origin+"/runs/tour-1" || !regexp.MustCompile(`^http://w[a-z0-9]+\.localhost:[0-9]+/runs/tour-1$`).MatchString(address) {
		t.Errorf("the link leads to %s", address)
	}
	stranger := newProfile(t).tab(t)
	if status := stranger.open(address); status != 401 {
		t.Errorf("a stranger gets status %d", status)
	}
	s.kill() // the file still has the address
	s.perform("tour-1", "rate", map[string]any{"points": 1.0})
	b.until("!" + has)
	s.serve()
	s.perform("tour-1", "rate", map[string]any{"points": 1.0})
	b.until(has)
	s.stop()
	s.perform("tour-1", "reserve", map[string]any{})
	b.until("!" + has)
	s.serve()
	c.reopen(b, "tour-1", "&small") // a host that opens no links
	b.has("Open the run in the browser: " + s.origin + "/runs/tour-1")
	if value[bool](b, "!!"+has) {
		t.Error("a link that the host does not open")
	}
}

// TestCardWithoutARun: a call that shows no run has a card that says so, and asks for nothing.
func TestCardWithoutARun(t *testing.T) {
	t.Parallel()
	c := newChat(newDatabase(t, nil), nil)
	b := c.tab(t)
	b.open(c.address("nothing", ""))
	b.until(`document.getElementById("said")`)
	b.has("EXECUTION_NOT_FOUND")
	if n := eval[int](b.tab, `chat.calls.length`); n != 0 {
		t.Errorf("%d calls of the card", n)
	}
	eval[bool](b.tab, `chat.bridge.teardownResource({}).then(() => true)`)
}

// TestHostileCard: texts of runs run no script in the card, make no element and no link.
func TestHostileCard(t *testing.T) {
	t.Parallel()
	hostile := `"><img src=x onerror="window.owned=1"><script>window.owned=1</script></main></template><a href="javascript:alert(1)">x</a><style>*{display:none}</style><form><button>Approve</button></form>{{.}}` + "\u202e\x07"
	id := `"><img src=x onerror="window.owned=1"></main>` + strings.Repeat("<", 180)
	s := newDatabase(t, func(s *site) {
		s.start("pay", id, map[string]any{"supplier": hostile, "total": 1.0, "note": hostile, "lines": []any{map[string]any{hostile: hostile}, map[string]any{hostile: "javascript:alert(1)"}}},
			func(r *graph.StartRequest) { r.Title = id[:100]; r.Labels = map[string]string{"from": `"><b>x`} })
	})
	c := newChat(s, nil)
	b := c.show(t, id, "&theme=light")
	const seen = `JSON.stringify([window.owned || 0, document.querySelectorAll("img, main style, main script, main a[href^=javascript], main b").length, document.querySelectorAll("main").length, document.querySelectorAll("form").length, document.body.checkVisibility()])`
	if got := value[string](b, seen); got != "[0,0,1,1,true]" {
		t.Error(got)
	}
	b.press("Full screen")
	b.until(`document.querySelectorAll(".visit").length >= 2`)
	b.press("Approve")
	b.has("The answer is recorded.")
	c.answered(id, "app", map[string]any{"approved": true})
	if got := value[string](b, seen); got != "[0,0,1,0,true]" {
		t.Error(got)
	}
}

// TestCardIsAccessible: axe finds nothing in the card, light and dark, with the host's colours and its own. With -update it writes screenshots.
func TestCardIsAccessible(t *testing.T) {
	t.Parallel()
	s := newDatabase(t, func(s *site) {
		fillLooks(s)
	})
	c := newChat(s, nil)
	b := c.show(t, "pay-1", "")
	for _, theme := range []string{"", "light", "dark"} {
		for _, run := range []struct{ id, name string }{{"pay-1", "card"}, {"claim-1", "card-form"}, {"plan-1", ""}, {"pay-2", "card-done"}, {"ship-1", ""}, {"tour-1", ""}} {
			c.reopen(b, run.id, "&theme="+theme)
			b.until(`document.documentElement.getBoundingClientRect().height <= innerHeight + 1`)
			value[bool](b, axeScript()+"; true")
			for _, violation := range value[[]string](b, axeRun) {
				t.Errorf("%s, %s: %s", run.id, theme, violation)
			}
			if theme != "" && run.name != "" {
				b.picture(run.name, theme)
			}
			if wide := value[string](b, widest); wide != "" {
				t.Errorf("%s is too wide: %s", run.id, wide)
			}
		}
	}
	b.window(360, 800, "light")
	for _, id := range []string{"pay-1", "claim-1", "tour-1"} {
		c.reopen(b, id, "&theme=light")
		if wide := value[string](b, widest); wide != "" {
			t.Errorf("%s is too wide for a narrow chat: %s", id, wide)
		}
	}
}

const axeRun = `axe.run({runOnly: ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa", "best-practice"]}).then(r => r.violations.flatMap(v =>
	v.nodes.map(n => v.id + ": " + n.target.join(" ") + ": " + n.failureSummary.replace(/\s+/g, " ") + " " + n.html.slice(0, 200))))`
