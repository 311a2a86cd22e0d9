package definition

import (
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// heartbeatMember is the field for the longest silence of an attempt.
var heartbeatMember = extended{member{"heartbeat", filled("heartbeat").or(`write a text such as "30s"`).called("heartbeat").
	about("How long an attempt in process may give no sign of life, such as a piece of a model's answer: digits and a unit of ms, s, m or h. "+
		"Then it fails with HEARTBEAT_TIMEOUT. Extension heartbeat.", `"30s"`), false}, ExtensionHeartbeat}

// compileHeartbeat reads the member heartbeat.
func (c *compiler) compileHeartbeat(v *vertex) {
	n, at := v.json.Get("heartbeat"), v.at.member("heartbeat")
	if n == nil {
		return
	}
	c.used[ExtensionHeartbeat] = true
	d, ok := c.extendedDuration(v, "heartbeat")
	if !ok {
		return
	}
	v.node.Heartbeat = d
	_, agent := v.node.Config["agent"]
	switch stream, given := v.node.Config["stream"].(bool); {
	case v.node.Timeout > 0 && d >= v.node.Timeout:
		c.warn(problem.FieldIgnored, n, at, v, "the timeout of an attempt is over before its heartbeat, which is never looked at",
			"make the heartbeat shorter than the timeout, or leave it out")
	case v.node.Type == LLMCall && given && !stream && !agent:
		c.warn(problem.FieldIgnored, n, at, v, "without stream a model gives no sign of life before its whole answer",
			`write "stream": true, or a timeout in place of the heartbeat`)
	}
}

// extendedDuration reads a duration that an extension adds to a node; ok is false if it is refused. The protocol does not know the field, so
// one that is wrong is an error.
func (c *compiler) extendedDuration(v *vertex, name string) (d time.Duration, ok bool) {
	return c.positiveDuration(v.json.Get(name), v.at.member(name), v, name)
}

// positiveDuration reads a duration that must not be 0; ok is false if it is refused.
func (c *compiler) positiveDuration(n *jsonvalue.Node, at *path, v *vertex, name string) (d time.Duration, ok bool) {
	d, err := ParseDuration(n.Str)
	switch {
	case err != nil:
		c.fail(problem.DurationInvalid, n, at, v, err.Error(), hintOf(err))
	case d == 0:
		c.fail(problem.DurationInvalid, n, at, v, "a "+name+" of 0 leaves no time", "leave it out, or give it some time")
	default:
		return d, true
	}
	return 0, false
}
