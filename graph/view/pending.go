package view

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Key returns the key of an attempt, interrupt or wait that is unique among all runs.
func Key(executionID, key string) string { return executionID + ":" + key }

// pending describes a wait, with everything needed to end it.
func (s *Source) pending(w machine.Wait, states stateCopies) Pending {
	id := s.Execution.ID
	p := Pending{WaitInfo: w.WaitInfo, ExecutionID: id, ID: Key(id, w.Key)}
	p.State, p.Show = states.of(w.State), jsonvalue.Clone(w.Show)
	if w.Task != nil {
		p.ExternalTaskID = w.Task.ID
	}
	if j := w.Journal; j != nil {
		p.Steps, p.Totals = j.Count, jsonvalue.CloneMap(j.Totals)
		p.FirstStepSeq, p.LastStepSeq, p.ReconfiguredSeq = j.First, j.Last, j.Reconfigured
	}
	if w.DelegateInput != nil {
		p.DelegateInput = jsonvalue.CloneMap(w.DelegateInput)
	}
	n := s.Program.Node(w.NodeID)
	if n == nil {
		return p
	}
	p.NodeType = string(n.Type)
	switch w.Kind {
	case machine.WaitActivity, machine.WaitDelegate:
		p.IdempotencyKey = p.ID
		p.Config = jsonvalue.CloneMap(definition.OverlayConfig(n.Config, w.Filled))
		if n.Activity != nil && n.Activity.OutputSchema != nil {
			p.OutputSchema = p.Config["output_schema"]
		}
	case machine.WaitInterrupt:
		if j := w.Journal; j != nil {
			p.ResumeSchema, p.QuestionSeq = jsonvalue.CloneMap(j.Question.Schema), j.Question.Seq
		}
		if n.Interrupt == nil {
			if len(p.ResumeSchema) == 0 {
				p.ResumeSchema = agentAnswerSchema()
			}
			break
		}
		p.Config = jsonvalue.CloneMap(n.Config)
		p.Prompt, p.PromptRef = cmp.Or(w.Question, n.Interrupt.Prompt), n.Interrupt.PromptRef
		p.showsState, p.written = n.Interrupt.Show == nil, w.Written
		if n.Interrupt.Show != nil {
			p.showSource = n.Interrupt.Show.Source()
		}
		p.ResumeSchema = jsonvalue.CloneMap(n.Interrupt.ResumeSchemaRaw)
	}
	return p
}

// Asked returns the question that an interrupt node asked at a time, over the state of then, with the values that the person saw beside it.
func Asked(n *definition.Node, state map[string]any, at time.Time) (p *Pending, err error) {
	p = &Pending{WaitInfo: machine.WaitInfo{Kind: machine.WaitInterrupt, NodeID: n.ID, State: state, Prompt: n.Interrupt.Prompt}, PromptRef: n.Interrupt.PromptRef}
	p.showsState = n.Interrupt.Show == nil
	env := expr.Env{Now: at}
	if n.Interrupt.Template != nil {
		if _, p.Prompt, err = n.Interrupt.Template.EvalShown(func() map[string]any { return state }, env); err != nil {
			return nil, err
		}
	}
	if n.Interrupt.Show != nil {
		p.showSource = n.Interrupt.Show.Source()
		p.Show, err = n.Interrupt.Show.EvalAt(state, env)
	}
	return p, err
}

// NeedsInput reports whether a person, a host or another system must end the wait.
func (p Pending) NeedsInput() bool {
	return p.Kind == machine.WaitInterrupt || p.Kind == machine.WaitSignal || p.Host
}

// Proceeds reports whether processes continue the run by themselves at this wait, at once or, for a timer, by a time: the wait is an attempt, a
// subworkflow without waits of its own, or a timer.
func (p Pending) Proceeds(by time.Time) bool {
	switch p.Kind {
	case machine.WaitActivity, machine.WaitDelegate:
		return !p.Host
	case machine.WaitTimer, machine.WaitBackoff:
		return p.Due.Before(by)
	case machine.WaitChild:
		return true
	}
	return false
}

// maxQuestion is the approximate size, in bytes, of the text shown below a question.
const maxQuestion = 5 << 10

// Question returns the prompt of an interrupt, followed by Shown.
func (p *Pending) Question() string {
	return strings.TrimSpace(p.Prompt + "\n\n" + p.Shown(maxQuestion))
}

