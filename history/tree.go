package history

import "strings"

// TreeUse is what a run and all subworkflows below it have used together; see Store.Tree. Runs that have ended count as well.
type TreeUse struct {
	Runs    int64
	Visits  int64
	Records int64
	Bytes   int64
	// Pending is the number of activities and delegates that the runs of the tree await, those in a back-off included.
	Pending int64
}

// Add adds n times what a run has used; an n of -1 takes it away. A run without records has used nothing.
func (u *TreeUse) Add(e *Execution, n int64) {
	if e.Seq == 0 {
		return
	}
	u.Runs += n
	u.Visits += n * e.NodeVisits
	u.Records += n * e.Seq
	u.Bytes += n * e.Bytes
	for i := range e.Waits {
		if k := e.Waits[i].Kind; k == WaitActivity || k == WaitBackoff {
			u.Pending += n
		}
	}
}

// InTree reports whether a run belongs to a tree of several runs: it is a subworkflow or has begun one.
func (e *Execution) InTree() bool { return e.Parent != "" || e.ChildExecutionID != "" }

// Root returns the id of the run at the root of the tree that a run, by its id, belongs to.
func Root(executionID string) string {
	for {
		i := strings.LastIndex(executionID, ChildMark)
		if i <= 0 {
			return executionID
		}
		executionID = executionID[:i]
	}
}
