// Package run keeps one run as a replicated log. It loads the run from the store, applies inputs to its machine, commits the resulting
// records with the expected seq and the owner as fences, and decides again if another process wrote first. It starts no goroutine, calls
// no executor and reads no clock but the one it is given. The consequences of an input are returned as Work.
//
//	err := x.Apply(ctx, input, &work) // one commit, or several if another process wrote first
//	dispatch(work)                    // attempts to begin, subworkflows to cancel, the parent to notify
//
// Reading order: run.go holds a process's knowledge of a run, and drivestate.go its states; load.go rebuilds the machine; apply.go and
// commit.go are the only way to change a run; claim.go and takeover.go hold ownership; timers.go fires timers; view.go answers questions;
// treelimits.go bounds a run and its subworkflows; recorded.go reads a run from the store without a machine; news.go passes commits on to
// observers; lock.go is the lock of a run that computes.
package run
