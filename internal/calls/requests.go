package calls

import (
	"context"
	"math"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonobject"
	"github.com/workflows-engine/workflows-engine/internal/runjson"
)

// MaxWait is the largest wait_ms: hosts abandon longer calls.
const MaxWait = 5 * time.Minute

// Phases are the phases of runs.
var Phases = []string{"running", "completed", "failed", "interrupted", "awaiting_activity", "awaiting_signal", "cancelled"}

// Arguments that several calls have.
var (
	ExecutionIDArgument = Required("execution_id", Text("The run."))
	WaitArgument        = Optional("wait_ms", Describe("integer", "Longest wait (default 20000; 0: none).",
		"minimum", 0.0, "maximum", float64(MaxWait.Milliseconds())))
	// StatusWaitArgument is that of a call that only reads.
	StatusWaitArgument = Optional("wait_ms", Describe("integer", "Longest wait while the run continues by itself (default 0).",
		"minimum", 0.0, "maximum", float64(MaxWait.Milliseconds())))
	ModeArgument = Optional("activity_execution_mode", OneOf("Who performs activities.",
		string(machine.InProcess), string(machine.HostMediated)))
	SinceArgument   = Optional("since_seq", Describe("integer", "seq of an answer you have: only changes.", "minimum", 1.0))
	definitionAgain = Optional(definitionArgument, Obj("Not needed."))
	inputAgain      = Optional("input", Obj("Not needed."))
)

// again are the arguments of each call after the start that drives a run.
var again = []Property{definitionAgain, inputAgain, ModeArgument, WaitArgument}

// outcomeSchema is one object, not a choice of two: models fill in one object more reliably.
var outcomeSchema = Described("Outcome of the attempt.", []Property{
	Required("ok", Describe("boolean", "Whether it succeeded.")),
	Optional("result", Obj("ok:true: the output; it must fit output_schema. Default {}.")),
	Optional("error", Text("ok:false, required: the failure.")),
	Optional("code", Str("ok:false: a code for retry policies.")),
	Optional("delegate_correlation_id", Str("Delegate, ok:true: copy it.")),
	Optional("external_task_id", Str("Delegate: its task id.")),
}, true)

// StartArguments are those of a start. here is the mode of runs that are started without one.
func StartArguments(here machine.Mode) []Property {
	if here == "" {
		here = machine.InProcess
	}
	return []Property{
		Optional(definitionArgument, DefinitionSchema("An object, or JSON or YAML text.")),
		Optional("definition_ref", Text("Or name, name@version or hash of a known one.")),
		Optional("input", Obj("First state; default {}.")),
		Optional("execution_id", Text("Your id; one in use is rejected. Default: new.")),
		Optional("title", Str("Name for people.")),
		Optional("labels", Obj("Short texts to find it by.")),
		Optional("notify", ListOf(Members{{"type", "string"}}, "Webhook targets.")),
		Optional("activity_execution_mode", OneOf("Who performs activities: host_mediated (you, through workflow_submit_activity) or "+
			"in_process (this server). Default here: "+string(here)+".",
			string(machine.InProcess), string(machine.HostMediated))),
		Optional("allow_existing_execution_id", Describe("boolean", "With execution_id: an existing run is "+
			"returned, and continued if its process died. Makes repeated starts safe.")),
		Optional("branch_order", OneOf("Of branches (default concurrent).",
			string(machine.Concurrent), string(machine.Sequential))),
		Optional("queue", Str("For workers.")),
		Optional("deadline", Str("Longest time, as 72h.")),
		WaitArgument,
	}
}

// ResumeArguments are those of an answer to an interrupt, whose payload is described by the caller.
func ResumeArguments(payload Property) []Property {
	return append([]Property{ExecutionIDArgument, payload, Optional("interrupt_id", Text("Which interrupt: copy it from next."))}, again...)
}

// SubmitArguments are those of the outcome of an activity.
func SubmitArguments() []Property {
	return append([]Property{
		ExecutionIDArgument,
		Required("node_id", Text("node_id of the pending activity.")),
		Required("outcome", outcomeSchema),
		Optional("parallel_span", Obj("Copy it if pending has one; not needed with idempotency_key.")),
		Optional("idempotency_key", Text("Copy it: the outcome then counts for that attempt only.")),
	}, again...)
}

// InOutcome maps the fields of an outcome to its argument: callers omit the level.
var InOutcome = map[string]string{"ok": "outcome", "result": "outcome", "error": "outcome", "code": "outcome", "delegate_correlation_id": "outcome", "external_task_id": "outcome"}

