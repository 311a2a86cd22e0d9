package httpapi

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/calls"
	"github.com/workflows-engine/workflows-engine/internal/httpguard"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/picture"
	"github.com/workflows-engine/workflows-engine/internal/runjson"
	"github.com/workflows-engine/workflows-engine/internal/timeline"
)

// result is the answer of an operation.
type result struct {
	status int
	body   jsonvalue.Ordered
}

func ok(body jsonvalue.Ordered) (*result, error) { return &result{http.StatusOK, body}, nil }

// operation is one operation of the API.
type operation struct {
	method, path, id, summary string
	// params are the parameters of the query.
	params []calls.Property
	// request are the fields of the body, nil without a body; inner is that of calls.Read.
	request []calls.Property
	inner   map[string]string
	// answer are the fields of the answer of status 200, and of 201 if creates; nil for an answer of another media type.
	answer  []calls.Property
	creates bool
	media   []string
	writes  bool
	// call returns the answer, nil if it has written one.
	call func(*Server, *request) (*result, error)
}

// verb is the word behind the colon of a path, "" without one.
func (op *operation) verb() string {
	_, verb, _ := strings.Cut(op.path, "{exec_id}:")
	return verb
}

// ofRun reports whether the path names a run.
func (op *operation) ofRun() bool { return strings.Contains(op.path, "{exec_id}") }

func names(properties []calls.Property) []string {
	list := make([]string, len(properties))
	for i, p := range properties {
		list[i] = p.Name
	}
	return list
}

// The answers.
var (
	runAnswer     = append(calls.StatusAnswer(), calls.Optional("status", calls.Str("The exact status.")), readyProperty, calls.RepeatedProperty)
	readyProperty = calls.Optional("ready", calls.Described("Its place while it waits for a worker.", []calls.Property{
		calls.Required("lane", calls.Str("The queue, / and the executor that the next attempt needs.")),
		calls.Required("ahead", calls.Describe("integer", "Runs before it in the lane, at most 10,000.")),
		calls.Required("since", calls.Str("Since when it waits.")),
		calls.Required("workers", calls.Describe("integer", "Live workers that serve the lane.")),
	}, false))
	workflowAnswer = []calls.Property{
		calls.Required("name", calls.Str("Name of the definition.")),
		calls.Optional("version", calls.Str("Its version.")),
		calls.Required("hash", calls.Str("Its hash.")),
		calls.Optional("description", calls.Str("What it does.")),
		calls.Optional("registered", calls.Describe("boolean", "It is in the directory of the server.")),
		calls.Optional("stored_at", calls.Str("When it was stored first.")),
		calls.Optional("definition", calls.Obj("The definition.")),
	}
	recordAnswer = []calls.Property{
		calls.Required("seq", calls.Describe("integer", "Number of the record.")),
		calls.Required("kind", calls.Str("event or command.")),
		calls.Required("name", calls.Str("What happened.")),
		calls.Required("created_at", calls.Str("When.")),
		calls.Required("payload", calls.Obj("The rest.")),
	}
	nextCursor  = calls.Optional("next_cursor", calls.Str("Pass it as cursor for the next page; absent on the last."))
	cursorParam = calls.Optional("cursor", calls.Text("next_cursor of the previous page."))
	limitParam  = calls.Optional("limit", calls.Describe("integer", "Default 50.", "minimum", 1.0, "maximum", 100.0))
	viewParam   = calls.Optional("view", calls.OneOf("full adds the waits.", "full"))
	fromParam   = calls.Optional("from_seq", calls.Describe("integer", "First record.", "minimum", 1.0))
	toParam     = calls.Optional("to_seq", calls.Describe("integer", "Last record.", "minimum", 1.0))
)

// The sizes of pages.
const (
	usualPage, maxPage = 50, 100
	// maxQuestions is how many runs with questions a page looks at.
	maxQuestions = 25
)

