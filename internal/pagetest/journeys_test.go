package pagetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
)

// TestLink: the printed link lets a browser in once.
func TestLink(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	link := s.link()
	b := newProfile(t).tab(t)
	b.open(link)
	b.at("/")
	if !strings.Contains(eval[string](b, "document.title"), "workflows-engine") {
		t.Error(b.seen())
	}
	other := newProfile(t).tab(t)
	other.open(link)
	other.shows("this link is not valid")
	if status := other.open(s.origin + "/runs"); status != 401 {
		t.Errorf("a stranger gets status %d", status)
	}
	b.open(s.origin + "/runs")
	b.shows("No runs yet")
}

// TestAnswer: of two people who answer a question, the first one's answer is recorded, and the other one sees whose.
func TestAnswer(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(s *site) {
		s.start("pay", "pay-1", map[string]any{"supplier": "Ink & Co", "total": 12.5})
		s.start("pay", "pay-2", map[string]any{"supplier": "Pens Ltd", "total": 9.0})
	})
	p := newProfile(t)
	one, two := p.tab(t), p.tab(t)
	one.open(s.link())
	one.at("/")
	one.shows("Pay 12.5 € to Ink & Co?")
	one.press("pay-1")
	one.shows("Deny")
	path := eval[string](one, "location.pathname")
	s.visit(two, path)
	one.press("Approve")
	one.at("/runs/pay-1")
	one.shows("completed")
	two.shows("This question has ended")
	two.shows("Answered by Kim Berg (page)")
	s.visit(one, strings.Replace(path, "pay-1", "pay-2", 1))
	one.press("Deny")
	one.at("/runs/pay-2")
	for id, want := range map[string]bool{"pay-1": true, "pay-2": false} {
		list := s.answers(id)
		if len(list) != 1 || list[0].Payload.Actor == nil || list[0].Payload.Actor.Name != "Kim Berg" || list[0].Payload.Actor.Via != "page" || list[0].Payload.SignalPayload["approved"] != want {
			t.Errorf("%s: answers %+v", id, list)
		}
	}
}

// TestDoubleClick: a button that is clicked twice answers once, and leads to the run.
func TestDoubleClick(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(s *site) {
		s.start("pay", "pay-1", map[string]any{"supplier": "Ink & Co", "total": 12.5})
	})
	b := newProfile(t).tab(t)
	b.open(s.link())
	b.press("pay-1")
	b.shows("Deny")
	eval[bool](b, `(() => { const e = [...document.querySelectorAll("button")].find(e => e.innerText === "Approve"); e.click(); setTimeout(() => e.click(), 5); return true })()`)
	b.at("/runs/pay-1")
	b.shows("completed")
	if list := s.answers("pay-1"); len(list) != 1 || list[0].Payload.SignalPayload["approved"] != true {
		t.Errorf("answers %+v", list)
	}
}

// TestForm: a refused form keeps what was typed and says what is wrong beside its field; then all of it is recorded.
func TestForm(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(s *site) { s.start("claim", "claim-1", nil) })
	b := s.enter(t)
	s.visit(b, "/runs/claim-1/questions/details%231")
	b.fill(b.field("Name"), "Ada")
	b.fill(b.field("Mail"), "ada@example.com")
	b.fill(b.field("Site"), "https://example.com/a")
	b.set(b.field("Day"), "2026-01-31")
	b.set(b.field("Moment"), "2026-01-31T12:30")
	b.fill(b.field("Days"), "31")
	b.fill(b.field("Amount"), "12.75")
	b.choose("Category", "A train")
	b.fill(b.field("Code"), "ABC")
	b.choose("Tags", "urgent")
	b.choose("Tags", "abroad")
	b.fill(b.field("Story"), "One line\nand another <b>line</b>.")
	b.choose("Approved", "Yes")
	b.fill(b.field("City"), "Ghent")
	eval[any](b, `document.querySelector("main form[method=post]").noValidate = true`) // the server's own check
	b.submit()
	b.until(`document.querySelector("[aria-invalid=true]")`)
	b.until(`document.querySelector("[aria-invalid=true]").labels[0].innerText.startsWith("Days")`)
	for label, want := range map[string]string{"Name": "Ada", "Day": "2026-01-31", "Days": "31", "Story": "One line\nand another <b>line</b>.", "City": "Ghent"} {
		if got := eval[string](b, `document.querySelector(`+quoted(b.field(label))+`).value`); got != want {
			t.Errorf("%s is %q after the refusal, want %q", label, got, want)
		}
	}
	if list := s.answers("claim-1"); len(list) != 0 {
		t.Errorf("a wrong form was recorded: %+v", list)
	}
	b.fill(b.field("Days"), "3")
	b.submit()
	b.at("/runs/claim-1")
	b.shows("completed")
	want := map[string]any{
		"name": "Ada", "mail": "ada@example.com", "site": "https://example.com/a", "day": "2026-01-31", "moment": "2026-01-31T12:30:00Z", "days": 3.0,
		"amount": 12.75, "category": "train", "code": "ABC", "tags": []any{"urgent", "abroad"}, "story": "One line\nand another <b>line</b>.",
		"approved": true, "place": map[string]any{"city": "Ghent"},
	}
	if list := s.answers("claim-1"); len(list) != 1 || !reflect.DeepEqual(plain(t, list[0].Payload.SignalPayload), plain(t, want)) {
		t.Errorf("recorded %+v, want %v", list, want)
	}
}

