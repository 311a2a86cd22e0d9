// Package transfer moves, forks and checks histories. Export and Import move runs between stores as files in the format of package
// runfile. A Fork begins a run with the past of another run. Replay and Inspect execute a definition with the recorded outcomes and
// compare the resulting records with the recorded ones.
package transfer

import (
	"fmt"
	"slices"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// Replay replays records with a definition. It returns the machine, the batch that it would append next, and the values where the
// records differ from the definition. It fails with NONDETERMINISM_DETECTED if the commands differ. maxVisits 0 means the default.
func Replay(prog *definition.Program, id string, records []history.Record, input map[string]any, maxVisits int, now time.Time) (*machine.Machine, machine.Batch, []machine.Difference, error) {
	// The history of a run of this engine holds the rest of the config.
	m, differences, err := machine.Prove(prog, machine.Config{ExecutionID: id, Mode: machine.HostMediated, MaxVisits: maxVisits}, records, input, now)
	if err != nil {
		return nil, machine.Batch{}, nil, err
	}
	b := m.Ready()
	for i := range b.Records {
		if p := &b.Records[i].Payload; p.Code == string(problem.Nondeterminism) {
			e := problem.New(problem.Nondeterminism, "%s", p.Error)
			switch {
			case p.Context == nil:
			case p.Context.Actual.Name == history.FailNode: // the text has the reason
				e.Message = fmt.Sprintf("record %d does not follow: %s", p.Context.Expected.Seq, p.Error)
				e.At.NodeID = p.Context.Expected.NodeID
			default:
				e.Message = fmt.Sprintf("record %d is %s of %q, but the definition leads to %s of %q", p.Context.Expected.Seq,
					p.Context.Expected.Name, p.Context.Expected.NodeID, p.Context.Actual.Name, p.Context.Actual.NodeID)
				e.At.NodeID = p.Context.Expected.NodeID
			}
			return nil, b, nil, e
		}
	}
	return m, b, differences, nil
}

// Prove is like Replay, but a difference is an error too.
func Prove(prog *definition.Program, id string, records []history.Record, input map[string]any, maxVisits int, now time.Time) (*machine.Machine, error) {
	m, _, differences, err := Replay(prog, id, records, input, maxVisits, now)
	if err == nil && len(differences) > 0 {
		err = DifferenceError(differences)
	}
	return m, err
}

// DifferenceError returns the error for differences. It names only the first: others may follow from it.
func DifferenceError(differences []machine.Difference) error {
	return problem.New(problem.Nondeterminism, "%s", differences[0].String()).WithPlace(problem.Place{NodeID: differences[0].NodeID})
}

// ProveEnded is like Replay for a completed run. The definition must lead to the recorded end, except for an end by an engine limit or
// a caller's cancel, which replay cannot reproduce.
func ProveEnded(prog *definition.Program, id string, records []history.Record) ([]machine.Difference, error) {
	at := slices.IndexFunc(records, ends)
	if at < 0 {
		return nil, nil
	}
	end, last := &records[at], WithoutEnd(records, at)
	if last == 0 {
		return nil, unreached(end)
	}
	past := WithoutFailure(records, last)
	m, b, differences, err := Replay(prog, id, records[:past], InputOf(records), 0, records[past-1].CreatedAt)
	if err != nil {
		if end.Payload.Code == string(problem.Nondeterminism) {
			return nil, nil // recorded by the run
		}
		return nil, err
	}
	if end.Foreign {
		return differences, nil
	}
	reached := slices.IndexFunc(b.Records, func(r history.Record) bool { return r.Name == end.Name })
	switch {
	case end.Name == history.ExecutionCancelled:
		if !slices.ContainsFunc(records, func(r history.Record) bool { return r.Name == history.CancelExecution }) {
			return nil, unreached(end)
		}
	case reached < 0 && !(end.Name == history.ExecutionFailed && failsOtherwise(m, &b, problem.Code(end.Payload.Code))):
		return nil, unreached(end)
	case end.Name == history.ExecutionCompleted:
		differences = append(differences, machine.DifferentResult(end, b.Records[reached].Payload.Result)...)
	}
	return differences, nil
}

func unreached(end *history.Record) error {
	return problem.New(problem.Nondeterminism, "record %d is %s, which the definition does not lead to", end.Seq, end.Name)
}

// failsOtherwise reports whether a run can have failed where the definition does not fail it now. Limits depend on the settings of the
// process, and releases differ in the expressions they support. b is the machine's next batch: a run that waits for an answer or a
// time cannot fail this way.
func failsOtherwise(m *machine.Machine, b *machine.Batch, code problem.Code) bool {
	switch code {
	case problem.Nondeterminism: // recorded by the run
		return true
	case problem.StepBudgetExceeded, problem.RecordLimitExceeded, problem.ByteLimitExceeded, problem.PendingLimitExceeded, problem.TreeLimitExceeded,
		problem.ExpressionFailed, problem.ExpressionLimit:
		return len(b.Records) > 0 || m.Walking() || slices.ContainsFunc(m.Pending(), attempted)
	}
	return false
}

// attempted reports whether a wait is for an attempt, in which a limit can be reached.
func attempted(w machine.Wait) bool {
	switch w.Kind {
	case machine.WaitActivity, machine.WaitDelegate, machine.WaitBackoff:
		return true
	}
	return w.Task != nil || w.Journal != nil
}

func isState(r history.Record) bool { return r.Name == history.StateUpdated }

// InputOf returns the input of a run of this engine, from its first record or else its first state.
func InputOf(records []history.Record) map[string]any {
	if input := records[0].Payload.Input; input != nil {
		return input
	}
	if i := slices.IndexFunc(records, isState); i >= 0 {
		return records[i].Payload.State
	}
	return nil
}

// WithoutEnd returns how many of the first n records come before the run's end.
func WithoutEnd(records []history.Record, n int) int {
	end := slices.IndexFunc(records, ends)
	if end > 1 && records[end-1].Name == history.CancelExecution {
		end--
	}
	if end > 0 {
		return min(end, n)
	}
	return n
}

// WithoutFailure returns n without a FailNode command that belongs to the end after it.
func WithoutFailure(records []history.Record, n int) int {
	if n > 1 && n < len(records) && records[n-1].Name == history.FailNode && records[n].Name == history.ExecutionFailed {
		return n - 1
	}
	return n
}

// ends reports whether a record ends a run. A cancel alone may have led to a rollback.
func ends(r history.Record) bool { return r.Kind == history.Event && r.Name.Terminal() }
