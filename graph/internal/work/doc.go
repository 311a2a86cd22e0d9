// Package work performs attempts. An Attempt is an effect of a run that this process performs, with a context that ends when its
// outcome is no longer wanted. A Performer calls executors of activities and delegates and turns their answers into outcomes; a Queue
// bounds how many attempts are in flight, and how many begin in a second, by class. The package knows no histories: the caller
// records an outcome, and begins what follows from it.
package work