// TestJSONAnswer: a schema that no form can show has a text area.
func TestJSONAnswer(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(s *site) { s.start("plan", "plan-1", nil) })
	b := s.enter(t)
	s.visit(b, "/runs/plan-1/questions/steps%231")
	b.set("#json", `{"steps": [{"minutes": 5}]}`)
	b.submit()
	b.until(`document.querySelector("#json[aria-invalid=true]")`)
	if got := eval[string](b, `document.querySelector("#json").value`); got != `{"steps": [{"minutes": 5}]}` {
		t.Errorf("the text area has %q", got)
	}
	b.set("#json", `{"steps": [{"name": "sweep", "minutes": 5}]}`)
	b.submit()
	b.at("/runs/plan-1")
	if list := s.answers("plan-1"); len(list) != 1 {
		t.Errorf("recorded %+v", list)
	}
}

// TestWatch: the page of a run follows another process through a loop, a map and branches, without a reload, and its layout stays.
func TestWatch(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(s *site) {
		cities := make([]any, 20)
		for i := range cities {
			cities[i] = "city"
		}
		s.start("tour", "tour-1", map[string]any{"cities": cities})
	})
	b := s.enter(t)
	s.visit(b, "/runs/tour-1")
	b.until(`document.querySelector("main .picture svg")`)
	eval[any](b, `window.stays = true; window.shift = 0; new PerformanceObserver(l => l.getEntries().forEach(e => window.shift += e.value)).observe({type: "layout-shift"}); null`)
	width := `document.querySelector("main .picture svg").getBoundingClientRect().width`
	was := eval[float64](b, width)
	s.perform("tour-1", "draft", map[string]any{"good": false})
	b.shows("visit 2")
	s.perform("tour-1", "draft", map[string]any{"good": true})
	b.until(`document.querySelector("#n-draft.done")`)
	b.until(`document.querySelector("#n-rate.now, #n-rate.waits")`)
	for range 20 {
		s.perform("tour-1", "rate", map[string]any{"points": 1})
	}
	b.until(`document.querySelector("#n-rate.done")`)
	s.perform("tour-1", "translate", map[string]any{"text": "x"})
	b.until(`document.querySelector("#n-translate.done")`)
	s.perform("tour-1", "reserve", map[string]any{"stock": "x"})
	b.until(`document.querySelector("h1").innerText.includes("completed")`)
	b.until(`document.querySelector("#n-finish.done")`)
	if !eval[bool](b, "window.stays === true") {
		t.Error("the page was loaded again")
	}
	if is := eval[float64](b, width); is != was {
		t.Errorf("the graph was %v wide, and is %v", was, is)
	}
	if shift := eval[float64](b, "window.shift"); shift > 0.1 {
		t.Errorf("the layout shifted by %v", shift)
	}
}

// TestFailed: from the list to the run that failed, its visit, and a new run from there.
func TestFailed(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(s *site) {
		s.start("ship", "ship-1", map[string]any{"kilos": 2.0})
		s.start("ship", "ship-2", map[string]any{"kilos": 30.0})
	})
	b := s.enter(t)
	b.shows("Failed in the last 24 hours")
	b.press("ship-2")
	b.at("/runs/ship-2")
	b.shows("the parcel is too heavy")
	b.press("weigh")
	b.at("/runs/ship-2/visits/weigh/1")
	b.shows("TOO_HEAVY")
	s.visit(b, "/runs/ship-2")
	b.press("Retry")
	b.until(`location.pathname.startsWith("/runs/") && !location.pathname.startsWith("/runs/ship-2") && document.readyState === "complete"`)
	b.shows("ship-2") // where it comes from
	s.visit(b, "/runs?phase=failed")
	b.until(`document.querySelectorAll("tr[data-run]").length === 2`)
}

