package page

import (
	"cmp"
	"context"
	"net/http"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	runview "github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/agentsteps"
	"github.com/workflows-engine/workflows-engine/internal/fragment"
)

// questionView shows one question, with its form while it is open and with the answer after it.
func (s *Server) questionView(r *http.Request) (page view, err error) {
	ctx, id, key := r.Context(), runID(r), r.PathValue("key")
	v, damage, err := s.status(ctx, id)
	if err != nil {
		return page, err
	}
	page = view{Title: "Question", Follow: []string{id}}
	m := &fragment.Question{Run: id, Title: v.Title, RunPath: fragment.RunPath(id), Workflow: v.DefinitionName}
	if p := pendingQuestion(v, id, key); p != nil && damage == nil {
		s.ask(r, m, v, p, key)
		page.Title = cmp.Or(fragment.OneLine(p.Prompt, 80), page.Title)
	} else if err := s.answered(r, m, v, key); err != nil {
		return page, err
	}
	page.Body, err = s.body(m)
	return page, err
}

// ask shows an open question.
func (s *Server) ask(r *http.Request, m *fragment.Question, v *runview.Run, p *runview.Pending, key string) {
	id, sent := v.ExecutionID, submittedOf(r)
	post := fragment.Post{Action: fragment.QuestionPath(id, key), Token: s.questionToken(r, p)}
	q := fragment.AskOf(p, s.o.Redaction.Value, post, sent.filled())
	q.Title, q.RunPath, q.Workflow = m.Title, m.RunPath, m.Workflow
	*m = *q
	if !m.ShowsState && len(p.State) > 0 {
		m.State = s.value(p.State, fragment.ValuePath(id, "state"))
	}
	m.Input, m.VisitPath = s.input(r, id), fragment.VisitPath(id, p.NodeID, max(p.Visit, 1))
	if p.Steps > 0 {
		m.Turns = s.turns(r.Context(), v, p)
	}
	var run fragment.Run
	s.notices(&run, v)
	m.Notices = run.Notices
	if s.readOnly(r) {
		m.Calls, m.Form = m.Form.Calls, nil
		return
	}
	if sent != nil && sent.Err != nil {
		m.Refused = s.failure(sent.Err)
	}
}

// turns returns what the agent that asks a question has done in this attempt, nil if it cannot be read.
func (s *Server) turns(ctx context.Context, v *runview.Run, p *runview.Pending) *fragment.Attempt {
	f, done, err := s.fold(ctx, v.ExecutionID, v.DefinitionHash)
	defer done()
	if err != nil {
		return nil
	}
	for _, visit := range f.run.Visits {
		if a := visit.Attempt(); visit.Node == p.NodeID && visit.Number == max(p.Visit, 1) && a != nil {
			turns := s.attempt(ctx, v.ExecutionID, visit, a)
			return &turns
		}
	}
	return nil
}

// input returns the input of a run, or nil.
func (s *Server) input(r *http.Request, id string) (value *fragment.Value) {
	_ = s.eachRecord(r.Context(), id, 1, func(rec *history.Record) bool {
		switch {
		case rec.Name == history.ExecutionStarted && rec.Payload.Input != nil:
			value = s.value(rec.Payload.Input, fragment.RecordPath(id, rec.Seq, "input"))
		case rec.Name == history.StateUpdated:
			value = s.value(rec.Payload.State, fragment.RecordPath(id, rec.Seq, "state"))
		}
		return value == nil && rec.Seq < firstState
	})
	return value
}

// firstState is the last record that may hold the input.
const firstState = 20

// answered shows a question that is no longer open.
func (s *Server) answered(r *http.Request, m *fragment.Question, v *runview.Run, key string) error {
	id := v.ExecutionID
	e, err := s.outcome(r.Context(), id, key)
	if err != nil {
		return err
	}
	if e.Asked == nil {
		return problem.New(problem.ExecutionNotFound, "run %q has no question %q", id, key).WithHint("Open the run: it lists its open questions.")
	}
	m.Prompt, m.Node, m.Asked = e.Asked.Payload.Prompt, e.Asked.Payload.NodeID, e.Asked.CreatedAt
	m.VisitPath = fragment.VisitPath(id, m.Node, max(e.Asked.Payload.Visit, 1))
	if p := s.asked(r.Context(), v, e); p != nil {
		q := fragment.AskOf(p, s.o.Redaction.Value, fragment.Post{}, nil)
		m.Prompt, m.Show, m.ShowsState, m.Calls = cmp.Or(p.Prompt, m.Prompt), q.Show, q.ShowsState, q.Form.Calls
	}
	m.Answer = &fragment.Answer{By: e.By()}
	switch {
	case e.Answer != nil:
		m.Answer.At = e.Answer.CreatedAt
		if m.Answer.By == "" {
			m.Answer.Words = "The deadline passed without an answer."
		}
		laid := fragment.Lay(e.Answer.Payload.SignalPayload, nil)
		m.Answer.Value = &laid
	case e.Expired != nil:
		m.Answer.At, m.Answer.Words = e.Expired.CreatedAt, "The deadline passed without an answer."
	case v.Status.Terminal():
		m.Answer.At, m.Answer.Words = v.UpdatedAt, "The run is "+fragment.StatusState(v.Status).Word+"."
	default:
		m.Answer.Words = "The run no longer waits for this answer."
	}
	if sent := submittedOf(r); sent != nil && sent.Err != nil {
		m.Refused = s.failure(sent.Err)
	}
	m.Input = s.input(r, id)
	return nil
}

// asked returns a question as it was asked, from its records and the definition; nil if they do not tell.
func (s *Server) asked(ctx context.Context, v *runview.Run, e *fragment.Ended) *runview.Pending {
	if step := e.Asked.Payload.AgentStep; agentsteps.Approval(step) != nil { // the record of an executor's question has all of it
		return &runview.Pending{WaitInfo: machine.WaitInfo{Show: step}}
	}
	program := s.program(ctx, v.DefinitionHash)
	if e.State == nil || program == nil {
		return nil
	}
	n := program.Node(e.Asked.Payload.NodeID)
	if n == nil || n.Interrupt == nil {
		return nil
	}
	p, err := runview.Asked(n, e.State, e.Asked.CreatedAt)
	if err != nil {
		return nil
	}
	return p
}

// outcome returns how a question of a run ended.
func (s *Server) outcome(ctx context.Context, id, key string) (*fragment.Ended, error) {
	e := &fragment.Ended{Key: key}
	return e, s.eachRecord(ctx, id, 1, func(rec *history.Record) bool { return !e.Record(rec) })
}

// repeats reports whether a form has the answer that a question has already.
func (s *Server) repeats(r *http.Request, run *runview.Run, key string) bool {
	e, err := s.outcome(r.Context(), run.ExecutionID, key)
	if err != nil || e.Asked == nil {
		return false
	}
	var schema map[string]any
	if program := s.program(r.Context(), run.DefinitionHash); program != nil {
		if n := program.Node(e.Asked.Payload.NodeID); n != nil && n.Interrupt != nil {
			schema = n.Interrupt.ResumeSchemaRaw
		}
	}
	return e.Repeats(schema, s.o.Redaction.Value, r.PostForm)
}
