package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/internal/calls"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/runjson"
)

// failure is an error answer (spec: mcp-tools, 2.2). The text carries all that details do: some hosts show a model
// nothing else.
type failure struct {
	code    problem.Code
	message string
	// lines follow the first line of the text.
	lines   []string
	details members
}

func (f *failure) line(format string, args ...any) {
	f.lines = append(f.lines, fmt.Sprintf(format, args...))
}

// result is the tool result, in so many bytes.
func (f *failure) result(bytes int) *mcp.CallToolResult {
	message, around := f.message, members{{"error", members{{"code", string(f.code)}, {"message", f.message}, {"details", f.details}}}}
	if bytes != FullAnswers && len(around.Append(nil)) > bytes {
		message = clipText(message, bytes/firstShare)
	}
	e := members{{"code", string(f.code)}, {"message", message}}
	if len(f.details) > 0 {
		around[0].Value = append(e, members{{"details", members{}}}...)
		e.Put("details", bound(f.details, bytes, len(around.Append(nil))))
	}
	return &mcp.CallToolResult{
		Content:           []mcp.Content{&mcp.TextContent{Text: boundText(append([]string{string(f.code) + ": " + message}, f.lines...), bytes)}},
		StructuredContent: json.RawMessage(members{{"error", e}}.Append(nil)),
		IsError:           true,
	}
}

// maxErrorData is the largest data of a failure, in bytes, that an answer shows.
const maxErrorData = 1 << 10

// failedRun is the answer of a call whose run has failed: an error whose details hold the failure and its node (spec:
// mcp-tools, 5.1). The answer's code is the engine's, whatever code the failure has.
func (s *server) failedRun(run *view.Run, bytes int) *failure {
	f := &failure{code: problem.EngineFailure, message: "the run failed: " + run.Error}
	if run.ErrorNodeID != "" {
		f.message = fmt.Sprintf("the run failed at node %q: %s", run.ErrorNodeID, run.Error)
	}
	f.details.Put("cause", run.Error)
	f.details.Text("code", run.ErrorCode)
	f.details.Text("node_id", run.ErrorNodeID)
	f.details.Put("execution_id", run.ExecutionID)
	f.details.Number("seq", run.Seq)
	var final []byte
	if run.FinalState != nil {
		limit := max(bytes/stateShare, reserved)
		if bytes == FullAnswers {
			limit = math.MaxInt
		}
		text, _ := s.runDocument(run.ExecutionID, stateSuffix).Show(run.FinalState, limit, "")
		f.details.Put("final_state", text)
		final = text
	}
	if run.ErrorCode != "" {
		f.line("code of the failure: %s", run.ErrorCode)
	}
	if data := run.ErrorData; data != nil && jsonvalue.Size(data, maxErrorData) <= maxErrorData {
		f.details.Put("error_data", data)
		f.line("data of the failure: %s", s.opts.Redaction.String(string(jsonvalue.Canonical(s.opts.Redaction.Value(data)))))
	}
	f.lines = rolledBack(f.lines, run)
	f.line("execution_id: %s", shownID(run.ExecutionID))
	if final != nil {
		f.line("final_state: %s", final)
	}
	again, ok := s.again(run)
	hint := "This run has ended."
	switch {
	case stopped(run):
		hint = stoppedHint
	case ok:
		hint = s.tools.sentences(sentence{"", hint + " Correct the cause and make the call in next."}, sentence{"workflow_start", "For another input, use workflow_start."})
	}
	f.details.Put("hint", hint)
	if !ok {
		f.line("Next: %s", hint)
		return f
	}
	f.details.Put("next", again.members())
	f.line("%s", hint)
	f.lines = append(f.lines, again.lines()...)
	return f
}

// stoppedHint tells a model not to start again after a person, or a rule of the operator, has stopped an agent.
const stoppedHint = "This run has ended because a person or a rule of the operator stopped the agent. Tell the user; retry only if they ask for it."

func stopped(run *view.Run) bool { return run.ErrorCode == string(problem.AgentStopped) }

