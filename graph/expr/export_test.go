package expr

import (
	"cmp"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/workflows-engine/workflows-engine/graph/problem"
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
		Cost:        cmp.Or(l.Cost, defaultLimits.Cost),
		Memory:      cmp.Or(l.Memory, defaultLimits.Memory),
		Outputs:     cmp.Or(l.Outputs, defaultLimits.Outputs),
		ResultBytes: cmp.Or(l.ResultBytes, defaultLimits.ResultBytes),
	})
}

// Eval is EvalAt without a time.
func (m *Mapping) Eval(state map[string]any) (map[string]any, error) {
	return m.EvalAt(state, Env{})
}

// Cost returns the units that an evaluation cost.
func Cost(p *Program, state map[string]any) (units int, err error) {
	units, _, err = Taken(p, state)
	return units, err
}

// Taken returns what an evaluation took of a budget.
func Taken(p *Program, state map[string]any) (units, bytes int, err error) {
	var b Budget
	_, err = p.EvalAt(state, Env{Budget: &b})
	return b.cost, b.made, err
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

// FarLookups returns how many lookups of a program are charged for their way.
func FarLookups(src string) (int, error) {
	query, err := gojq.Parse(src)
	if err != nil {
		return 0, err
	}
	return farLookups(query, false), nil
}

// FarLookupsOfPrelude is FarLookups of all functions of the prelude.
func FarLookupsOfPrelude() int {
	query, err := gojq.Parse(preludeText + ".")
	if err != nil {
		panic(err)
	}
	return farLookups(query, true)
}

func farLookups(query *gojq.Query, inPrelude bool) int {
	r := newRewriter()
	r.inPrelude = inPrelude
	r.query(query)
	r.outlined(query)
	return strings.Count(query.String(), "_way ")
}

// ErrorCode is the code of an error, "" for others.
func ErrorCode(err error) string {
	e, _ := problem.As(err)
	if e == nil {
		return ""
	}
	return string(e.Code)
}
