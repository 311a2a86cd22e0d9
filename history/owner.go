package history

import "time"

// Owner says which process owns a run and how long its lease has left, by the store's clock.
type Owner struct {
	// Process is "" for a run that nobody owns.
	Process string
	// Left is positive until the lease of the process runs out. If it is negative, the lease ended, or the run was disowned
	// (Process ""), so long ago; 0 if that is not known.
	Left time.Duration
}

// OwnerUntil returns the owner of a run whose lease ends, or which was disowned, at a time.
func OwnerUntil(process string, end, now time.Time) Owner {
	left := end.Sub(now)
	if left == 0 {
		left = -1 // it is known
	}
	return Owner{Process: process, Left: left}
}

// Live reports whether a process owns the run and its lease has not run out.
func (o Owner) Live() bool { return o.Process != "" && o.Left > 0 }
