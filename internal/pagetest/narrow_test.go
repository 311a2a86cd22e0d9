package pagetest

import (
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/workflows-engine/workflows-engine/graph"
)

// inSight reports whether a node of the graph is wholly within its frame.
func inSight(id string) string {
	return `(() => {
		const frame = document.querySelector("div.picture"), seen = frame?.getBoundingClientRect(), at = document.getElementById("n-` + id + `")?.getBoundingClientRect();
		return at && at.left >= seen.left && at.right <= seen.right && at.top >= seen.top && at.bottom <= seen.bottom;
	})()`
}

// scroll turns the wheel of the mouse over the graph of a tab until the graph is at its left end.
func (b *tab) scroll(x, y float64, left func() float64) {
	b.Helper()
	for range 100 {
		_, err := chromedp.Call(b.ctx, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseWheel, X: x, Y: y, DeltaX: -300, DeltaY: 1})
		b.must(err)
		if left() == 0 {
			return
		}
	}
	b.Fatalf("the graph does not scroll\n%s", b.seen())
}

const scrolledTo = `document.querySelector("div.picture").scrollLeft`

// drawn is the value of an expression once the page was drawn again.
func drawn(expression string) string {
	return `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(` + expression + `))))`
}

// TestNarrowGraph: in a window of 360 pixels a wide graph starts where the run is, and a block of many branches is unfolded by a link, and folded
// again, with the same place in sight.
func TestNarrowGraph(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(s *site) {
		s.start("wide", "wide-1", map[string]any{"cities": []any{"Ghent"}})
		s.performAll("wide-1", 1)
	})
	b := s.enter(t)
	b.window(360, 700, "light")
	s.visit(b, "/runs/wide-1")
	for _, c := range []struct{ link, to string }{{"Show each branch of all", "?unfold=all"}, {"Fold the branches of all", ""}} {
		if !eval[bool](b, `(() => {
			const frame = document.querySelector("div.picture").getBoundingClientRect();
			return [...document.querySelectorAll(".node.now")].some(e => {
				const node = e.getBoundingClientRect();
				return node.left > frame.left && node.right < frame.right && node.top > frame.top && node.bottom < frame.bottom;
			});
		})()`) {
			t.Errorf("the run is out of sight, before %q", c.link)
		}
		if wide := eval[string](b, widest); wide != "" {
			t.Errorf("the page is too wide: %s", wide)
		}
		nodes := eval[float64](b, `document.querySelectorAll(".node").length`)
		eval[any](b, `[...document.querySelectorAll("main a")].find(a => a.innerText === "`+c.link+`").click(); null`)
		b.until(`document.readyState === "complete" && location.search === "` + c.to + `" && location.hash === "#graph"`)
		if now := eval[float64](b, `document.querySelectorAll(".node").length`); (now > nodes) != (c.to != "") {
			t.Errorf("%q leads from %v nodes to %v", c.link, nodes, now)
		}
	}
}

// performAt submits the results of the activities of a run that are pending at a node.
func (s *site) performAt(id, node string) {
	s.Helper()
	for _, p := range s.status(id).Pending {
		if p.NodeID != node {
			continue
		}
		if _, err := s.engine.SubmitActivity(s.Context(), graph.SubmitRequest{ExecutionID: id, NodeID: node, IdempotencyKey: p.IdempotencyKey, OK: true, Result: map[string]any{"points": 1.0}}); err != nil {
			s.Fatal(err)
		}
	}
}

// TestNarrowGraphFollows: the node where the run is comes into sight as the run goes on and as the window changes, until the person scrolls the
// graph.
func TestNarrowGraphFollows(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(s *site) { s.start("seven", "seven-1", nil) })
	b := s.enter(t)
	s.visit(b, "/runs/seven-1")
	b.window(360, 700, "light") // from now on narrower than the graph
	b.until(inSight("ready"))
	s.performAt("seven-1", "ready")
	b.until(`document.querySelector("#n-b1.now")`)
	b.until(inSight("b1"))
	for _, node := range []string{"b1", "b2", "b3", "b4"} {
		s.performAt("seven-1", node)
	}
	b.until(`document.querySelector("#n-b4.done")`)
	b.until(inSight("b5"))

	eval[any](b, `document.querySelector("div.picture").scrollIntoView({block: "start", behavior: "instant"}); null`)
	b.scroll(180, 100, func() float64 { return eval[float64](b, scrolledTo) })
	s.performAt("seven-1", "b5")
	b.until(`document.querySelector("#n-b5.done")`)
	b.window(340, 700, "light")
	if left := eval[float64](b, drawn(scrolledTo)); left != 0 {
		t.Errorf("the graph that the person scrolled is now at %v", left)
	}
}

// TestNarrowCardFollows is TestNarrowGraphFollows for the card in a chat.
func TestNarrowCardFollows(t *testing.T) {
	t.Parallel()
	c := newChat(newDatabase(t, func(s *site) { s.start("seven", "seven-1", nil) }), nil)
	b := c.tab(t)
	b.window(360, 900, "light")
	c.reopen(b, "seven-1", "")
	b.until(inSight("ready"))
	c.performAt("seven-1", "ready")
	b.until(`document.querySelector("#n-b1.now")`)
	b.until(inSight("b1"))
	for _, node := range []string{"b1", "b2", "b3", "b4"} {
		c.performAt("seven-1", node)
	}
	b.until(`document.querySelector("#n-b4.done")`)
	b.until(inSight("b5"))
	at := value[[]float64](b, `(() => { const r = document.querySelector("div.picture").getBoundingClientRect(); return [r.x + r.width / 2, r.y + 40] })()`)
	frame := eval[[]float64](b.tab, `(() => { const r = document.querySelector("iframe").getBoundingClientRect(); return [r.x, r.y] })()`)
	b.scroll(at[0]+frame[0], at[1]+frame[1], func() float64 { return value[float64](b, scrolledTo) })
	c.performAt("seven-1", "b5")
	b.until(`document.querySelector("#n-b5.done")`)
	if left := value[float64](b, drawn(scrolledTo)); left != 0 {
		t.Errorf("the graph that the person scrolled is now at %v", left)
	}
}
