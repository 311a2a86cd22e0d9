package pagetest

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

var update = flag.Bool("update", false, "write testdata/screenshots")

// browserVariable names the browser to test with. Without it, the first of browserNames in PATH is used.
const browserVariable = "WORKFLOW_ENGINE_TEST_BROWSER"

var browserNames = []string{"chromium", "chromium-browser", "google-chrome"}

// patience limits a wait for something that a page shows. Only a test that fails waits as long.
const patience = time.Minute

// browser is the browser of all tests, and program the built workflows-engine. Both end with TestMain.
var (
	browser context.Context
	program string
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "4") // they wait more than they compute
	flag.Parse()
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	path, err := findBrowser()
	if err != nil {
		if os.Getenv("CI") != "" {
			fmt.Fprintln(os.Stderr, "FAIL:", err)
			return 1
		}
		fmt.Fprintln(os.Stderr, "SKIP: no test of the page was run:", err)
		return 0
	}
	dir, err := os.MkdirTemp("", "pagetest")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "workflows-engine")
	if out, err := exec.Command("go", "build", "-C", filepath.Join("..", ".."), "-o", program, "./cmd/workflows-engine").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v: %s", err, out)
		return 1
	}
	// Nothing but the page resolves, so that a page that fetches anything from elsewhere fails.
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.UserDataDir(filepath.Join(dir, "profile")), chromedp.WindowSize(1280, 900),
		chromedp.Flag("host-resolver-rules", "MAP *.localhost 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
	)
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
	defer end()
	var stop context.CancelFunc
	browser, stop = chromedp.NewContext(allocator)
	defer stop()
	if err := chromedp.Do(browser); err != nil {
		fmt.Fprintf(os.Stderr, "%s does not start: %v\n", path, err)
		return 1
	}
	return m.Run()
}

func findBrowser() (string, error) {
	if path := os.Getenv(browserVariable); path != "" {
		return exec.LookPath(path)
	}
	for _, name := range browserNames {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("no browser found: install chromium, or name one in %s", browserVariable)
}

// profile is the cookies of one person's browser. Its tabs share them.
type profile struct {
	testing.TB
	ctx context.Context
}

func newProfile(t testing.TB) *profile {
	t.Helper()
	ctx, end := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	t.Cleanup(end)
	p := &profile{TB: t, ctx: ctx}
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	return p
}

// tab is a page in the browser. When the test ends, no script may have failed, the policy may have stopped nothing, and nothing may have
// been fetched from elsewhere.
type tab struct {
	testing.TB
	ctx     context.Context
	profile *profile

	mu sync.Mutex
	// faults are uncaught exceptions and violations of the policy, requests the addresses of everything that was loaded.
	faults, requests []string
}

// tab opens an empty tab.
func (p *profile) tab(t testing.TB) *tab {
	t.Helper()
	ctx, end := chromedp.NewContext(p.ctx)
	t.Cleanup(end)
	b := &tab{TB: t, ctx: ctx, profile: p}
	if err := chromedp.Listen(ctx, b.hear); err != nil {
		t.Fatal(err)
	}
	b.must(chromedp.Do(ctx))
	_, err := chromedp.Call(ctx, network.Enable, network.EnableParams{})
	b.must(err)
	_, err = chromedp.Call(ctx, log.Enable, cdp.Empty{})
	b.must(err)
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, fault := range b.faults {
			t.Error("in the page: " + fault)
		}
		for _, address := range b.requests {
			if !strings.Contains(address, ".localhost:") && !strings.HasPrefix(address, "http://127.0.0.1:") && !strings.HasPrefix(address, "data:") {
				t.Error("fetched from elsewhere: " + address)
			}
		}
	})
	return b
}

func (b *tab) hear(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.faults = append(b.faults, e.ExceptionDetails.Text+" "+description(e.ExceptionDetails.Exception))
	case *log.EventEntryAdded:
		if e.Entry.Source == log.EntrySourceSecurity || e.Entry.Source == log.EntrySourceJavascript || e.Entry.Source == log.EntrySourceViolation {
			b.faults = append(b.faults, e.Entry.Text)
		}
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	}
}

func (b *tab) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// do performs actions within patience.
func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	ctx, end := context.WithTimeout(b.ctx, patience)
	defer end()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.Fatalf("%v\n%s", err, b.seen())
	}
}

// open loads an address and returns the HTTP status.
func (b *tab) open(address string) int {
	b.Helper()
	ctx, end := context.WithTimeout(b.ctx, patience)
	defer end()
	response, err := chromedp.Run(ctx, chromedp.NavigateResponse(address))
	if err != nil {
		b.Fatalf("%s: %v", address, err)
	}
	if response == nil {
		return 0
	}
	return int(response.Status)
}

// eval returns the value of a JavaScript expression, awaited.
func eval[T any](b *tab, expression string) T {
	b.Helper()
	ctx, end := context.WithTimeout(b.ctx, patience)
	defer end()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.Fatalf("%s: %v", expression, err)
	}
	return v
}

// until waits until a JavaScript expression is true, on whatever page is open then.
func (b *tab) until(expression string) {
	b.Helper()
	ctx, end := context.WithTimeout(b.ctx, patience)
	defer end()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		yes, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		if yes && err == nil { // an error: the page is being replaced
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			b.Fatalf("%s did not become true (%v)\n%s", expression, err, b.seen())
		}
	}
}

// shows waits until the content of the page has a text.
func (b *tab) shows(text string) {
	b.Helper()
	b.until(`document.readyState === "complete" && document.body.innerText.replace(/\s+/g, " ").includes(` + quoted(text) + `)`)
}

