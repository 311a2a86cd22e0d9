// Package process drives the runs of a store. A Process applies an input to a run under the run's lock and then dispatches the resulting
// work: it performs attempts and records their outcomes, begins and cancels subworkflows, notifies parents, and answers the call. Over
// time it fires timers, renews its lease, and searches the store for orphaned runs and overdue timers.
//
// Reading order: process.go assembles a Process; dispatch.go follows an input; attempts.go, steps.go and subworkflows.go perform effects;
// await.go, tree.go and standing.go answer calls; share.go divides runs among the processes; ownership.go, lease.go, timers.go and
// orphans.go find runs without a call; survey.go previews recovery.
//
//	condition                                 who acts                        after how long
//	a timer of a run used here is due         this process                    at once
//	a timer set by another process is overdue any process that searches       OverdueGrace, found within a second
//	a run is ready in a lane                  a worker that serves the lane   at once if one has room
//	a process has closed                      any process that searches       within a second
//	a process has died                        any process that searches       its lease, then within a second
//	a process cannot renew its lease          itself: it stops its attempts   5/6 of the lease
//
// Changes by other processes are noticed by watching the store where it can be watched, and otherwise by polling.
package process
