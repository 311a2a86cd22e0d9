package delegate

// Immediate is implemented by executors that answer at once without waiting for anything, such as the mock. The
// engine then calls them in its own goroutine and, in parallel branches, in branch order.
type Immediate interface {
	Executor
	// Immediate reports whether this request is answered at once.
	Immediate(req Request) bool
}
