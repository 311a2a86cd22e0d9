package graph

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/workflows-engine/workflows-engine/graph/machine"
)

// maxUnborn bounds how many subworkflows are remembered that this process could not begin.
const maxUnborn = 1024

// unborn remembers the subworkflows that this process could not begin, and why, so that it can be told and is not tried
// in vain: see Runner.reconsider.
type unborn struct {
	mu   sync.Mutex
	byID map[string]*stillborn // by execution id
}

type stillborn struct {
	parent string
	effect *machine.ChildEffect
	why    string
	// asked says that somebody looks whether it can be begun by now.
	asked bool
}

func (u *unborn) note(parent string, e *machine.ChildEffect, cause error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.byID == nil || len(u.byID) >= maxUnborn {
		u.byID = map[string]*stillborn{}
	}
	u.byID[e.ChildExecutionID] = &stillborn{parent: parent, effect: e, why: cause.Error()}
}

func (u *unborn) forget(child string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.byID, child)
}

// forgetThoseOf lets the subworkflows of a run be tried again.
func (u *unborn) forgetThoseOf(parent string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	maps.DeleteFunc(u.byID, func(_ string, s *stillborn) bool { return s.parent == parent })
}

func (u *unborn) has(child string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.byID[child] != nil
}

// ask gives the subworkflows of some runs that nobody asks about at the moment.
func (u *unborn) ask(parents []turn) (es []*machine.ChildEffect) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, s := range u.byID {
		if !s.asked && slices.ContainsFunc(parents, func(t turn) bool { return t.id == s.parent }) {
			s.asked = true
			es = append(es, s.effect)
		}
	}
	return es
}

// answer ends asking.
func (u *unborn) answer(child string, lacking bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if s := u.byID[child]; s != nil && lacking {
		s.asked = false
	} else {
		delete(u.byID, child)
	}
}

// lack is what this process lacks to begin the subworkflow that a run waits for, nil if it has not tried to.
func (u *unborn) lack(w *Pending) *Lack {
	u.mu.Lock()
	defer u.mu.Unlock()
	s := u.byID[w.ChildExecutionID]
	if s == nil {
		return nil
	}
	return &Lack{
		ExecutionID: w.ExecutionID, NodeID: w.NodeID,
		Missing: fmt.Sprintf("what the subworkflow %q needs: %s", w.WorkflowRef, s.why), Setting: "--workflow-dir",
	}
}

// reconsider looks, in the background, whether the subworkflows of some runs that this process could not begin exist by
// now, or can be begun.
func (r *Runner) reconsider(ctx context.Context, parents []turn) *sync.WaitGroup {
	var all sync.WaitGroup
	for _, e := range r.unborn.ask(parents) {
		all.Add(1)
		r.tasks.Go(func() {
			defer all.Done()
			_, err := r.store.Execution(ctx, e.ChildExecutionID)
			if err != nil {
				_, err = r.resolve(ctx, e)
			}
			r.unborn.answer(e.ChildExecutionID, lacksWorkflow(err))
		})
	}
	return &all
}