// without returns properties but those with some names.
func without(list []calls.Property, names ...string) []calls.Property {
	kept := []calls.Property{}
next:
	for _, p := range list {
		for _, name := range names {
			if p.Name == name {
				continue next
			}
		}
		kept = append(kept, p)
	}
	return kept
}

// operations is the table of the API.
func operations(here machine.Mode) []operation {
	start := append(calls.StartArguments(here), calls.Optional("priority", calls.Describe("integer", "Runs with a higher one are performed first (default 0).", "minimum", -1000000.0, "maximum", 1000000.0)))
	payload := calls.Required("resume_payload", calls.Obj("The answer; its fields are set in the state."))
	ofPath := func(list []calls.Property, more ...string) []calls.Property {
		return without(list, append(more, "execution_id")...)
	}
	run := without(runAnswer, "next", "values", "selected", "unchanged", "pending_total")
	return []operation{
		{method: "GET", path: "/v1/workflows", id: "listWorkflows", summary: "List registered and stored definitions.", params: []calls.Property{limitParam, cursorParam},
			answer: []calls.Property{calls.Required("workflows", calls.ListOf(calls.Object(workflowAnswer, false), "One page.")), nextCursor}, call: (*Server).listWorkflows},
		{method: "POST", path: "/v1/workflows", id: "registerWorkflow", summary: "Store a definition under its name and version.",
			request: []calls.Property{calls.Required("definition", calls.DefinitionSchema("The definition: an object, or JSON or YAML text."))}, answer: workflowAnswer, creates: true, writes: true, call: (*Server).storeWorkflow},
		{method: "GET", path: "/v1/workflows/{wf_id}", id: "getWorkflow", summary: "Read a definition by name, name@version or hash.", params: []calls.Property{}, answer: workflowAnswer, call: (*Server).workflow},
		{method: "POST", path: "/v1/workflows/{wf_id}/executions", id: "startExecution", summary: "Start a run of a stored or registered definition.",
			request: without(start, "definition", "definition_ref"), answer: run, creates: true, writes: true, call: (*Server).start},
		{method: "POST", path: "/v1/executions", id: "startDefinition", summary: "Start a run of a definition.", request: start, answer: run, creates: true, writes: true, call: (*Server).start},
		{method: "GET", path: "/v1/executions", id: "listExecutions", summary: "List runs: open ones first, the last changed first.", params: calls.ListArguments(), answer: calls.ListAnswer(), call: (*Server).list},
		{method: "GET", path: "/v1/executions/{exec_id}", id: "getExecution", summary: "Read the status of a run.",
			params: []calls.Property{calls.StatusWaitArgument, calls.SinceArgument, viewParam}, answer: run, call: (*Server).status},
		{method: "GET", path: "/v1/executions/{exec_id}/events", id: "listEvents", summary: "Read the records of a run, as a page or as they come.",
			params: []calls.Property{fromParam, toParam, limitParam, cursorParam},
			answer: []calls.Property{calls.ExecutionIDProperty, calls.Required("events", calls.ListOf(calls.Object(recordAnswer, false), "The records.")), nextCursor},
			media:  []string{"text/event-stream"}, call: (*Server).events},
		{method: "GET", path: "/v1/executions/{exec_id}/checkpoint", id: "getCheckpoint", summary: "Read the newest checkpoint of a run.", params: []calls.Property{}, answer: recordAnswer, call: (*Server).checkpoint},
		{method: "GET", path: "/v1/executions/{exec_id}/graph.svg", id: "getGraph", summary: "Draw a run.", params: []calls.Property{}, media: []string{"image/svg+xml"}, call: (*Server).graph},
		{method: "POST", path: "/v1/executions/{exec_id}:resume", id: "resumeExecution", summary: "Answer an interrupt.", request: ofPath(calls.ResumeArguments(payload)), answer: run, writes: true,
			call: func(s *Server, r *request) (*result, error) {
				a := r.Arguments
				req := a.Resume(s.Engine.ReadDefinition)
				a.Require("resume_payload")
				return s.driven(r, &req.Wait, func(ctx context.Context) (*view.Run, error) { return s.Engine.Resume(ctx, req) })
			}},
		{method: "POST", path: "/v1/executions/{exec_id}:submit_activity", id: "submitActivity", summary: "Submit the outcome of an activity.", request: ofPath(calls.SubmitArguments()), inner: calls.InOutcome, answer: run, writes: true,
			call: func(s *Server, r *request) (*result, error) {
				req := r.Submit(s.Engine.ReadDefinition)
				return s.driven(r, &req.Wait, func(ctx context.Context) (*view.Run, error) { return s.Engine.SubmitActivity(ctx, req) })
			}},
		{method: "POST", path: "/v1/executions/{exec_id}:signal", id: "signalExecution", summary: "Deliver a signal.", request: ofPath(calls.SignalArguments()), answer: run, writes: true,
			call: func(s *Server, r *request) (*result, error) {
				req := r.Signal(s.Engine.ReadDefinition)
				return s.driven(r, &req.Wait, func(ctx context.Context) (*view.Run, error) { return s.Engine.Signal(ctx, req) })
			}},
		{method: "POST", path: "/v1/executions/{exec_id}:cancel", id: "cancelExecution", summary: "Cancel a run.", request: ofPath(calls.CancelArguments()), answer: run, writes: true,
			call: func(s *Server, r *request) (*result, error) {
				req := r.Arguments.Cancel()
				return s.driven(r, new(graph.Wait), func(ctx context.Context) (*view.Run, error) { return s.Engine.Cancel(ctx, req) })
			}},
		{method: "POST", path: "/v1/executions/{exec_id}:fork", id: "forkExecution", summary: "Start a run with the past of another one.", request: ofPath(calls.ForkArguments()), answer: run, creates: true, writes: true, call: (*Server).fork},
		{method: "POST", path: "/v1/executions/{exec_id}:retry", id: "retryExecution", summary: "Start a run that continues a failed one where it failed.", request: ofPath(calls.ForkArguments(), "node_id", "seq"), answer: run, creates: true, writes: true, call: (*Server).fork},
		{method: "GET", path: "/v1/questions", id: "listQuestions", summary: "List the questions that wait for a person, the oldest first.", params: []calls.Property{cursorParam},
			answer: []calls.Property{calls.Required("questions", calls.ListOf(calls.Object(append([]calls.Property{
				calls.ExecutionIDProperty, calls.Optional("title", calls.Str("Of the run.")), calls.Optional("updated_at", calls.Str("When the run changed last.")),
			}, without(calls.PendingProperties, "execution_id", "brief")...), false), "One page.")), nextCursor}, call: (*Server).questions},
		{method: "GET", path: "/v1/events", id: "followExecutions", summary: "Follow the changes of all runs.", params: []calls.Property{}, media: []string{"text/event-stream"}, call: (*Server).changes},
		{method: "GET", path: "/openapi.json", id: "getOpenAPI", summary: "This description.", params: []calls.Property{}, media: []string{"application/json"},
			call: func(s *Server, r *request) (*result, error) {
				r.w.Header().Set("Content-Type", "application/json")
				_, _ = r.w.Write(s.openAPI)
				return nil, nil
			}},
		{method: "GET", path: httpguard.HealthPath, id: "getHealth", summary: "Tell whether the server works.", media: []string{"text/plain"}},
	}
}

