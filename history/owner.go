package history

import "time"

// Owner says which process owns a run and how long its lease has left, by the store's clock.
type Owner struct {
	// Process is "" for a run that nobody owns.
	Process string
	// Left is positive until the lease of the process runs out. Otherwise the lease ended, or the run was disowned
	// (Process ""), so long ago; 0 if that is not known.
	Left time.Duration
}

// Live reports whether a process owns the run and its lease has not run out.
func (o Owner) Live() bool { return o.Process != "" && o.Left > 0 }
