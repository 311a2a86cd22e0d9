package page

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	runview "github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
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
	m.Input = s.input(r, id)
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
	var asked, answer, ended *history.Record
	var by *history.Actor // of the answer: the first record of the call, often its command, has it
	err := s.eachRecord(r.Context(), id, 1, func(rec *history.Record) bool {
		p := &rec.Payload
		switch rec.Name {
		case history.InterruptRaised:
			if isKey(p, key) {
				asked = keep(rec)
			}
		case history.InterruptResumed:
			if isKey(p, key) {
				answer, by = keep(rec), cmp.Or(p.Actor, by)
			}
		case history.ResumeInterrupt:
			if by = nil; asked != nil && p.NodeID == asked.Payload.NodeID {
				by = p.Actor
			}
		case history.TimerFired:
			if asked != nil && answer == nil && p.TimerKind == "deadline" && p.NodeID == asked.Payload.NodeID && max(p.Visit, 1) == max(asked.Payload.Visit, 1) {
				ended = keep(rec)
			}
		}
		return answer == nil
	})
	if err != nil {
		return err
	}
	if asked == nil {
		return problem.New(problem.ExecutionNotFound, "run %q has no question %q", id, key).WithHint("Open the run: it lists its open questions.")
	}
	m.Prompt, m.Node, m.Asked = asked.Payload.Prompt, asked.Payload.NodeID, asked.CreatedAt
	m.Answer = &fragment.Answer{}
	switch {
	case answer != nil:
		m.Answer.At = answer.CreatedAt
		if by != nil {
			m.Answer.By = by.String()
		} else if !answer.Payload.AnswerExpired() {
			m.Answer.By = "an unnamed caller"
		} else {
			m.Answer.Words = "The deadline passed without an answer."
		}
		laid := fragment.Lay(answer.Payload.SignalPayload, nil)
		m.Answer.Value = &laid
	case ended != nil:
		m.Answer.At, m.Answer.Words = ended.CreatedAt, "The deadline passed without an answer."
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

// keep returns a copy of a record.
func keep(rec *history.Record) *history.Record {
	kept := *rec
	return &kept
}

// isKey reports whether a record is about the question with a key: "<node>#<visit>", for an executor with its attempt and the key of the
// question behind it.
func isKey(p *history.Payload, key string) bool {
	visit := fmt.Sprintf("%s#%d", p.NodeID, max(p.Visit, 1))
	rest, found := strings.CutPrefix(key, visit)
	if !found || rest != "" && !strings.HasPrefix(rest, ".") {
		return false
	}
	step, _, _, ok := p.Step()
	return rest == "" && !ok || rest != "" && (!ok || strings.HasSuffix(rest, "/"+step))
}
