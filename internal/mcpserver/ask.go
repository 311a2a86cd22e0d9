package mcpserver

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/agentsteps"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver/elicit"
)

// If the host shows forms, it puts the questions of interrupts to the person while the call waits: up to revision
// 2025-11-25 through a request of the server (ask_host.go), later through an answer that the host sends back with the
// person's input (ask_ticket.go). A slow person holds up nothing: the question stays open, and its answer is recorded
// when it arrives.

const (
	// maxQuestions is how many questions a call asks, one after the other. Some hosts allow at most ten rounds of a call.
	maxQuestions = 8
	// maxTries is how many invalid answers to a question are accepted before it ends.
	maxTries = 2
)

// asking holds a call's part in asking the person.
type asking struct {
	s    *server
	host *mcp.ServerSession
	// revision is the call's protocol revision. able is set if the host shows forms, cards if it shows cards; actor records the answers.
	revision string
	able     bool
	cards    bool
	actor    history.Actor
	began    time.Time
	forms    map[string]*elicit.Form // by interrupt, nil for one that is no form
	// again is set to ask a person who did not answer before; only is then the interrupt to ask about.
	again bool
	only  string
	// answer is the person's answer, if this call was repeated with one.
	answer *personsAnswer
	// tries counts the person's invalid answers to the interrupt tried; complaint is why the last one was rejected. asked counts the
	// questions of the call so far.
	tried, complaint string
	tries, asked     int
	// second is the text for a person who answered a question that had an answer already, else "".
	second string
}

func (s *server) asking(req *mcp.CallToolRequest) *asking {
	k := &asking{s: s, host: req.Session, revision: req.ProtocolVersion(), began: time.Now(), forms: map[string]*elicit.Form{}}
	k.actor = client(req)
	k.actor.Via, k.cards = "elicitation", showsCards(req)
	// A server without workflow_resume accepts no answers from people either.
	offered := s.opts.Elicit != elicit.Never && s.tools.has("workflow_resume")
	if c := req.ClientCapabilities(); offered && c != nil && c.Elicitation != nil && k.revision >= elicit.Since {
		k.able = c.Elicitation.Form != nil || c.Elicitation.URL == nil // a capability with neither field means forms
	}
	return k
}

// byTicket reports whether questions are answers of calls.
func (k *asking) byTicket() bool { return k.revision >= elicit.TicketsSince }

// key identifies the question of an interrupt. Without sessions all clients share it.
func (k *asking) key(p *view.Pending) elicit.Key {
	if k.byTicket() {
		return elicit.Key{Interrupt: p.ID}
	}
	return elicit.Key{Session: k.host, Interrupt: p.ID}
}

// can reports whether the host can put the question of an interrupt to the person.
func (k *asking) can(p *view.Pending) bool { return k != nil && k.able && k.form(p) != nil }

// form returns the form of an interrupt, nil if it cannot be shown as one.
func (k *asking) form(p *view.Pending) *elicit.Form {
	if p.Kind != machine.WaitInterrupt || isUnbound(p) {
		return nil
	}
	f, known := k.forms[p.ID]
	if !known {
		var err error
		if f, err = elicit.FormOf(formSchema(p), k.revision); err != nil {
			k.s.log.Debug("interrupt has no form", "execution_id", p.ExecutionID, "interrupt", p.ID, "error", err)
		} else if text := string(f.Schema.Append(nil)); k.s.opts.Redaction.String(text) != text {
			f = nil // the form would not show all choices
		}
		k.forms[p.ID] = f
	}
	return f
}

// formSchema returns the schema of an interrupt's form. For calls that an agent wants approved it has the decisions that a form can show.
func formSchema(p *view.Pending) map[string]any {
	if agentsteps.Approval(p.Show) == nil {
		return p.ResumeSchema
	}
	return map[string]any{
		"type": "object", "required": []any{"decision"},
		"properties": map[string]any{
			"decision": map[string]any{"type": "string", "enum": []any{"approve", "deny", "stop"}, "description": "stop ends the agent"},
			"reason":   map[string]any{"type": "string", "description": "text that the agent reads for a denied call"},
		},
	}
}

// state returns the state of an interrupt's question, and whether the person can be asked (again).
func (k *asking) state(p *view.Pending) (end elicit.End, more bool) {
	if !k.can(p) {
		return elicit.End{}, false
	}
	return k.s.desk.Of(k.key(p))
}

// next returns the first interrupt of a run whose question is open or can be asked.
func (k *asking) next(run *view.Run) *view.Pending {
	if k == nil || !k.able || k.asked >= maxQuestions {
		return nil
	}
	for i := range run.Pending {
		p := &run.Pending[i]
		if !k.can(p) || k.only != "" && k.only != p.ID {
			continue
		}
		if end, more := k.state(p); end.State == "" || end.State == elicit.Asking || k.again && more {
			return p
		}
	}
	return nil
}