// TestStart starts a workflow of the folder by its form.
func TestStart(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	b := s.enter(t)
	b.press("Workflows")
	b.at("/workflows")
	b.press("greet")
	b.at("/workflows/greet")
	b.press("Start a run")
	b.fill(b.field("Name"), "Ada")
	b.fill(b.field("Times"), "2")
	b.submit()
	b.until(`location.pathname.startsWith("/runs/")`)
	b.shows("Hello Ada, 2 times")
}

// TestPages: the filter and the page are in the address, so that the back button works.
func TestPages(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(s *site) {
		for i := range 230 {
			s.start("greet", fmt.Sprintf("greet-%03d", i), map[string]any{"name": "Ada", "times": 1.0})
		}
		s.start("pay", "pay-1", map[string]any{"supplier": "Ink & Co", "total": 12.5})
	})
	b := s.enter(t)
	s.visit(b, "/runs")
	b.shows("pay-1")
	b.fill("input[name=definition]", "greet")
	b.press("Filter")
	b.until(`document.readyState === "complete" && location.search.includes("definition=greet") && document.querySelectorAll("tr[data-run]").length === 100`)
	b.lacks("pay-1")
	const rows = `[...document.querySelectorAll("tr[data-run]")].map(row => row.dataset.run).join(" ")`
	page := func(n int) string {
		b.until(fmt.Sprintf(`document.readyState === "complete" && document.querySelectorAll("tr[data-run]").length === %d`, n))
		return eval[string](b, rows)
	}
	first := page(100)
	b.press("Older runs")
	b.until(`location.search.includes("cursor=")`)
	second := page(100)
	b.press("Older runs")
	seen := map[string]bool{}
	for _, id := range strings.Fields(first + " " + second + " " + page(30)) {
		seen[id] = true
	}
	if len(seen) != 230 {
		t.Errorf("three pages show %d runs", len(seen))
	}
	for _, want := range []string{second, first} {
		b.do(chromedp.NavigateBack())
		if got := page(100); got != want {
			t.Errorf("back: %s; want %s", got, want)
		}
	}
}

// TestFilterStays: what is chosen in the filter stays when the list changes.
func TestFilterStays(t *testing.T) {
	t.Parallel()
	pay := func(s *site, id string) { s.start("pay", id, map[string]any{"supplier": "Ink & Co", "total": 12.5}) }
	s := newSite(t, func(s *site) { pay(s, "pay-1") })
	b := s.enter(t)
	s.visit(b, "/runs")
	b.choose("State", "needs an answer")
	b.fill("input[name=definition]", "pay")
	b.click("h1")
	pay(s, "pay-2")
	b.shows("1 newer run")
	b.press("Filter")
	b.until(`location.search.includes("phase=interrupted") && location.search.includes("definition=pay") && document.querySelectorAll("tr[data-run]").length === 2`)
}

// TestSignOut: a person who signs out in one tab is out in all. What was typed in another tab stays in sight.
func TestSignOut(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(s *site) {
		s.start("greet", "greet-1", map[string]any{"name": "Ada", "times": 1.0})
		s.start("claim", "claim-1", nil)
	})
	b := s.enter(t)
	other, typing := b.profile.tab(t), b.profile.tab(t)
	s.visit(other, "/runs/greet-1")
	s.visit(typing, "/runs/claim-1/questions/details%231")
	typing.fill("main form[method=post] input[type=text]", "half a thought")
	b.press("Sign out")
	b.at("/in")
	other.shows("Open the page with a link")
	typing.shows("You are no longer signed in")
	if got := eval[string](typing, `document.querySelector("main form[method=post] input[type=text]").value`); got != "half a thought" {
		t.Errorf("what was typed is now %q", got)
	}
	if status := b.open(s.origin + "/runs"); status != 401 {
		t.Errorf("the page answers %d", status)
	}
	other.set("#t", s.link())
	other.press("Open")
	other.at("/")
	typing.press("Sign in")
	typing.until(`!document.querySelector("#bar").checkVisibility()`)
	if got := eval[string](typing, `document.querySelector("main form[method=post] input[type=text]").value`); got != "half a thought" {
		t.Errorf("after signing in, what was typed is %q", got)
	}
}