// drivenRun is the answer of an operation that drives a run.
func drivenRun(run *view.Run) jsonvalue.Ordered {
	body := runjson.Full(run, words)
	if run.Repeated {
		body.Put("repeated", true)
	}
	return body
}

// driven makes a call that drives a run, provided that the arguments are right.
func (s *Server) driven(r *request, wait *graph.Wait, call func(context.Context) (*view.Run, error)) (*result, error) {
	if err := r.Problem(); err != nil {
		return nil, err
	}
	wait.End = s.Stop
	run, err := call(r.Context())
	if e, coded := problem.As(err); coded && e.Details["repeated"] == true { // the call was taken, and the run has ended since
		if run, err = s.Engine.Status(r.Context(), graph.StatusRequest{ExecutionID: r.id}); err == nil {
			run.Repeated = true
		}
	}
	if err != nil {
		return nil, err
	}
	return ok(drivenRun(run))
}

// created makes an answer one of status 201, and names the run.
func created(w http.ResponseWriter, res *result, err error) (*result, error) {
	if err == nil {
		res.status = http.StatusCreated
		w.Header().Set("Location", "/v1/executions/"+address(res.body[0].Value.(string)))
	}
	return res, err
}

// address is the end of the address of a run.
func address(id string) string {
	if id == "" || id == "." || id == ".." || id == "/" || id == "-" {
		return "-?id=" + url.QueryEscape(id)
	}
	return strings.ReplaceAll(url.PathEscape(id), ":", "%3A")
}