// Shown returns the text that a person sees below the question of an interrupt, of about most bytes: the value that the author shows (show),
// or else the state.
func (p *Pending) Shown(most int) string {
	var text string
	var cut bool
	switch {
	case p.Show != nil:
		text, cut = readable(p.Show, func(object map[string]any) []string { return writtenOrder(object, p.showSource) }, most)
	case p.showsState && len(p.State) > 0:
		text, cut = p.shownState(most)
	}
	if cut {
		text += fmt.Sprintf("\n\n(Shortened: the status of run %s has all of it.)", p.ExecutionID)
	}
	return text
}

// ShownValue returns the value that a person sees with the question of an interrupt: that of the author (show), or else the state, for which
// isState is set; nil if there is no value.
func (p *Pending) ShownValue() (v any, isState bool) {
	switch {
	case p.Show != nil:
		return p.Show, false
	case p.showsState && len(p.State) > 0:
		return p.State, true
	}
	return nil, false
}

// ShownNames returns the names of an object in ShownValue in the order to show them: that in which the author wrote them; of the state, the
// fields that are new since the last question come first.
func (p *Pending) ShownNames(object map[string]any) []string {
	if p.Show != nil {
		return writtenOrder(object, p.showSource)
	}
	return namesInOrder(object, p.written)
}

// shownState returns the state as text: first the fields that are new since the last question, in up to three quarters of the size.
func (p *Pending) shownState(most int) (text string, cut bool) {
	fresh, before := map[string]any{}, maps.Clone(p.State)
	for _, name := range p.written {
		if v, has := p.State[name]; has {
			fresh[name] = v
			delete(before, name)
		}
	}
	if len(fresh) == 0 || len(before) == 0 {
		text, cut = readable(p.State, inOrder(p.written), most)
		return "State of the run:\n" + text, cut
	}
	text, cut = readable(fresh, inOrder(p.written), most*3/4)
	rest, restCut := readable(before, jsonvalue.Keys, max(most-len(text), 0))
	return "New since the last question:\n" + text + "\n\nEarlier:\n" + rest, cut || restCut
}

// outline describes a wait of a run without a known definition.
func (s *Source) outline(w *history.Wait, state map[string]any) Pending {
	p := Pending{ExecutionID: s.Execution.ID, NodeType: w.NodeType, WaitInfo: machine.WaitInfo{
		NodeID: w.NodeID, Visit: max(w.Visit, 1), Attempt: w.Attempt, Span: w.Span,
		State: state, SignalName: w.SignalName, Due: w.Due, ChildExecutionID: w.ChildExecutionID,
	}}
	switch w.Kind {
	case history.WaitActivity:
		p.Kind, p.Host = machine.WaitActivity, !w.InProcess() && !w.AtAgent()
		p.ExternalTaskID, p.Queued = w.ExternalTask, w.Queued
		if w.Delegate() {
			p.Kind, p.AgentID, p.Protocol = machine.WaitDelegate, w.AgentID, w.Protocol
			p.CorrelationID, p.DelegateInput = w.Correlation, jsonvalue.CloneMap(w.Input)
		}
	case history.WaitSubworkflow:
		p.Kind = machine.WaitChild
	default:
		p.Kind = machine.WaitKind(w.Kind)
	}
	return p
}

// agentAnswerSchema is the default schema of an answer to an agent's question: an object with at least one property.
func agentAnswerSchema() map[string]any {
	return map[string]any{
		"type": "object", "minProperties": 1.0,
		"properties": map[string]any{
			"text": map[string]any{"type": "string", "description": "The answer in words; other members go to the agent as data."},
		},
	}
}

// stateCopies copies each state of a view once, since waits share states, and each object or array in several states once: the state of
// a map item is the run's state with one more field. It keeps the originals, so that their addresses stay unique.
type stateCopies map[identity]struct{ of, copied any }

// identity identifies an object or array by its address.
type identity struct {
	kind reflect.Kind
	at   uintptr
	len  int
}

func (c stateCopies) of(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return c.once(m, func() any {
		object := make(map[string]any, len(m))
		for name, value := range m {
			switch value.(type) {
			case map[string]any, []any:
				value = c.once(value, func() any { return jsonvalue.Clone(value) })
			}
			object[name] = value
		}
		return object
	}).(map[string]any)
}

// once returns the copy of an object or array.
func (c stateCopies) once(of any, clone func() any) any {
	v := reflect.ValueOf(of)
	key := identity{v.Kind(), v.Pointer(), v.Len()}
	entry, ok := c[key]
	if !ok {
		entry.of, entry.copied = of, clone()
		c[key] = entry
	}
	return entry.copied
}
