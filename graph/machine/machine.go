package machine

import (
	"maps"
	"slices"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// WalkVersion is the version of the walk. It is raised only when the same program and inputs lead to other batches, so that hosts whose history
// holds the inputs, and not the records, can tell which machine has walked a run. jq, JSON Schema, regular expressions, the text of numbers and
// the texts of engine failures are part of the walk.
const WalkVersion = 1

// Machine walks one run. It is not safe for concurrent use.
type Machine struct {
	prog *definition.Program
	cfg  Config
	now  time.Time
	// clock is the time that expressions see: the time of the input that led to them. A replay must see the same time, even
	// if it writes records that the history lacks at a later time.
	clock time.Time
	// feeding is true during a replay.
	feeding bool
	// present is the time of a replay: records that the history lacks get it.
	present time.Time

	// seq is the seq of the last record produced. commands counts commands, for the message of a mismatch.
	seq      int64
	commands int
	// stateSeq is the seq of the newest StateUpdated, and stateAt the state in it: a stored position refers to the record
	// instead of repeating the state.
	stateSeq int64
	// showsState reports whether the program has questions that show written fields.
	showsState bool
	stateAt    map[string]any

	main *token
	// deadline is when the run fails, zero without a deadline.
	deadline time.Time
	// visits counts the visits of each node, by its index; steps is their sum.
	visits []int
	steps  int
	// bytes is the size of the stored history; open counts the pending activities and delegates.
	bytes int64
	open  int
	// checkpoints counts the points where a checkpoint may be written, for every_n_nodes.
	checkpoints int
	// resumed is true from a resume until the next submitted outcome or signal: in between the protocol writes more
	// checkpoints (spec: execution, 9.2).
	resumed    bool
	positioned positioned
	// signalKeys are the idempotency keys of the last signals, the oldest first.
	signalKeys []string

	// kept are the early signals, the oldest first.
	kept []keptSignal
	// partials are the nodes whose newest output is partial, with the reason of each.
	partials map[string]string

	status  Status
	result  any
	failure failure
	reason  string
	// compensated counts the compensations of the rollback that ended the run.
	compensated int
	// left collects the branches that stopped waiting, without an outcome, since the last input.
	left []leftBranch
	// fatal, unless nil, is the failure that must end the run: a limit, or a held-back update that breaks the merged state.
	fatal *failure

	records     []history.Record
	spare       []history.Record
	effects     []Effect
	abandoned   []string
	dropped     []*DelegateEffect
	timersDirty bool

	pace pace
	// stop is askStop, which sets stopped if an evaluation was abandoned.
	stop    func() bool
	stopped bool

	// recorded is the part of the history that a replay has not repeated yet; nil on a live walk.
	recorded *recorded
}

// failure describes the failure of a node, branch or run. It is stored in positions.
type failure struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Code    string `json:"code,omitempty"`
	NodeID  string `json:"nodeId,omitempty"`
	// Data holds further facts about the failure, such as the value that a program raised.
	Data map[string]any `json:"data,omitempty"`
	// Attempts of the node, if it has attempts and the failure is caught.
	Attempts int `json:"attempts,omitempty"`
}

// Start begins a run and walks up to the first wait. The input must be plain JSON and must not be changed afterwards. An
// input that breaks the state_schema makes the run fail.
func Start(prog *definition.Program, cfg Config, input map[string]any, now time.Time) *Machine {
	m := newMachine(prog, cfg)
	m.begin(input, now)
	return m
}

func newMachine(prog *definition.Program, cfg Config) *Machine {
	if cfg.MaxVisits <= 0 {
		cfg.MaxVisits = DefaultMaxVisits
	}
	if cfg.Mode != HostMediated {
		cfg.Mode = InProcess
	}
	if cfg.Branches != Sequential {
		cfg.Branches = Concurrent
	}
	m := &Machine{prog: prog, cfg: cfg, visits: make([]int, len(prog.Nodes)), status: Running, main: &token{}, showsState: showsState(prog)}
	m.stop = m.askStop
	return m
}

