package perform

import "github.com/workflows-engine/workflows-engine/graph/execution"

// Pool runs attempts in goroutines. What answers at once is performed by the goroutine that comes to it, in branch order; of what
// takes time, one attempt is, and each other one by a goroutine of its own. So a run without branches needs one goroutine, and
// no hand-over between nodes.
type Pool struct {
	// Go runs a function in a goroutine of its own.
	Go func(func())
	// Immediate reports whether an attempt is answered at once.
	Immediate func(*execution.Attempt) bool
	// Perform performs an attempt, sees to its outcome and returns the attempts that follow.
	Perform func(*execution.Attempt) []*execution.Attempt
}

// Begin performs attempts, and whatever follows from them, in the background.
func (p *Pool) Begin(attempts []*execution.Attempt) {
	if len(attempts) > 0 {
		p.Go(func() { p.run(attempts) })
	}
}

func (p *Pool) run(attempts []*execution.Attempt) {
	for queue := p.split(nil, attempts); len(queue) > 0; {
		a := queue[0]
		queue = p.split(queue[1:], p.Perform(a))
		a.Release()
	}
}

// split adds attempts to the queue of a goroutine, and hands those that would hold it up to others.
func (p *Pool) split(queue, attempts []*execution.Attempt) []*execution.Attempt {
	var slow []*execution.Attempt
	for _, a := range attempts {
		if p.Immediate(a) {
			queue = append(queue, a)
		} else {
			slow = append(slow, a)
		}
	}
	if len(queue) == 0 && len(slow) > 0 {
		queue, slow = append(queue, slow[0]), slow[1:]
	}
	for _, a := range slow {
		p.Begin([]*execution.Attempt{a})
	}
	return queue
}
