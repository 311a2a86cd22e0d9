package view

import "github.com/workflows-engine/workflows-engine/graph/machine"

// Compose puts what the subworkflows of a run wait for in the place of its waits for them. child returns where the subworkflow
// behind a wait stands, with subworkflows of its own composed; see Child.
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
			v.Lacks = l // it is needed first
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

// Child returns the view of a subworkflow as its parent sees it: one that has ended counts as running until the parent has
// recorded its end, and so does one that does not exist yet, whose v is nil.
func Child(v *Run) *Run {
	if v == nil {
		return &Run{Status: machine.Running}
	}
	if v.Status.Terminal() {
		v.Status = machine.Running
	}
	return v
}

// Rank orders what subworkflows wait for by what is to be shown: first what needs somebody, then what goes on by itself.
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
