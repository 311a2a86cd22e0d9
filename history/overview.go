package history

import "time"

// Overview is what a process asks the store each second, in one read. Most of it is whether a further question is worth a read.
type Overview struct {
	// Now is the store's time; see Store.Now.
	Now time.Time
	// Live are the processes with a live lease, in order.
	Live []string
	// Departed are the processes that own runs and whose lease has run out or was released, in order.
	Departed []string
	// Owns reports whether the process that asks owns runs; see Store.Owned.
	Owns bool
	// Unowned reports whether Store.Unowned may return runs that no process owns. The runs of departed processes come on top.
	Unowned bool
	// Ready reports whether a run is ready; see Queue.
	Ready bool
	// Limited reports whether there are shared limits; see Limiter.
	Limited bool
	// NextTimer is the earliest due time of all timers, zero without timers.
	NextTimer time.Time
}