// at waits until the page with a path is loaded.
func (b *tab) at(path string) {
	b.Helper()
	b.until(`document.readyState === "complete" && location.pathname + location.search === ` + quoted(path))
}

// has checks that the page has a text, also in a part that is folded.
func (b *tab) has(text string) {
	b.Helper()
	if !eval[bool](b, `document.body.textContent.replace(/\s+/g, " ").includes(`+quoted(text)+`)`) {
		b.Errorf("the page does not have the text %q\n%s", text, b.seen())
	}
}

// lacks checks that the content of the page does not have a text.
func (b *tab) lacks(text string) {
	b.Helper()
	if eval[bool](b, "document.body.innerText.includes("+quoted(text)+")") {
		b.Errorf("the page has the text %q\n%s", text, b.seen())
	}
}

// seen returns the page as text, for messages.
func (b *tab) seen() string {
	ctx, end := context.WithTimeout(b.ctx, time.Second)
	defer end()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText.slice(0, 1200)`))
	return cmp.Or(text, fmt.Sprint(err))
}

// click clicks what a CSS selector finds first, as the mouse does.
func (b *tab) click(selector string) {
	b.Helper()
	b.point(`document.querySelector(` + quoted(selector) + `)`)
}

// press clicks the button or link with a text.
func (b *tab) press(text string) {
	b.Helper()
	b.point(`[...document.querySelectorAll("button, a, summary")].find(e => e.innerText?.trim() === ` + quoted(text) + ` && e.checkVisibility())`)
}

// point clicks the middle of an element.
func (b *tab) point(element string) {
	b.Helper()
	b.until(`document.readyState === "complete" && ` + element)
	at := eval[[]float64](b, `(() => { const e = `+element+`; e.scrollIntoView({block: "center", behavior: "instant"}); const r = e.getClientRects()[0]; return [r.x + r.width / 2, r.y + r.height / 2] })()`)
	b.do(chromedp.MouseClickXY(at[0], at[1]))
}

// fill types into what a CSS selector finds, in place of what is there.
func (b *tab) fill(selector, text string) {
	b.Helper()
	b.until(`(() => { const e = document.querySelector(` + quoted(selector) + `); e?.focus(); e?.select(); return e && document.activeElement === e })()`)
	b.do(chromedp.KeyEvent(text))
}

// set sets the value of the field that a CSS selector finds.
func (b *tab) set(selector, text string) {
	b.Helper()
	b.until(`(() => { const e = document.querySelector(` + quoted(selector) + `); if (e) e.value = ` + quoted(text) + `; return e })()`)
}

// choose chooses a value of a list, or checks a box or a radio button of the group with a label.
func (b *tab) choose(label, option string) {
	b.Helper()
	b.until(`(() => {
		const starts = (e, text) => e.innerText.trim().startsWith(text);
		const group = [...document.querySelectorAll("fieldset")].find(f => f.querySelector("legend") && starts(f.querySelector("legend"), ` + quoted(label) + `));
		if (group) {
			const box = [...group.querySelectorAll("label")].find(l => l.innerText.trim() === ` + quoted(option) + `);
			if (box) box.click();
			return box;
		}
		const list = [...document.querySelectorAll("label")].find(l => starts(l, ` + quoted(label) + `))?.control;
		const chosen = list && [...list.options].find(o => o.text === ` + quoted(option) + `);
		if (chosen) chosen.selected = true;
		return chosen;
	})()`)
}

// submit sends the form of the page that changes something.
func (b *tab) submit() {
	b.Helper()
	b.click("main form[method=post] .buttons button")
}

// tabTo presses Tab until an expression is true.
func (b *tab) tabTo(expression string) {
	b.Helper()
	for range 60 {
		b.keys(kb.Tab)
		if eval[bool](b, expression) {
			return
		}
	}
	b.Fatalf("no Tab leads to %s\n%s", expression, b.seen())
}

// keys presses keys on whatever has the focus.
func (b *tab) keys(keys string) {
	b.Helper()
	b.do(chromedp.KeyEvent(keys))
}

// field returns a selector of the field with a label, which may be marked as required.
func (b *tab) field(label string) string {
	b.Helper()
	id := eval[string](b, `(() => { const l = [...document.querySelectorAll("label")].find(l => l.innerText.trim().replace(/ required$/, "") === `+quoted(label)+`);
		if (!l || !l.control) return ""; l.control.id ||= "x" + Math.random().toString(36).slice(2); return l.control.id })()`)
	if id == "" {
		b.Fatalf("no field has the label %q\n%s", label, b.seen())
	}
	return "#" + id
}

// scripts switches the scripts of pages on or off.
func (b *tab) scripts(on bool) {
	b.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !on})
	b.must(err)
}

// window sets the size of the window, and light or dark.
func (b *tab) window(width, height int64, scheme string) {
	b.Helper()
	b.do(chromedp.EmulateViewport(width, height))
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}},
	})
	b.must(err)
}

// axe returns what axe finds in the page.
func (b *tab) axe() []string {
	b.Helper()
	b.do(chromedp.Evaluate[chromedp.Void](axeScript()))
	return eval[[]string](b, `axe.run({runOnly: ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa", "best-practice"]}).then(r => r.violations.flatMap(v =>
		v.nodes.map(n => v.id + ": " + n.target.join(" ") + ": " + n.failureSummary.replace(/\s+/g, " ") + " " + n.html.slice(0, 200))))`)
}

var axeScript = sync.OnceValue(func() string {
	text, err := os.ReadFile(filepath.Join("testdata", "axe.min.js"))
	if err != nil {
		panic(err)
	}
	return string(text)
})

func quoted(text string) string {
	v, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(v)
}

func description(exception *runtime.RemoteObject) string {
	if exception == nil {
		return ""
	}
	return exception.Description
}
