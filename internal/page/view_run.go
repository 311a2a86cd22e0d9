package page

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	runview "github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/internal/agentsteps"
	"github.com/workflows-engine/workflows-engine/internal/fleet"
	"github.com/workflows-engine/workflows-engine/internal/fragment"
	"github.com/workflows-engine/workflows-engine/internal/picture"
	"github.com/workflows-engine/workflows-engine/internal/timeline"
)

// program returns the compiled definition with a hash, nil if it cannot be read here.
func (s *Server) program(ctx context.Context, hash string) *definition.Program {
	if hash == "" {
		return nil
	}
	reader, err := graph.Need[graph.Definitions](s.o.Engine, "Definition")
	if err != nil {
		return nil
	}
	document, err := reader.Definition(ctx, hash)
	if err != nil {
		return nil
	}
	return s.compiled(document)
}

// status returns where a run is. For a run that cannot be read, it returns its row and the damage.
func (s *Server) status(ctx context.Context, id string) (v *runview.Run, damage *fragment.Failure, err error) {
	v, err = s.o.Engine.Status(ctx, graph.StatusRequest{ExecutionID: id})
	if err == nil {
		return v, nil, nil
	}
	p, ok := problem.As(err)
	if !ok || !slices.Contains([]problem.Code{problem.HistoryCorrupt, problem.Nondeterminism, problem.DefinitionNotFound, problem.HistoryNewer}, p.Code) {
		return nil, nil, s.unknown(ctx, id, err)
	}
	peeker, needed := graph.Need[graph.Peeker](s.o.Engine, "Peek")
	if needed != nil {
		return nil, nil, err
	}
	x, peekErr := peeker.Peek(ctx, id)
	if peekErr != nil {
		return nil, nil, err
	}
	v = runview.Of(runview.Source{Execution: &x, Now: x.UpdatedAt})
	return v, s.failure(p), nil
}

// failure describes an error.
func (s *Server) failure(err error) *fragment.Failure {
	f := &fragment.Failure{Message: s.o.Redaction.String(err.Error())}
	if e, ok := problem.As(err); ok {
		f.Hint, f.Code = s.o.Redaction.String(s.o.Glossary.Translate(e.Hint)), string(e.Code)
		if finest := e.Finest(); finest != e.Code {
			f.Finest = string(finest)
		}
	}
	return f
}

// runView shows a run.
func (s *Server) runView(r *http.Request) (page view, err error) {
	ctx, id := r.Context(), runID(r)
	v, damage, err := s.status(ctx, id)
	if err != nil {
		return page, err
	}
	f, done, err := s.fold(ctx, id, v.DefinitionHash)
	defer done()
	if err != nil && damage == nil {
		return page, err
	}
	now := cmp.Or(v.Now, v.UpdatedAt)
	m := &fragment.Run{
		ID: v.ExecutionID, Title: v.Title, Workflow: v.DefinitionName, Version: v.DefinitionVersion, State: fragment.RunState(v),
		Began: v.CreatedAt, Changed: v.UpdatedAt, Took: now.Sub(v.CreatedAt), Records: v.Seq, Damage: damage, Final: v.Status.Terminal(),
	}
	if v.DefinitionName != "" {
		m.WorkflowPath = fragment.WorkflowPath(v.DefinitionName)
	}
	if m.Final {
		m.Took = v.UpdatedAt.Sub(v.CreatedAt)
	}
	if v.MaxVisits > 0 {
		m.NodeRuns = fmt.Sprintf("%d of %d", v.NodeVisits, v.MaxVisits)
	}
	if f.by != nil {
		m.By = f.by.String()
	}
	for _, name := range slices.Sorted(maps.Keys(v.Labels)) {
		m.Labels = append(m.Labels, fragment.Pair{Name: name, Value: v.Labels[name]})
	}
	s.relate(m, v)
	s.notices(m, v)
	s.ending(m, v, f)
	state := v.State
	if m.Final {
		state = v.FinalState
	}
	if state != nil {
		m.StateValue = s.value(state, fragment.ValuePath(id, "state"))
	}
	for i := range v.Pending {
		p := &v.Pending[i]
		if p.Kind == machine.WaitInterrupt && p.ID != "" {
			m.Questions = append(m.Questions, questionLink(p))
		} else {
			m.Waits = append(m.Waits, wait(p))
		}
	}
	if f.program != nil {
		m.Graph = graphOf(r, f.program, f.run, id, fragment.GraphPath(id))
	}
	m.Visits = fragment.VisitsOf(f.run, now, true)
	if !s.readOnly(r) && damage == nil {
		m.Actions = s.actions(r, v)
	}
	if sent := submittedOf(r); sent != nil {
		m.Refused = refused(s, sent)
	}
	page = view{Title: cmp.Or(v.Title, v.ExecutionID), Follow: v.Executions()}
	page.Body, err = s.body(m)
	return page, err
}

