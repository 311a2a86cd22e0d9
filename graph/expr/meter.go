package expr

import "time"

// meter counts what one evaluation does. It is also the evaluation's context: the interpreter asks for Done before
// every instruction, which makes a step counter of it that no clock has a part in.
type meter struct {
	limits limits
	env    Env
	// steps are the units until the next look, units those after it.
	steps, units int
	// bytes of work have not become a unit yet; unseen are the units of work since the last look.
	bytes, unseen int
	// exceeded is the limit that was hit first, nil while there is none.
	exceeded *limitError

	// made are the bytes that the evaluation has made. most is the size of the largest text or object among them; mostKnown says that
	// those of the state, which is what the evaluation was given, are taken into account.
	made, most int
	mostKnown  bool
	state      any
	// key is the list that was the last key of an index, nil for other keys.
	key []any
	// patterns are the regular expressions that the evaluation has compiled.
	patterns map[patternKey]*search

	texts textAppender
	lists listAppender
}

// limitError is what an evaluation over its limits ends with. Programs cannot catch it: the interpreter stops at its
// next instruction.
type limitError struct{ what string }

func (e *limitError) Error() string { return e.what }

var (
	overCost   = &limitError{"it takes too many steps"}
	overWork   = &limitError{"it works on too much data, or on data nested too deeply"}
	overMemory = &limitError{"it makes too much data, or calls itself too deeply"}
	overOutput = &limitError{"it has too many outputs"}
	overResult = &limitError{"its result is too large"}
	overDepth  = &limitError{"its result is nested too deeply"}
	// abandoned is none of the program's: EvalAt returns ErrAbandoned for it.
	abandoned = &limitError{"it was abandoned"}
)

// maxDepth is how deeply nested a value may be that a function looks into: the recursion costs stack, which Go cannot
// turn into an error. The interpreter itself walks values without recursion.
const maxDepth = 10_000

const (
	// unitsPerLook is how many units there are between two looks at Env.Stop and at the memory.
	unitsPerLook = 256
	// bytesPerUnit is how many bytes of work cost a unit.
	bytesPerUnit = 16
	// callCost is the cost of a call of one of the interpreter's own functions, in bytes of work.
	callCost = 40 * bytesPerUnit
	// errorCost is that of the text of an error, which begins with a part of the value that it is about.
	errorCost = 80 * bytesPerUnit
)

func (m *meter) reset(l limits, env Env) {
	*m = meter{limits: l, env: env, units: l.Cost}
}

// spent is the cost so far, in units.
func (m *meter) spent() int { return m.limits.Cost - m.steps - m.units }

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
	if m.units == 0 {
		m.exceed(overCost)
	}
	if m.look(); m.exceeded != nil {
		return closed
	}
	m.steps = min(m.units, unitsPerLook)
	m.units -= m.steps
	m.steps--
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
	m.units += m.steps
	m.steps = 0
	return m.exceeded
}

// spend counts units of work and reports whether there is room for them.
func (m *meter) spend(units int) bool {
	if units > m.units {
		m.units += m.steps
		m.steps = 0
	}
	if units > m.units || units < 0 {
		m.exceed(overWork)
	}
	if m.exceeded != nil {
		return false
	}
	m.units -= units
	if m.unseen += units; m.unseen >= unitsPerLook {
		m.look()
	}
	return m.exceeded == nil
}

// charge counts bytes of work and reports whether there is room for them.
func (m *meter) charge(bytes int) bool {
	if bytes < 0 {
		m.exceed(overWork)
		return false
	}
	m.bytes += bytes % bytesPerUnit
	units := bytes/bytesPerUnit + m.bytes/bytesPerUnit
	m.bytes %= bytesPerUnit
	return m.spend(units)
}

// allocateObject is allocate for a copy of an object with so many members, which takes longer than its size tells.
func (m *meter) allocateObject(members int) bool {
	return m.charge(objectCost+memberCost*3/2*members) && m.hold(objectSize(members))
}

// allocate is charge for memory that a call is about to make.
func (m *meter) allocate(bytes int) bool {
	return m.charge(bytes) && m.hold(bytes)
}
