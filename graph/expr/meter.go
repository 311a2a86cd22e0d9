package expr

import (
	"time"
)

// meter counts the work of one evaluation. It is also the evaluation's context: the interpreter calls Done before
// every instruction, which makes it a step counter without a clock.
type meter struct {
	limits limits
	env    Env
	// steps are the units until the next look, units those after it.
	steps, units int
	// bytes of work have not become a unit yet; unseen are the units of work since the last look.
	bytes, unseen int
	// exceeded is the first limit that was hit, nil before that.
	exceeded *limitError

	// made are the bytes that the evaluation has made. most is the size of the largest text or object among them;
	// with mostKnown, also among those of the state.
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

// limitError ends an evaluation over its limits. Programs cannot catch it: the interpreter stops at its next
// instruction.
type limitError struct{ what string }

func (e *limitError) Error() string { return e.what }

var (
	overCost   = &limitError{"it takes too many steps"}
	overWork   = &limitError{"it works on too much data, or on data nested too deeply"}
	overMemory = &limitError{"it makes too much data, or calls itself too deeply"}
	overOutput = &limitError{"it has too many outputs"}
	overResult = &limitError{"its result is too large"}
	overDepth  = &limitError{"its result is nested too deeply"}
	// EvalAt returns ErrAbandoned for abandoned.
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
	// errorCost is the cost of the text of an error, which quotes a part of a value.
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

// limits bound one evaluation. They are counted, not timed, so that the same program over the same state always has the
// same outcome.
type limits struct {
	// Cost is in units. A unit is an instruction of the compiled program, or as much other work: reading and making
	// values, and trying regular expressions.
	Cost int
	// Memory is the bytes that the evaluation makes, whether it still holds them or not.
	Memory int
	// Outputs is the number of values a program may put out.
	Outputs int
	// ResultBytes bounds the size of the result as JSON text.
	ResultBytes int
}

// Budget is the work and the memory of several evaluations in a row: together they are limited like one. The zero
// value is a whole budget.
type Budget struct{ cost, made int }

// left returns the remaining limits.
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

// Memory is bounded by the bytes that an evaluation makes, whether it still holds them or not: only the interpreter
// knows which of them are reachable. Natives report the bytes they make (price.go); rewriting adds natives that count
// lists, objects and the frames of recursive functions.

const (
	// loopBytes bounds the growth of the interpreter's stacks in a round of a loop of the prelude; the update is
	// charged separately (frames.go).
	loopBytes = 128
	// listBytes is the size of a list without its elements.
	listBytes = 24
	// elementBytes is the size of an element in a growing list: a boxed number, its place in the list and in the
	// shorter one that is being copied, and garbage of earlier copies.
	elementBytes = 80
	// spareBytes of them are free once the list is complete.
	spareBytes = 40
)

// hold counts memory that is made, and reports whether there is room.
func (m *meter) hold(bytes int) bool {
	if bytes < 0 || bytes > m.limits.Memory-m.made {
		m.exceed(overMemory)
		return false
	}
	m.made += bytes
	m.most = max(m.most, bytes)
	return true
}

// release gives back bytes that were held and are known to be free.
func (m *meter) release(bytes int) { m.made -= bytes }

// element returns its input, which is about to become the next element of a list.
func element(m *meter, in any, _ []any) any {
	if !m.hold(elementBytes) {
		return m.exceeded
	}
	return in
}

// complete returns its input, a list whose elements were counted.
func complete(m *meter, in any, _ []any) any {
	m.release(spareBytes * len(in.([]any)))
	return in
}

// held returns its input, a list or an object that the interpreter has just made.
func held(m *meter, in any, _ []any) any {
	bytes := 0
	switch v := in.(type) {
	case []any:
		bytes = listBytes + (elementCost+listBytes/2)*len(v) // it grew
	case map[string]any:
		bytes = objectSize(len(v))
	}
	if !m.hold(bytes) {
		return m.exceeded
	}
	return in
}

// round returns its input. It is called by a loop of the prelude in each round.
func round(m *meter, in any, _ []any) any {
	if !m.hold(loopBytes) {
		return m.exceeded
	}
	return in
}

// largest is the size of the largest text or object so far, without its parts.
func (m *meter) largest() int {
	if !m.mostKnown {
		m.mostKnown = true
		m.most = max(m.most, largestIn(m.state))
	}
	return m.most
}

func largestIn(v any) int {
	most := 0
	switch v := v.(type) {
	case string:
		return len(v)
	case []any:
		for _, e := range v {
			most = max(most, largestIn(e))
		}
	case map[string]any:
		most = 2 * memberCost * len(v)
		for _, e := range v {
			most = max(most, largestIn(e))
		}
	}
	return most
}
