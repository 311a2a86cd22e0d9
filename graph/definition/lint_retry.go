package definition

import (
	"slices"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// lintRetry warns of a retry policy that is accepted and has an unlikely effect: the protocol
// bounds neither the coefficient nor the intervals (spec: definition, 3.1).
func (c *compiler) lintRetry(r *Retry, n *jsonvalue.Node, at *path, v *vertex) {
	warn := func(name, message, hint string) {
		c.warn(problem.RetryPolicy, n.Get(name), at.member(name), v, message, hint)
	}
	pauses := r.Err != nil || r.Initial > 0 // an invalid interval has a finding of its own
	if r.MaxAttempts == 1 {
		followed := "nothing is tried again"
		if repairable(r, v.node) {
			followed = "only an answer that breaks output_schema gets another attempt, its repair, and that at once"
		}
		for _, name := range []string{"initial_interval", "backoff_coefficient", "max_interval", "jitter"} {
			if n.Get(name) != nil {
				warn("max_attempts", "max_attempts counts the first attempt too: with 1 "+followed+"; "+name+" has no effect",
					"write 2 for one further attempt, or leave the rest of the policy out")
				return
			}
		}
		return
	}
	if f := n.Get("backoff_coefficient"); f != nil {
		const hint = "write 1 for equal pauses, or more for growing ones"
		switch {
		case f.Num < 0:
			warn("backoff_coefficient", "a negative backoff_coefficient counts as 1", hint)
		case f.Num == 0 && pauses:
			warn("backoff_coefficient", "with a backoff_coefficient of 0 only the second attempt waits; those after it follow at once", hint)
		case f.Num < 1 && pauses:
			warn("backoff_coefficient", "with a backoff_coefficient below 1 each pause is shorter than the one before: a failing service is asked ever faster", hint)
		}
	}
	if !pauses {
		for _, name := range []string{"backoff_coefficient", "max_interval", "jitter"} {
			if f := n.Get(name); f != nil && f.Num != 1 && (name != "jitter" || f.Num > 0) {
				warn(name, "without an initial_interval attempts follow each other at once, and "+name+" has no effect",
					`add an initial_interval, for example "1s"`)
				return
			}
		}
		return
	}
	if r.capped && r.Max < r.Initial {
		message := "max_interval is shorter than initial_interval: every pause is cut to it, and none grows"
		if r.Max < time.Millisecond {
			message = "a max_interval of 0 leaves no pause: attempts follow each other at once"
		}
		warn("max_interval", message, "write the longest pause that you want, or leave it out")
	}
}

// repairable reports whether a failed attempt of a node may be granted a repair, which does not count against max_attempts.
func repairable(r *Retry, n *Node) bool {
	return n.Type == LLMCall && n.Config["output_schema"] != nil && n.Config["agent"] == nil && !slices.Contains(r.NonRetryable, string(problem.OutputSchemaViolation))
}
