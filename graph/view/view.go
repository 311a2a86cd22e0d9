package view

import (
	"maps"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Source holds the inputs of a view.
type Source struct {
	// Execution is the run's projection.
	Execution *history.Execution
	// Machine and Program are set for a loaded run. Without them, the view has only the fields of the projection.
	Machine *machine.Machine
	Program *definition.Program
	// Waits is what the Machine waits for (Machine.Pending).
	Waits []machine.Wait
	// Ending is the ending of the run; nil for an active run.
	Ending *Ending
	// StoredState is the newest stored state, used without a Machine.
	StoredState map[string]any
	// MaxVisits and Mode are the defaults of a run that does not record them.
	MaxVisits int
	Mode      machine.Mode
	// Limits are those of the process, for Warnings.
	Limits machine.Limits
	// Tree is the use of the limits of the run's tree.
	Tree []Usage
	// Now is the time of the view.
	Now time.Time
}

// Of returns the view of a run. Pending has an entry of kind WaitChild for each awaited subworkflow; see Compose. The view shares nothing
// with its source.
func Of(s Source) *Run {
	v := s.summary()
	switch {
	case s.Ending != nil:
		s.describeEnd(v)
	case s.Machine == nil:
		v.State = copyOf(s.StoredState)
		for i := range s.Execution.Waits {
			v.Pending = append(v.Pending, s.outline(&s.Execution.Waits[i], v.State))
		}
	default:
		s.describe(v)
	}
	return v
}

// summary returns a view with the fields of the projection.
func (s *Source) summary() *Run {
	e := s.Execution
	v := &Run{
		ExecutionID: e.ID, Status: StatusOf(e.Phase), DefinitionName: e.DefinitionName,
		DefinitionVersion: e.DefinitionVersion, DefinitionHash: e.DefinitionHash, Mode: machine.Mode(e.Mode),
		CurrentNodeID: e.CurrentNodeID, DelegateCorrelationID: e.DelegateCorrelationID,
		ChildExecutionID: e.ChildExecutionID, ParentExecutionID: e.ParentID(), ForkedFrom: e.ForkedFrom,
		Seq: e.Seq, Bytes: e.Bytes, CreatedAt: e.CreatedAt, UpdatedAt: e.UpdatedAt, NodeVisits: int(e.NodeVisits),
		MaxVisits: s.MaxVisits, Title: e.Title, Labels: maps.Clone(e.Labels), Now: s.Now,
	}
	if v.Mode == "" {
		v.Mode = s.Mode
	}
	return v
}

func (s *Source) describeEnd(v *Run) {
	end := s.Ending
	v.Status, v.FinalState = end.Status, copyOf(end.State)
	v.Result = jsonvalue.Clone(end.Result)
	v.Reason, v.Compensated = end.Reason, end.Compensated
	if end.Status == machine.Failed {
		v.Error, v.ErrorCode, v.ErrorNodeID, v.ErrorData = end.Error, end.Code, end.NodeID, jsonvalue.CloneMap(end.Data)
	}
	v.Warnings = append(v.Warnings, partialAnswers(end.Partials)...)
	if s.Machine != nil {
		v.Mode, v.MaxVisits = s.Machine.Config().Mode, s.Machine.Config().MaxVisits
	}
}

func (s *Source) describe(v *Run) {
	m, config := s.Machine, s.Machine.Config()
	v.Status, v.Mode = m.Status(), config.Mode
	v.NodeVisits, v.MaxVisits = m.Visits(), config.MaxVisits
	v.Warnings = Warnings(append([]Usage{
		{Code: problem.StepBudgetExceeded, Used: int64(m.Visits()), Limit: int64(config.MaxVisits)},
		{Code: problem.RecordLimitExceeded, Used: s.Execution.Seq, Limit: s.Limits.MaxRecords},
		{Code: problem.ByteLimitExceeded, Used: s.Execution.Bytes, Limit: s.Limits.MaxBytes},
		{Code: problem.PendingLimitExceeded, Used: int64(m.Awaited()), Limit: int64(s.Limits.MaxPending)},
	}, s.Tree...)...)
	if f, ok := m.Doomed(); ok {
		v.Warnings = append(v.Warnings, willFail(f))
	}
	v.Warnings = append(v.Warnings, partialAnswers(m.Partials())...)
	states := stateCopies{}
	v.State = states.of(m.State())
	v.Maps, v.KeptSignals, v.Rollbacks = m.Maps(), m.KeptSignals(), m.Rollbacks()
	v.DeadlineAt = m.Deadline()
	for _, w := range s.Waits {
		v.Pending = append(v.Pending, s.pending(w, states))
	}
}

// StatusOf returns the status of a phase.
func StatusOf(p history.Phase) machine.Status {
	switch p {
	case history.PhaseCompleted:
		return machine.Completed
	case history.PhaseFailed:
		return machine.Failed
	case history.PhaseCancelled:
		return machine.Cancelled
	case history.PhaseInterrupted:
		return machine.Interrupted
	case history.PhaseAwaitingActivity:
		return machine.AwaitingActivity
	case history.PhaseAwaitingSignal:
		return machine.AwaitingSignal
	default:
		return machine.Running
	}
}

// copyOf returns a deep copy of a state; nil counts as empty.
func copyOf(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return jsonvalue.CloneMap(m)
}
