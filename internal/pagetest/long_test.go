package pagetest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/workflows-engine/workflows-engine/activities/chat/chattest"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// TestAgentCalls: of an agent's three calls one is approved, one is made with other arguments, and one is denied. The visit then shows all three.
func TestAgentCalls(t *testing.T) {
	t.Parallel()
	letter := func(to string) string { return `{"task":"Write to ` + to + `."}` }
	model := chattest.Serve(t,
		chattest.Calls(chattest.Call("agent__mailer", letter("Ada")), chattest.Call("agent__mailer", letter("Bob")), chattest.Call("agent__mailer", letter("Eve"))),
		chattest.Text("The letter is sent."), chattest.Text("The letter is sent."), chattest.Text("Two letters are sent."),
	)
	s := newSite(t, func(s *site) {
		list := `{"models":{"m":{"model":"x","endpoint":{"baseUrl":` + quoted(model.URL) + `,"apiKeyEnv":"AGENT_KEY"}}},"agents":{
			"clerk":{"instructions":"Send letters.","tools":[{"agent":"mailer","gate":"ask"}]},"mailer":{"description":"Sends a letter.","instructions":"Send a letter."}}}`
		if err := os.WriteFile(filepath.Join(s.dir, "agents.json"), []byte(list), 0o600); err != nil {
			s.Fatal(err)
		}
		s.env = []string{"WORKFLOW_ENGINE_AGENTS=agents.json", "AGENT_KEY=0123456789abcdef0123"}
	})
	b := s.enter(t)
	s.visit(b, "/workflows/helper")
	b.press("Start a run")
	b.fill(b.field("Task"), "Write to Ada, Bob and Eve.")
	b.submit()
	b.until(`location.pathname.startsWith("/runs/") && document.querySelector("a.question")`)
	run := eval[string](b, "location.pathname")
	b.click("a.question")
	b.until(`document.querySelectorAll("fieldset.call").length === 3`)
	question := eval[string](b, "location.pathname")
	b.press("What the agent has done so far")
	b.until(`document.querySelectorAll("details.turns ol.turns li").length > 1`)
	b.press("write")
	b.at(run + "/visits/write/1")
	if text := eval[string](b, `document.querySelector("main section.attempt h2").innerText`); !strings.Contains(text, "needs an answer") {
		t.Errorf("the attempt is %q", text)
	}
	b.click("main a.question")
	b.at(question)
	for i, decision := range []string{"approve", "edit", "deny"} {
		b.click(fmt.Sprintf("input[name=d%d][value=%s]", i, decision))
	}
	b.set("textarea[name=a1]", letter("Kim"))
	b.set("textarea[name=t2]", "Eve is on holiday")
	b.press("Approve all")
	b.shows("“Deny” is chosen here")
	if n := len(s.answers(strings.TrimPrefix(run, "/runs/"))); n != 0 {
		t.Errorf("%d answers after a contradiction", n)
	}
	b.press("Send these decisions")
	b.at(run)
	b.until(`document.querySelector("h1").innerText.includes("completed")`)
	s.visit(b, run+"/visits/write/1")
	for _, text := range []string{"Write to Ada.", "Write to Kim.", "Eve is on holiday", "approve", "edit", "deny", "The letter is sent.", "Two letters are sent."} {
		b.has(text)
	}
	b.lacks("AGENT_KEY")
	if left := model.Left(); left != 0 {
		t.Errorf("the model was not asked for %d replies", left)
	}
}