// TestRestart: after the end of the program, the form of a question stays with what was typed, and the bar says how to come back. A form that is
// sent without a session comes back, too.
func TestRestart(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(s *site) { s.start("claim", "claim-1", nil) })
	b := s.enter(t)
	s.visit(b, "/runs/claim-1/questions/details%231")
	b.until(fillClaim)
	b.fill(b.field("Name"), "Ada L.")
	s.kill()
	b.until(`document.querySelector("#bar").checkVisibility()`)
	link := s.serve()
	b.shows("You are no longer signed in")
	b.has("ui --link")
	b.submit()
	b.shows("Your session has ended, and nothing was changed")
	b.fill("#t", link)
	b.press("Open")
	b.shows("the form is not the current one of this page")
	if got := eval[string](b, `document.querySelector(`+quoted(b.field("Name"))+`).value`); got != "Ada L." || len(s.answers("claim-1")) != 0 {
		t.Errorf("the name is %q; %d answers", got, len(s.answers("claim-1")))
	}
	b.submit()
	b.at("/runs/claim-1")
	b.shows("completed")
}

// TestLinkFromElsewhere: a link of another site leads in, although the cookie is not sent with its first request.
func TestLinkFromElsewhere(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(s *site) { s.start("pay", "pay-1", map[string]any{"supplier": "Ink & Co", "total": 12.5}) })
	mail := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!doctype html><title>Mail</title><a href="%s/runs/pay-1">the run</a>`, s.origin)
	}))
	defer mail.Close()
	b := s.enter(t)
	b.open(mail.URL)
	b.press("the run")
	b.shows("Pay 12.5 € to Ink & Co?")
	stranger := newProfile(t).tab(t)
	stranger.open(mail.URL)
	stranger.press("the run")
	stranger.shows("Open the page with a link")
	stranger.lacks("Ink")
}

// TestAway: while the database is locked an answer waits, and while the page is away a bar says so; then all goes on.
func TestAway(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(s *site) { s.start("pay", "pay-1", map[string]any{"supplier": "Ink & Co", "total": 12.5}) })
	b := s.enter(t)
	for range 5 { // a slow browser shows the form only after the answer has waited in vain
		s.visit(b, "/runs/pay-1/questions/ask%231")
		unlock := s.lock()
		b.press("Approve")
		const locked = `!!document.body?.innerText.includes("database is locked")` // there is none between two documents
		b.until(`document.querySelector("form[data-sent]") || ` + locked)
		unlock()
		if !eval[bool](b, locked) {
			break
		}
	}
	b.at("/runs/pay-1")
	b.shows("completed")
	if list := s.answers("pay-1"); len(list) != 1 {
		t.Errorf("recorded %+v", list)
	}
	s.kill()
	b.until(`document.querySelector("#bar").checkVisibility() && document.querySelector("#bar").innerText.includes("No connection since")`)
	b.shows("completed") // the page stays
	for _, scheme := range []string{"light", "dark"} {
		b.window(1000, 800, scheme)
		if list := b.axe(); len(list) > 0 {
			t.Errorf("%s: %q", scheme, list)
		}
	}
	b.until(`/No connection since \d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ/.test(document.querySelector("#bar").innerText)`)
	link := s.serve()
	fresh := b.profile.tab(t)
	fresh.open(link)
	fresh.at("/")
	b.until(`!document.querySelector("#bar")?.checkVisibility()`)
}

// TestEightTabs: streams of tabs do not use up the connections of a browser.
func TestEightTabs(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(s *site) { s.start("pay", "pay-1", map[string]any{"supplier": "Ink & Co", "total": 12.5}) })
	b := s.enter(t)
	for range 7 {
		next := b.profile.tab(t)
		s.visit(next, "/runs/pay-1")
		next.shows("Ink & Co")
	}
	s.visit(b, "/runs")
	b.shows("pay-1")
}

// TestKeyboard answers a question and moves through a list without the mouse.
func TestKeyboard(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(s *site) {
		s.start("pay", "pay-1", map[string]any{"supplier": "Ink & Co", "total": 12.5})
		s.start("pay", "pay-2", map[string]any{"supplier": "Pens Ltd", "total": 9.0})
	})
	b := s.enter(t)
	b.keys("/")
	b.until(`location.pathname === "/runs" && document.activeElement.matches("[role=search] input")`)
	s.visit(b, "/")
	b.keys("gr")
	b.at("/runs")
	b.keys("jj")
	b.until(`document.activeElement.closest("tr[data-run='pay-1']")`)
	b.keys("k")
	b.until(`document.activeElement.closest("tr[data-run='pay-2']")`)
	b.keys("/")
	b.until(`document.activeElement.matches("input")`)
	s.visit(b, "/runs/pay-1")
	b.tabTo(`document.activeElement.innerText.startsWith("Pay 12.5")`)
	b.keys(kb.Enter)
	b.shows("Deny")
	b.tabTo(`document.activeElement.innerText === "Approve"`)
	if s.status("pay-1").Status != machine.Interrupted {
		t.Error("a key answered the question")
	}
	b.keys(kb.Enter)
	b.at("/runs/pay-1")
	b.shows("completed")
	b.keys("?")
	b.until(`document.querySelector("dialog[open]")`)
	b.keys(kb.Escape)
	b.until(`!document.querySelector("dialog[open]")`)
}

// controls are the inputs of claim's form, one of each kind.
var controls = []string{
	"input[type=text]", "input[type=email]", "input[type=url]", "input[type=date]", "input[type=datetime-local]", "input[type=number]", "select", "input[type=checkbox]", "input[type=radio]",
}

// fillClaim is a script that fills in claim's form, so that it could be sent.
const fillClaim = `(() => {
	const field = text => [...document.querySelectorAll("label")].find(l => l.innerText.trim().replace(/ required$/, "") === text)?.control;
	if (!field("Name")) return false;
	for (const [name, value] of [["Name", "Ada"], ["Days", "3"], ["City", "Ghent"]]) field(name).value = value;
	const list = field("Category");
	if (list) list.value = [...list.options].find(o => o.text === "A train").value;
	else field("A train").click();
	field("Yes").click();
	return true;
})()`

// TestNoKeyAnswers: Enter sends no answer from any control but a button, also without script.
func TestNoKeyAnswers(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(s *site) { s.start("claim", "claim-1", nil) })
	b := s.enter(t)
	s.visit(b, "/runs/claim-1/questions/details%231")
	b.until(fillClaim)
	eval[any](b, `window.sent = 0; addEventListener("submit", () => window.sent++, true); null`)
	for _, control := range controls {
		b.until(`(() => { const e = document.querySelector("main form[method=post] ` + control + `"); e?.focus(); return e })()`)
		b.keys(kb.Enter)
		if n := eval[int](b, "window.sent ?? -1"); n != 0 {
			t.Fatalf("Enter in %s sends the form: %d", control, n)
		}
	}
	if n := len(s.answers("claim-1")); n != 0 {
		t.Fatalf("%d answers", n)
	}
	b.scripts(false)
	s.visit(b, "/runs/claim-1/questions/details%231")
	b.scripts(true)
	b.until(fillClaim)
	b.until(`(() => { const e = document.querySelector("main form[method=post] input[type=radio]"); e?.focus(); return e })()`)
	b.keys(kb.Enter)
	b.shows("no key sends this form")
	if got := eval[string](b, `document.querySelector(`+quoted(b.field("Name"))+`).value`); got != "Ada" || len(s.answers("claim-1")) != 0 {
		t.Errorf("the name is %q; %d answers", got, len(s.answers("claim-1")))
	}
}

// TestHostile: texts of runs run no script, and make no element.
func TestHostile(t *testing.T) {
	t.Parallel()
	hostile := `"><img src=x onerror="window.owned=1"><script>window.owned=1</script></main><style>*{display:none}</style>{{.}}\u202e` + "\u202e\x07"
	id := `"><img src=x onerror="window.owned=1"></main>`
	s := newSite(t, func(s *site) {
		s.start("pay", id, map[string]any{"supplier": hostile, "total": 1.0, "note": hostile, "lines": []any{map[string]any{hostile: hostile}, map[string]any{hostile: "javascript:alert(1)"}}},
			func(r *graph.StartRequest) { r.Title = id; r.Labels = map[string]string{"from": `"><b>x`} })
	})
	b := s.enter(t)
	run := "/runs/" + url.PathEscape(id)
	for _, path := range []string{"/", "/runs", "/workflows", "/system", run, run + "/questions/ask%231", run + "/history", run + "/visits/ask/1", "/runs?definition=" + url.QueryEscape(hostile), "/runs?label=" + url.QueryEscape(hostile)} {
		b.open(s.origin + path)
		if got := eval[string](b, `JSON.stringify([window.owned || 0, document.querySelectorAll("img, main style, main script, main b").length, document.querySelectorAll("main").length, document.body.checkVisibility()])`); got != "[0,0,1,true]" {
			t.Errorf("%s: %s\n%s", path, got, b.seen())
		}
	}
}

// plain returns a value as JSON decodes it.
func plain(t *testing.T, v any) (decoded any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &decoded)
	}
	if err != nil {
		t.Fatal(err)
	}
	return decoded
}
