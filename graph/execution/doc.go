// Package execution keeps one run as a replicated log: it loads a run from the store, applies inputs to its machine, commits what
// comes of them with the expected seq and the owner as fences, and decides again when another process was first. It starts no
// goroutine, calls no executor and reads no clock but the one it is given. What an input leads to is returned as Work.
//
//	err := run.Apply(ctx, input, &work) // one commit, or several if another process was first
//	dispatch(work)                      // attempts to begin, subworkflows to cancel, the parent to notify
//
// Reading order: run.go says what a process knows of a run, package runstate in which states it can be; load.go rebuilds the machine;
// apply.go and commit.go are the one way in which a run moves; claim.go says who owns it; takeover.go goes on with a run that has lost its
// driver; timers.go says what time brings, view.go where the run stands.
package execution