// TestLongQuestion: all of 40 kB is in the page, in front of the buttons, and scrolls with the page.
func TestLongQuestion(t *testing.T) {
	t.Parallel()
	var note strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&note, "Line %03d of the contract is about payment.\n", i)
	}
	s := newSite(t, func(s *site) {
		s.start("pay", "pay-1", map[string]any{"supplier": "Ink & Co", "total": 12.5, "note": note.String()})
	})
	b := s.enter(t)
	s.visit(b, "/runs/pay-1/questions/ask%231")
	for _, look := range []struct{ width, height int64 }{{1280, 900}, {320, 640}} {
		b.window(look.width, look.height, "light")
		got := eval[string](b, `(() => {
			const note = [...document.querySelectorAll(".whole")].find(e => e.innerText.includes("Line 000"));
			const buttons = [...document.querySelectorAll("form[method=post] .buttons button")].filter(e => e.checkVisibility());
			const boxes = [];
			for (let e = note; e !== document.documentElement; e = e.parentElement) if (e.scrollHeight > e.clientHeight + 1 && getComputedStyle(e).overflowY !== "visible") boxes.push(e.tagName);
			return JSON.stringify([(note.innerText.match(/Line \d+/g) || []).length, buttons.length, buttons.every(e => e.getBoundingClientRect().top >= note.getBoundingClientRect().bottom), boxes]);
		})()`)
		if got != `[1000,2,true,[]]` {
			t.Errorf("%d pixels wide: lines, buttons, buttons behind, scrolled boxes: %s", look.width, got)
		}
	}
	b.press("Approve")
	b.at("/runs/pay-1")
	b.shows("completed")
}

// TestWatchWide: the page of a run follows a map of 500 items and 20 branches to the end. It is not loaded again, and nothing in the window moves.
func TestWatchWide(t *testing.T) {
	t.Parallel()
	const items, branches = 500, 20
	cities := make([]any, items)
	for i := range cities {
		cities[i] = fmt.Sprint("city ", i)
	}
	s := newSite(t, func(s *site) { s.start("wide", "wide-1", map[string]any{"cities": cities}) })
	b := s.enter(t)
	s.visit(b, "/runs/wide-1")
	b.until(`document.querySelector("#n-rate.now, #n-rate.waits")`)
	eval[any](b, `window.stays = true; window.moved = []; window.slow = [];
		new PerformanceObserver(l => l.getEntries().forEach(e => e.sources.forEach(s => window.moved.push(e.value.toFixed(4) + " " + (s.node?.outerHTML || s.node?.textContent || "").slice(0, 80))))).observe({type: "layout-shift"});
		new PerformanceObserver(l => l.getEntries().forEach(e => window.slow.push(Math.round(e.duration)))).observe({type: "longtask"}); null`)
	width := `document.querySelector("main .picture svg").getBoundingClientRect().width`
	was := eval[float64](b, width)
	s.performAll("wide-1", items)
	b.until(`document.querySelector("#n-rate.done")`)
	s.performAll("wide-1", branches)
	b.until(`document.querySelector("h1").innerText.includes("completed")`)
	b.until(`document.querySelector("#n-finish.done")`)
	if !eval[bool](b, "window.stays === true") {
		t.Error("the page was loaded again")
	}
	if is := eval[float64](b, width); is != was {
		t.Errorf("the graph was %v wide, and is %v", was, is)
	}
	if moved := eval[[]string](b, "window.moved"); len(moved) > 0 {
		t.Errorf("the layout shifted: %q", moved)
	}
	t.Logf("tasks of more than 50 ms: %v", eval[[]float64](b, "window.slow"))
}

// performAll submits results of the pending activities of a run, which must be of a number.
func (s *site) performAll(id string, want int) {
	s.Helper()
	list := s.status(id).Pending
	if len(list) != want {
		s.Fatalf("%d are pending, want %d", len(list), want)
	}
	for _, p := range list {
		if _, err := s.engine.SubmitActivity(context.Background(), graph.SubmitRequest{ExecutionID: id, NodeID: p.NodeID, IdempotencyKey: p.IdempotencyKey, OK: true, Result: map[string]any{"points": 1.0}}); err != nil {
			s.Fatal(err)
		}
	}
}

