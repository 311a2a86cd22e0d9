package view

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Key names an attempt, interrupt or wait of a run among those of all runs.
func Key(executionID, key string) string { return executionID + ":" + key }

// pending describes one wait with all that whoever ends it needs.
func (s *Source) pending(w machine.Wait, states stateCopies) Pending {
	id := s.Execution.ID
	p := Pending{
		Kind: w.Kind, ExecutionID: id, ID: Key(id, w.Key), NodeID: w.NodeID, Visit: w.Visit, Item: w.Item, Items: w.Items,
		Attempt: w.Attempt, MaxAttempts: w.MaxAttempts, Span: w.Span, Host: w.Host, Queued: w.Queued, State: states.of(w.State), RequestedAt: w.RequestedAt,
		Deadline: w.Deadline, BlockDeadline: w.BlockDeadline, Timeout: w.Timeout, LastError: w.LastError, LastCode: w.LastCode, SignalName: w.SignalName,
		Prompt: w.Prompt, Due: w.Due, AgentID: w.AgentID, Protocol: w.Protocol, CorrelationID: w.CorrelationID,
		ChildExecutionID: w.ChildExecutionID, WorkflowRef: w.WorkflowRef,
	}
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
		p.Show, p.showsState = jsonvalue.Clone(w.Show), n.Interrupt.Show == nil
		p.written = w.Written
		if n.Interrupt.Show != nil {
			p.showSource = n.Interrupt.Show.Source()
		}
		p.ResumeSchema = jsonvalue.CloneMap(n.Interrupt.ResumeSchemaRaw)
	}
	return p
}

// NeedsSomebody reports whether a person, a host or another system has to end the wait.
func (p Pending) NeedsSomebody() bool {
	return p.Kind == machine.WaitInterrupt || p.Kind == machine.WaitSignal || p.Host
}

// maxQuestion is about how many bytes of what is shown beside a question Question has.
const maxQuestion = 5 << 10

// Question is the prompt of an interrupt with what is shown beside it.
func (p *Pending) Question() string {
	return strings.TrimSpace(p.Prompt + "\n\n" + p.Shown(maxQuestion))
}

// Shown is what a person sees beside the question of an interrupt, as text of at most about so many bytes: what the author shows, or else
// the state that the question is about.
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
		text += fmt.Sprintf("\n\n(Some of this is cut short: the status of run %s has all of it.)", p.ExecutionID)
	}
	return text
}

// shownState is the state that a question is about: first what is new since the last one, which may take three quarters of the room.
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
		return "What the run has so far:\n" + text, cut
	}
	text, cut = readable(fresh, inOrder(p.written), most*3/4)
	rest, restCut := readable(before, jsonvalue.Keys, max(most-len(text), 0))
	return "What is new:\n" + text + "\n\nWhat the run had before:\n" + rest, cut || restCut
}

// outline describes a wait of a run whose definition is not known.
func (s *Source) outline(w *history.Wait, state map[string]any) Pending {
	p := Pending{
		ExecutionID: s.Execution.ID, NodeID: w.NodeID, NodeType: w.NodeType, Visit: max(w.Visit, 1), Attempt: w.Attempt, Span: w.Span,
		State: state, SignalName: w.SignalName, Due: w.Due, ChildExecutionID: w.ChildExecutionID,
	}
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

// agentAnswerSchema is the schema of the answer to an agent's question: an object that says something.
func agentAnswerSchema() map[string]any {
	return map[string]any{
		"type": "object", "minProperties": 1.0,
		"properties": map[string]any{
			"text": map[string]any{"type": "string", "description": "The answer in words; other members go to the agent as data."},
		},
	}
}

// stateCopies copies each of the states of a view once, since waits share them, and so each large member that several states have: what an
// item of a map or a compensation sees is the state with one member more. It holds what it has copied, so that the address of one cannot
// become that of another.
type stateCopies map[identity]struct{ of, copied any }

// identity tells objects and lists from others that are held at the same time.
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

// once returns the copy of an object or a list.
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