// rejection returns the answer to a call that was rejected or failed. executionID is the run of the call, or "".
func (s *server) rejection(err error, invalid problem.Code, executionID string) *failure {
	e, ok := errors.AsType[*problem.Error](err)
	if !ok {
		e = fault(err)
	}
	f := &failure{code: wireCode(e.Code, invalid), message: e.Error()}
	if e.At.NodeID != "" && !strings.Contains(f.message, e.At.NodeID) {
		f.line("node: %s", e.At.NodeID)
	}
	f.putFindings(e)
	for _, name := range jsonvalue.Keys(e.Details) {
		f.details.Put(name, e.Details[name])
	}
	if f.code == problem.EngineFailure || f.code == problem.Internal {
		f.details.Put("cause", e.Error())
	}
	if f.code != e.Code {
		f.details.Put("engineCode", string(e.Code))
		f.line("engine code: %s", e.Code)
	}
	if e.At.ExecutionID != "" {
		executionID = e.At.ExecutionID
	}
	executionID = problem.Excerpt(executionID, maxShownID)
	if executionID != "" {
		f.details.Put("execution_id", executionID)
		f.line("execution_id: %s", shownID(executionID))
	}
	f.details.Text("node_id", e.At.NodeID)
	if breaksSchema(e.Findings) {
		f.details.Put("example", jsonvalue.Raw(minimalDefinition))
		f.line("%s\n%s", s.tools.sentences(sentence{"workflow_guide", "How to write one: workflow_guide."}, sentence{"workflow_validate", "To check one: workflow_validate."},
			sentence{"", "The smallest one that calls a model:"}), minimalDefinition)
	}
	hint := s.tools.translate(e.Hint)
	if hint == "" || len(e.Findings) > 0 { // a finding's own hint stands beside it
		hint = s.tools.nextStep(f.code, e.Code)
	}
	g, guided := errors.AsType[*guided](err)
	switch {
	case hint == "":
	case guided:
		f.line("%s", hint)
	default:
		f.line("Next: %s", hint)
	}
	f.details.Text("hint", hint)
	if guided {
		g.put(f)
	}
	return f
}

// minimalDefinition is shown for a definition that breaks the schema.
const minimalDefinition = `{"document":{"schema":"https://agent-workflow.dev/schemas/workflow-definition.json","name":"my-flow","version":"1.0.0"},` +
	`"state_schema":{"type":"object"},"nodes":[{"id":"begin","type":"start"},{"id":"ask","type":"llm_call","config":{"model":"any","system_prompt":"…"}},` +
	`{"id":"finish","type":"end"}],"edges":[{"source":"__start__","target":"begin"},{"source":"begin","target":"ask"},{"source":"ask","target":"finish"}]}`

// breaksSchema reports whether a definition breaks the schema of definitions.
func breaksSchema(findings problem.Findings) bool {
	return slices.ContainsFunc(findings, func(f problem.Finding) bool { return f.Code == problem.DefinitionSchema })
}

// withoutLines removes lines and columns of a definition from its error: pointers locate the findings.
func withoutLines(err error) error {
	e, ok := problem.As(err)
	if !ok {
		return err
	}
	plain := *e
	plain.At.Line, plain.At.Column = 0, 0
	plain.Findings = pointersOnly(e.Findings)
	return &plain
}

func pointersOnly(findings problem.Findings) problem.Findings {
	plain := slices.Clone(findings)
	for i := range plain {
		plain[i].At.Line, plain[i].At.Column = 0, 0
	}
	return plain
}

// maxShownID is how many bytes of a run's id an error shows. The ids of nested subworkflows are long.
const maxShownID = 1000

// fault returns a coded error for one that has no code.
func fault(err error) *problem.Error {
	switch {
	case errors.Is(err, errStopping):
		return problem.New(problem.Internal, "the server is stopping").
			WithHint("The run is kept and continues when a server is started again; workflow_status shows it.")
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return problem.New(problem.CallCancelled, "the call was cancelled: %v", err).
			WithHint("The run continues; workflow_status shows the run, and whether it took the call.")
	default:
		return problem.New(problem.Internal, "%v", err)
	}
}

// maxFindings is how many findings an answer lists.
const maxFindings = calls.MaxFindings

// putFindings adds the findings about a document: one line each in the text, JSON Schema errors in the protocol's form
// in details.
func (f *failure) putFindings(e *problem.Error) {
	var listed []members
	count := 0
	for _, finding := range e.Findings {
		if finding.Severity == problem.SeverityWarning {
			continue
		}
		if count++; count > maxFindings {
			continue
		}
		listed = append(listed, encodeFinding(finding))
		if !e.Says(finding) {
			f.line("- %s", findingText(finding))
		}
	}
	if count == 0 {
		if at := placeText(e.At); at != "" {
			f.line("at %s", at)
		}
		return
	}
	if more := count - len(listed); more > 0 {
		f.line("- and %d more", more)
	}
	f.details.Put("errors", listed)
	f.details.Put("errorCount", float64(count))
}

