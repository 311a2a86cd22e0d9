package fragment

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Ended is how a question ended, from the records of its run.
type Ended struct {
	// Key is that of the question within its run: "<node>#<visit>", for an executor with its attempt and the key of the question behind it.
	Key string
	// Asked, Answer and Expired are the records of the question, of its answer and of its deadline; nil for one that there is not.
	Asked, Answer, Expired *history.Record
	// State is the state that the question was asked over; nil if the records do not tell, as in a branch.
	State map[string]any

	by *history.Actor // the first record of the call, often its command, has it
}

// Record adds the next record of the run. It reports whether the answer is known.
func (e *Ended) Record(rec *history.Record) bool {
	p := &rec.Payload
	switch rec.Name {
	case history.InterruptRaised:
		if e.is(p) {
			if e.Asked = keep(rec); p.Span != nil {
				e.State = nil
			}
		}
	case history.StateUpdated:
		if e.Asked == nil {
			if e.State = p.State; p.Span != nil {
				e.State = nil
			}
		}
	case history.InterruptResumed:
		if e.is(p) {
			e.Answer, e.by = keep(rec), cmp.Or(p.Actor, e.by)
		}
	case history.ResumeInterrupt:
		if e.by = nil; e.Asked != nil && p.NodeID == e.Asked.Payload.NodeID {
			e.by = p.Actor
		}
	case history.TimerFired:
		if e.Asked != nil && e.Answer == nil && p.TimerKind == "deadline" && p.NodeID == e.Asked.Payload.NodeID && max(p.Visit, 1) == max(e.Asked.Payload.Visit, 1) {
			e.Expired = keep(rec)
		}
	}
	return e.Answer != nil
}

// By returns who answered, "" if the question ended without an answer.
func (e *Ended) By() string {
	switch {
	case e.Answer == nil || e.by == nil && e.Answer.Payload.AnswerExpired():
		return ""
	case e.by == nil:
		return "an unnamed caller"
	}
	return e.by.String()
}

// Told returns who answered and when, as in " by kim, 2026-01-31 12:30:00Z"; "" without an answer.
func (e *Ended) Told() string {
	by := e.By()
	if by == "" {
		return ""
	}
	return fmt.Sprintf(" by %s, %s", by, e.Answer.CreatedAt.UTC().Format(timeFormat))
}

// Repeats reports whether a form has the recorded answer. schema is that of the answers to the node; hide is that of AskOf.
func (e *Ended) Repeats(schema map[string]any, hide func(any) any, values map[string][]string) bool {
	if e.Asked == nil || e.By() == "" {
		return false
	}
	asked := view.Pending{ResumeSchema: schema}
	if step := e.Asked.Payload.AgentStep; step != nil { // the record of an executor's question has all of it
		asked.Show = step
		asked.ResumeSchema, _ = step["schema"].(map[string]any)
	}
	payload, mistakes := AnswerOf(&asked, hide, values)
	recorded := e.Answer.Payload.SignalPayload
	if recorded == nil {
		recorded = map[string]any{}
	}
	return len(mistakes) == 0 && bytes.Equal(jsonvalue.Canonical(payload), jsonvalue.Canonical(recorded))
}

// keep returns a copy of a record.
func keep(rec *history.Record) *history.Record {
	kept := *rec
	return &kept
}

// is reports whether a record is about the question.
func (e *Ended) is(p *history.Payload) bool {
	visit := fmt.Sprintf("%s#%d", p.NodeID, max(p.Visit, 1))
	rest, found := strings.CutPrefix(e.Key, visit)
	if !found || rest != "" && !strings.HasPrefix(rest, ".") {
		return false
	}
	step, _, _, ok := p.Step()
	return rest == "" && !ok || rest != "" && (!ok || strings.HasSuffix(rest, "/"+step))
}