// waitsForModel reports whether the run waits for the host's model, which must not wait for the person then.
func waitsForModel(run *view.Run) bool {
	return slices.ContainsFunc(run.Pending, func(p view.Pending) bool {
		return (p.Kind == machine.WaitActivity || p.Kind == machine.WaitDelegate) && p.Host
	})
}

// ask puts the run's questions to the person through the host and continues with the answers. It returns the run
// afterwards, or an answer of the call that asks the host.
func (s *server) ask(ctx context.Context, a *arguments, run *view.Run) (*view.Run, *answer, error) {
	k := a.asking
	for {
		p := k.next(run)
		if p == nil || waitsForModel(run) && k.byTicket() && !k.again {
			return run, nil, nil
		}
		if k.byTicket() {
			shown, mine := s.desk.Show(k.key(p), time.Now(), k.patience(p))
			if mine {
				return s.askByTicket(ctx, a, run, p)
			}
			k.again, k.only = false, ""
			after, err := s.whileShown(ctx, a, run, shown)
			if err != nil || after == nil {
				return run, nil, err
			}
			run = after
			continue
		}
		named := k.only != ""
		asked := s.askHost(ctx, k, run, p)
		k.asked, k.again, k.only = k.asked+1, false, ""
		if waitsForModel(run) && !named || !k.await(ctx, a, asked) {
			return run, nil, nil
		}
		var err error
		switch end := asked.End(); end.State {
		case elicit.Answered: // it is recorded; a repeated answer waits for the run
			req := graph.ResumeRequest{ExecutionID: run.ExecutionID, InterruptID: p.ID, Payload: end.Payload, Caller: graph.Caller{Wait: k.left(a)}}
			if after, err := s.Resume(ctx, req); err == nil {
				after.Repeated, run = false, after
				continue
			}
			fallthrough
		case elicit.Overtaken:
			if end.Err != nil {
				k.second = answeredBefore(firstAnswer(end.Err))
			}
			run, err = s.Status(ctx, graph.StatusRequest{ExecutionID: run.ExecutionID})
		case elicit.Unsent: // it could not be sent now either; the next call can
			return run, nil, nil
		case elicit.Failed:
			err = end.Err
		}
		if err != nil {
			return nil, nil, err
		}
	}
}

// left returns how long a call may still wait.
func (k *asking) left(a *arguments) graph.Wait {
	w := a.waiting(a.Wait())
	w.Limit = graph.WaitAtMost(cmp.Or(w.Limit, k.s.waitLimit()) - time.Since(k.began)).Limit
	return w
}

// waitLimit returns the longest wait of a call without wait_ms.
func (s *server) waitLimit() time.Duration { return max(0, cmp.Or(s.opts.WaitLimit, 20*time.Second)) }

// patience returns how long an open form keeps other calls from showing the same question. It is bounded: a form may
// be lost.
func (k *asking) patience(p *view.Pending) time.Duration {
	switch {
	case k.answer != nil && k.answer.InterruptID == p.ID: // its form was returned
		return 0
	case k.again:
		return elicit.PatienceOfAsked
	default:
		return elicit.Patience
	}
}

// whileShown waits until a form shown by another call ends, or the run changes. It returns the run then, nil if the
// call may wait no longer.
func (s *server) whileShown(ctx context.Context, a *arguments, run *view.Run, shown *elicit.Question) (*view.Run, error) {
	w := a.asking.left(a)
	if w.Applied != nil {
		w.Applied() // the call with the person's answer need not wait
	}
	defer a.waitsFor("the person")()
	over := make(chan struct{})
	waited, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		defer close(over)
		select {
		case <-shown.Done():
		case <-w.End:
		case <-waited.Done():
		}
	}()
	after, err := s.Status(ctx, graph.StatusRequest{ExecutionID: run.ExecutionID, Since: run.Seq, Wait: &graph.Wait{Limit: w.Limit, End: over}})
	if err != nil {
		return nil, err
	}
	select {
	case <-shown.Done():
		return after, nil
	default:
	}
	if after.Seq == run.Seq {
		return nil, nil
	}
	return after, nil
}

// await waits for the end of a question, as long as the call may wait. It reports whether the question has ended.
func (k *asking) await(ctx context.Context, a *arguments, q *elicit.Question) bool {
	w := k.left(a)
	if w.Applied != nil {
		w.Applied() // other calls about the run need not wait for the person
	}
	defer a.waitsFor("the person")()
	over := time.NewTimer(w.Limit)
	defer over.Stop()
	select {
	case <-q.Done():
		return true
	case <-over.C:
	case <-w.End:
	case <-ctx.Done():
	}
	return false
}