func encodeFinding(finding problem.Finding) members {
	params := finding.Params
	if params == nil {
		params = map[string]any{}
		if finding.Keyword == "profile" {
			params["code"] = string(finding.Code)
		}
	}
	m := members{
		{"instancePath", finding.At.Pointer}, {"schemaPath", finding.SchemaPath}, {"keyword", finding.Keyword},
		{"params", params}, {"message", finding.Message}, {"code", string(finding.Code)},
	}
	m.Text("hint", finding.Hint)
	m.Text("node_id", finding.At.NodeID)
	m.Number("line", int64(finding.At.Line))
	m.Number("column", int64(finding.At.Column))
	return m
}

func findingText(finding problem.Finding) string {
	text := finding.Message
	if at := placeText(finding.At); at != "" {
		text = at + ": " + text
	}
	return withHint(text, finding.Hint)
}

// withHint appends a hint, which may be a sentence or a fragment in lower case.
func withHint(text, hint string) string {
	first, _ := utf8.DecodeRuneInString(hint)
	switch {
	case hint == "":
		return text
	case unicode.IsLower(first):
		return text + "; " + hint
	}
	return strings.TrimSuffix(text, ".") + ". " + hint
}

func placeText(at problem.Place) string {
	place := at.Pointer
	if at.Line > 0 {
		place = strings.TrimSpace(fmt.Sprintf("%s (line %d, column %d)", place, at.Line, at.Column))
	}
	return place
}

// wireCodes are the codes that a host may meet in structuredContent.error.code: the protocol's closed list (spec:
// mcp-tools, 12). A finer code of the engine goes into details.engineCode.
var wireCodes = map[problem.Code]bool{
	problem.ValidationError: true, problem.ExecutionNotFound: true, problem.DuplicateExecutionID: true,
	problem.InvalidResumePayload: true, problem.SubmitNotAwaiting: true, problem.SubmitNodeMismatch: true,
	problem.SubmitParallelMismatch: true, problem.SubmitValidationError: true, problem.SignalNotAwaiting: true,
	problem.SignalNameMismatch: true, problem.SignalValidationError: true, problem.CancelNotAllowed: true,
	problem.CancelValidationError: true, problem.EngineFailure: true, problem.Internal: true,
}

// wireCode returns the protocol's code for a rejection by the engine. invalid is the tool's code for arguments that
// do not belong to the run.
func wireCode(code, invalid problem.Code) problem.Code {
	if wireCodes[code] {
		return code
	}
	switch code {
	case problem.InterruptInParallelBranch, problem.InvalidListCursor, problem.InputInvalid, problem.WebhookTargetUnknown:
		return problem.ValidationError
	case problem.DeletionUnfinished:
		return problem.ExecutionNotFound
	case problem.DefinitionNotFound, problem.WorkflowNotFound:
		return invalid
	case problem.RecordLimitExceeded, problem.ByteLimitExceeded, problem.SignalLimitExceeded, problem.RunComputing, problem.PersonRequired,
		problem.AgentBudgetSpent, problem.RetryRepeatsEffects, problem.AlreadyRetried:
		return invalid // a rejected call; a run that failed at its limit is reported by failedRun
	case problem.HistoryNewer, problem.HistoryConflict, problem.HistoryCorrupt, problem.RunnerClosed, problem.UsageError, problem.MemoryBudgetExceeded, problem.QueueFull,
		problem.StoreLocked, problem.StoreFull, problem.StoreReadOnly, problem.StoreUnavailable, problem.StoreOutcomeUnknown, problem.StoreReplaced,
		problem.CallCancelled, problem.ImportRequired:
		return problem.Internal
	default:
		return problem.EngineFailure
	}
}

// nextStep returns the advice for an error without a hint. code is the protocol's, cause the engine's.
func (s toolset) nextStep(code, cause problem.Code) string {
	if cause == problem.UsageError { // of a setting
		return "Tell the user to correct this setting and restart the server; until then every call fails."
	}
	switch code {
	case problem.ValidationError:
		return "Correct the arguments and call again; nothing was changed."
	case problem.ExecutionNotFound:
		return s.sentences(sentence{"", "Check the id."}, sentence{"workflow_list", "workflow_list shows the runs."})
	case problem.DuplicateExecutionID:
		return "Read that run with workflow_status, or start with another execution_id."
	case problem.InvalidResumePayload, problem.SubmitNotAwaiting, problem.SubmitNodeMismatch,
		problem.SubmitParallelMismatch, problem.SubmitValidationError, problem.SignalNotAwaiting,
		problem.SignalNameMismatch, problem.SignalValidationError:
		return "Nothing was changed; workflow_status shows the waits and the call to make."
	case problem.CancelNotAllowed:
		return "The run has ended; workflow_status shows how."
	case problem.Internal:
		return "Try again; if it persists, tell the user to read the server's log."
	default:
		return ""
	}
}