// SignalArguments are those of a signal.
func SignalArguments() []Property {
	return append([]Property{
		ExecutionIDArgument,
		Required("signal_name", Text("The signal's name, exactly.")),
		Optional("payload", Obj("Its payload; default {}.")),
		Optional("idempotency_key", Text("Any text that names this signal: repeated with it, the signal counts once.")),
	}, again...)
}

// CancelArguments are those of the end of a run.
func CancelArguments() []Property {
	return []Property{ExecutionIDArgument, Optional("reason", Text("Reason to record."))}
}

// ForkArguments are those of a new run with the past of another one.
func ForkArguments() []Property {
	return []Property{
		ExecutionIDArgument,
		Optional("node_id", Text("Before its last visit. Default: where it failed.")),
		Optional("seq", Describe("integer", "After this record.", "minimum", 1.0)),
		Optional(definitionArgument, DefinitionSchema("A corrected one.")),
		Optional("state", Obj("Merge patch; not with seq.")),
		Optional("anew", Describe("boolean", "From node start.")),
		Optional("current_config", Describe("boolean", "Today's budgets.")),
		Optional("again", Describe("boolean", "Beside another retry.")),
		Optional("repeat_effects", Describe("boolean", "Agent calls may repeat.")),
		Optional("new_execution_id", Text("New id.")),
		WaitArgument,
	}
}

// ListArguments are those of a list of runs.
func ListArguments() []Property {
	return []Property{
		Optional("open", Describe("boolean", "Runs not ended.")),
		Optional("phase", Members{{"anyOf", []Members{Choice(Phases...), {{"type", "array"}, {"items", Members{{"type", "string"}}}}}}, {"description", "One or several."}}),
		Optional("roots", Describe("boolean", "No subworkflows")),
		Optional("unhandled", Describe("boolean", "Not handled")),
		Optional("label", Str("key=value or key.")),
		Optional("definition_name", Text("Of this definition.")),
		Optional("updated_after", Text("Changed since (ISO 8601).")),
		Optional("updated_before", Text("Changed by then.")),
		Optional("limit", Describe("integer", "Default 50.", "minimum", 1.0, "maximum", 100.0)),
		Optional("cursor", Text("next_cursor.")),
	}
}

// ListAnswer are the fields of a list of runs.
func ListAnswer() []Property {
	return []Property{
		Required("executions", ListOf(Object([]Property{
			Required("execution_id", Str("Run.")),
			Required("phase", Str("Its phase.")),
			Optional("title", Str("As at its start; labels too.")),
			Optional("waits_for", Str("In a few words.")),
			Optional("age_s", Describe("integer", "Since it last changed.")),
			Optional("last_error", Str("Why it failed or was cancelled.")),
			Optional("next", Obj("Newest open run: the call that shows how to continue it.")),
		}, false), "One page of runs.")),
		Optional("next_cursor", Str("Pass it as cursor for the next page; absent on the last.")),
	}
}

// Wait reads wait_ms; the rest of the wait is the caller's.
func (a *Arguments) Wait() (w graph.Wait) {
	if ms, set := a.Get("wait_ms").Whole(0, MaxWait.Milliseconds()); set {
		w = graph.WaitAtMost(time.Duration(ms) * time.Millisecond)
	}
	return w
}

// Mode reads the mode of activities, "" if absent.
func (a *Arguments) Mode() machine.Mode {
	return machine.Mode(a.Get("activity_execution_mode").Choice(string(machine.InProcess), string(machine.HostMediated)))
}

// Caller reads the arguments that a call after the start may repeat.
func (a *Arguments) Caller(read ReadDefinition, invalid problem.Code) graph.Caller {
	c := graph.Caller{Definition: a.Definition(read, invalid), Input: ReadObject(a.Get("input")), Mode: a.Mode(), Wait: a.Wait()}
	c.InputSet = c.Input != nil
	return c
}

// ReadDefinition is the function of an engine that reads a definition.
type ReadDefinition = func(text []byte) (*definition.Document, error)

// Start reads the arguments of a start, except those that select the definition.
func (a *Arguments) Start() graph.StartRequest {
	return graph.StartRequest{
		ExecutionID:   a.Get("execution_id").NonEmpty(),
		Input:         ReadObject(a.Get("input")),
		Mode:          a.Mode(),
		Branches:      machine.BranchOrder(a.Get("branch_order").Choice(string(machine.Concurrent), string(machine.Sequential))),
		Title:         a.Get("title").Text(),
		Labels:        a.Get("labels").With(ReadObject(a.Get("labels"))).TextMap(),
		Notify:        a.Get("notify").Texts(),
		Queue:         a.Get("queue").Text(),
		Deadline:      a.deadline(),
		AllowExisting: a.Get("allow_existing_execution_id").Bool(),
		Wait:          a.Wait(),
	}
}

