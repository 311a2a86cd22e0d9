package fragment

import (
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/internal/timeline"
)

// TestMapsAreBounded: of a map with 10,000 items, the tree shows the failed ones and those that go on, and few others.
func TestMapsAreBounded(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	owner := &timeline.Visit{Node: "each", Number: 1, Began: now}
	owner.Items = &timeline.Items{Owner: owner, Total: 10_000}
	run := &timeline.Run{ID: "r", Visits: []*timeline.Visit{owner}, Main: timeline.Sequence{Visits: []*timeline.Visit{owner}}}
	for i := range 10_000 {
		v := &timeline.Visit{Node: "each", Number: i + 2, Items: owner.Items, Began: now, Ended: now, State: timeline.Succeeded}
		switch i {
		case 5000, 9999:
			v.State, v.Text = timeline.Failed, "no"
		case 7000:
			v.State, v.Ended = timeline.Working, time.Time{}
		}
		run.Visits = append(run.Visits, v)
	}
	items := VisitsOf(run, now, true).List[0].Inner[0]
	var names []string
	for _, v := range items.List {
		if v.State.Class != "done" {
			names = append(names, v.Name)
		}
	}
	if items.History == "" || items.List[0].Path == "" {
		t.Error("a linked tree has no links")
	}
	if html, err := Render(&Card{Outline: "x", Visits: VisitsOf(run, now, false)}); err != nil || strings.Contains(string(html), "<a ") || !strings.Contains(string(html), "item 5001") {
		t.Errorf("a card has links: %v %s", err, html)
	}
	if len(items.List) != maxItems || items.After != 10_000-maxItems || strings.Join(names, ", ") != "item 5001, item 7001, item 10000" {
		t.Errorf("%d items, %d more, not done: %q", len(items.List), items.After, names)
	}
}
