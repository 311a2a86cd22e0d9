package view

import "github.com/workflows-engine/workflows-engine/graph/machine"

// Compose replaces the waits of a run for subworkflows by the waits of these subworkflows. child returns the view of the subworkflow of a
// wait, with its own subworkflows composed; see Child.
func Compose(v *Run, child func(*Pending) (*Run, error)) error {
	waits := v.Pending
	v.Pending = nil
	status, first := v.Status, true
	for i := range waits {
		w := &waits[i]
		if w.Kind != machine.WaitChild {
			v.Pending = append(v.Pending, *w)
			continue
		}
		c, err := child(w)
		if err != nil {
			return err
		}
		if l := c.Lacks; l != nil && (v.Lacks == nil || v.Lacks.Host || !l.Host) {
			v.Lacks = l // the run needs it before others
		}
		if len(c.Pending) == 0 {
			v.Pending = append(v.Pending, *w)
		} else {
			v.Pending = append(v.Pending, c.Pending...)
		}
		if v.Status == machine.AwaitingChild && (first || Rank(c.Status) < Rank(status)) {
			status, first = c.Status, false
		}
	}
	v.Status = status
	if len(v.Pending) > 0 {
		v.CurrentNodeID = v.Pending[0].NodeID
	}
	return nil
}

// Child returns the view of a subworkflow as its parent sees it. A subworkflow that has ended counts as running until the parent has
// recorded its end, as does one that does not exist yet (v is nil).
func Child(v *Run) *Run {
	if v == nil {
		return &Run{Status: machine.Running}
	}
	if v.Status.Terminal() {
		v.Status = machine.Running
	}
	return v
}

// Rank orders the statuses of subworkflows for display: first those that need input, then those that run, then the others.
func Rank(s machine.Status) int {
	switch s {
	case machine.Interrupted, machine.AwaitingActivity, machine.AwaitingSignal:
		return 0
	case machine.Running:
		return 1
	default:
		return 2
	}
}