// begin writes ExecutionStarted and walks from the entry node (spec: execution, 1.4 d and 3.1).
func (m *Machine) begin(input map[string]any, now time.Time) {
	m.setNow(now)
	m.clock = m.now
	if input == nil {
		input = map[string]any{}
	}
	m.main.view = maps.Clone(input)
	started := history.Payload{
		WorkflowName:      m.prog.Name,
		WorkflowVersion:   m.prog.Version,
		InputKeys:         jsonvalue.Keys(input),
		DefinitionHash:    m.prog.Hash,
		InputHash:         jsonvalue.Hash(input),
		Mode:              string(m.cfg.Mode),
		Branches:          string(m.cfg.Branches),
		ParentExecutionID: m.cfg.Parent,
		Depth:             m.cfg.Depth,
		TraceParent:       m.cfg.TraceParent,
		Priority:          m.cfg.Priority,
		Subworkflows:      m.cfg.Subworkflows,
		Attempts:          m.cfg.Attempts,
		Title:             m.cfg.Title,
		Labels:            maps.Clone(m.cfg.Labels),
		Notify:            slices.Clone(m.cfg.Notify),
		Queue:             m.cfg.Queue,
	}
	bad := m.invalidState(m.main, "")
	if m.prog.Entry.Type != definition.Start || bad != nil {
		started.Input = input // there will be no StateUpdated with it
	}
	m.limitRun(&started)
	m.event(history.ExecutionStarted, started)
	if bad != nil {
		m.failToken(m.main, bad)
		return
	}
	m.beginStretch()
	m.walk(m.main, m.prog.Entry)
	m.settle()
}

// Recycle hands back the Records of a batch that are no longer needed. The machine may reuse the slice.
func (m *Machine) Recycle(records []history.Record) {
	if m.spare == nil && cap(records) <= maxSpare {
		clear(records)
		m.spare = records[:0]
	}
}

// maxSpare bounds the capacity of a slice that is kept for reuse.
const maxSpare = 4 * usualBatch

// Ready returns the result of the last input, once.
func (m *Machine) Ready() Batch {
	b := Batch{
		Records:       m.records,
		Effects:       m.effects,
		Abandoned:     m.abandoned,
		Dropped:       m.dropped,
		TimersChanged: m.timersDirty,
	}
	if m.timersDirty {
		b.Timers = m.Timers()
	}
	m.records, m.effects, m.abandoned, m.dropped, m.timersDirty = nil, nil, nil, nil, false
	return b
}

// Handle takes one input. After a *problem.Error or ErrWalking nothing has changed; after expr.ErrAbandoned, see Stopped. now becomes the
// time of the records that follow; it must not be before the time of the previous input.
func (m *Machine) Handle(in Input, now time.Time) error {
	t, err := m.accept(in, now)
	if err != nil {
		return err
	}
	m.setNow(now)
	m.beginStretch()
	m.apply(t, in)
	m.settle()
	if m.stopped {
		return expr.ErrAbandoned
	}
	return nil
}

// Check returns the error that Handle would return for the same input at the same time, and changes nothing. Hosts whose history holds the
// inputs check an input before they append it.
func (m *Machine) Check(in Input, now time.Time) error {
	_, err := m.accept(in, now)
	return err
}

// accept rejects an input that does not fit, or returns its token: nil for a signal that is kept. It changes nothing.
func (m *Machine) accept(in Input, now time.Time) (*token, error) {
	if m.status.Terminal() {
		return nil, m.endedError(in)
	}
	switch in := in.(type) {
	case Continue:
		return m.acceptContinue(in)
	case Cancel:
		return m.acceptCancel(in)
	}
	if m.Walking() {
		return nil, ErrWalking
	}
	switch in := in.(type) {
	case Outcome:
		return m.acceptOutcome(in)
	case TaskUpdate:
		return m.acceptTask(in)
	case StepsRecorded:
		return m.acceptSteps(in)
	case Resume:
		return m.acceptResume(in, now)
	case Signal:
		return m.acceptSignal(in, now)
	case TimerFired:
		return m.acceptTimer(in, now)
	case ChildEnded:
		return m.acceptChild(in.Key)
	case ChildRefused:
		return m.acceptChild(in.Key)
	case Turn:
		return m.acceptTurn(in)
	default:
		return nil, problem.New(problem.Internal, "input has an unknown type").WithHint("Pass one of the types of this package, by value.")
	}
}