// deadline reads the deadline of a start, 0 if absent.
func (a *Arguments) deadline() time.Duration {
	v := a.Get("deadline")
	if !v.Present() {
		return 0
	}
	d, err := definition.ParseDuration(v.Text())
	if err != nil || d == 0 {
		v.Fail("format", `expected a time such as "72h"`)
	}
	return d
}

// Started reads the arguments that select the definition of a start: exactly one.
func (a *Arguments) Started(read ReadDefinition, req *graph.StartRequest) {
	req.Definition, req.DefinitionRef = a.Definition(read, problem.ValidationError), a.Get("definition_ref").NonEmpty()
	switch sent, named := a.Get(definitionArgument).Present(), req.DefinitionRef != ""; {
	case sent && named:
		a.Get("definition_ref").Fail("oneOf", "expected one of definition and definition_ref, found both")
	case !sent && !named && !a.Get("definition_ref").Present():
		a.Missing(definitionArgument).Hint = "or name a stored one in definition_ref"
	}
}

// Resume reads the arguments of an answer. The payload may be absent.
func (a *Arguments) Resume(read ReadDefinition) graph.ResumeRequest {
	return graph.ResumeRequest{
		ExecutionID: a.Require("execution_id").NonEmpty(),
		InterruptID: a.Get("interrupt_id").NonEmpty(),
		Payload:     ReadObject(a.Get("resume_payload")),
		Caller:      a.Caller(read, problem.InvalidResumePayload),
	}
}

// Submit reads the arguments of an outcome.
func (a *Arguments) Submit(read ReadDefinition) graph.SubmitRequest {
	req := graph.SubmitRequest{
		ExecutionID:    a.Require("execution_id").NonEmpty(),
		NodeID:         a.Require("node_id").NonEmpty(),
		Span:           a.Span("parallel_span"),
		IdempotencyKey: a.Get("idempotency_key").NonEmpty(),
		Caller:         a.Caller(read, problem.SubmitValidationError),
	}
	a.outcome("outcome", &req)
	return req
}

// Signal reads the arguments of a signal.
func (a *Arguments) Signal(read ReadDefinition) graph.SignalRequest {
	return graph.SignalRequest{
		ExecutionID: a.Require("execution_id").NonEmpty(),
		Name:        a.Require("signal_name").NonEmpty(),
		Payload:     ReadObject(a.Get("payload")),

		IdempotencyKey: a.Get("idempotency_key").NonEmpty(),
		Caller:         a.Caller(read, problem.SignalValidationError),
	}
}

// Cancel reads the arguments of the end of a run.
func (a *Arguments) Cancel() graph.CancelRequest {
	return graph.CancelRequest{ExecutionID: a.Require("execution_id").NonEmpty(), Reason: strings.TrimSpace(a.Get("reason").NonEmpty())}
}

// Fork reads the arguments of a fork.
func (a *Arguments) Fork(read ReadDefinition) graph.ForkRequest {
	req := graph.ForkRequest{
		ExecutionID: a.Require("execution_id").NonEmpty(), BeforeNode: a.Get("node_id").NonEmpty(),
		NewExecutionID: a.Get("new_execution_id").NonEmpty(), Definition: a.Definition(read, problem.ValidationError), Wait: a.Wait(),
	}
	req.Correction = ReadObject(a.Get("state"))
	req.Seq, _ = a.Get("seq").Whole(1, math.MaxInt32)
	if req.Seq > 0 && req.BeforeNode != "" {
		a.Get("seq").Fail("oneOf", "expected one of node_id and seq, found both")
	}
	if req.Seq > 0 && req.Correction != nil {
		a.Get("state").Fail("oneOf", "expected one of state and seq, found both")
	}
	req.Anew = a.Get("anew").Bool()
	req.CurrentAgentConfig = a.Get("current_config").Bool()
	req.Again = a.Get("again").Bool()
	req.RepeatEffects = a.Get("repeat_effects").Bool()
	return req
}

// List reads the arguments of a list of runs.
func (a *Arguments) List() history.ListQuery {
	limit, _ := a.Get("limit").Whole(1, 100)
	q := history.ListQuery{
		Phases:         a.phases("phase"),
		Roots:          a.Get("roots").Bool(),
		Unhandled:      a.Get("unhandled").Bool(),
		Labels:         a.label("label"),
		DefinitionName: a.Get("definition_name").NonEmpty(),
		UpdatedAfter:   a.instant("updated_after"),
		UpdatedBefore:  a.instant("updated_before"),
		Limit:          int(limit),
		Cursor:         a.Get("cursor").NonEmpty(),
	}
	if open := a.Get("open").Bool(); open && len(q.Phases) > 0 {
		a.Get("open").Fail("oneOf", "expected one of open and phase, found both")
	} else if open {
		q.Phases = history.OpenPhases()
	}
	return q
}