func (s *Server) start(r *request) (*result, error) {
	req := r.Start()
	r.Started(s.Engine.ReadDefinition, &req)
	priority, _ := r.Get("priority").Whole(-1000000, 1000000)
	req.Priority = int(priority)
	if req.Mode == "" {
		req.Mode = s.DefaultMode
	}
	if key := r.Header.Get("Idempotency-Key"); key != "" && req.ExecutionID == "" {
		req.ExecutionID, req.AllowExisting = key, true
	}
	existing := false
	res, err := s.driven(r, &req.Wait, func(ctx context.Context) (run *view.Run, err error) {
		allowed := req.AllowExisting && req.ExecutionID != ""
		if peeker, isPeeker := s.Engine.(graph.Peeker); isPeeker && allowed {
			_, err := peeker.Peek(ctx, req.ExecutionID)
			existing = err == nil
		}
		req.AllowExisting = existing // of several starts at the same time, one begins the run
		if run, err = s.Engine.Start(ctx, req); allowed && !existing && errors.Is(err, problem.DuplicateExecutionID) {
			existing, req.AllowExisting = true, true
			run, err = s.Engine.Start(ctx, req)
		}
		if existing && err == nil {
			run.Repeated = true
		}
		return run, err
	})
	if existing {
		return res, err
	}
	return created(r.w, res, err)
}

func (s *Server) fork(r *request) (*result, error) {
	req := r.Fork(s.Engine.ReadDefinition)
	res, err := s.driven(r, &req.Wait, func(ctx context.Context) (*view.Run, error) {
		forker, err := graph.Need[graph.Forker](s.Engine, "forking runs")
		if err != nil {
			return nil, err
		}
		return forker.Fork(ctx, req)
	})
	return created(r.w, res, err)
}

func (s *Server) status(r *request) (*result, error) {
	req := graph.StatusRequest{ExecutionID: r.id}
	req.Since, _ = r.Get("since_seq").Whole(1, math.MaxInt32)
	full := r.Get("view").Choice("full") != ""
	if wait := r.Wait(); wait.Limit > 0 {
		wait.End = s.Stop
		req.Wait = &wait
	}
	if err := r.Problem(); err != nil {
		return nil, err
	}
	run, err := s.Engine.Status(r.Context(), req)
	switch {
	case err != nil:
		return nil, err
	case full:
		return ok(runjson.Full(run, words))
	}
	return ok(runjson.Exact(run, words))
}

func (s *Server) list(r *request) (*result, error) {
	q := r.List()
	if err := r.Problem(); err != nil {
		return nil, err
	}
	var page history.ListPage
	var err error
	if len(q.Phases) > 0 {
		page, err = s.Engine.List(r.Context(), q)
	} else {
		page, err = calls.ListOpenFirst(r.Context(), s.Engine, q)
	}
	if err != nil {
		return nil, err
	}
	rows, now := make([]jsonvalue.Ordered, len(page.Executions)), time.Now()
	for i := range rows {
		rows[i] = runjson.FullRow(&page.Executions[i])
		rows[i].Put("age_s", math.Floor(max(0, now.Sub(page.Executions[i].UpdatedAt).Seconds())))
	}
	body := jsonvalue.Ordered{{"executions", rows}}
	body.Instant("now", now)
	body.Text("next_cursor", page.NextCursor)
	return ok(body)
}