// words maps the names of the Go library in hints to those of the tools.
var words = calls.Words(problem.Glossary{
	"Runner.Status": "workflow_status", "Runner.List": "workflow_list",
	"Runner.Drive":     "workflow_start with definition and allow_existing_execution_id",
	"ForkRequest.Anew": "workflow_fork with anew true", "ForkRequest.CurrentAgentConfig": "workflow_fork with current_config true",
})

// guided is a rejection with the call to make instead.
type guided struct {
	error
	next toolCall
	// pending identifies the attempts that the host may report; total is their number.
	pending []members
	total   int
}

// Unwrap returns the rejection.
func (g *guided) Unwrap() error { return g.error }

// put adds the call to the details of the error. since_seq is left out: the caller has no earlier answer.
func (g *guided) put(f *failure) {
	if g.total > 1 {
		f.details.Put("pending", g.pending)
		f.line("pending: %s", jsonvalue.Canonical(g.pending))
		if g.total > len(g.pending) {
			f.details.Put("pending_total", float64(g.total))
			f.line("pending_total: %d", g.total)
		}
	}
	g.next.arguments = without(g.next.arguments, "since_seq")
	f.details.Put("next", g.next.members())
	f.lines = append(f.lines, g.next.lines()...)
}

// guide adds the call that the run waits for to the error of a call that it does not wait for.
func (s *server) guide(ctx context.Context, a *arguments, executionID string, refused error) error {
	e, ok := problem.As(refused)
	if !ok {
		return refused
	}
	switch e.Reason {
	case problem.NotAwaiting, problem.AnsweredDifferently, problem.AnswerAmbiguous:
	default:
		return refused
	}
	run, err := s.Status(ctx, graph.StatusRequest{ExecutionID: executionID})
	if err != nil || run.Status.Terminal() {
		return refused
	}
	return &guided{error: refused, next: s.next(s.view(ctx, a, run))}
}

// maxKeys limits the pending attempts that a rejection lists, maxKeysBytes their size.
const maxKeys, maxKeysBytes = 16, 1 << 10

// guideSubmit is guide for an outcome: the call for the attempt that was meant, if it is clear, and the keys of the attempts that the host may
// report.
func (s *server) guideSubmit(ctx context.Context, a *arguments, run *view.Run, req graph.SubmitRequest, refused *problem.Error) error {
	if run.Status.Terminal() {
		return refused
	}
	seen := s.view(ctx, a, run)
	g := &guided{error: refused, next: s.next(seen)}
	var keyed, named []*view.Pending
	room := maxKeysBytes
	for i := range run.Pending {
		p := &run.Pending[i]
		if p.Kind != machine.WaitActivity && p.Kind != machine.WaitDelegate || !seen.isActionable(p) || isUnbound(p) {
			continue
		}
		g.total++
		key := runjson.Key(run, p)
		if room -= len(key.Append(nil)); room >= 0 && len(g.pending) < maxKeys {
			g.pending = append(g.pending, key)
		}
		if p.IdempotencyKey == req.IdempotencyKey {
			keyed = append(keyed, p)
		}
		if p.NodeID == req.NodeID {
			named = append(named, p)
		}
	}
	switch {
	case len(named) == 1 && (len(keyed) == 0 || keyed[0] == named[0]):
		g.next = answerTo(seen, named[0])
		if req.IdempotencyKey == "" || len(keyed) == 1 { // only its branch was wrong
			g.next.arguments = withOutcome(g.next.arguments, a)
			g.next.note = "Send the same outcome for the pending attempt."
		}
	case len(keyed) == 1:
		g.next = answerTo(seen, keyed[0])
	case len(named) > 0:
		g.next = answerTo(seen, named[0])
	}
	return g
}

// withOutcome puts the outcome of a call into the arguments of another one, if it is not large.
func withOutcome(args members, a *arguments) members {
	sent := calls.ReadObject(a.Get("outcome"))
	i := indexOf(args, "outcome")
	if i < 0 || jsonvalue.Size(sent, maxOutcomeAgain) > maxOutcomeAgain {
		return args
	}
	args[i].Value = sent
	return args
}
