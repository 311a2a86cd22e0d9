package page

import (
	"cmp"
	"context"
	"crypto/sha256"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	runview "github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/internal/catalog"
	"github.com/workflows-engine/workflows-engine/internal/fragment"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// acts are the forms that change something. {id} is a run; see runID. Each checks its token before anything else.
var acts = []struct {
	pattern string
	act     func(*Server, http.ResponseWriter, *http.Request)
}{
	{"POST /runs/{id}/questions/{key}", (*Server).answer},
	{"POST /runs/{id}/{act}", (*Server).actOnRun},
	{"POST /run", (*Server).actByQuery},
	{"POST /workflows/{name}/start", (*Server).start},
	{"POST /workflow/start", (*Server).start},
	{"POST /system/redeliver", (*Server).redeliver},
}

// runToken returns the token of the forms about a run: cancel, signal, fork, retry and handle.
func (s *Server) runToken(r *http.Request, id string) fragment.FormToken {
	return s.formToken(r, fragment.RunPath(id))
}

// startToken returns the token of the form that starts a workflow.
func (s *Server) startToken(r *http.Request, name string) fragment.FormToken {
	return s.formToken(r, fragment.StartPath(name))
}

// systemToken returns the token of the forms of the system page.
func (s *Server) systemToken(r *http.Request) fragment.FormToken { return s.formToken(r, "/system") }

// questionToken returns the token of the form of a question. It stands for the shown question, because an agent may ask again under the same key.
func (s *Server) questionToken(r *http.Request, p *runview.Pending) fragment.FormToken {
	return s.formToken(r, fragment.QuestionPath(p.ExecutionID, questionKey(p)), questionText(p)...)
}

func questionText(p *runview.Pending) []string {
	sum := sha256.Sum256(jsonvalue.Canonical([]any{p.Prompt, p.Show, p.ResumeSchema}))
	return []string{strconv.FormatInt(p.QuestionSeq, 10), string(sum[:])}
}

// questionKey returns the key of a question within its run, as in the address of its page.
func questionKey(p *runview.Pending) string { return strings.TrimPrefix(p.ID, p.ExecutionID+":") }

// pendingQuestion returns the open question of a run with a key, nil without one.
func pendingQuestion(run *runview.Run, id, key string) *runview.Pending {
	for i := range run.Pending {
		if p := &run.Pending[i]; p.Kind == machine.WaitInterrupt && p.ID == runview.Key(id, key) {
			return p
		}
	}
	return nil
}

// actByQuery is the acts of runs whose ids no path can hold.
func (s *Server) actByQuery(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("view") == "questions" {
		r.SetPathValue("key", q.Get("key"))
		s.answer(w, r)
		return
	}
	r.SetPathValue("act", q.Get("view"))
	s.actOnRun(w, r)
}

// answer records the answer to a question.
func (s *Server) answer(w http.ResponseWriter, r *http.Request) {
	id, key := runID(r), r.PathValue("key")
	path := fragment.QuestionPath(id, key)
	run, err := s.o.Engine.Status(r.Context(), graph.StatusRequest{ExecutionID: id})
	if err != nil {
		s.fail(w, r, err)
		return
	}
	p := pendingQuestion(run, id, key)
	if p == nil {
		if s.repeats(r, run, key) {
			http.Redirect(w, r, path, http.StatusSeeOther)
			return
		}
		reason := problem.NotAwaiting
		if e, err := s.outcome(r.Context(), id, key); err == nil && e.By() != "" {
			reason = problem.AnsweredDifferently
		}
		s.again(w, r, path, http.StatusConflict, &submitted{Err: problem.New(problem.InvalidResumePayload, "the question is no longer open").WithReason(reason).
			WithHint("Your answer was not recorded. The page shows how the question ended.")})
		return
	}
	if !s.formed(r, path, questionText(p)...) {
		s.stale(w, r, path)
		return
	}
	payload, mistakes := fragment.AnswerOf(p, s.o.Redaction.Value, r.PostForm)
	if len(mistakes) > 0 {
		s.again(w, r, path, http.StatusUnprocessableEntity, &submitted{Mistakes: mistakes})
		return
	}
	answered, err := s.o.Engine.Resume(changing(r), graph.ResumeRequest{
		ExecutionID: id, InterruptID: p.ID, Payload: payload, Caller: graph.Caller{Wait: graph.Wait{Limit: graph.NoWait}},
	})
	if err != nil {
		again := &submitted{Err: err, Mistakes: fragment.MistakesOf(p.ResumeSchema, payload, r.PostForm)}
		status := 0
		if e, ok := problem.As(err); ok && e.Reason != "" { // another answer was first
			if status = http.StatusConflict; s.repeats(r, run, key) {
				http.Redirect(w, r, path, http.StatusSeeOther)
				return
			}
		}
		s.again(w, r, path, status, again)
		return
	}
	http.Redirect(w, r, fragment.RunPath(answered.ExecutionID), http.StatusSeeOther)
}

// changing returns the context of a call that changes a run: it is completed even if the browser goes away.
func changing(r *http.Request) context.Context { return context.WithoutCancel(r.Context()) }

// actOnRun cancels, signals, forks, retries or handles a run.
func (s *Server) actOnRun(w http.ResponseWriter, r *http.Request) {
	id, values := runID(r), r.PostForm
	path := fragment.RunPath(id)
	if !s.formed(r, path) {
		s.stale(w, r, path)
		return
	}
	ctx, noWait := changing(r), graph.Wait{Limit: graph.NoWait}
	var err error
	var mistakes map[string]string
	next := id
	switch r.PathValue("act") {
	case "cancel":
		_, err = s.o.Engine.Cancel(ctx, graph.CancelRequest{ExecutionID: id, Reason: values.Get("reason")})
	case "signal":
		var payload map[string]any
		if payload, mistakes = fragment.PayloadOf(nil, withJSON(values)); len(mistakes) == 0 {
			_, err = s.o.Engine.Signal(ctx, graph.SignalRequest{
				ExecutionID: id, Name: values.Get("name"), Payload: payload, IdempotencyKey: cmp.Or(values.Get("key"), once(r)), Caller: graph.Caller{Wait: noWait},
			})
		}
	case "fork", "retry":
		req := graph.ForkRequest{ExecutionID: id, NewExecutionID: once(r), Wait: noWait}
		if r.PathValue("act") == "retry" {
			req.Anew, req.RepeatEffects = values.Get("anew") != "", values.Get("repeat_effects") != ""
			req.CurrentAgentConfig, req.Again = values.Get("current_config") != "", values.Get("again") != ""
			req.NewExecutionID = cmp.Or(strings.TrimSpace(values.Get("id")), req.NewExecutionID)
			if hash := values.Get("definition"); hash != "" {
				if req.Definition = s.registeredNow(ctx, id, hash); req.Definition == nil {
					mistakes = map[string]string{"definition": "the registered definition is another one now"}
				}
			}
		} else {
			req.BeforeNode = values.Get("before")
			if seq := values.Get("seq"); seq != "" && req.BeforeNode == "" {
				if req.Seq, err = strconv.ParseInt(seq, 10, 64); err != nil || req.Seq < 1 {
					mistakes = map[string]string{"seq": "must be the number of a record"}
				}
			} else if req.BeforeNode == "" {
				mistakes = map[string]string{"before": "choose a node"}
			}
		}
		if text := values.Get("correction"); strings.TrimSpace(text) != "" && len(mistakes) == 0 {
			if req.Correction, err = fragment.ObjectOf(text); err != nil {
				mistakes = map[string]string{"correction": err.Error()}
			}
		}
		if len(mistakes) == 0 {
			next, err = s.fork(ctx, req, once(r))
		}
	case "handle":
		var handler graph.Handler
		if handler, err = graph.Need[graph.Handler](s.o.Engine, "marking runs as handled"); err == nil {
			err = handler.Handle(ctx, graph.HandleRequest{ExecutionID: id, Note: values.Get("note"), Undo: values.Get("undo") != ""})
		}
	default:
		s.fail(w, r, errNoPage)
		return
	}
	switch {
	case len(mistakes) > 0:
		s.again(w, r, path, http.StatusUnprocessableEntity, &submitted{Mistakes: mistakes})
	case err != nil:
		s.again(w, r, path, 0, &submitted{Err: err})
	default:
		http.Redirect(w, r, fragment.RunPath(next), http.StatusSeeOther)
	}
}

// withJSON returns the values of a form whose payload is always JSON.
func withJSON(values url.Values) url.Values {
	return url.Values{fragment.JSONField: {values.Get(fragment.JSONField)}}
}

// fork forks a run. sent is the id of the new run if the same form has been sent before.
func (s *Server) fork(ctx context.Context, req graph.ForkRequest, sent string) (id string, err error) {
	forker, err := graph.Need[graph.Forker](s.o.Engine, "forks")
	if err != nil {
		return "", err
	}
	run, err := forker.Fork(ctx, req)
	if err != nil && req.NewExecutionID == sent {
		if before, statusErr := s.o.Engine.Status(ctx, graph.StatusRequest{ExecutionID: sent}); statusErr == nil {
			run, err = before, nil
		}
	}
	if err != nil {
		return "", err
	}
	return run.ExecutionID, nil
}

// start starts a run of a workflow.
func (s *Server) start(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	if r.URL.Path == "/workflow/start" {
		name = r.URL.Query().Get("name")
	}
	path, values := fragment.WorkflowPath(name), r.PostForm
	if !s.formed(r, fragment.StartPath(name)) {
		s.stale(w, r, path)
		return
	}
	req := graph.StartRequest{
		DefinitionRef: name, ExecutionID: strings.TrimSpace(values.Get("execution_id")), Title: strings.TrimSpace(values.Get("title")),
		Wait: graph.Wait{Limit: graph.NoWait},
	}
	var schema map[string]any
	if found := s.registered(name); found != nil {
		req.DefinitionRef, schema = found.Ref, found.InputSchema
	}
	input, mistakes := fragment.PayloadOf(schema, values)
	if len(mistakes) > 0 {
		s.again(w, r, path, http.StatusUnprocessableEntity, &submitted{Mistakes: mistakes})
		return
	}
	req.Input = input
	req.ExecutionID, req.AllowExisting = cmp.Or(req.ExecutionID, once(r)), true // a form that is sent twice starts one run
	run, err := s.o.Engine.Start(changing(r), req)
	if e, ok := problem.As(err); ok && e.Reason == problem.DuplicateExecutionID || err == nil && run.Title != req.Title {
		s.again(w, r, path, http.StatusConflict, &submitted{
			Err: problem.New(problem.DuplicateExecutionID, "the id %q belongs to another run; nothing was started", req.ExecutionID).WithHint("Open that run, or choose another id."),
			Run: req.ExecutionID,
		})
		return
	}
	if err != nil {
		s.again(w, r, path, 0, &submitted{Err: err, Mistakes: fragment.MistakesOf(schema, input, values)})
		return
	}
	http.Redirect(w, r, fragment.RunPath(run.ExecutionID), http.StatusSeeOther)
}

// registered returns the workflow of the catalog with a name, nil without one.
func (s *Server) registered(name string) *catalog.Workflow {
	if s.o.Catalog == nil {
		return nil
	}
	found, err := s.o.Catalog.Look().Find(name)
	if err != nil {
		return nil // the engine says why
	}
	return found
}

// registeredNow returns the registered definition with the name of a run's own, if it has a hash; nil if it has not.
func (s *Server) registeredNow(ctx context.Context, id, hash string) *definition.Document {
	v, err := s.o.Engine.Status(ctx, graph.StatusRequest{ExecutionID: id})
	if err != nil {
		return nil
	}
	if found := s.registered(v.DefinitionName); found != nil && found.Hash == hash {
		return found.Document()
	}
	return nil
}

// redeliver sends an event to its webhook again.
func (s *Server) redeliver(w http.ResponseWriter, r *http.Request) {
	if !s.formed(r, "/system") {
		s.stale(w, r, "/system")
		return
	}
	d, err := graph.Need[graph.Deliverer](s.o.Engine, "webhooks")
	if err == nil {
		_, err = d.Redeliver(changing(r), r.PostForm.Get("delivery"))
	}
	if err != nil {
		s.again(w, r, "/system", 0, &submitted{Err: err})
		return
	}
	http.Redirect(w, r, "/system", http.StatusSeeOther)
}

// stale shows the page of a form with a token of another session or question: nothing was changed, and the typed text is kept.
func (s *Server) stale(w http.ResponseWriter, r *http.Request, path string) {
	s.o.Log.Info("request refused", "status", http.StatusForbidden, "method", r.Method, "reason", "form token")
	s.again(w, r, path, http.StatusForbidden, &submitted{Err: problem.New(problem.UsageError, "the form is not the current one of this page; nothing was changed").
		WithHint("Read the page as it is now, and send it again.")})
}

// again shows the page of a refused form. status is that of its error for 0.
func (s *Server) again(w http.ResponseWriter, r *http.Request, path string, status int, refused *submitted) {
	refused.Action, refused.Values = r.URL.RequestURI(), r.PostForm
	at, err := url.Parse(path)
	if err != nil {
		panic(err) // a path of this package
	}
	page := r.Clone(context.WithValue(r.Context(), submittedKey{}, refused))
	page.Method, page.URL, page.RequestURI = http.MethodGet, at, path
	v, location := s.render(page)
	if location != "" {
		v = s.errorView(refused.Err)
	}
	if status == 0 {
		status = s.errorView(refused.Err).Status
	}
	v.Status = status
	s.writeView(w, r, v, "")
}

// fail shows an error in place of a page.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	s.writeView(w, r, s.errorView(err), "")
}
