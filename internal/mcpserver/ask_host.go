package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver/elicit"
)

// askHost has the host put a question to the person, unless it does already. The question outlives the call.
func (s *server) askHost(ctx context.Context, k *asking, run *view.Run, p *view.Pending) *elicit.Question {
	start := func(put func()) { go put() }
	q := question{s: s, k: k, call: ctx, run: run.ExecutionID, interrupt: p.ID, seq: run.Seq, prompt: questionText(p), about: aboutRun(run), form: k.form(p), over: s.endOf(k.host)}
	if l := linkOf(ctx); l != nil {
		start, q.life = l.questions.Go, l.life
	}
	return s.desk.Ask(k.key(p), k.again, start, q.put)
}

// awaitLast waits for the questions of sessions that have ended, before the engine is closed: a late answer is still recorded.
func awaitLast(open *sync.WaitGroup) {
	ended := make(chan struct{})
	go func() {
		open.Wait()
		close(ended)
	}()
	late := time.NewTimer(lastWait)
	defer late.Stop()
	select {
	case <-ended:
	case <-late.C:
	}
}

// endOf returns a channel that is closed when a session has ended. The desk forgets the session then.
func (s *server) endOf(session *mcp.ServerSession) <-chan struct{} {
	fresh := make(chan struct{})
	known, found := s.sessions.LoadOrStore(session, fresh)
	if !found {
		go func() {
			_ = session.Wait()
			s.sessions.Delete(session)
			s.desk.Forget(session)
			close(fresh)
		}()
	}
	return known.(chan struct{})
}

// aboutRun names the run that asks, for the person.
func aboutRun(run *view.Run) string {
	text := "Workflow " + run.DefinitionName + ", run " + shownID(run.ExecutionID)
	if run.Title != "" {
		text += ": " + run.Title
	}
	return text
}

// question is a question that the host puts to the person.
type question struct {
	s *server
	k *asking
	// call is the context of the call that asks.
	call           context.Context
	run, interrupt string
	seq            int64
	prompt, about  string
	form           *elicit.Form
	// over is closed when the session has ended. life, unless nil, ends before.
	over <-chan struct{}
	life context.Context
}

// errOvertaken ends a question whose answer is no longer needed.
var errOvertaken = errors.New("the run no longer waits for this")

