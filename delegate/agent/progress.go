package agent

import (
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/activities"
)

// What an agent is at, as the member activity of its heartbeats.
const (
	atModel      = "model"      // a model is asked
	atTool       = "tool"       // a tool is called
	atCompacting = "compacting" // a model sums up the conversation
	atWaiting    = "waiting"    // for the time to ask a model again
)

// beat reports what an agent is at: agent, key, turn, activity, the totals of the attempt, and what else is given.
func (w *attempt) beat(agent, key, activity string, totals, more map[string]any) {
	details := map[string]any{"agent": agent, "key": key, "turn": turnOf(key), "activity": activity, "totals": totals}
	for name, v := range more {
		details[name] = v
	}
	w.req.Heartbeat(details)
}

// textEvery is the least time between two reports of text that arrives.
const textEvery = 100 * time.Millisecond

// arriving reports the text of a reply as it arrives: the characters so far, and what has come since the last report.
type arriving struct {
	report func(received int, text string)
	now    func() time.Time

	mu       sync.Mutex
	received int
	unsent   strings.Builder
	last     time.Time
	ended    bool
}

func (a *arriving) add(text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.received += utf8.RuneCountInString(text)
	a.unsent.WriteString(text)
	if now := a.now(); !a.ended && now.Sub(a.last) >= textEvery {
		a.last = now
		a.flush()
	}
}

// end reports the rest. Text that a model hands over later is not reported.
func (a *arriving) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended = true; a.unsent.Len() > 0 {
		a.flush()
	}
}

// flush reports what is not reported yet. The caller holds the lock.
func (a *arriving) flush() {
	text := a.unsent.String()
	a.unsent.Reset()
	a.report(a.received, text)
}

// modelActivity is what an agent is at while it asks a model under a key: keys of summaries begin with k.
func modelActivity(key string) string {
	if strings.HasPrefix(key[strings.LastIndex(key, "/")+1:], "k") {
		return atCompacting
	}
	return atModel
}

// arrivingText makes what reports the text of a reply to a request.
func (w *attempt) arrivingText(agent, key, model string, totals map[string]any) *arriving {
	return &arriving{now: w.agents.now, report: func(received int, text string) {
		w.beat(agent, key, modelActivity(key), totals, map[string]any{"model": model, "received_chars": received, activities.HeartbeatText: text})
	}}
}
