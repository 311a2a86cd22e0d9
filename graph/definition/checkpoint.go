package definition

import (
	"fmt"
	"math"

	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// CheckpointPolicy says when CheckpointWritten records are due (spec: execution, 9.1).
type CheckpointPolicy struct {
	// Enabled is false for disabled, off and none.
	Enabled bool
	// Every is 1 for after_each_node, else the interval.
	Every int
	// Interval reports whether the policy's name is every_n_nodes.
	Interval bool
}

var strategies = []string{"after_each_node", "every_n_nodes", "disabled"}

// compileCheckpointing reads the checkpointing block (spec: execution, 9.1; definition, 2.3).
func (c *compiler) compileCheckpointing() {
	c.checkpoint = CheckpointPolicy{Enabled: true, Every: 1}
	n, at := c.document.root.Get("checkpointing"), (*path)(nil).member("checkpointing")
	if n == nil || n.Kind != jsonvalue.Object {
		return
	}
	name, source := "", "strategy"
	strategy, policy := n.Get("strategy"), n.Get("policy")
	read := map[string]bool{"strategy": true}
	switch {
	case strategy != nil:
		name = strategy.Str
	case policy != nil:
		name, source = policy.Str, "policy"
		read["policy"] = true
	}
	switch expr.TrimSpace(name) {
	case "", "after_each_node":
	case "every_n_nodes", "interval":
		c.checkpoint.Interval = true
		read["n"] = true
		every := n.Get("n")
		if every == nil {
			every = n.Get("interval")
			read["interval"] = true
		}
		if every == nil {
			c.fail(problem.CheckpointPolicyInvalid, n, at, nil,
				fmt.Sprintf("the %s %q needs n, the number of nodes between checkpoints", source, expr.TrimSpace(name)), `add "n": 5`)
		} else {
			c.checkpoint.Every = int(math.Min(every.Num, math.MaxInt32))
		}
	case "disabled", "off", "none":
		c.checkpoint.Enabled = false
	default:
		hint := suggest.DidYouMean(expr.TrimSpace(name), strategies)
		if hint == "" {
			hint = "the strategies are " + problem.AndList(strategies)
		}
		c.fail(problem.CheckpointPolicyInvalid, n.Get(source), at.member(source), nil,
			fmt.Sprintf("there is no checkpointing strategy %q", clip(name)), hint)
		return
	}
	for _, m := range n.Members {
		if !read[m.Name] {
			c.ignored(m, at, nil, "this field of checkpointing is not used here", "")
		}
	}
}

// ignored reports a member that nothing reads.
func (c *compiler) ignored(m jsonvalue.Member, at *path, v *vertex, message, hint string) {
	f := finding(problem.FieldIgnored, problem.SeverityWarning, nil, at.member(m.Name).pointer(), v, message, hint)
	f.At.Line, f.At.Column = m.Line, m.Column
	c.findings = append(c.findings, f)
}
