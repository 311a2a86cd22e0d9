package expr

import (
	"cmp"

	"github.com/itchyny/gojq"
)

// Limits are those of one evaluation. Zero values mean the defaults.
type Limits = limits

// DefaultLimits are those of EvalAt.
func DefaultLimits() Limits { return defaultLimits }

// Eval is EvalAt without a time.
func (p *Program) Eval(state map[string]any) (any, error) { return p.EvalAt(state, Env{}) }

// EvalLimits is EvalWith without a time.
func (p *Program) EvalLimits(state map[string]any, l Limits) (any, error) {
	return p.EvalWith(state, Env{}, l)
}

// EvalWith is EvalAt with limits.
func (p *Program) EvalWith(state map[string]any, env Env, l Limits) (any, error) {
	return p.eval(state, env, Limits{
		Steps:       cmp.Or(l.Steps, defaultLimits.Steps),
		WorkBytes:   cmp.Or(l.WorkBytes, defaultLimits.WorkBytes),
		Outputs:     cmp.Or(l.Outputs, defaultLimits.Outputs),
		ResultBytes: cmp.Or(l.ResultBytes, defaultLimits.ResultBytes),
	})
}

// Eval is EvalAt without a time.
func (m *Mapping) Eval(state map[string]any) (map[string]any, error) {
	return m.EvalAt(state, Env{})
}

// Steps returns the steps and the work that an evaluation took.
func Steps(p *Program, state map[string]any) (steps, work int, err error) {
	i, err := p.acquire()
	if err != nil {
		return 0, 0, err
	}
	i.meter.reset(defaultLimits, Env{})
	_, err = i.meter.collect(i.code.RunWithContext(i.meter, state))
	return i.meter.stepsTaken(), i.meter.workDone(), err
}

// Interpreter evaluates a program with the interpreter alone, as it comes, and makes the result a value of the model.
func Interpreter(src string, state map[string]any) (any, error) {
	query, err := gojq.Parse(src)
	if err != nil {
		return nil, err
	}
	code, err := gojq.Compile(query)
	if err != nil {
		return nil, err
	}
	m := &meter{}
	m.reset(defaultLimits, Env{})
	return m.collect(code.RunWithContext(m, state))
}

// Compare is the order that programs compare by.
func Compare(l, r any) (order int, equal bool) {
	m := &meter{}
	m.reset(defaultLimits, Env{})
	order = m.compare(l, r, 0)
	return order, order == 0
}

// PreludeNames are the functions of the prelude.
func PreludeNames() []string {
	var names []string
	for _, f := range prelude() {
		names = append(names, f.signature)
	}
	return names
}
