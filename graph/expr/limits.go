package expr

// limits bound one evaluation. They are counted, not timed, so that the same program over the same state always has the
// same outcome.
type limits struct {
	// Cost is in units. A unit is a step of the interpreter, which is an instruction of the compiled program, or as much
	// other work: what operators and functions read and make, and what regular expressions try.
	Cost int
	// Memory is in bytes: what the evaluation makes, whether it still holds that or not.
	Memory int
	// Outputs is the number of values a program may put out.
	Outputs int
	// ResultBytes bounds the size of the result as JSON text.
	ResultBytes int
}

// Budget is the work and the memory of several evaluations, one after the other: together they may take what one alone
// may. The zero value is a whole budget.
type Budget struct{ cost, made int }

// left is what remains of limits.
func (b *Budget) left(l limits) limits {
	l.Cost -= b.cost
	l.Memory -= b.made
	return l
}

// shared returns env with a budget.
func (env Env) shared() Env {
	if env.Budget == nil {
		env.Budget = &Budget{}
	}
	return env
}

// defaultLimits are chosen such that programs people write pass over 2 MiB of state, and that the worst program ends
// within a second.
var defaultLimits = limits{Cost: 20_000_000, Memory: 64 << 20, Outputs: 10_000, ResultBytes: 8 << 20}
