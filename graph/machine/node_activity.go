package machine

import (
	"cmp"
	"fmt"
	"maps"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
)

// step, llm_call and tool_call (spec: execution, 8).

func (m *Machine) beginActivity(t *token) *definition.Node {
	if err := t.node.TimeoutErr; err != nil {
		return m.failErr(t, reasonOrchestration, err)
	}
	m.firstAttempt(t, &wait{Kind: WaitActivity, Attempt: 1})
	return nil
}

// activityRequest returns the payload of an activity's ActivityRequested.
func (m *Machine) activityRequest(t *token, w *wait) history.Payload {
	p := m.fact(t)
	p.NodeType, p.Attempt = string(t.node.Type), w.Attempt
	t.locate(&p)
	return p
}

// request writes the ActivityRequested of an activity or delegate, and waits for the attempt's outcome.
func (m *Machine) request(t *token, w *wait) {
	if m.fatal == nil {
		m.fatal = cmp.Or(m.limitReached(t.node.ID), m.pendingLimitReached(t.node.ID))
	}
	if m.fatal != nil {
		return
	}
	w.Host = m.cfg.Mode == HostMediated
	known, p := false, history.Payload{}
	if w.Kind == WaitDelegate {
		p = m.delegateRequest(t, w)
	} else {
		p = m.activityRequest(t, w)
	}
	if m.recorded != nil {
		w.Host, known = m.recorded.requestMode(t, w.Attempt, w.Host)
		m.setNow(m.recorded.requestedAt(t, w.Attempt, m.present))
	}
	if w.Host {
		p.Mode = string(HostMediated)
	}
	if d := m.timeout(t, w); d > 0 {
		w.Timeout, w.Deadline = d, m.now.Add(d)
		p.TimeoutMS = d.Milliseconds()
	}
	p.Request = t.itemRequest()
	var unfit error
	if w.Host && !known {
		env := m.env()
		env.Now = m.now // the time of the record
		w.filled, unfit = t.fill(w, env)
		p.Request = t.hostRequest(w)
	}
	if m.stopped {
		return
	}
	m.event(history.ActivityRequested, p)
	m.waitFor(t, w)
	if unfit != nil { // as an attempt in process fails
		m.takeOutcome(t, unfilled(unfit))
		return
	}
	if e := t.effect(); e != nil && !known {
		m.effects = append(m.effects, e)
	}
}

// unfilled returns the outcome of a host attempt whose config templates cannot be evaluated.
func unfilled(err error) Outcome {
	return Outcome{Host: true, Error: err.Error(), Code: codeOf(err), Final: true}
}

// fill returns the fields of an activity's config that are templates, evaluated for a host. The executors of this engine evaluate them
// themselves.
func (t *token) fill(w *wait, env expr.Env) (map[string]any, error) {
	if w.Kind != WaitActivity {
		return nil, nil
	}
	n := definition.Templates{ID: t.node.ID, Type: string(t.node.Type), Config: t.node.Config, Metadata: t.node.Metadata}
	return n.Values(t.nodeState, env)
}

// filled returns the values of fill for a wait of a host. A restored or replayed machine evaluates them again, with the state and time of the
// request. In runs of older releases, a template that cannot be evaluated stays as written.
func (t *token) filled() map[string]any {
	w := t.wait
	if w.Host && w.filled == nil {
		w.filled, _ = t.fill(w, expr.Env{Now: w.Since})
	}
	return w.filled
}

// hostRequest returns the recorded request of a host attempt: the evaluated templates, and the item of a map.
func (t *token) hostRequest(w *wait) map[string]any {
	item := t.itemRequest()
	if len(w.filled) == 0 {
		return item
	}
	request := maps.Clone(w.filled)
	if t.item() {
		request["item"] = item["item"]
	}
	return request
}

// timeout returns the timeout of the attempt being requested, 0 without one.
func (m *Machine) timeout(t *token, w *wait) time.Duration {
	d := t.node.Timeout
	if d <= 0 || !w.Host {
		return d
	}
	if m.recorded != nil {
		if q := m.recorded.of(t).request(w.Attempt); q != nil && !q.Foreign && q.Payload.TimeoutMS > 0 {
			return time.Duration(q.Payload.TimeoutMS) * time.Millisecond
		}
	}
	return max(d, m.cfg.Limits.MinHostTimeout)
}

// activityOutput checks an output and turns it into a delta (spec: execution, 8.2). A violation fails the attempt; fatal is
// an orchestration error.
func activityOutput(n *definition.Node, output any) (delta map[string]any, violation string, fatal error) {
	if c := n.Activity; c != nil {
		if c.OutputSchemaErr != nil {
			return nil, "", fmt.Errorf("output_schema of node %q: %w", n.ID, c.OutputSchemaErr)
		}
		if c.OutputSchema != nil {
			if vs := c.OutputSchema.Validate(output); len(vs) > 0 {
				return nil, "the output breaks output_schema: " + jsonschema.Text(vs), nil
			}
		}
	}
	switch v := output.(type) {
	case map[string]any:
		return v, "", nil
	case nil:
		return map[string]any{}, "", nil
	default:
		return map[string]any{"value": v}, "", nil
	}
}
