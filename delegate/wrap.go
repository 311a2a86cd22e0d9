package delegate

import (
	"context"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/internal/port"
)

// Wrap puts a middleware around the delegations of an executor, as activities.Wrap does for activities. The result
// answers Immediate, Performs, PerformsAgent, Classes, Describe, Journals and HasTask as the executor does. Calls about tasks (Send, Poll,
// Answer, Cancel) and requests whose steps are recorded reach the executor without the middleware.
func Wrap(executor Executor, middleware func(next ExecutorFunc) ExecutorFunc) Executor {
	return wrapped{middleware(executor.Delegate), executor}
}

type wrapped struct {
	ExecutorFunc
	executor Executor
}

func (w wrapped) Immediate(req Request) bool    { return port.Immediate(w.executor, req) }
func (w wrapped) Performs(protocol string) bool { return port.Performs(w.executor, protocol) }
func (w wrapped) SettingOf(protocol string) string {
	return port.Setting(w.executor, protocol, "")
}
func (w wrapped) PerformsAgent(protocol, agentID string) bool {
	return performsAgent(w.executor, protocol, agentID)
}
func (w wrapped) Classes(protocol, agentID string) []string {
	return classes(w.executor, protocol, agentID)
}
func (w wrapped) Describe(req Request) map[string]any { return port.Describe(w.executor, req) }
func (w wrapped) Journals(req Request) bool           { return journals(w.executor, req) }
func (w wrapped) Work(ctx context.Context, req Request, j activities.Journal) (activities.End, error) {
	return work(ctx, w.executor, req, j)
}
func (w wrapped) HasTask(req Request) bool { return tasksOf(w.executor, req).HasTask(req) }
func (w wrapped) Send(ctx context.Context, req Request) (Task, error) {
	return tasksOf(w.executor, req).Send(ctx, req)
}
func (w wrapped) Poll(ctx context.Context, req Request, task TaskRef) (Task, error) {
	return tasksOf(w.executor, req).Poll(ctx, req, task)
}
func (w wrapped) Answer(ctx context.Context, req Request, task TaskRef, answer map[string]any) (Task, error) {
	return tasksOf(w.executor, req).Answer(ctx, req, task, answer)
}
func (w wrapped) Cancel(ctx context.Context, req Request, task TaskRef) error {
	return tasksOf(w.executor, req).Cancel(ctx, req, task)
}
