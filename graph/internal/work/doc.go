// Package work performs attempts. An Attempt is an effect of a run that this process performs, with a context that ends when its outcome
// is no longer wanted. A Performer calls executors of activities and delegates and turns their results into outcomes; a Queue limits the
// attempts in flight and the starts in a second, by class. The package knows no histories: the caller records an outcome, and begins the
// next attempts.
package work
