package definition

import (
	"fmt"
	"regexp"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// The fields of the extension queue: queueMember and queueTimeoutMember of a node, queueOfRun of the root field that names the extensions.
var (
	queueMember = extended{member{"queue", filled("queue").or(`write the name of a queue such as "gpu"`).called("queue").
			about("The queue whose workers perform the attempts in process; the queue of the run if absent. Extension queue.", `"gpu"`), false}, ExtensionQueue}
	queueTimeoutMember = extended{member{"queue_timeout", filled("queue_timeout").or(`write a text such as "5m"`).called("queue_timeout").
				about("How long an attempt in process may wait for a free place or a worker: digits and a unit of ms, s, m or h. Then it fails with QUEUE_TIMEOUT. "+
			"Extension queue.", `"5m"`), false}, ExtensionQueue}
	queueOfRun = extended{member{"queue", filled("the queue of a run").or(`write the name of a queue such as "nightly"`).
			about("The queue of the runs, unless their start names one. If absent: the queue of the parent for subworkflows, else default. Extension queue."), false}, ExtensionQueue}
)

// queueNames are the names that history.IsQueueName accepts.
var queueNames = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// compileQueue reads the members queue and queue_timeout.
func (c *compiler) compileQueue(v *vertex) {
	if n := v.json.Get("queue"); n != nil {
		v.node.Queue = c.queueName(n, v.at.member("queue"), v)
	}
	if v.json.Get("queue_timeout") != nil {
		c.used[ExtensionQueue] = true
		v.node.QueueTimeout, _ = c.extendedDuration(v, "queue_timeout")
	}
}

// queueOf reads the queue of the runs.
func (c *compiler) queueOf() string {
	block := c.document.root.Get(extensionsMember)
	if block == nil || block.Kind != jsonvalue.Object {
		return ""
	}
	n := block.Get("queue")
	if n == nil || n.Kind != jsonvalue.String {
		return ""
	}
	return c.queueName(n, (*path)(nil).member(extensionsMember).member("queue"), nil)
}

func (c *compiler) queueName(n *jsonvalue.Node, at *path, v *vertex) string {
	c.used[ExtensionQueue] = true
	if !queueNames.MatchString(n.Str) {
		c.fail(problem.ConfigInvalid, n, at, v, fmt.Sprintf("invalid queue %q", clip(n.Str)),
			"use at most 64 letters, digits, '.', '_' and '-'")
		return ""
	}
	return n.Str
}

// Routes reports whether some node of the program has a queue of its own.
func (p *Program) Routes() bool { return p.routes }