func (s *Server) questions(r *request) (*result, error) {
	q := history.ListQuery{Phases: []history.Phase{history.PhaseInterrupted}, Oldest: true, Limit: maxQuestions, Cursor: r.Get("cursor").NonEmpty()}
	if err := r.Problem(); err != nil {
		return nil, err
	}
	page, err := s.Engine.List(r.Context(), q)
	if errors.Is(err, problem.Unsupported) { // an engine whose lists are newest first
		q.Oldest = false
		page, err = s.Engine.List(r.Context(), q)
	}
	if err != nil {
		return nil, err
	}
	list := []jsonvalue.Ordered{}
	for i := range page.Executions {
		x := &page.Executions[i]
		run, err := s.Engine.Status(r.Context(), graph.StatusRequest{ExecutionID: x.ID})
		if err != nil {
			continue // it was deleted meanwhile, or cannot be read: its own address says why
		}
		for j := range run.Pending {
			if run.Pending[j].Kind != machine.WaitInterrupt {
				continue
			}
			entry := jsonvalue.Ordered{{"execution_id", x.ID}}
			entry.Text("title", x.Title)
			entry.Instant("updated_at", x.UpdatedAt)
			for _, m := range runjson.Pending(run, &run.Pending[j], nil) {
				if m.Name != "execution_id" {
					entry = append(entry, m)
				}
			}
			list = append(list, entry)
		}
	}
	body := jsonvalue.Ordered{{"questions", list}}
	body.Text("next_cursor", page.NextCursor)
	return ok(body)
}

// encodeRecord is a record with its payload.
func encodeRecord(id string, rec *history.Record) jsonvalue.Ordered {
	m := runjson.Record(rec)
	if rec.Raw == nil {
		m.Put("payload", jsonvalue.Raw(rec.AppendPayload(nil, id)))
	} else {
		m.Put("payload", jsonvalue.Raw(rec.Raw))
	}
	return m
}

func (s *Server) checkpoint(r *request) (*result, error) {
	if err := r.Problem(); err != nil {
		return nil, err
	}
	run, err := s.Engine.Status(r.Context(), graph.StatusRequest{ExecutionID: r.id})
	if err != nil {
		return nil, err
	}
	for last := run.Seq; last > 0; last -= maxPage {
		from := max(1, last-maxPage+1)
		records, err := s.Engine.History(r.Context(), graph.HistoryRequest{ExecutionID: r.id, FromSeq: from, Limit: int(last - from + 1)})
		if err != nil {
			return nil, err
		}
		for i := len(records) - 1; i >= 0; i-- {
			if records[i].Name == history.CheckpointWritten {
				return ok(encodeRecord(r.id, &records[i]))
			}
		}
	}
	return nil, &refusal{http.StatusNotFound, problem.New(problem.ValidationError, "run %q has no checkpoint", r.id)}
}

// maxDrawn is how many nodes a drawing has at most.
const maxDrawn = 1000

func (s *Server) graph(r *request) (*result, error) {
	if err := r.Problem(); err != nil {
		return nil, err
	}
	definitions, err := graph.Need[graph.Definitions](s.Engine, "drawing runs")
	if err != nil {
		return nil, err
	}
	run, err := s.Engine.Status(r.Context(), graph.StatusRequest{ExecutionID: r.id})
	if err != nil {
		return nil, err
	}
	document, err := definitions.Definition(r.Context(), run.DefinitionHash)
	if err != nil {
		return nil, err
	}
	program, findings := definition.Compile(document, definition.Options{AllowInterruptInBranch: true, Stored: true})
	switch {
	case program == nil:
		return nil, problem.New(problem.HistoryCorrupt, "the definition of the run does not compile: %s", findings[0].Message)
	case len(program.Nodes) > maxDrawn:
		return nil, problem.New(problem.ValidationError, "%d nodes are too many for a drawing, which has at most %d", len(program.Nodes), maxDrawn)
	}
	line := timeline.New(r.id, s.Redaction.String)
	line.Define(r.id, program)
	for from := int64(1); from <= run.Seq; {
		records, err := s.Engine.History(r.Context(), graph.HistoryRequest{ExecutionID: r.id, FromSeq: from, Limit: 500})
		if err != nil {
			return nil, err
		}
		for i := range records {
			line.Record(r.id, &records[i])
		}
		if len(records) == 0 {
			break
		}
		from = records[len(records)-1].Seq + 1
	}
	r.w.Header().Set("Content-Type", "image/svg+xml")
	r.w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	_, _ = io.WriteString(r.w, picture.SVG(program, line.Root()))
	return nil, nil
}

