package agent

import (
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
)

// The values of the field activity of an agent's heartbeats.
const (
	atModel      = "model"      // a model is asked
	atTool       = "tool"       // a tool is called
	atCompacting = "compacting" // a model sums up the conversation
	atWaiting    = "waiting"    // for the time to ask a model again
)

// beat reports the progress of an agent: agent, key, turn, activity, the totals of the attempt, and further details.
func (w *attempt) beat(agent, key, activity string, totals, more map[string]any) {
	details := map[string]any{"agent": agent, "key": key, "turn": turnOf(key), "activity": activity, "totals": totals}
	for name, v := range more {
		details[name] = v
	}
	w.req.Heartbeat(details)
}

// textEvery is the least time between two reports of text that arrives.
const textEvery = 100 * time.Millisecond

// arriving reports the text of a reply as it arrives: the characters reported so far, and the text since the last report.
type arriving struct {
	report func(received int, text string)
	// mask returns a text without secrets; nil if there are no secrets.
	mask func(string) string
	now  func() time.Time

	mu       sync.Mutex
	received int
	unsent   string
	last     time.Time
	ended    bool
}

// maxHeldBack is how much of a word without an end is held back, so that a secret in it is masked as a whole.
const maxHeldBack = 1 << 10

func (a *arriving) add(text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return // a model that did not stop when it was asked to
	}
	a.unsent += text
	now := a.now()
	if now.Sub(a.last) < textEvery {
		return
	}
	ready := len(a.unsent)
	if a.mask != nil && ready <= maxHeldBack {
		ready = strings.LastIndexAny(a.unsent, " \t\n") + 1
	}
	if ready > 0 {
		a.last = now
		a.flush(ready)
	}
}

// end reports the rest.
func (a *arriving) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended = true; a.unsent != "" {
		a.flush(len(a.unsent))
	}
}

// flush reports the beginning of the text that is not reported yet. The caller holds the lock.
func (a *arriving) flush(n int) {
	text := a.unsent[:n]
	a.unsent = a.unsent[n:]
	if a.mask != nil {
		text = a.mask(text)
	}
	a.received += utf8.RuneCountInString(text)
	a.report(a.received, text)
}

// arrivingText returns a function that reports the text of a reply to a request.
func (w *attempt) arrivingText(e *agentloop.AskModel, totals map[string]any) *arriving {
	return &arriving{now: w.agents.now, mask: w.agents.config.Mask, report: func(received int, text string) {
		w.beatModel(e, totals, map[string]any{"received_chars": received, activities.HeartbeatText: text})
	}}
}

// beatModel reports that a model is asked.
func (w *attempt) beatModel(e *agentloop.AskModel, totals, more map[string]any) {
	activity := atModel
	if e.Compacts {
		activity = atCompacting
	}
	more["model"] = e.Model.Model
	w.beat(e.Agent, e.Key, activity, totals, more)
}
