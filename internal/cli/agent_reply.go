package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
)

// replyPrinter prints on a terminal what the models of agents say, as it arrives, line by line: what is printed meanwhile, such as the tree of
// the run, stays whole. Long lines are broken between words.
type replyPrinter struct {
	out io.Writer
	// clean makes a line harmless, without secrets.
	clean   func(string) string
	paint   palette
	columns func() int

	mu sync.Mutex
	// replies are those under way, by the node that they are of.
	replies map[replyPlace]*arrivingReply
}

// replyPlace is where a reply arrives.
type replyPlace struct{ run, node, branch, key string }

// arrivingReply is a reply as far as it has come.
type arrivingReply struct {
	agent   string
	seen    int // its characters
	pending string
}

// progress is graph.Wait.Progress.
func (v *replyPrinter) progress(p graph.Progress) {
	v.mu.Lock()
	defer v.mu.Unlock()
	key, _ := p.Detail["key"].(string)
	text, _ := p.Detail[activities.HeartbeatText].(string)
	at := replyPlace{p.ExecutionID, p.NodeID, p.Branch, key}
	for other := range v.replies {
		sameNode := other.run == at.run && other.node == at.node && other.branch == at.branch
		if sameNode && (p.Kind != graph.ExecutorAlive || parentOf(other.key) == parentOf(key) && (other != at || text == "")) {
			v.finish(other) // its agent, or the node, has gone on
		}
	}
	if p.Kind != graph.ExecutorAlive || text == "" || p.Detail["activity"] != "model" { // summaries are the engine's
		return
	}
	r := v.replies[at]
	if r == nil {
		r = &arrivingReply{}
		r.agent, _ = p.Detail["agent"].(string)
		if v.replies == nil {
			v.replies = map[replyPlace]*arrivingReply{}
		}
		v.replies[at] = r
	}
	received, _ := p.Detail["received_chars"].(int)
	if received-utf8.RuneCountInString(text) > r.seen {
		r.pending += "… " // a piece has been left out
	}
	r.seen = received
	r.pending += text
	v.print(r)
}

// parentOf is what the keys of an agent's turns begin with.
func parentOf(key string) string { return key[:strings.LastIndex(key, "/")+1] }

// print prints the lines of a reply that are whole, or as long as the terminal is wide.
func (v *replyPrinter) print(r *arrivingReply) {
	for {
		line, rest, whole := strings.Cut(r.pending, "\n")
		if width := v.width(r); utf8.RuneCountInString(line) > width {
			at := len(string([]rune(line)[:width]))
			if space := strings.LastIndexByte(line[:at], ' '); space > 0 {
				at = space + 1
			}
			v.line(r, line[:at])
			r.pending = r.pending[at:]
			continue
		}
		if !whole {
			return
		}
		v.line(r, line)
		r.pending = rest
	}
}

// width is how many characters of a reply fit into a line.
func (v *replyPrinter) width(r *arrivingReply) int {
	const least, border = 20, 4 // " │ ", and a column that stays free
	return max(v.columns()-utf8.RuneCountInString(r.agent)-border, least)
}

func (v *replyPrinter) line(r *arrivingReply, text string) {
	if text = v.clean(text); text != "" {
		fmt.Fprintf(v.out, "%s %s\n", v.paint.faint(plainCell(r.agent)+" │"), text)
	}
}

// finish prints the rest of a reply.
func (v *replyPrinter) finish(at replyPlace) {
	v.line(v.replies[at], v.replies[at].pending)
	delete(v.replies, at)
}

// end prints the rest of all replies.
func (v *replyPrinter) end() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for at := range v.replies {
		v.finish(at)
	}
}