// refused describes the refusal of a form.
func refused(s *Server, sent *submitted) *fragment.Failure {
	if sent.Err != nil {
		f := s.failure(sent.Err)
		if sent.Run != "" {
			f.Lead, f.Links = "The run with this id", []fragment.Link{{Text: sent.Run, Path: fragment.RunPath(sent.Run)}}
		}
		return f
	}
	f := &fragment.Failure{Message: "The form was not filled in correctly. Nothing was changed."}
	for _, name := range slices.Sorted(maps.Keys(sent.Mistakes)) {
		f.Hint = strings.TrimSpace(f.Hint + " " + name + ": " + sent.Mistakes[name] + ".")
	}
	return f
}

// value returns a value without its secrets.
func (s *Server) value(v any, path string) *fragment.Value {
	return fragment.NewValue(s.o.Redaction.Value(v), path)
}

// relate links the runs that a run comes from and that come from it.
func (s *Server) relate(m *fragment.Run, v *runview.Run) {
	to := func(word, id string) fragment.Relation {
		return fragment.Relation{Word: word, Link: fragment.Link{Text: id, Path: fragment.RunPath(id)}}
	}
	if v.ParentExecutionID != "" {
		m.Origins = append(m.Origins, to("Subworkflow of", v.ParentExecutionID))
	}
	if from := v.ForkedFrom; from.ExecutionID != "" && v.Lineage.RetryOf == "" {
		m.Origins = append(m.Origins, to(fmt.Sprintf("Forked at record %d from", from.Seq), from.ExecutionID))
	}
	if v.Lineage.RetryOf != "" {
		m.Origins = append(m.Origins, to("Retry of", v.Lineage.RetryOf))
	}
	for _, l := range v.Lineage.Retries {
		m.Successors = append(m.Successors, to("Retried by", l.To))
	}
	if h := v.Lineage.Handled; h != nil {
		m.Handled = strings.TrimSpace(h.Note + " " + h.Actor)
		if h.Retry != "" {
			m.Handled = "the retry " + h.Retry + " completed"
		}
	}
}

// notices takes the warnings of a run, and the executors that this process lacks to continue it.
func (s *Server) notices(m *fragment.Run, v *runview.Run) {
	for _, w := range v.Warnings {
		m.Notices = append(m.Notices, fragment.Notice{Message: w.Message, Hint: s.o.Glossary.Translate(w.Hint)})
	}
	for i := range v.Pending {
		if l := v.Pending[i].Limit; l != nil {
			m.Notices = append(m.Notices, fragment.Notice{Message: "The run waits for " + fleet.LimitText(l) + "."})
			break
		}
	}
	if v.Ready != nil && v.Lacks == nil {
		m.Notices = append(m.Notices, fragment.Notice{Message: "The run waits for " + fleet.ReadyText(v.Ready) + "."})
	}
	if l := v.Lacks; l != nil {
		n := fragment.Notice{Message: fmt.Sprintf("This process cannot continue the run at %s: %s is not configured here.", l.NodeID, l.Missing)}
		if l.Host {
			n.Message = fmt.Sprintf("After the answer, this process cannot continue the run at %s: %s is not configured here.", l.NodeID, l.Missing)
		}
		n.Hint = "A process that has it continues the run: start a worker with workflows-engine worker."
		switch setting := s.o.Glossary.Translate(l.Setting); {
		case setting != "" && l.Partial:
			if s.o.Located != nil {
				setting = s.o.Located(setting)
			}
			n.Hint = fmt.Sprintf("Add %s to %s and start this process again, or start a worker that has it.", l.Missing, setting)
		case setting != "":
			n.Hint = fmt.Sprintf("Set %s and start this process again, or start a worker that has it.", setting)
		}
		m.Notices = append(m.Notices, n)
	}
}

