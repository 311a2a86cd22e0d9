package definition

import (
	"fmt"
	"math"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// The fields of the extension deadline: deadlineMember of a node, deadlineOfRun of the root field that names the extensions.
var (
	deadlineMember = extended{member{"deadline", filled("deadline").or(`write a text such as "10m"`).called("deadline").
			about("How long a visit of the node may take, with all its attempts, or all items of its map: digits and a unit of ms, s, m or h. "+
			"Then the node fails with TIMEOUT and is not retried. Extension deadline.", `"10m"`), false}, ExtensionDeadline}
	deadlineOfRun = extended{member{"deadline", filled("the deadline of a run").or(`write a text such as "72h"`).
			about("How long a run may take from its start: digits and a unit of ms, s, m or h. Then it fails with RUN_TIMEOUT. Extension deadline."), false}, ExtensionDeadline}
)

// compileDeadline reads the deadline of a node, after its timeout and retry.
func (c *compiler) compileDeadline(v *vertex) {
	n, at := v.json.Get("deadline"), v.at.member("deadline")
	if n == nil {
		return
	}
	c.used[ExtensionDeadline] = true
	d, ok := c.extendedDuration(v, "deadline")
	if !ok {
		return
	}
	v.node.Deadline = d
	pauses := v.node.Retry.pauses()
	switch {
	case v.node.Timeout > 0 && d <= v.node.Timeout:
		c.warn(problem.DeadlineShort, n, at, v, "the deadline passes before the timeout of the first attempt, which has no effect",
			"make the deadline longer than the timeout, or leave the timeout out")
	case pauses > 0 && d <= pauses:
		c.warn(problem.DeadlineShort, n, at, v, fmt.Sprintf("the deadline passes before the last attempt: the pauses of retry take %s", durationText(pauses)),
			"make the deadline longer, or the pauses shorter")
	}
}

// pauses returns the sum of the pauses between the attempts of a policy, without jitter.
func (r *Retry) pauses() time.Duration {
	if r == nil || r.Err != nil {
		return 0
	}
	sum := time.Duration(0)
	for next := 2; next <= r.MaxAttempts && sum < maxDelay; next++ {
		d := r.Delay(next)
		if d == r.Delay(next+1) { // all later pauses are equal
			return boundedMilliseconds(float64(sum.Milliseconds()) + float64(d.Milliseconds())*float64(r.MaxAttempts-next+1))
		}
		sum = time.Duration(math.Min(float64(sum)+float64(d), float64(maxDelay)))
	}
	return sum
}

// deadlineOf reads the deadline of the runs.
func (c *compiler) deadlineOf() time.Duration {
	block := c.document.root.Get(extensionsMember)
	if block == nil || block.Kind != jsonvalue.Object {
		return 0
	}
	n, at := block.Get("deadline"), (*path)(nil).member(extensionsMember).member("deadline")
	if n == nil || n.Kind != jsonvalue.String {
		return 0
	}
	c.used[ExtensionDeadline] = true
	d, ok := c.positiveDuration(n, at, nil, "deadline")
	if !ok {
		return 0
	}
	for _, v := range c.vertices {
		if w := v.node.Wait; w != nil && w.Err == nil && w.Kind == WaitDuration && w.Duration() >= d {
			c.warn(problem.DeadlineShort, n, at, nil, fmt.Sprintf("the deadline of the run passes during the wait of node %q, which takes %s", v.node.ID, durationText(w.Duration())),
				"make the deadline longer than the wait")
			break
		}
	}
	return d
}
