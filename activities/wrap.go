package activities

import (
	"context"

	"github.com/workflows-engine/workflows-engine/internal/port"
)

// Wrap puts a middleware around the attempts of an executor: logging, metrics. The result answers Immediate,
// Performs, PerformsNode, Classes, Describe and Journals as the executor does, so that a process takes over the same runs with the middleware as
// without it; a function that calls the executor would perform every node as far as the engine knows.
//
// Requests whose steps are recorded (Journaled) reach the executor without the middleware.
//
// The engine calls an executor that answers at once in its own goroutine: a middleware that waits holds up the run.
func Wrap(executor Executor, middleware func(next ExecutorFunc) ExecutorFunc) Executor {
	return wrapped{middleware(executor.Execute), executor}
}

type wrapped struct {
	ExecutorFunc
	executor Executor
}

func (w wrapped) Immediate(req Request) bool    { return port.Immediate(w.executor, req) }
func (w wrapped) Performs(nodeType string) bool { return port.Performs(w.executor, nodeType) }
func (w wrapped) SettingOf(nodeType string) string {
	return port.Setting(w.executor, nodeType, "")
}
func (w wrapped) PerformsNode(nodeType string, config map[string]any) bool {
	return performsNode(w.executor, nodeType, config)
}
func (w wrapped) Classes(nodeType string, config map[string]any) []string {
	return classes(w.executor, nodeType, config)
}
func (w wrapped) Describe(req Request) map[string]any { return port.Describe(w.executor, req) }
func (w wrapped) Journals(req Request) bool           { return journals(w.executor, req) }
func (w wrapped) Work(ctx context.Context, req Request, j Journal) (End, error) {
	return work(ctx, w.executor, req, j)
}
