package machine

import "github.com/workflows-engine/workflows-engine/graph/definition"

// BranchFailure is the failure of a branch that will fail the run.
type BranchFailure struct {
	ParallelID, Branch    string
	NodeID, Message, Code string
	// Dropped are the branches of the block that were cancelled because of it.
	Dropped []string
}

// Doomed returns the first failed branch, in branch order, that every join around it needs: the run fails once the branches before
// it have ended. ok is false if no such block exists. Only blocks that older releases began wait for those; others have failed at once.
func (m *Machine) Doomed() (f BranchFailure, ok bool) { return m.main.doomed() }

func (t *token) doomed() (f BranchFailure, ok bool) {
	b := t.inner
	if b == nil || b.items != nil || b.node.Parallel.Join != definition.JoinAll {
		return f, false
	}
	for i, c := range b.tokens {
		name := b.node.Parallel.Branches[i].Name
		switch {
		case c.phase == broken && !ok:
			f, ok = BranchFailure{ParallelID: b.node.ID, Branch: name, NodeID: c.failure.NodeID, Message: c.failure.Message, Code: c.failure.Code}, true
		case c.phase == dropped && ok:
			f.Dropped = append(f.Dropped, name)
		case c.phase == live && !ok:
			if f, ok = c.doomed(); ok {
				return f, b.node.CaughtBy(f.Code) == nil
			}
		}
	}
	return f, ok && b.node.CaughtBy(f.Code) == nil
}