// ending takes the end of a run.
func (s *Server) ending(m *fragment.Run, v *runview.Run, f *folded) {
	switch v.Status {
	case machine.Completed:
		if v.Result != nil {
			m.Result = s.value(v.Result, fragment.ValuePath(v.ExecutionID, "result"))
		}
	case machine.Cancelled:
		m.Reason = v.Reason
	case machine.Failed:
		m.Failure = &fragment.RunFailure{Error: v.Error, Code: v.ErrorCode, Node: v.ErrorNodeID, Hint: s.retryHint(v)}
		for _, visit := range slices.Backward(f.run.Visits) {
			if visit.Node == v.ErrorNodeID {
				m.Failure.NodePath = fragment.VisitPath(v.ExecutionID, visit.Node, visit.Number)
				break
			}
		}
		if v.ErrorData != nil {
			m.Failure.Data = s.value(v.ErrorData, "")
		}
	}
}

// retryHint is the next step after a failure, as the command status has it; "" if the failure needs nothing more.
func (s *Server) retryHint(v *runview.Run) string {
	if v.Lineage.Handled != nil || v.Lineage.Live != "" {
		return ""
	}
	switch goesOn := v.GoesOn.String(); {
	case agentsteps.Spent(v.ErrorCode):
		return "Raise the agent's budget; then a retry with the current settings of agents " + cmp.Or(goesOn, "continues") + "."
	case goesOn != "":
		return "A retry " + goesOn + "."
	}
	return "A retry continues from before the failure."
}

// questionLink links an open question.
func questionLink(p *runview.Pending) fragment.QuestionLink {
	return fragment.QuestionLink{
		Prompt: cmp.Or(fragment.OneLine(p.Prompt, 200), "Question at "+p.NodeID), Path: fragment.QuestionPath(p.ExecutionID, questionKey(p)),
		Node: p.NodeID, Since: p.RequestedAt, Deadline: fragment.Deadline(p),
	}
}

// wait describes a wait of a run.
func wait(p *runview.Pending) fragment.Wait {
	w := fragment.Wait{
		Node: p.NodeID, Since: p.RequestedAt, Deadline: cmp.Or(p.Deadline, p.BlockDeadline), LastError: fragment.OneLine(p.LastError, maxRowText),
	}
	if p.Visit > 0 && p.Item == 0 && p.Items == 0 {
		w.NodePath = fragment.VisitPath(p.ExecutionID, p.NodeID, p.Visit)
	}
	attempt := ""
	if p.MaxAttempts > 1 {
		attempt = fmt.Sprintf(", attempt %d of %d", p.Attempt, p.MaxAttempts)
	}
	switch p.Kind {
	case machine.WaitSignal:
		w.Text = "the signal " + p.SignalName
	case machine.WaitTimer:
		w.Text, w.Due = "a timer", p.Due
	case machine.WaitBackoff:
		w.Text, w.Due = "the next attempt"+attempt, p.Due
	case machine.WaitChild:
		w.Text = strings.TrimSpace("the subworkflow " + p.WorkflowRef)
		if p.ChildExecutionID != "" {
			w.Child = &fragment.Link{Text: p.ChildExecutionID, Path: fragment.RunPath(p.ChildExecutionID)}
		}
	case machine.WaitInterrupt:
		w.Text = "an answer"
	case machine.WaitDelegate:
		w.Text = "the agent " + p.AgentID + attempt
	default:
		w.Text = strings.TrimSpace("the outcome of " + p.NodeType + attempt)
		switch {
		case p.Queued:
			w.Text = strings.TrimSpace("a free place or a worker for " + p.NodeType)
		case p.Host:
			w.Text += ", performed by a host"
		}
	}
	if p.Span != nil {
		w.Text += " in branch " + p.Span.BranchName
	}
	if p.Items > 0 {
		w.Text += fmt.Sprintf(", item %d of %d", p.Item+1, p.Items)
	}
	return w
}

