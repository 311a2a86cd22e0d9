// Package schedule is what time brings in a process: one queue of timers, the lease under which the process owns runs, and the
// search of the store for runs that have lost their driver and for timers that nobody fires.
//
//	condition                                       who acts                        after how long
//	a timer is due of a run that was in hand here   this process                    at once
//	a timer set by another process is overdue       any process that searches       OverdueGrace, found within a second
//	a process has closed                            any process that searches       within a second
//	a process has died                              any process that searches       its lease, then within a second
//	a process cannot renew its lease                itself: it stops its attempts   5/6 of the lease
package schedule