// apply applies an input that has been accepted for a token.
func (m *Machine) apply(t *token, in Input) {
	switch in := in.(type) {
	case Outcome:
		if in.submitted() && t.wait.Kind == WaitDelegate {
			takeDelegateIDs(&in)
		}
		m.takeOutcome(t, in)
	case TaskUpdate:
		m.takeTask(t, in)
	case StepsRecorded:
		m.takeSteps(t, in)
	case Resume:
		switch {
		case t.wait.agentAsks():
			m.deliverAnswer(t, in.Payload)
		case t.wait.executorAsks():
			m.answerStep(t, in.Payload, false)
		default:
			m.takeAnswer(t, object(in.Payload))
		}
	case Signal:
		if t == nil {
			m.keep(in)
			return
		}
		m.takeSignal(t, object(in.Payload), in.IdempotencyKey)
	case TimerFired:
		rest, _ := t.restTimer()
		queue, _ := m.queueTimer(t)
		limit, _ := t.limitTimer()
		switch {
		case in.Key == timerRun:
			m.runExpired()
		case in.Key == limit:
			m.visitExpired(t)
		case t.inner != nil:
			m.blockExpired(t.inner)
		case in.Key == rest:
			m.restOver(t)
		case in.Key == queue:
			m.queueExpired(t)
		default:
			m.fire(t)
		}
	case ChildEnded:
		m.takeChild(t, in)
	case ChildRefused:
		m.childFailed(t, in.Error, in.Code, nil)
	case Turn:
		m.takeTurn(t)
	case Continue:
		m.walkOn(t)
	case Cancel:
		m.cancel(in)
	}
}

// setNow never moves the time backwards: a record is never older than the records before it. Time has the precision of
// records, milliseconds, so that a rebuilt machine computes the same instants.
func (m *Machine) setNow(now time.Time) {
	if now = now.Truncate(time.Millisecond); now.After(m.now) {
		m.now = now
	}
	if !m.feeding {
		m.clock = m.now
	}
}

// settle follows every input: it ends the run after a fatal failure and, at the end of the walk, records the branches that no longer wait.
func (m *Machine) settle() {
	for m.fatal != nil && !m.status.Terminal() {
		f := m.fatal
		m.fatal = nil
		m.failRun(f)
	}
	if !m.Walking() {
		m.noteLeft()
	}
}

func (m *Machine) endedError(in Input) error {
	at := problem.Place{ExecutionID: m.cfg.ExecutionID}
	var e *problem.Error
	switch in := in.(type) {
	case Outcome:
		e = problem.New(problem.SubmitNotAwaiting, "the run is %s and does not await an activity", m.status)
	case Resume:
		e = problem.New(problem.InvalidResumePayload, "cannot resume: the run is %s", m.status)
	case Signal:
		e = problem.New(problem.SignalNotAwaiting, "the run is %s and does not await signal %q", m.status, in.Name)
	case Cancel:
		e = problem.New(problem.CancelNotAllowed, "the run is %s and cannot be cancelled", m.status)
	default:
		return problem.New(problem.HistoryConflict, "the run is already %s", m.status).WithPlace(at)
	}
	return e.WithReason(problem.ExecutionEnded).WithPlace(at).WithHint("Ask Runner.Status for its outcome.")
}

// Seq is the seq of the last record produced, whether Ready has returned it or not.
func (m *Machine) Seq() int64 { return m.seq }

// Config returns the run's configuration, with the mode that was set last.
func (m *Machine) Config() Config { return m.cfg }

// Program returns the program of the run.
func (m *Machine) Program() *definition.Program { return m.prog }

// SetMode changes who performs the activities that are requested from now on.
func (m *Machine) SetMode(mode Mode) { m.cfg.Mode = mode }

// State is the run's state: the state of the main path, with the updates of branches that have been merged so far.
// Shared: do not change it.
func (m *Machine) State() map[string]any { return m.main.view }

// Result is the end node's output; ok is false unless the run is completed.
func (m *Machine) Result() (result any, ok bool) { return m.result, m.status == Completed }

// Failure returns the message, code and node of a run's failure; code and node are "" if unknown.
func (m *Machine) Failure() (message, code, nodeID string) {
	return m.failure.Message, m.failure.Code, m.failure.NodeID
}

// FailureData returns further fields of a run's failure, or nil. Shared: do not change it.
func (m *Machine) FailureData() map[string]any { return m.failure.Data }

// Reason returns the reason of a cancellation.
func (m *Machine) Reason() string { return m.reason }

// Compensated counts the compensations of the rollback that ended the run.
func (m *Machine) Compensated() int { return m.compensated }

// Visits counts the node visits so far.
func (m *Machine) Visits() int { return m.steps }