// actions returns the forms that change a run.
func (s *Server) actions(r *http.Request, v *runview.Run) *fragment.Actions {
	id, token := v.ExecutionID, s.runToken(r, v.ExecutionID)
	post := func(act string) *fragment.Post {
		return &fragment.Post{Action: fragment.ActPath(id, act), Token: token}
	}
	a := &fragment.Actions{Last: v.Seq}
	if _, err := graph.Need[graph.Forker](s.o.Engine, "Fork"); err == nil {
		a.Fork = post("fork")
		if v.Status == machine.Failed && v.ParentExecutionID == "" {
			a.Retry = s.retryForm(r, v, *post("retry"))
		}
	}
	if !v.Status.Terminal() {
		a.Cancel, a.Signal = post("cancel"), post("signal")
		for i := range v.Pending {
			p := &v.Pending[i]
			if p.Kind == machine.WaitSignal && p.ExecutionID == id && !slices.Contains(a.Signals, p.SignalName) {
				a.Signals = append(a.Signals, p.SignalName)
			}
		}
	}
	if _, err := graph.Need[graph.Handler](s.o.Engine, "Handle"); err == nil && (v.Status == machine.Failed || v.Status == machine.Cancelled) {
		switch h := v.Lineage.Handled; {
		case h == nil:
			a.Handle = post("handle")
		case h.Retry == "" && h.ExecutionID == id:
			a.Unhandle = post("handle")
		}
	}
	return a
}

// The options of a retry, as the form says them.
const (
	optionAnew    = "Start the failed node again, even if its agent can continue"
	optionRepeat  = "Repeat calls of agents that have effects, under new keys"
	optionCurrent = "Continue agents with their current models, prices and budgets"
	optionAgain   = "Start another retry beside the open or completed one"
)

// retryForm returns the form that retries a run, with the text of a refused one.
func (s *Server) retryForm(r *http.Request, v *runview.Run, post fragment.Post) *fragment.Retry {
	var sent url.Values
	if refused := submittedOf(r); refused != nil && refused.Action == post.Action {
		sent = refused.Values
	}
	f := &fragment.Retry{Post: post, Correction: sent.Get("correction"), ID: sent.Get("id"), Sent: sent != nil}
	option := func(name, text string) {
		f.Options = append(f.Options, fragment.Choice{Value: name, Text: text, Selected: sent.Has(name)})
	}
	option("anew", optionAnew)
	option("repeat_effects", optionRepeat)
	option("current_config", optionCurrent)
	if v.Lineage.Live != "" {
		option("again", optionAgain)
	}
	if found := s.registered(v.DefinitionName); found != nil && found.Hash != v.DefinitionHash {
		text := "Follow the registered definition " + strings.TrimSpace(found.Name+" "+found.Version) + " in place of the run's own"
		f.Definition = &fragment.Choice{Value: found.Hash, Text: text, Selected: sent.Get("definition") == found.Hash}
	}
	return f
}

// maxDrawn is the largest number of nodes of a definition that a page shows as a picture.
const maxDrawn = 150

