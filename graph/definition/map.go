package definition

import (
	"fmt"
	"math"

	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Bounds of a map.
const (
	// MaxMapItems is how many items a map takes.
	MaxMapItems = 10_000
	// DefaultMapConcurrency is how many items of a map are worked on at once, MaxMapConcurrency how many can be.
	DefaultMapConcurrency = 10
	MaxMapConcurrency     = 1_000
)

// Map repeats an activity or a subworkflow for each item of a list (the extension map). Each item has its own attempts.
type Map struct {
	// Items gives the list, from the state.
	Items *expr.Program
	// As is the field of the state that holds the node's item.
	As string
	// Concurrency is how many items are worked on at once.
	Concurrency int
	// TolerateCount and TolerateShare, a part of the items from 0 to 1, are how many items may fail, the larger of both.
	TolerateCount int
	TolerateShare float64
	// FailedAs is the field of the state for the tolerated failures, or "".
	FailedAs string
	// Collect is the field of the state for the outputs, or the results of subworkflows, in the order of the items, with null
	// for failed ones; or "".
	Collect string
}

// Tolerates returns how many of a number of items may fail.
func (m *Map) Tolerates(items int) int {
	return max(m.TolerateCount, int(math.Floor(m.TolerateShare*float64(items))))
}

var mapMember = extended{member{"map", objectOf("a map",
	member{"items", filled("the items of a map").or(`write a jq program that gives a list, for example ".documents"`).
		about("A jq program over the state whose output is the array of items, at most 10,000.", `".documents"`), true},
	member{"as", filled("the as of a map").
		about("The property of the state that holds the item for the node; item if absent."), false},
	member{"concurrency", atLeast("the concurrency of a map", 1).
		about("How many items are processed at once, up to 1,000; 10 if absent."), false},
	member{"tolerate", objectOf("tolerate",
		member{"count", atLeast("the count of tolerate", 0).about("A number of items."), false},
		member{"percent", (&shape{noun: "the percent of tolerate", kind: jsonvalue.Number, minimum: new(float64)}).upTo(100).
			about("A part of the items in percent."), false},
		member{"as", filled("the as of tolerate").
			about("The property of the state for the failures: objects with index, code, message, node and attempts."), false},
	).about("How many items may fail; 0 if absent. The larger of count and percent applies."), false},
	member{"collect", filled("the collect of a map").
		about("The property of the state for the outputs in the order of the items, for subworkflows their results; null for an item that failed. They are dropped if absent."), false},
).not(map[string]string{
	"over": `write "items"`, "each": `write "items"`, "item": `write "as"`, "max_concurrency": `write "concurrency"`, "output": `write "collect"`,
}).called("map").
	about("Repeats the node for each item of an array. Each item has its own attempts. Extension map."), false}, ExtensionMap}

// compileMap reads the member map.
func (c *compiler) compileMap(v *vertex) {
	n, at := v.json.Get("map"), v.at.member("map")
	if n == nil {
		return
	}
	c.used[ExtensionMap] = true
	m := &Map{As: "item", Concurrency: DefaultMapConcurrency}
	v.node.Map = m
	x := config{c: c, v: v}
	m.Items = x.program(n.Get("items"), at.member("items"))
	if as := n.Get("as"); as != nil {
		m.As = as.Str
	}
	if k := n.Get("concurrency"); k != nil {
		m.Concurrency = int(min(k.Num, MaxMapConcurrency))
		if k.Num > MaxMapConcurrency {
			c.warn(problem.ConfigInvalid, k, at.member("concurrency"), v,
				fmt.Sprintf("at most %d items of a map are worked on at once", MaxMapConcurrency), "")
		}
	}
	if collect := n.Get("collect"); collect != nil {
		m.Collect = collect.Str
	}
	tolerate := n.Get("tolerate")
	if tolerate == nil {
		return
	}
	if count := tolerate.Get("count"); count != nil {
		m.TolerateCount = int(min(count.Num, MaxMapItems))
	}
	if percent := tolerate.Get("percent"); percent != nil {
		m.TolerateShare = percent.Num / 100
	}
	if as := tolerate.Get("as"); as != nil {
		m.FailedAs = as.Str
	}
	if m.FailedAs != "" && m.FailedAs == m.Collect {
		c.fail(problem.ConfigInvalid, tolerate.Get("as"), at.member("tolerate").member("as"), v,
			"failures and outputs have the same field of the state", "name another one")
	}
}
