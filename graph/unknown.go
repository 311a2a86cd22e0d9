package graph

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// maxUnknown bounds how many workflows are remembered that this process does not know.
const maxUnknown = 4096

// workflowName is what a node calls its subworkflow's workflow by.
type workflowName struct{ ref, pin string }

func nameOf(e *machine.ChildEffect) workflowName { return workflowName{e.WorkflowRef, e.VersionPin} }

// unknown remembers the workflows that this process did not know, or not accept, when a subworkflow was to be begun, and why,
// so that it can be told and that no run is taken over for one in vain. Those for which runs are left are asked for again from
// time to time, each once however many runs that are: see Runner.reconsider.
type unknown struct {
	mu     sync.Mutex
	byName map[workflowName]*unheardOf
}

type unheardOf struct {
	why error
	// wanted says that a run was left for want of it since it was last asked for, asked that it is being asked for.
	wanted, asked bool
}

func (u *unknown) note(name workflowName, cause error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.byName == nil {
		u.byName = map[workflowName]*unheardOf{}
	}
	w := u.byName[name]
	if w == nil {
		for other := range u.byName {
			if len(u.byName) < maxUnknown {
				break
			}
			// Any: since runs are looked at in turn, the oldest would be the very one that is wanted next.
			delete(u.byName, other)
		}
		w = &unheardOf{}
		u.byName[name] = w
	}
	w.why, w.wanted = cause, true
}

func (u *unknown) forget(name workflowName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.byName, name)
}

// forgetRef forgets a workflow whatever version of it was wanted.
func (u *unknown) forgetRef(ref string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for name := range u.byName {
		if name.ref == ref {
			delete(u.byName, name)
		}
	}
}

// why tells why a workflow is not known; nil if that has not shown.
func (u *unknown) why(name workflowName) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if w := u.byName[name]; w != nil {
		return w.why
	}
	return nil
}

// want reports whether a workflow is not known, and notes that a run is left for want of it.
func (u *unknown) want(name workflowName) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	w := u.byName[name]
	if w == nil {
		return false
	}
	w.wanted = true
	return true
}

// ask gives the workflows that are wanted and that nobody asks for at the moment.
func (u *unknown) ask() (names []workflowName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for name, w := range u.byName {
		if w.wanted && !w.asked {
			w.wanted, w.asked = false, true
			names = append(names, name)
		}
	}
	return names
}

// answer ends asking. An error that does not say whether the workflow is known leaves everything as it is.
func (u *unknown) answer(name workflowName, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	w := u.byName[name]
	switch {
	case err == nil:
		delete(u.byName, name)
	case w != nil:
		w.asked = false
		if lacksWorkflow(err) {
			w.why = err
		}
	}
}

// reconsider asks, in the background, for the workflows for want of which runs were left since they were last asked for.
// The function it returns waits for the answers, and reports whether one of them has become known.
func (r *Runner) reconsider(ctx context.Context) (learned func() bool) {
	var all sync.WaitGroup
	var news atomic.Bool
	for _, name := range r.unknown.ask() {
		all.Add(1)
		r.tasks.Go(func() {
			defer all.Done()
			_, err := r.resolve(ctx, name)
			if r.unknown.answer(name, err); err == nil {
				news.Store(true)
			}
		})
	}
	return func() bool {
		all.Wait()
		return news.Load()
	}
}

// lackOfWorkflow is what this process lacks to begin a subworkflow that the run waits for, nil if that has not shown.
func (x *run) lackOfWorkflow(w *Pending) *Lack {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.prog == nil {
		return nil
	}
	n := x.prog.Node(w.NodeID)
	if n == nil || n.Subworkflow == nil {
		return nil
	}
	name := workflowName{n.Subworkflow.WorkflowRef, n.Subworkflow.VersionPin}
	why := x.r.unknown.why(name)
	if why == nil {
		return nil
	}
	return lackOfWorkflow(x.id, n.ID, name, why)
}

func lackOfWorkflow(executionID, nodeID string, name workflowName, why error) *Lack {
	l := &Lack{ExecutionID: executionID, NodeID: nodeID}
	if errors.Is(why, problem.WorkflowNotFound) || errors.Is(why, problem.VersionPinMismatch) {
		l.Missing, l.Setting = fmt.Sprintf("what the subworkflow %q needs: %s", name.ref, why), "--workflow-dir"
	} else {
		l.Missing = fmt.Sprintf("a definition of the subworkflow %q that it accepts: %s", name.ref, why)
	}
	return l
}
