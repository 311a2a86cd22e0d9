package pagetest

import "testing"

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
			const node = document.querySelector(".node.now").getBoundingClientRect(), middle = (node.left + node.right) / 2;
			return middle > frame.left && middle < frame.right && node.top < frame.bottom;
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
