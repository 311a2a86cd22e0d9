package definition

import (
	"maps"
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// compileKeep reads the member keep of a wait (the extension early_signals).
func (c *compiler) compileKeep(v *vertex) {
	n := v.json.Get("keep")
	if n == nil || v.node.Wait == nil {
		return
	}
	c.used[ExtensionEarlySignals] = true
	if v.node.Wait.Kind != WaitSignal {
		c.warn(problem.FieldIgnored, n, v.at.member("keep"), v, "only a wait for a signal keeps any", "")
		return
	}
	v.node.Wait.Keep = n.Bool
}

// Keeps reports whether some wait of the program takes signals of a name that come before it.
func (p *Program) Keeps(signal string) bool { return p.keeps[signal] }

// Kept returns the names of those signals, sorted.
func (p *Program) Kept() []string { return slices.Sorted(maps.Keys(p.keeps)) }

func (c *compiler) keptSignals() map[string]bool {
	names := map[string]bool{}
	for _, v := range c.vertices {
		if w := v.node.Wait; w != nil && w.Keep && w.Err == nil {
			names[w.Signal] = true
		}
	}
	return names
}