// describeWorkflow is a definition without its text.
func describeWorkflow(name, version, hash string) jsonvalue.Ordered {
	m := jsonvalue.Ordered{{"name", name}}
	m.Text("version", version)
	m.Put("hash", hash)
	return m
}

func (s *Server) listWorkflows(r *request) (*result, error) {
	limit, set := r.Get("limit").Whole(1, maxPage)
	if !set {
		limit = usualPage
	}
	cursor := r.Get("cursor").NonEmpty()
	if err := r.Problem(); err != nil {
		return nil, err
	}
	list, seen := []jsonvalue.Ordered{}, map[string]bool{}
	if s.Catalog != nil {
		for _, w := range s.Catalog.Look().Workflows {
			seen[w.Hash] = true
			if cursor == "" { // the first page has all that are registered
				m := describeWorkflow(w.Name, w.Version, w.Hash)
				m.Text("description", w.Description)
				m.Put("registered", true)
				list = append(list, m)
			}
		}
	}
	definitions, err := graph.Need[graph.Definitions](s.Engine, "listing definitions")
	if err != nil {
		return nil, err
	}
	page, err := definitions.Definitions(r.Context(), cursor, int(limit))
	if err != nil {
		return nil, err
	}
	for _, d := range page.Definitions {
		if seen[d.Hash] {
			continue
		}
		m := describeWorkflow(d.Name, d.Version, d.Hash)
		if !d.StoredAt.IsZero() {
			m.Instant("stored_at", d.StoredAt)
		}
		list = append(list, m)
	}
	body := jsonvalue.Ordered{{"workflows", list}}
	body.Text("next_cursor", page.NextCursor)
	return ok(body)
}

func (s *Server) workflow(r *request) (*result, error) {
	if err := r.Problem(); err != nil {
		return nil, err
	}
	store, err := graph.Need[graph.DefinitionStore](s.Engine, "finding definitions")
	if err != nil {
		return nil, err
	}
	doc, err := store.FindDefinition(r.Context(), r.ref)
	if err != nil {
		return nil, err
	}
	prog, err := s.Engine.Program(doc)
	if err != nil {
		return nil, err
	}
	m := describeWorkflow(prog.Name, prog.Version, prog.Hash)
	m.Put("definition", jsonvalue.Raw(doc.Canonical()))
	return ok(m)
}

func (s *Server) storeWorkflow(r *request) (*result, error) {
	r.Require("definition")
	doc := r.Definition(s.Engine.ReadDefinition, problem.ValidationError)
	if err := r.Problem(); err != nil {
		return nil, err
	}
	store, err := graph.Need[graph.DefinitionStore](s.Engine, "storing definitions")
	if err != nil {
		return nil, err
	}
	prog, err := s.Engine.Program(doc)
	if err != nil {
		return nil, err
	}
	isNew, err := store.StoreDefinition(r.Context(), doc)
	if err != nil {
		return nil, err
	}
	res := &result{http.StatusOK, describeWorkflow(prog.Name, prog.Version, prog.Hash)}
	if isNew {
		res.status = http.StatusCreated
		r.w.Header().Set("Location", "/v1/workflows/"+prog.Hash)
	}
	return res, nil
}
