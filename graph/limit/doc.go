// Package limit makes attempts wait for their turn: it bounds how many are in flight at the same time, and how many begin in a
// second, by class. It knows nothing of runs but their ids. A waiting attempt costs no goroutine, and nothing polls.
package limit