// TestRunFiveThousand: from a filter over fifty pages to run 5,000, and back.
func TestRunFiveThousand(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(s *site) { historytest.FillRuns(t, s.store, 5700) })
	b := s.enter(t)
	s.visit(b, "/runs")
	b.choose("State", "completed")
	b.press("Filter")
	first := func() string { return eval[string](b, `document.querySelector("tr[data-run]").dataset.run`) }
	b.until(`document.readyState === "complete" && location.search.includes("phase=completed") && document.querySelectorAll("tr[data-run]").length === 100`)
	before, seen := "", map[string]bool{}
	for page := 1; ; page++ {
		now := first()
		if seen[now] {
			t.Fatalf("page %d begins with %s again", page, now)
		}
		seen[now] = true
		if page == 50 {
			break
		}
		before = now
		eval[any](b, `[...document.querySelectorAll("a")].find(a => a.innerText === "Older runs").click()`)
		b.until(`document.readyState === "complete" && document.querySelector("tr[data-run]")?.dataset.run !== ` + quoted(now))
	}
	if !eval[bool](b, `location.search.includes("phase=completed") && location.search.includes("cursor=") && document.querySelectorAll("tr[data-run]").length === 100`) {
		t.Error(b.seen())
	}
	last := eval[string](b, `[...document.querySelectorAll("tr[data-run]")].at(-1).dataset.run`) // run 5,000
	b.click("tr[data-run=" + quoted(last) + "] a")
	b.until(`location.pathname === "/runs/" + ` + quoted(last))
	b.do(chromedp.NavigateBack())
	b.until(`document.readyState === "complete" && document.querySelector("tr[data-run=" + CSS.escape(` + quoted(last) + `) + "]")`)
	b.do(chromedp.NavigateBack())
	b.until(`document.readyState === "complete" && document.querySelector("tr[data-run]")?.dataset.run === ` + quoted(before))
}

// TestFork: from the start page to a failed run, its visit, and a fork from there.
func TestFork(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(s *site) { s.start("ship", "ship-1", map[string]any{"kilos": 30.0}) })
	b := s.enter(t)
	b.shows("Failed in the last 24 hours")
	b.press("ship-1")
	b.at("/runs/ship-1")
	b.press("weigh")
	b.at("/runs/ship-1/visits/weigh/1")
	b.shows("TOO_HEAVY")
	b.do(chromedp.NavigateBack())
	b.at("/runs/ship-1")
	b.press("Fork from a record")
	b.fill("input[name=seq]", "4")
	b.press("Fork")
	b.until(`location.pathname.startsWith("/runs/") && location.pathname !== "/runs/ship-1" && document.readyState === "complete"`)
	b.shows("Forked at record 4 from")
	b.shows("the parcel is too heavy")
	b.press("ship-1")
	b.at("/runs/ship-1")
}

// TestLooks: the first two journeys in a window of 320 pixels, in the dark, and zoomed to 200 %.
func TestLooks(t *testing.T) {
	t.Parallel()
	looks := map[string]func(*tab){
		"narrow": func(b *tab) { b.window(320, 640, "light") },
		"dark":   func(b *tab) { b.window(1280, 900, "dark") },
		"zoomed": func(b *tab) { // a window of 640 pixels
			b.window(320, 450, "light")
			b.do(chromedp.EmulateViewport(320, 450, chromedp.EmulateScale(2)))
		},
	}
	s := newSite(t, func(s *site) {
		for name := range looks {
			for _, id := range []string{"yes", "no"} {
				s.start("pay", name+"-"+id, map[string]any{"supplier": "Ink & Co", "total": 12.5, "note": strings.Repeat("word ", 60)})
			}
		}
	})
	for name, look := range looks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newProfile(t).tab(t)
			look(b)
			fits := func() {
				t.Helper()
				if wide := eval[string](b, widest); wide != "" {
					t.Errorf("%s is too wide: %s", eval[string](b, "location.pathname"), wide)
				}
			}
			link := s.link()
			b.open(link)
			b.at("/")
			fits()
			other := b.profile.tab(t)
			look(other)
			other.open(link)
			other.shows("this link is not valid")
			b.press(name + "-yes")
			b.shows("Deny")
			fits()
			b.press("Approve")
			b.at("/runs/" + name + "-yes")
			b.shows("completed")
			fits()
			s.visit(b, "/runs/"+name+"-no/questions/ask%231")
			b.press("Deny")
			b.at("/runs/" + name + "-no")
			fits()
			for id, want := range map[string]bool{"yes": true, "no": false} {
				if list := s.answers(name + "-" + id); len(list) != 1 || list[0].Payload.SignalPayload["approved"] != want || s.status(name+"-"+id).Status != machine.Completed {
					t.Errorf("%s: answers %+v", id, list)
				}
			}
		})
	}
}
