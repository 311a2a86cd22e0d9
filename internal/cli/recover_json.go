package cli

import (
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// recoverJSON is what recover --json prints of all runs.
type recoverJSON struct {
	DryRun bool `json:"dry_run,omitempty"`
	// Executions are the runs that were driven on, each as where it then stands (runJSON), or with --dry-run those that
	// would be taken over (recoverableJSON).
	Executions []any `json:"executions"`
	// Left are the runs that are left to others, and those that could not be driven on.
	Left []leftJSON `json:"left,omitempty"`
	// Held are the runs that other processes drive, HeldUntil is when the first of their leases ends if it is not prolonged.
	Held      []string   `json:"held,omitempty"`
	HeldUntil *time.Time `json:"held_until,omitempty"`
}

// recoverableJSON is a run as list --json has it, and why it would be taken over.
type recoverableJSON struct {
	executionJSON
	Why string `json:"why"`
}

// leftJSON says of a run what is missing for it, or what went wrong.
type leftJSON struct {
	ExecutionID string    `json:"execution_id"`
	Lacks       *lackJSON `json:"lacks,omitempty"`
	Error       string    `json:"error,omitempty"`
	Code        string    `json:"code,omitempty"`
	Hint        string    `json:"hint,omitempty"`
}

func newRecoverJSON(dryRun bool, found *recoverable) *recoverJSON {
	j := &recoverJSON{DryRun: dryRun, Executions: []any{}, Held: found.held, HeldUntil: optionalTime(found.until)}
	for _, l := range found.left {
		if l.Lack != nil {
			j.Left = append(j.Left, leftJSON{ExecutionID: l.id, Lacks: encodeLack(l.Lack)})
		} else {
			j.leave(l.id, l.Err)
		}
	}
	return j
}

// leave adds a run that could not be driven on.
func (j *recoverJSON) leave(id string, err error) {
	l := leftJSON{ExecutionID: id, Error: err.Error()}
	if e, ok := problem.As(err); ok {
		l.Code, l.Hint = string(e.Code), commandHint(e.Hint, e.At.ExecutionID)
	}
	j.Left = append(j.Left, l)
}
