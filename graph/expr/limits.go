package expr

// limits bound one evaluation. They are counted, not timed, so that the same program over the same state always has the
// same outcome.
type limits struct {
	// Steps is the number of interpreter steps: instructions of the compiled program, some 20 to 50 ns each, and a few
	// microseconds for the call of a function.
	Steps int
	// WorkBytes is how many bytes of strings, arrays and objects the operators and functions of a program may read or
	// make, all in all. It bounds what a single step can do, and the memory of the whole.
	WorkBytes int
	// Outputs is the number of values a program may put out.
	Outputs int
	// ResultBytes bounds the size of the result as JSON text.
	ResultBytes int
}

// defaultLimits are chosen such that programs people write pass over 2 MiB of state, and that the worst program ends
// within a few seconds and some hundred megabytes.
var defaultLimits = limits{Steps: 10_000_000, WorkBytes: 512 << 20, Outputs: 10_000, ResultBytes: 8 << 20}
