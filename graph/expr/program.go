package expr

import (
	"sync"

	"github.com/itchyny/gojq"
)

// Program is a compiled jq program, safe for concurrent use.
type Program struct {
	src string
	// err is the error of every evaluation, nil for a program that compiled.
	err error
	// query is the rewritten program, natives what it calls, strings its literals.
	query   *gojq.Query
	natives map[string]native
	strings map[string]bool

	// tree is the program as parsed, once it was asked for (Tree).
	parse sync.Once
	tree  *gojq.Query

	mu sync.Mutex
	// idle are instances that no evaluation uses. There are as many as there were evaluations at a time.
	idle []*instance
}

// instance is a program compiled together with the meter that its natives charge. It serves one evaluation at a time.
type instance struct {
	code  *gojq.Code
	meter *meter
}

// Failing returns a program that fails with err whenever it is evaluated.
func Failing(src string, err error) *Program { return &Program{src: src, err: err} }

// Identity returns the program ".".
func Identity() *Program { return identity() }

var identity = sync.OnceValue(func() *Program {
	p, err := Compile(".")
	if err != nil {
		panic("expr: " + err.Error())
	}
	return p
})

// Source is the program's text.
func (p *Program) Source() string { return p.src }

// Truthy is jq's truth: all but nil and false (spec: execution, 4.3).
func Truthy(v any) bool { return v != nil && v != false }

// acquire returns an instance for one evaluation; release takes it back.
func (p *Program) acquire() (*instance, error) {
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		i := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return i, nil
	}
	p.mu.Unlock()
	return p.newInstance()
}

// maxIdle instances are kept; a burst of evaluations does not hold its memory for ever.
const maxIdle = 16

func (p *Program) release(i *instance) {
	*i.meter = meter{} // it must not keep values alive
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) < maxIdle {
		p.idle = append(p.idle, i)
	}
}
