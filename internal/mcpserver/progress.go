package mcpserver

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

const (
	// progressEvery is the least time between two notifications of a call. Only the newest event is sent; a call that ends
	// earlier sends nothing.
	progressEvery = 250 * time.Millisecond

	// progressSettles is the least time between a notification and the answer behind it. A client that reads both at once
	// may deal with the answer first; the notification's token is then unknown to it, and there are hosts that end the
	// connection over that.
	progressSettles = 100 * time.Millisecond

	// progressAlive is the longest silence of a call: some clients give up a silent one.
	progressAlive = 8 * time.Second
)

// reporter sends the progress of one call to a client that gave a token for it.
type reporter struct {
	send func(progress float64, message string)

	mu sync.Mutex
	// count rises with every notification, as the protocol demands.
	count  float64
	unsent string
	last   time.Time // of the last notification; zero before
	timer  *time.Timer
	closed bool
	// began is the start of the call; alive reports now and then that it still waits.
	began time.Time
	what  string
	alive *time.Timer
}

// newReporter makes a reporter for a call, nil if the client gave no token.
func newReporter(ctx context.Context, req *mcp.CallToolRequest) *reporter {
	token := req.Params.GetProgressToken()
	if token == nil {
		return nil
	}
	r := &reporter{began: time.Now(), what: "the run", send: func(progress float64, message string) {
		if ctx.Err() != nil {
			return // the client has cancelled the call, and its token with it
		}
		// A client that is gone needs no progress.
		_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: progress, Message: message})
	}}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.alive = time.AfterFunc(progressAlive, r.stillWaits)
	return r
}

// stillWaits sends a notification that the call still waits, after a long silence.
func (r *reporter) stillWaits() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	silent := time.Since(r.last)
	if silent >= progressAlive {
		r.count++
		r.send(r.count, fmt.Sprintf("waits for %s (%d s)", r.what, int(time.Since(r.began).Seconds())))
		r.last, silent = time.Now(), 0
	}
	r.alive.Reset(progressAlive - silent)
}

// waitsFor sets the reason why a call waits, until before is called.
func (a *arguments) waitsFor(what string) (before func()) {
	r := a.reporter
	if r == nil {
		return func() {}
	}
	set := func(what string) (was string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		was, r.what = r.what, what
		return was
	}
	was := set(what)
	return func() { set(was) }
}

// report notes an event, to be sent a little later.
func (r *reporter) report(p graph.Progress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count++
	r.unsent = progressText(p)
	if !r.closed && r.timer == nil {
		r.timer = time.AfterFunc(progressEvery, r.flush)
	}
}

func (r *reporter) flush() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.timer = nil
	if !r.closed {
		r.send(r.count, r.unsent)
		r.last = time.Now()
	}
}

// stop ends the reporting and waits until the last notification has been sent, so that the answer comes last. The end
// of ctx means that no client waits for the answer.
func (r *reporter) stop(ctx context.Context) {
	r.mu.Lock()
	r.closed = true
	if r.timer != nil {
		r.timer.Stop()
	}
	if r.alive != nil {
		r.alive.Stop()
	}
	settles := time.Duration(0)
	if !r.last.IsZero() {
		settles = progressSettles - time.Since(r.last)
	}
	r.mu.Unlock()
	if settles <= 0 {
		return
	}
	select {
	case <-time.After(settles):
	case <-ctx.Done():
	}
}

// maxProgressText bounds the text quoted in a notification.
const maxProgressText = 120

// progressText describes an event in a few words.
func progressText(p graph.Progress) string {
	if text, ok := agentProgress(p.Detail); ok && p.Kind == graph.ExecutorAlive {
		return problem.Clip(text, maxProgressText)
	}
	text := p.NodeID
	if p.Branch != "" {
		text += " [" + p.Branch + "]"
	}
	switch p.Kind {
	case graph.NodeRuns:
		text += " runs"
		if p.Attempt > 1 {
			text += fmt.Sprintf(", attempt %d", p.Attempt)
		}
	case graph.NodeDone:
		text += " completed"
	case graph.AttemptFailed:
		text += " failed: " + p.Error
	case graph.ExecutorAlive:
		text += " is running"
		if said := detailText(p.Detail); said != "" {
			text += ": " + said
		}
	}
	return problem.Clip(text, maxProgressText)
}

// agentProgress describes the step of an agent inside the engine; ok is false for the details of another executor.
func agentProgress(detail map[string]any) (text string, ok bool) {
	agent, named := detail["agent"].(string)
	activity, ok := detail["activity"].(string)
	if !named || !ok {
		return "", false
	}
	of := func(name string) string { s, _ := detail[name].(string); return s }
	text = agent + ": "
	if turn, _ := detail["turn"].(int); turn > 0 {
		text += fmt.Sprintf("turn %d, ", turn)
	}
	switch activity {
	case "model":
		text += "asks " + of("model")
	case "tool":
		text += "calls " + of("tool")
	case "compacting":
		text += "summarizes the conversation"
	case "waiting":
		text += "waits before the model is asked again"
	default:
		text += activity
	}
	if n, _ := detail["received_chars"].(int); n > 0 {
		text += " (" + grouped(n) + " characters)"
	}
	return text, true
}

// grouped returns a number with commas between its thousands.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// detailText returns the message of an executor's details, else its facts.
func detailText(detail map[string]any) string {
	if message, ok := detail["message"].(string); ok && message != "" {
		return message
	}
	parts := make([]string, 0, len(detail))
	for _, name := range jsonvalue.Keys(detail) {
		parts = append(parts, fmt.Sprintf("%s %v", name, detail[name]))
	}
	return strings.Join(parts, ", ")
}
