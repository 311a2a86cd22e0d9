package lint

import (
	"slices"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// retries warns of retry policies that are valid and have an unlikely effect: the protocol bounds neither the coefficient nor the
// intervals (spec: definition, 3.1).
func (l *linter) retries() {
	for _, n := range l.program.Nodes {
		if policy, ok := l.document(n)["retry"].(map[string]any); ok && n.Retry != nil {
			l.retry(n, policy)
		}
	}
}

func (l *linter) retry(n *definition.Node, policy map[string]any) {
	r := n.Retry
	warn := func(name, message, hint string) {
		l.warn(problem.RetryPolicy, nodePointer(n)+"/retry/"+name, n, message, hint)
	}
	pauses := r.Err != nil || r.Initial > 0 // an invalid interval has its own finding
	if r.MaxAttempts == 1 {
		effect := "nothing is retried"
		if repairable(n) {
			effect = "an answer that breaks output_schema gets one repair, at once, and nothing else is retried"
		}
		for _, name := range []string{"initial_interval", "backoff_coefficient", "max_interval", "jitter"} {
			if policy[name] != nil {
				warn("max_attempts", "max_attempts counts the first attempt too: with 1 "+effect+"; "+name+" has no effect",
					"write 2 for one further attempt, or remove the rest of the policy")
				return
			}
		}
		return
	}
	if coefficient, ok := policy["backoff_coefficient"].(float64); ok {
		const hint = "write 1 for equal pauses, or more for growing ones"
		switch {
		case coefficient < 0:
			warn("backoff_coefficient", "a negative backoff_coefficient counts as 1", hint)
		case coefficient == 0 && pauses:
			warn("backoff_coefficient", "with a backoff_coefficient of 0 only the second attempt waits; later ones start at once", hint)
		case coefficient < 1 && pauses:
			warn("backoff_coefficient", "with a backoff_coefficient below 1 each pause is shorter than the previous one: a failing service is called ever faster", hint)
		}
	}
	if !pauses {
		for _, name := range []string{"backoff_coefficient", "max_interval", "jitter"} {
			value, given := policy[name]
			if given && value != 1.0 && (name != "jitter" || value != 0.0) {
				warn(name, "without an initial_interval attempts follow each other at once, and "+name+" has no effect",
					`add an initial_interval, for example "1s"`)
				return
			}
		}
		return
	}
	longest, _ := policy["max_interval"].(string)
	if _, err := definition.ParseDuration(longest); err == nil && r.Max < r.Initial {
		message := "max_interval is shorter than initial_interval: every pause is cut to it, and none grows"
		if r.Max < time.Millisecond {
			message = "a max_interval of 0 leaves no pause: attempts follow each other at once"
		}
		warn("max_interval", message, "write the longest pause, or remove it")
	}
}

// repairable reports whether a failed attempt of a node may be granted a repair, which does not count against max_attempts.
func repairable(n *definition.Node) bool {
	return n.Type == definition.LLMCall && n.Config["output_schema"] != nil && n.Config["agent"] == nil &&
		!slices.Contains(n.Retry.NonRetryable, string(problem.OutputSchemaViolation))
}