// graphOf returns the picture of a definition, or of a run if run is not nil, on the page that r asks for. id is the run whose visits it links;
// path is its own address.
func graphOf(r *http.Request, p *definition.Program, run *timeline.Run, id, path string) *fragment.Graph {
	g := &fragment.Graph{Path: path, List: picture.List(p, run)}
	if len(p.Nodes) > maxDrawn {
		return g
	}
	var unfolded []string
	for _, block := range r.URL.Query()["unfold"] {
		if n := p.Node(block); n != nil && n.Parallel != nil && !slices.Contains(unfolded, block) {
			unfolded = append(unfolded, block)
		}
	}
	with := func(blocks ...string) string {
		q := r.URL.Query()
		if q.Del("unfold"); len(blocks) > 0 {
			q["unfold"] = blocks
		}
		at := url.URL{Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: q.Encode(), Fragment: "graph"}
		return at.String()
	}
	unfold := func(block string) string { return with(slices.Concat(unfolded, []string{block})...) }
	for _, block := range picture.Folded(p, unfolded) {
		g.Folds = append(g.Folds, fragment.Link{Text: "Show each branch of " + block, Path: unfold(block)})
	}
	for i, block := range unfolded {
		g.Folds = append(g.Folds, fragment.Link{Text: "Fold the branches of " + block, Path: with(slices.Delete(slices.Clone(unfolded), i, i+1)...)})
	}
	drawn := picture.Draw(p, run, picture.Options{Link: visitLinks(run, id), Unfold: unfold, Unfolded: unfolded})
	g.SVG = template.HTML(drawn) //nolint:gosec // made by package picture
	return g
}

// visitLinks returns the addresses of the newest visits of nodes.
func visitLinks(run *timeline.Run, id string) func(node string) string {
	if run == nil {
		return nil
	}
	newest := map[string]string{}
	for _, v := range run.Visits {
		if !v.IsItem() {
			newest[v.Node] = fragment.VisitPath(id, v.Node, v.Number)
		}
	}
	return func(node string) string { return newest[node] }
}

// graphView shows the picture of a run alone.
func (s *Server) graphView(r *http.Request) (view, error) {
	id := runID(r)
	v, damage, err := s.status(r.Context(), id)
	if err != nil {
		return view{}, err
	}
	f, done, err := s.fold(r.Context(), id, v.DefinitionHash)
	defer done()
	if err != nil && damage == nil {
		return view{}, err
	}
	if f.program == nil {
		return view{}, problem.New(problem.DefinitionNotFound, "the definition of run %q is not stored here", id)
	}
	return view{Title: "Graph", Raw: &raw{Type: "image/svg+xml", Body: []byte(picture.SVG(f.program, f.run))}}, nil
}

// valueView shows a whole value of a run as text.
func (s *Server) valueView(r *http.Request) (view, error) {
	id, name := runID(r), r.URL.Query().Get("name")
	v, err := s.valueOf(r, id, name)
	if err != nil {
		return view{}, err
	}
	file := strings.Map(func(c rune) rune {
		if c == '-' || c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
			return c
		}
		return '-'
	}, fragment.OneLine(id, 64)+"-"+fragment.OneLine(name, 32)) + ".txt"
	body := s.o.Redaction.String(fragment.Whole(s.o.Redaction.Value(v)))
	return view{Title: name, Raw: &raw{Type: "text/plain; charset=utf-8", Name: file, Body: []byte(body)}}, nil
}

// valueOf returns a value of a run by its name.
func (s *Server) valueOf(r *http.Request, id, name string) (any, error) {
	if seq, ok := number(r.URL.Query().Get("seq")); ok {
		return s.recordValue(r, id, seq, name)
	}
	v, _, err := s.status(r.Context(), id)
	switch {
	case err != nil:
		return nil, err
	case name == "result":
		return v.Result, nil
	case name == "state" && v.Status.Terminal():
		return v.FinalState, nil
	case name == "state":
		return v.State, nil
	}
	return nil, problem.New(problem.ValidationError, "run %q has no value %q", id, name)
}

// body returns the HTML of a fragment, without the secrets that the redaction knows by value.
func (s *Server) body(v fragment.View) (template.HTML, error) {
	body, err := fragment.Render(v)
	return template.HTML(s.o.Redaction.String(string(body))), err //nolint:gosec // made by fragment
}