var outcomeNames = []string{"ok", "result", "error", "code", "delegate_correlation_id", "external_task_id"}

// outcome reads an outcome. Fields of the form that ok does not choose are ignored (spec: mcp-tools, 8).
func (a *Arguments) outcome(name string, req *graph.SubmitRequest) {
	value := ReadObject(a.Require(name))
	if value == nil {
		return
	}
	o := a.within(name, value, outcomeNames, map[string]string{
		"delegateCorrelationId": "delegate_correlation_id", "externalTaskId": "external_task_id",
	})
	ok := o.Require("ok")
	if req.OK = ok.Bool(); req.OK {
		req.Result = ReadObject(o.Get("result"))
		req.CorrelationID = o.Get("delegate_correlation_id").Text()
		req.ExternalTaskID = o.Get("external_task_id").Text()
	} else if ok.Plain == false {
		req.Error = o.Require("error").NonEmpty()
		req.Code = o.Get("code").Text()
	}
}

var spanNames = []string{"parallel_node_id", "join_target_id", "branch_name", "branch_entry_node_id"}

// Span reads the branch of a parallel block, nil if absent.
func (a *Arguments) Span(name string) *history.ParallelSpan {
	value := ReadObject(a.Get(name))
	if value == nil {
		return nil
	}
	s := a.within(name, value, spanNames, map[string]string{
		"parallelNodeId": "parallel_node_id", "joinTargetId": "join_target_id",
		"branchName": "branch_name", "branchEntryNodeId": "branch_entry_node_id",
	})
	return &history.ParallelSpan{
		ParallelNodeID: s.Require("parallel_node_id").NonEmpty(), JoinTargetID: s.Require("join_target_id").NonEmpty(),
		BranchName: s.Require("branch_name").NonEmpty(), BranchEntryNodeID: s.Require("branch_entry_node_id").NonEmpty(),
	}
}

// phases reads one phase, or an array of them.
func (a *Arguments) phases(name string) []history.Phase {
	v := a.Get(name)
	elements := []jsonobject.Value{v}
	if _, several := v.Plain.([]any); several {
		elements = v.Elements()
	}
	var list []history.Phase
	for _, e := range elements {
		status, _ := e.Plain.(string)
		if p := string(runjson.Phase(machine.Status(status))); p != status { // answers have more statuses than there are phases
			e.Fail("enum", "expected %s, found %q", problem.OrList(Phases), status).Hint = "use the phase of runs with this status: " + p
			continue
		}
		if p := e.Choice(Phases...); p != "" {
			list = append(list, history.Phase(p))
		}
	}
	return list
}

// label reads key=value, or a key alone.
func (a *Arguments) label(name string) map[string]string {
	key, value, _ := strings.Cut(a.Get(name).NonEmpty(), "=")
	if key == "" {
		return nil
	}
	return map[string]string{key: value}
}

// afterOpen begins the cursor of a page after the open runs: the rest is the cursor in the list of ended runs.
const afterOpen = "ended|"

// ListOpenFirst returns a page of runs, open runs before ended ones. A run that ends while a caller reads the pages comes first among the
// ended ones.
func ListOpenFirst(ctx context.Context, engine graph.Engine, q history.ListQuery) (page history.ListPage, err error) {
	size, err := q.PageSize()
	if err != nil {
		return page, err
	}
	cursor, ended := strings.CutPrefix(q.Cursor, afterOpen)
	if !ended {
		cursor = ""
		q.Phases = history.OpenPhases()
		if page, err = engine.List(ctx, q); err != nil || page.NextCursor != "" {
			return page, err
		}
	}
	left := size - len(page.Executions)
	q.Phases, q.Cursor, q.Limit = history.EndedPhases(), cursor, max(left, 1)
	rest, err := engine.List(ctx, q)
	switch {
	case err != nil:
		return page, err
	case left > 0:
		page.Executions = append(page.Executions, rest.Executions...)
		if rest.NextCursor != "" {
			page.NextCursor = afterOpen + rest.NextCursor
		}
	case len(rest.Executions) > 0:
		page.NextCursor = afterOpen
	}
	return page, nil
}

// instantForms lists the forms of a time that list accepts: the protocol compares texts, so a date alone, or a year,
// stands for its beginning.
var instantForms = []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateOnly, "2006-01", "2006"}

func (a *Arguments) instant(name string) time.Time {
	s := a.Get(name).NonEmpty()
	if s == "" {
		return time.Time{}
	}
	for _, form := range instantForms {
		if t, err := time.Parse(form, s); err == nil {
			return t.UTC()
		}
	}
	a.Get(name).Fail("format", "expected a time such as 2026-11-21T01:03:49Z, found %q", s)
	return time.Time{}
}
