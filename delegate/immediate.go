package delegate

// Immediate is implemented by executors that answer at once, such as the mock; see activities.Immediate.
type Immediate interface {
	Executor
	// Immediate reports whether this request is answered at once.
	Immediate(req Request) bool
}
