package conformance

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"
	"sync/atomic"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/activitiestest"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonobject"
)

// stepHandlers returns a step executor whose handlers return fixed outputs.
func stepHandlers(outputs map[string]any) (activities.Executor, error) {
	registry := activities.NewStepRegistry()
	if err := registry.RegisterStatic(outputs); err != nil {
		return nil, err
	}
	return registry.Frozen(), nil
}

// readFlaky reads retryCountingExecutor, nil if it is absent.
func readFlaky(o *jsonobject.Object) *activitiestest.Flaky {
	c := o.Get("retryCountingExecutor").Object()
	if c == nil {
		return nil
	}
	f := &activitiestest.Flaky{Failures: 2, Code: c.Get("errorCode").Text(), Output: c.Get("successOutput").Map()}
	if n, given := c.Get("failCount").Whole(0, maxCount); given {
		f.Failures = int(n)
	}
	c.Close()
	return f
}

// childRef is the workflow_ref that the protocol's vectors use, childPath the path of its definition.
const (
	childRef  = "urn:awp:wf:unit-tests"
	childPath = "examples/r3-unit-tests-child.workflow.json"
)

// workflows resolves references to subworkflows: childRef, and paths of definitions below the root.
type workflows struct{ root fs.FS }

// ResolveWorkflow implements graph.Resolver.
func (w workflows) ResolveWorkflow(_ context.Context, ref, _ string) (*definition.Document, error) {
	name := childPath
	if ref != childRef {
		name = path.Clean(ref)
	}
	if !fs.ValidPath(name) || !strings.HasSuffix(name, ".workflow.json") {
		return nil, problem.New(problem.WorkflowNotFound, "unknown workflow %q", ref)
	}
	text, err := fs.ReadFile(w.root, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, problem.New(problem.WorkflowNotFound, "unknown workflow %q", ref)
	}
	if err != nil {
		return nil, err
	}
	return definition.Parse(text)
}

// noWorkflows resolves nothing and counts the requests: zero requests prove that no recorded subworkflow ran again.
type noWorkflows struct{ asked atomic.Int64 }

// ResolveWorkflow implements graph.Resolver.
func (w *noWorkflows) ResolveWorkflow(_ context.Context, ref, _ string) (*definition.Document, error) {
	w.asked.Add(1)
	return nil, problem.New(problem.WorkflowNotFound, "workflow %q must not be resolved during replay", ref)
}

// withRunner calls f with a runner over the store.
func withRunner(store history.Store, o graph.Options, f func(*graph.Runner) error) error {
	runner, err := graph.New(store, o)
	if err != nil {
		return err
	}
	err = f(runner)
	return errors.Join(err, runner.Close())
}
