// Package process holds what a process does over time: timers, the lease under which it owns runs, the search of the store for orphaned
// runs and overdue timers, and the calls that wait for a run to change.
//
//	condition                                       who acts                        after how long
//	a timer of a run that was in hand here is due   this process                    at once
//	a timer set by another process is overdue       any process that searches       OverdueGrace, found within a second
//	a process has closed                            any process that searches       within a second
//	a process has died                              any process that searches       its lease, then within a second
//	a process cannot renew its lease                itself: it stops its attempts   5/6 of the lease
//
// Changes by other processes are noticed by watching the store where it can be watched, and otherwise by polling.
package process
