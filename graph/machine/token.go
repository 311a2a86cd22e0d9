package machine

import (
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/history"
)

// phase is the state of a token.
type phase uint8

const (
	live      phase = iota // walking or waiting
	idle                   // a branch that has not begun (sequential order)
	succeeded              // a branch that reached the join target
	broken                 // a branch that failed
	dropped                // a branch that was cancelled
)

// token is one place in the program where a run is: on the main path, or in a branch of a parallel block.
type token struct {
	// block and index say which branch this is; block is nil for the main path.
	block *block
	index int

	phase phase
	node  *definition.Node
	visit int
	// view is the state as this token sees it. For the main path it is the run's state.
	view map[string]any
	// unchecked is true if the view as a whole has not been validated: it was read from a position, or merged from the branches of a nested
	// block. The next node that completes validates it.
	unchecked bool
	// written are the fields of the view written since the token's last question was answered, the newest last.
	written []string
	// held is the held-back script, while an earlier branch has not ended.
	held []item
	// rounds counts the rounds of the loops that the token is in, by the ids of their switches.
	rounds map[string]int
	// limit is when the visit fails, zero without a deadline.
	limit time.Time
	// queued reports that the first attempt of the visit being scheduled waits for its turn.
	queued bool
	// wait is set while the token waits for an input, inner while it waits for a parallel block of its own.
	wait    *wait
	inner   *block
	failure *failure
	// done lists the visits of the token that can be undone, the newest last. rollback is set while they are undone.
	done     []undo
	rollback *rollback
}

// wait is the input that a token waits for. It is stored in positions.
type wait struct {
	Kind    WaitKind `json:"kind"`
	Attempt int      `json:"attempt,omitempty"`
	Host    bool     `json:"host,omitempty"`
	// filled are the evaluated templates of the node's config, for a host; nil until needed.
	filled map[string]any
	// Queued: the attempt, or the one after a back-off, waits for its turn. again: it was requested before.
	Queued bool `json:"queued,omitempty"`
	again  bool
	Since  time.Time `json:"since"`
	// Clock is the time that the expressions of a walk under way see.
	Clock time.Time `json:"clock,omitzero"`
	// Timeout and Deadline of an attempt.
	Timeout  time.Duration `json:"timeout,omitempty"`
	Deadline time.Time     `json:"deadline,omitzero"`
	// LastError and LastCode are the failure of the previous attempt.
	LastError string `json:"lastError,omitempty"`
	LastCode  string `json:"lastCode,omitempty"`
	// Repair is the input with which the attempt, or the one after a back-off, corrects the previous attempt. Repaired is true once the visit
	// has had its repair.
	Repair   map[string]any `json:"repair,omitzero"`
	Repaired bool           `json:"repaired,omitempty"`
	Due      time.Time      `json:"due,omitzero"` // timer, backoff
	Signal   string         `json:"signal,omitempty"`
	Prompt   string         `json:"prompt,omitempty"`
	// Question is the whole prompt of an interrupt, Show the value shown beside it.
	Question string `json:"question,omitempty"`
	Show     any    `json:"show,omitempty"`
	// Input and Correlation of a delegate; Input and Child of a subworkflow.
	Input       map[string]any `json:"input"`
	Correlation string         `json:"correlation,omitempty"`
	Child       string         `json:"child,omitempty"`
	Version     string         `json:"version,omitempty"`
	// From is the run that the subworkflow continues in a retry.
	From history.ForkOrigin `json:"from,omitzero"`
	// Task of a delegate at its agent, once the agent has accepted it.
	Task *Task `json:"task,omitempty"`
	// Journal of an attempt, nil without an entry.
	Journal *Journal `json:"journal,omitempty"`
}

// block is a parallel block, or a map, in progress.
type block struct {
	owner  *token // the token that waits for it
	node   *definition.Node
	tokens []*token
	// head is the first branch, in order, that has not ended: its script is written as it happens.
	head int
	// visit is the visit of the node that began the block.
	visit int
	// failFast: the first recorded failure decides a join "all". In blocks of older releases, it waits for the branches before the failed one.
	failFast bool
	// deadline is when a block that has not joined fails, zero without a timeout.
	deadline time.Time
	// items of a map, whose tokens are only the items in progress; nil for a parallel block.
	items *mapItems
}

// span identifies the token's branch, nil on the main path (spec: execution, 6.3). Inside nested blocks it names the
// innermost one.
func (t *token) span() *history.ParallelSpan {
	if t.item() {
		return t.block.owner.span()
	}
	if t.block == nil {
		return nil
	}
	p := t.block.node
	b := p.Parallel.Branches[t.index]
	return &history.ParallelSpan{
		ParallelNodeID:    p.ID,
		JoinTargetID:      p.Next.ID,
		BranchName:        b.Name,
		BranchEntryNodeID: b.Entry.ID,
	}
}

// locate sets the branch of a token.
func (t *token) locate(p *history.Payload) {
	if p.Span = t.span(); p.Span == nil {
		return
	}
	if t.item() {
		t = t.block.owner
	}
	p.BlockVisit = recordedVisit(t.block.visit)
}

// failedVisit returns the visit for the token's FailNode. In a branch it is always written, since the command may be held back until the
// next visit is waiting.
func (t *token) failedVisit() int {
	if t.block == nil {
		return 0
	}
	return t.visit
}

// recordedVisit returns the number of a visit in records, which omit the first.
func recordedVisit(visit int) int {
	if visit > 1 {
		return visit
	}
	return 0
}

// each yields t and all tokens below it in branch order, and reports whether it yielded all.
func (t *token) each(yield func(*token) bool) bool {
	if !yield(t) {
		return false
	}
	if t.inner != nil {
		for _, c := range t.inner.tokens {
			if !c.each(yield) {
				return false
			}
		}
	}
	return true
}

// living yields the tokens that walk or wait, in branch order.
func (m *Machine) living(yield func(*token) bool) {
	m.main.each(func(t *token) bool { return t.phase != live || yield(t) })
}

// waiting yields the tokens that wait for an input, in branch order. A run that has ended has no such token.
func (m *Machine) waiting(yield func(*token) bool) {
	m.main.each(func(t *token) bool { return t.phase != live || t.wait == nil || yield(t) })
}

// find returns the first waiting token, in branch order, that f accepts; nil if absent.
func (m *Machine) find(f func(*token) bool) *token {
	for t := range m.waiting {
		if f(t) {
			return t
		}
	}
	return nil
}
