package library

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
)

// unknownError is why this process cannot begin a subworkflow that another one may well begin: it does not know the workflow, or
// its settings reject the definition that it knows.
type unknownError struct{ error }

func (e unknownError) Unwrap() error { return e.error }

// IsUnknown reports whether an error of Resolve means that this process does not know the workflow, or does not accept
// it.
func IsUnknown(err error) bool {
	_, ok := errors.AsType[unknownError](err)
	return ok
}

// maxUnknown bounds how many unknown workflows are remembered.
const maxUnknown = 4096

// unknownWorkflows remembers the workflows that this process did not know, or not accept, when a subworkflow was to be begun, and
// why. Those that runs wait for are looked for again from time to time, each once however many runs there are.
type unknownWorkflows struct {
	mu     sync.Mutex
	byName map[WorkflowName]*unknownWorkflow
}

type unknownWorkflow struct {
	why error
	// awaited is set if a run waits for the workflow since it was last resolved, resolving while it is being resolved.
	awaited, resolving bool
}

func (u *unknownWorkflows) note(name WorkflowName, cause error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.byName == nil {
		u.byName = map[WorkflowName]*unknownWorkflow{}
	}
	w := u.byName[name]
	if w == nil {
		for other := range u.byName {
			if len(u.byName) < maxUnknown {
				break
			}
			// Any other: runs are visited in turn, so the oldest name would be needed next.
			delete(u.byName, other)
		}
		w = &unknownWorkflow{}
		u.byName[name] = w
	}
	w.why, w.awaited = cause, true
}

func (u *unknownWorkflows) forget(name WorkflowName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.byName, name)
}

// forgetRef forgets a workflow whatever its pin.
func (u *unknownWorkflows) forgetRef(ref string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for name := range u.byName {
		if name.Ref == ref {
			delete(u.byName, name)
		}
	}
}

// why returns why a workflow is not known; nil if that has not shown.
func (u *unknownWorkflows) why(name WorkflowName) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if w := u.byName[name]; w != nil {
		return w.why
	}
	return nil
}

// take returns the workflows that runs wait for and that are not being resolved.
func (u *unknownWorkflows) take() (names []WorkflowName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for name, w := range u.byName {
		if w.awaited && !w.resolving {
			w.awaited, w.resolving = false, true
			names = append(names, name)
		}
	}
	return names
}

// resolved ends a resolution. An error that leaves open whether the workflow is known changes nothing else.
func (u *unknownWorkflows) resolved(name WorkflowName, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	w := u.byName[name]
	switch {
	case err == nil:
		delete(u.byName, name)
	case w != nil:
		w.resolving = false
		if IsUnknown(err) {
			w.why = err
		}
	}
}

// WaitsFor reports whether a workflow has turned out to be unknown here, and notes that a run waits for it.
func (l *Library) WaitsFor(name WorkflowName) bool {
	u := &l.unknown
	u.mu.Lock()
	defer u.mu.Unlock()
	w := u.byName[name]
	if w == nil {
		return false
	}
	w.awaited = true
	return true
}

// NoteUnknown remembers that a workflow is unknown, and why.
func (l *Library) NoteUnknown(name WorkflowName, cause error) { l.unknown.note(name, cause) }

// Unknown returns the number of unknown workflows that are remembered.
func (l *Library) Unknown() int {
	l.unknown.mu.Lock()
	defer l.unknown.mu.Unlock()
	return len(l.unknown.byName)
}

// Reconsider looks for the unknown workflows that runs wait for, each in a goroutine that start runs. The function it returns waits
// for that, and reports whether one of them has become known.
func (l *Library) Reconsider(ctx context.Context, start func(func())) (learned func() bool) {
	var all sync.WaitGroup
	var news atomic.Bool
	for _, name := range l.unknown.take() {
		all.Add(1)
		start(func() {
			defer all.Done()
			_, err := l.Resolve(ctx, name)
			if l.unknown.resolved(name, err); err == nil {
				news.Store(true)
			}
		})
	}
	return func() bool {
		all.Wait()
		return news.Load()
	}
}

// Lack returns the reason why this process cannot start a subworkflow at a node, nil if that is not known.
func (l *Library) Lack(executionID, nodeID string, name WorkflowName) *view.Lack {
	why := l.unknown.why(name)
	if why == nil {
		return nil
	}
	return LackOf(executionID, nodeID, name, why)
}

// LackOf returns the reason why this process cannot start an unknown subworkflow.
func LackOf(executionID, nodeID string, name WorkflowName, why error) *view.Lack {
	l := &view.Lack{ExecutionID: executionID, NodeID: nodeID}
	if errors.Is(why, problem.WorkflowNotFound) || errors.Is(why, problem.VersionPinMismatch) {
		l.Missing, l.Setting = fmt.Sprintf("a requirement of subworkflow %q: %s", name.Ref, why), "Options.Workflows"
	} else {
		l.Missing = fmt.Sprintf("a definition of the subworkflow %q that it accepts: %s", name.Ref, why)
	}
	return l
}
