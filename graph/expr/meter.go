package expr

import "time"

// meter counts what one evaluation does. It is also the evaluation's context: the interpreter asks for Done before
// every instruction, which makes a step counter of it that no clock has a part in.
type meter struct {
	limits limits
	env    Env
	// steps are those until the next look at env.Stop, later those after it, work the bytes left.
	steps, later, work int
	// unseen are the bytes of work since the last look at env.Stop.
	unseen int
	// exceeded is the limit that was hit first, nil while there is none.
	exceeded *limitError

	// patterns are the regular expressions that the evaluation has compiled.
	patterns map[patternKey]*pattern

	texts textAppender
	lists listAppender
}

// limitError is what an evaluation over its limits ends with. Programs cannot catch it: the interpreter stops at its
// next instruction.
type limitError struct{ what string }

func (e *limitError) Error() string { return e.what }

var (
	overSteps  = &limitError{"it takes too many steps"}
	overWork   = &limitError{"it works on too much data, or on data nested too deeply"}
	overOutput = &limitError{"it has too many outputs"}
	overResult = &limitError{"its result is too large"}
	// abandoned is none of the program's: EvalAt returns ErrAbandoned for it.
	abandoned = &limitError{"it was abandoned"}
)

// maxDepth is how deeply nested a value may be that a function looks into: the recursion costs stack, which Go cannot
// turn into an error. The interpreter itself walks values without recursion.
const maxDepth = 10_000

func (m *meter) reset(l limits, env Env) {
	*m = meter{limits: l, env: env, later: l.Steps, work: l.WorkBytes}
}

// stepsTaken returns how many steps have been taken, workDone how many bytes of work.
func (m *meter) stepsTaken() int { return m.limits.Steps - m.steps - m.later }
func (m *meter) workDone() int   { return m.limits.WorkBytes - m.work }

// spent is the cost so far, in units.
func (m *meter) spent() int { return m.stepsTaken() + m.workDone()/bytesPerUnit }

// look ends the evaluation if it is to be abandoned.
func (m *meter) look() {
	m.unseen = 0
	if m.exceeded == nil && m.env.Stop != nil && m.env.Stop() {
		m.exceed(abandoned)
	}
}

var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Done is part of context.Context and counts a step.
func (m *meter) Done() <-chan struct{} {
	if m.steps > 0 {
		m.steps--
		return nil
	}
	if m.later == 0 {
		m.exceed(overSteps)
	}
	if m.look(); m.exceeded != nil {
		return closed
	}
	m.steps = min(m.later, stepsPerLook) - 1
	m.later -= m.steps + 1
	return nil
}

// Err is part of context.Context.
func (m *meter) Err() error {
	if m.exceeded == nil {
		return nil
	}
	return m.exceeded
}

// Deadline is part of context.Context.
func (m *meter) Deadline() (time.Time, bool) { return time.Time{}, false }

// Value is part of context.Context.
func (m *meter) Value(any) any { return nil }

// exceed ends the evaluation at its next step and returns the reason.
func (m *meter) exceed(reason *limitError) *limitError {
	if m.exceeded == nil {
		m.exceeded = reason
	}
	m.later += m.steps
	m.steps = 0
	return m.exceeded
}

// charge counts bytes of work and reports whether there is room for them.
func (m *meter) charge(bytes int) bool {
	if bytes > m.work || bytes < 0 {
		m.exceed(overWork)
	}
	if m.exceeded != nil {
		return false
	}
	m.work -= bytes
	if m.unseen += bytes; m.unseen >= bytesPerLook {
		m.look()
	}
	return m.exceeded == nil
}

// maxAtOnce is how many bytes one call may make: nothing can stop it once it has begun.
const maxAtOnce = 64 << 20

// allocate is charge for memory that a call is about to make in one piece.
func (m *meter) allocate(bytes int) bool {
	if bytes > maxAtOnce {
		m.exceed(overWork)
		return false
	}
	return m.charge(bytes)
}
