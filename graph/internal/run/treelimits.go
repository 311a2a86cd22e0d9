package run

import (
	"cmp"
	"fmt"

	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
)

// TreeLimits bound the usage of all runs of a tree together, including runs that have ended. A run without parent and subworkflows has
// only its own limits. A default is never below the limit of one run.
type TreeLimits struct {
	// Runs bounds the runs of a tree, its root included; 0 means 1,000.
	Runs int64
	// Visits bounds their node visits; 0 means 100,000.
	Visits int64
	// Records bounds the records of their histories; 0 means 2,000,000.
	Records int64
	// Bytes bounds their size in the store; 0 means 2 GiB.
	Bytes int64
	// Pending bounds the activities and delegates that they await at the same time; 0 means 10,000.
	Pending int64
}

// The defaults of TreeLimits.
const (
	defaultRuns    = 1_000
	defaultVisits  = 100_000
	defaultRecords = 2_000_000
	defaultBytes   = 2 << 30
	defaultPending = 10_000
)

// WithDefaults sets the limits that are 0. run has the limits of one run.
func (l TreeLimits) WithDefaults(run TreeLimits) TreeLimits {
	return TreeLimits{
		Runs:    cmp.Or(l.Runs, defaultRuns),
		Visits:  cmp.Or(l.Visits, max(defaultVisits, run.Visits)),
		Records: cmp.Or(l.Records, max(defaultRecords, run.Records)),
		Bytes:   cmp.Or(l.Bytes, max(defaultBytes, run.Bytes)),
		Pending: cmp.Or(l.Pending, max(defaultPending, run.Pending)),
	}
}

// Check rejects negative limits.
func (l TreeLimits) Check() error {
	return cmp.Or(admit.NotNegative("Tree.Runs", l.Runs), admit.NotNegative("Tree.Visits", l.Visits), admit.NotNegative("Tree.Records", l.Records),
		admit.NotNegative("Tree.Bytes", l.Bytes), admit.NotNegative("Tree.Pending", l.Pending))
}

// The indexes of limits in the result of usages.
const (
	ofRuns = iota
	ofVisits
	ofRecords
	ofBytes
	ofPending
)

func (l TreeLimits) usages(u history.TreeUse) []view.Usage {
	of := func(used, limit int64, what, option string) view.Usage {
		return view.Usage{Code: problem.TreeLimitExceeded, Used: used, Limit: limit, Of: view.TreeLimit{Name: what, Option: option}}
	}
	return []view.Usage{
		ofRuns:    of(u.Runs, l.Runs, "runs", "TreeLimits.Runs"),
		ofVisits:  of(u.Visits, l.Visits, "node visits", "TreeLimits.Visits"),
		ofRecords: of(u.Records, l.Records, "records", "TreeLimits.Records"),
		ofBytes:   of(u.Bytes, l.Bytes, "bytes of history", "TreeLimits.Bytes"),
		ofPending: of(u.Pending, l.Pending, "pending activities", "TreeLimits.Pending"),
	}
}

// reached describes the first of some limits that the tree has reached, "" without one.
func (l TreeLimits) reached(root string, u history.TreeUse, places ...int) string {
	usages := l.usages(u)
	for _, place := range places {
		if u := usages[place]; u.Used >= u.Limit {
			return fmt.Sprintf("the tree of run %s has reached its limit of %d %s", root, u.Limit, u.Of.Name)
		}
	}
	return ""
}
