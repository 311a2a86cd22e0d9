// Package notify tells waiting calls that a run has changed, and what happens to it in between (Progress). What other processes
// write is noticed by watching the store, where it can be watched, and else by looking at the runs again and again.
package notify
