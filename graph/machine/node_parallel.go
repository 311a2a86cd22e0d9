package machine

import (
	"fmt"
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// parallel (spec: execution, 6). Each branch is a token. The script of a branch is held back until the branch is the head of its block, so
// that the commands are in the order of branches walked one after another.

func (m *Machine) beginParallel(t *token) *definition.Node {
	n, c := t.node, t.node.Parallel
	names := make([]string, len(c.Branches))
	for i, b := range c.Branches {
		names[i] = b.Name
	}
	b := &block{owner: t, node: n, visit: t.visit, failFast: m.failsFast(t), tokens: make([]*token, len(c.Branches))}
	p := b.record()
	p.Join, p.BranchNames = string(c.Join), names
	forked := p
	if c.Join == definition.JoinNofM {
		p.N = c.N
	}
	if c.Timeout > 0 && m.recordedNext(t) == nil {
		b.deadline = m.clock.Add(c.Timeout)
		forked.TimeoutMS = c.Timeout.Milliseconds()
		m.timersDirty = true
	}
	m.command(t, history.StartParallel, p)
	m.scriptEvent(t, history.ParallelForked, forked)
	for i := range b.tokens {
		b.tokens[i] = &token{block: b, index: i, phase: idle}
	}
	t.inner = b
	m.startBranches(b)
	return nil
}

// startBranches starts the branches that have not started: all of them, or in sequential order the next one. It stops when a branch that
// ended at once has decided the block, or at the end of a stretch.
func (m *Machine) startBranches(b *block) {
	for _, t := range b.tokens {
		if m.ended() || m.Walking() || b.owner.inner != b {
			return
		}
		if t.phase != idle {
			continue
		}
		if m.cfg.Branches == Sequential && b.alive() {
			return
		}
		t.phase, t.view, t.unchecked, t.written = live, b.owner.view, b.owner.unchecked, b.owner.written
		m.walk(t, b.node.Parallel.Branches[t.index].Entry)
	}
}

// record begins the payload of a record about the block.
func (b *block) record() history.Payload {
	return history.Payload{NodeID: b.node.ID, Visit: recordedVisit(b.visit)}
}

func (b *block) count(p phase) int {
	n := 0
	for _, t := range b.tokens {
		if t.phase == p {
			n++
		}
	}
	return n
}

func (b *block) alive() bool { return b.count(live) > 0 }

func (m *Machine) branchSucceeded(t *token) {
	t.phase = succeeded
	m.branchEnded(t.block)
}

// branchFailed ends a failed branch. FailNode is in its script.
func (m *Machine) branchFailed(t *token, f *failure) {
	m.abandonBelow(t)
	t.closeBlock()
	t.phase, t.failure = broken, f
	m.branchEnded(t.block)
}

// branchEnded decides the block, if it can be decided, after a branch has succeeded or failed.
func (m *Machine) branchEnded(b *block) {
	if b.node.Parallel.Join == definition.JoinAll {
		m.decideAll(b)
	} else {
		m.decideSome(b)
	}
	if !m.ended() && b.owner.inner == b && m.cfg.Branches == Sequential {
		m.startBranches(b)
	}
}

// failsFast reports whether the first failure of a branch, as recorded, fails the block of a token's parallel node. The NodeScheduled of a
// block from an older release lacks the mark.
func (m *Machine) failsFast(t *token) bool {
	if t.node.Parallel == nil || t.node.Parallel.Join != definition.JoinAll || m.cfg.Branches == Sequential {
		return false
	}
	if m.recorded != nil {
		if f := m.recorded.of(t); f.scheduled {
			return f.failFast
		}
	}
	return true
}

// decideAll decides a join "all". In blocks of older releases the first failure in branch order ends the block: the branches after a
// failed one are dropped at once; the branches before it continue, because they may fail too.
func (m *Machine) decideAll(b *block) {
	if i := slices.IndexFunc(b.tokens, func(t *token) bool { return t.phase == broken }); i >= 0 && b.failFast {
		m.failFast(b, b.tokens[i])
		return
	}
	doomed := false
	for _, t := range b.tokens {
		if doomed && (t.phase == live || t.phase == idle) {
			m.drop(t)
		}
		doomed = doomed || t.phase == broken
	}
	m.advance(b)
	if m.ended() || b.head == len(b.tokens) {
		if !m.ended() {
			m.join(b, nil)
		}
		return
	}
	if h := b.tokens[b.head]; h.phase == broken {
		m.failWithBranch(b, h.failure)
	}
}

// failFast fails a block by the first failure of a branch. Branches that have not ended are cancelled. The script of ended branches before
// the failed one is written first, since nothing follows the failure.
func (m *Machine) failFast(b *block, by *token) {
	m.dropRest(b)
	for b.head < by.index && !m.ended() {
		if t := b.tokens[b.head]; t.phase == dropped {
			m.cancelBranch(b, t)
		}
		m.moveHead(b)
	}
	if !m.ended() {
		m.failWithBranch(b, by.failure)
	}
}

// cancelBranch writes that a branch was cancelled.
func (m *Machine) cancelBranch(b *block, t *token) {
	p := b.record()
	p.BranchName = b.node.Parallel.Branches[t.index].Name
	m.command(b.owner, history.CancelParallelBranch, p)
	m.scriptEvent(b.owner, history.ParallelBranchCancelled, p)
}

// decideSome decides a join "any" or "n_of_m": the first branches to succeed win, ties in branch order; the others are
// cancelled.
func (m *Machine) decideSome(b *block) {
	need := b.node.Parallel.N
	wins := b.count(succeeded)
	open := b.count(live) + b.count(idle)
	if wins >= need {
		m.dropRest(b) // before advance, which must not write the script of a cancelled branch
	}
	m.advance(b)
	switch {
	case m.ended():
	case wins >= need:
		m.releaseAll(b)
		if m.ended() {
			return
		}
		var winners []string
		for _, t := range b.tokens {
			switch t.phase {
			case succeeded:
				winners = append(winners, b.node.Parallel.Branches[t.index].Name)
			case dropped:
				m.cancelBranch(b, t)
			}
		}
		m.join(b, winners)
	case open == 0, m.cfg.Branches == Concurrent && wins+open < need:
		m.dropRest(b)
		m.releaseAll(b)
		if m.ended() {
			return
		}
		f := &failure{
			Reason: reasonJoin, NodeID: b.node.ID, Code: string(problem.JoinNotReached),
			Message: fmt.Sprintf("parallel node %q requires %d of %d branches to succeed, but %d did", b.node.ID, need, len(b.tokens), wins),
		}
		m.asWritten(b.owner, f)
		m.failBlock(b, f)
	}
}

// blockExpired fails a block that did not join by its deadline. The commands that its branches hold back are written as for a join that can
// no longer be satisfied.
func (m *Machine) blockExpired(b *block) {
	m.deadlinePassed(b.owner)
	f := &failure{
		Reason: reasonJoin, NodeID: b.node.ID, Code: string(problem.Timeout),
		Message: fmt.Sprintf("parallel node %q did not join within %s", b.node.ID, b.node.Parallel.Timeout),
	}
	m.dropRest(b)
	if b.node.Parallel.Join != definition.JoinAll {
		m.advance(b)
		m.releaseAll(b)
		if m.ended() {
			return
		}
	}
	m.failBlock(b, f)
}

// drop cancels a branch: its effects are abandoned, and its held-back script is never written.
func (m *Machine) drop(t *token) {
	m.abandonBelow(t)
	t.closeBlock()
	t.held, t.phase, t.rollback = nil, dropped, nil
}

func (m *Machine) dropRest(b *block) {
	for _, t := range b.tokens {
		if t.phase == live || t.phase == idle {
			m.drop(t)
		}
	}
}

// advance moves the head past the branches that have ended, and writes the script that the next branch held back. It stops at
// a failed branch of a join "all": nothing is written after it.
func (m *Machine) advance(b *block) {
	all := b.node.Parallel.Join == definition.JoinAll
	for b.head < len(b.tokens) && !m.ended() {
		t := b.tokens[b.head]
		if t.phase != succeeded && (t.phase != broken || all) {
			return
		}
		m.moveHead(b)
	}
}

// releaseAll writes, in branch order, the script that the branches of a decided block still hold back.
func (m *Machine) releaseAll(b *block) {
	for b.head < len(b.tokens) && !m.ended() {
		m.moveHead(b)
	}
}

// moveHead makes the next branch the head of its block, and writes the script that it held back.
func (m *Machine) moveHead(b *block) {
	b.head++
	if b.head < len(b.tokens) {
		m.release(b.tokens[b.head])
	}
}

// join completes the block and walks on from its join target. A nested block writes neither CompleteNode nor a state (spec:
// execution, 2.6).
func (m *Machine) join(b *block, winners []string) {
	owner := b.owner
	p := b.record()
	p.Join = string(b.node.Parallel.Join)
	m.command(owner, history.JoinParallel, p)
	p.Winners = winners
	m.scriptEvent(owner, history.ParallelJoined, p)
	m.timersDirty = m.timersDirty || !b.deadline.IsZero()
	owner.closeBlock()
	next := b.node.Next
	if owner.block == nil {
		next = m.complete(owner, completion{output: map[string]any{}, checkpoint: true})
	}
	m.walk(owner, next)
}

// failBlock fails a block with its own failure.
func (m *Machine) failBlock(b *block, f *failure) {
	m.leaveBlock(b)
	m.walk(b.owner, m.failToken(b.owner, f))
}

// failWithBranch fails a block with the failure of a branch, whose FailNode has been written.
func (m *Machine) failWithBranch(b *block, f *failure) {
	m.leaveBlock(b)
	if k := b.node.CaughtBy(f.Code); k != nil {
		m.walk(b.owner, m.continueCaught(b.owner, f, k))
		return
	}
	m.tokenFailed(b.owner, f)
}

// leaveBlock ends the waits of a block.
func (m *Machine) leaveBlock(b *block) {
	m.abandonBelow(b.owner)
	b.owner.closeBlock()
}
