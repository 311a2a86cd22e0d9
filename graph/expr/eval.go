package expr

import (
	"errors"
	"fmt"

	"github.com/itchyny/gojq"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// EvalAt runs the program over state: no output is nil, one is that value, several are a []any of them, an error discards
// everything (spec: execution, 4.2). The result shares no changed parts with state but may alias it: treat both as
// immutable. Errors are *problem.Error: EXPRESSION_FAILED, EXPRESSION_LIMIT_EXCEEDED; they name the program and the
// members of the state, never a value. The one other error is ErrAbandoned.
func (p *Program) EvalAt(state map[string]any, env Env) (any, error) {
	return p.eval(state, env, defaultLimits)
}

func (p *Program) eval(state map[string]any, env Env, l limits) (any, error) {
	env = env.shared()
	before := *env.Budget
	if p.err != nil {
		return nil, p.err
	}
	if state == nil {
		state = map[string]any{}
	}
	v, err := p.interpret(state, env, l)
	if err == abandoned {
		return nil, ErrAbandoned
	}
	if err != nil {
		return nil, p.failure(err, state, before != Budget{})
	}
	return v, nil
}

var errPanic = errors.New("the interpreter cannot run it")

func (p *Program) interpret(state map[string]any, env Env, l limits) (v any, err error) {
	i, err := p.acquire()
	if err != nil {
		return nil, err
	}
	m := i.meter
	m.reset(env.Budget.left(l), env)
	defer func() {
		if env.Spent != nil {
			*env.Spent += m.spent()
		}
		env.Budget.cost += m.spent()
		env.Budget.made += m.made
		if caught := recover(); caught != nil {
			v, err = nil, errPanic // the instance is not used again
			return
		}
		p.release(i)
	}()
	m.state = state
	return m.collect(i.code.RunWithContext(m, state))
}

// collect returns the result of a program's outputs.
func (m *meter) collect(outputs gojq.Iter) (any, error) {
	var first any
	var all []any
	count, size := 0, 0
	for {
		v, ok := outputs.Next()
		if m.exceeded != nil {
			return nil, m.exceeded
		}
		if !ok {
			break
		}
		if err, ok := v.(error); ok {
			if halt, ok := err.(*gojq.HaltError); ok && halt.Value() == nil {
				break
			}
			return nil, err
		}
		v, n, err := m.output(v, size)
		if err != nil {
			return nil, err
		}
		size = n + len(",")
		switch count++; {
		case count > m.limits.Outputs:
			return nil, m.exceed(overOutput)
		case count == 1:
			first = v
		case count == 2:
			all = []any{first, v}
		default:
			all = append(all, v)
		}
	}
	if count > 1 {
		return all, nil
	}
	return first, nil
}

// failure returns the error of an evaluation that err ended; shared is set if other evaluations used its budget
// before.
func (p *Program) failure(err error, state map[string]any, shared bool) error {
	code := problem.ExpressionFailed
	hint := ""
	reason := p.reason(err)
	if limit, ok := err.(*limitError); ok {
		code = problem.ExpressionLimit
		hint = "Let the program look at less of the state, or do this work in an activity."
		switch {
		case shared && (limit == overCost || limit == overWork || limit == overMemory):
			reason += ", together with the expressions of the node before it"
			hint = "All expressions of a node share one limit: let them look at less of the state, or spread them over several nodes."
		case limit == overDepth:
			hint = fmt.Sprintf("A result may be nested %d levels deep; make it flatter.", jsonvalue.MaxDepth)
		}
	}
	e := problem.New(code, "the program %s failed: %s (the state has %s)", quoteProgram(p.src), reason, describeKeys(state))
	e.Hint = hint
	p.raised(e, err)
	return e
}
