package cli

import (
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/runjson"
)

// recoverJSON is what recover --json prints of all runs.
type recoverJSON struct {
	DryRun bool `json:"dry_run,omitempty"`
	// Executions are the runs that were driven on, as status --json has them, or with --dry-run those that would be taken
	// over, as list --json has them, and why.
	Executions []jsonvalue.Ordered `json:"executions"`
	// Left are the runs that are left to others, and those that could not be driven on.
	Left []leftJSON `json:"left,omitempty"`
	// Held are the runs that other processes drive, HeldUntil is when the first of their leases ends if it is not prolonged.
	Held      []string  `json:"held,omitempty"`
	HeldUntil time.Time `json:"held_until,omitzero"`
}

// leftJSON says of a run what is missing for it, or what went wrong.
type leftJSON struct {
	ExecutionID string            `json:"execution_id"`
	Lacks       jsonvalue.Ordered `json:"lacks,omitempty"`
	Error       string            `json:"error,omitempty"`
	Code        string            `json:"code,omitempty"`
	Hint        string            `json:"hint,omitempty"`
}

func newRecoverJSON(dryRun bool, found *recoverable) *recoverJSON {
	j := &recoverJSON{DryRun: dryRun, Executions: []jsonvalue.Ordered{}, Held: found.held, HeldUntil: found.until}
	for _, l := range found.left {
		if l.Lack != nil {
			j.Left = append(j.Left, leftJSON{ExecutionID: l.id, Lacks: runjson.Lack(l.Lack)})
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