// put asks until there is a valid answer, or cannot be one, and records it.
func (q *question) put() (end elicit.End) {
	defer func() {
		if p := recover(); p != nil {
			q.s.log.Error("panic", "execution_id", q.run, "interrupt", q.interrupt, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			end = elicit.End{State: elicit.Failed, Err: fmt.Errorf("internal error: %v", p)}
		}
	}()
	watched, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	if q.life != nil {
		defer context.AfterFunc(q.life, func() { stop(context.Cause(q.life)) })()
	}
	go q.watch(watched, stop)
	for complaint, try := error(nil), 1; ; {
		wasOver := q.call.Err() != nil
		end = q.once(watched, complaint)
		switch {
		case end.State == elicit.Unsent && !wasOver && q.call.Err() != nil: // the call was answered meanwhile: there is another way now
		case end.State == elicit.Unfit && try < maxTries:
			complaint, try = end.Err, try+1
		default:
			q.s.log.Debug("person asked", "execution_id", q.run, "interrupt", q.interrupt, "state", string(end.State), "error", end.Err)
			return end
		}
	}
}

// watch ends the question once the run no longer waits for its answer: another caller has answered, or it timed out.
func (q *question) watch(ctx context.Context, stop context.CancelCauseFunc) {
	const look = 30 * time.Second // at changes of subworkflows, which a waiting status may miss
	for ctx.Err() == nil {
		run, err := q.s.Status(ctx, graph.StatusRequest{ExecutionID: q.run, Since: q.seq, Wait: &graph.Wait{Limit: look}})
		if err != nil {
			return // the engine closes, or its store fails: recording the answer reports it
		}
		if pendingInterrupt(run, q.interrupt) == nil {
			stop(errOvertaken)
		}
		q.seq = run.Seq
	}
}

// pendingInterrupt returns the interrupt with this id, nil if the run does not wait for it.
func pendingInterrupt(run *view.Run, id string) *view.Pending {
	for i := range run.Pending {
		if p := &run.Pending[i]; p.ID == id && id != "" {
			return p
		}
	}
	return nil
}

// once asks once.
func (q *question) once(watched context.Context, complaint error) elicit.End {
	said := ""
	if complaint != nil {
		said = complaint.Error()
	}
	ctx, cancel := context.WithTimeoutCause(carrier{context.Background(), q.call}, elicit.Lifetime, errOvertaken)
	defer cancel()
	defer context.AfterFunc(watched, cancel)()
	var heard answerHeard
	_, err := q.k.host.Elicit(context.WithValue(ctx, heardKey{}, &heard), &mcp.ElicitParams{
		Mode: "form", Message: q.s.opts.Redaction.String(elicit.Message(q.prompt, q.about, said)), RequestedSchema: q.form.Schema,
	})
	switch {
	case err == nil:
		return q.take(watched, heard.action, heard.content)
	case ctx.Err() != nil:
		select {
		case <-time.After(withdrawalSettles):
		case <-q.over:
		}
		return elicit.End{State: elicit.Overtaken}
	}
	state := elicit.Unable
	if errors.Is(err, errUndelivered) {
		state = elicit.Unsent
	}
	// Hosts check answers, too, and return this code for an invalid one.
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok && e.Code == jsonrpc.CodeInvalidParams {
		state = elicit.Unfit
	}
	return elicit.End{State: state, Err: err}
}

// withdrawalSettles is how long a call delays its answer after it withdrew a form: the SDK notifies the host
// concurrently, over HTTP in the stream of the answer.
const withdrawalSettles = 100 * time.Millisecond

// errUndelivered is the SDK's error for a request that has not gone out: over HTTP there may be nothing to send it by.
var errUndelivered = &jsonrpc.Error{Code: -32005}

// carrier selects the stream for messages about a question. Over HTTP the SDK takes that of the call from the call's
// context; after the call, messages go to the client's listening stream.
type carrier struct {
	context.Context
	call context.Context
}

// Value implements context.Context.
func (c carrier) Value(key any) any {
	if c.call.Err() != nil {
		return nil
	}
	return c.call.Value(key)
}

// take records the person's answer.
func (q *question) take(watched context.Context, action string, content map[string]any) elicit.End {
	switch action {
	case "accept":
	case "decline":
		return elicit.End{State: elicit.Declined}
	default:
		return elicit.End{State: elicit.Closed}
	}
	payload, err := q.form.Payload(content)
	if err != nil {
		return elicit.End{State: elicit.Unfit, Err: err}
	}
	ctx := graph.WithActor(context.WithoutCancel(q.call), q.k.actor)
	req := graph.ResumeRequest{ExecutionID: q.run, InterruptID: q.interrupt, Payload: payload, Caller: graph.Caller{Wait: graph.Wait{Limit: graph.NoWait}}}
	for pause := time.Second; ; pause *= 2 {
		_, err := q.s.Resume(ctx, req)
		end := recorded(err, payload)
		if end.State != elicit.Failed || !isTransient(err) || pause > time.Minute {
			if end.State == elicit.Failed {
				q.s.log.Error("recording of a person's answer failed", "execution_id", q.run, "interrupt", q.interrupt, "error", err)
			}
			return end
		}
		select {
		case <-time.After(pause):
		case <-watched.Done():
			return elicit.End{State: elicit.Overtaken}
		case <-q.over:
			return end
		}
	}
}

// recorded returns the end of a question whose answer the engine accepted, or rejected with err.
func recorded(err error, payload map[string]any) elicit.End {
	if err == nil {
		return elicit.End{State: elicit.Answered, Payload: payload}
	}
	e, ok := problem.As(err)
	switch {
	case !ok:
		return elicit.End{State: elicit.Failed, Err: err}
	case e.Reason == problem.AnsweredDifferently:
		return elicit.End{State: elicit.Overtaken, Err: err}
	case e.Reason == problem.NotAwaiting, e.Reason == problem.ExecutionEnded, e.Reason == problem.ExecutionNotFound:
		return elicit.End{State: elicit.Overtaken}
	case e.Code == problem.InvalidResumePayload, e.Code == problem.ValidationError:
		if violations, ok := e.Data[problem.DataViolations].(string); ok { // the person does not know the schema
			return elicit.End{State: elicit.Unfit, Err: errors.New(violations)}
		}
		return elicit.End{State: elicit.Unfit, Err: errors.New(e.Error())}
	}
	return elicit.End{State: elicit.Failed, Err: err}
}

// isTransient reports whether an error may be gone in a minute.
func isTransient(err error) bool {
	e, ok := problem.As(err)
	if !ok {
		return false
	}
	switch e.Code {
	case problem.RunComputing, problem.StoreLocked, problem.StoreFull, problem.StoreUnavailable, problem.StoreOutcomeUnknown, problem.HistoryConflict,
		problem.MemoryBudgetExceeded, problem.QueueFull:
		return true
	}
	return false
}

// answerHeard is a person's answer before the SDK validates it and fills in defaults: an invalid answer is reported to
// the person, not as an error of the connection.
type answerHeard struct {
	action  string
	content map[string]any
}

type heardKey struct{}

// hearAnswers passes the answers of people to the waiting questions.
var hearAnswers = onResult(func(ctx context.Context, _ string, _ mcp.Request, res mcp.Result) mcp.Result {
	heard, asked := ctx.Value(heardKey{}).(*answerHeard)
	answer, ok := res.(*mcp.ElicitResult)
	if !asked || !ok {
		return res
	}
	heard.action, heard.content = answer.Action, answer.Content
	return &mcp.ElicitResult{Action: answer.Action}
})
