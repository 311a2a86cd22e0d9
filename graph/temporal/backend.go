package temporal

import (
	"context"
	"errors"
	"time"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	taskqueue "go.temporal.io/api/taskqueue/v1"
	visibility "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/temporal"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/internal/wait"
)

// backend is the Temporal service as an Engine uses it. Tests replace it by the environment of the SDK's test suite.
type backend interface {
	// start starts a run. With a wait, it returns the run once it waits or ends, or the time has passed. errStarted reports that a run has the
	// id.
	start(ctx context.Context, in runInput, o startOptions, wait time.Duration) (*snapshot, error)
	// update makes a call to an open run. accepted, unless nil, is called once the run has taken the input. After that, the end of ctx leads to
	// a nil snapshot without an error.
	update(ctx context.Context, id string, c call, accepted func()) (*snapshot, error)
	// query asks a run. ended reports that it is closed, and was not asked.
	query(ctx context.Context, id, name string, arg, answer any) (ended bool, err error)
	// end returns how a closed run ended: with its result, or as Temporal ended it. Of an open run it returns only the info.
	end(ctx context.Context, id string) (*closed, error)
	list(ctx context.Context, query string, size int, token []byte) (*visibilityPage, error)
	count(ctx context.Context, query string) (int64, error)
	// pollers reports whether a worker polls a task queue for activities.
	pollers(ctx context.Context, queue string) (bool, error)
	sleep(ctx context.Context, d time.Duration) error
	now() time.Time
}

// startOptions are how a run appears in Temporal.
type startOptions struct {
	prog     *definition.Program
	queue    string
	priority sdk.Priority
}

// closed is a closed workflow.
type closed struct {
	info *visibility.WorkflowExecutionInfo
	// open reports that the workflow is not closed. Else result is how the run ended; without it, Temporal has ended the workflow, for a reason.
	open   bool
	result *snapshot
	reason string
}

// visibilityPage is a page of a list.
type visibilityPage struct {
	runs []*visibility.WorkflowExecutionInfo
	next []byte
}

var errStarted = errors.New("a run has the id")

// answerTime is how long a worker may take to answer. A query that the service has given to a worker that stops is lost, and is repeated after
// lostTime.
const (
	answerTime = 10 * time.Second
	lostTime   = 3 * time.Second
)

// clientBackend is the service behind a client.
type clientBackend struct{ o *Options }

func (b clientBackend) start(ctx context.Context, in runInput, o startOptions, limit time.Duration) (*snapshot, error) {
	options := client.StartWorkflowOptions{
		ID: in.Config.ExecutionID, TaskQueue: o.queue, WorkflowTaskTimeout: workflowTaskTime, Priority: o.priority,
		WorkflowIDReusePolicy:    enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_FAIL, WorkflowExecutionErrorWhenAlreadyStarted: true,
		TypedSearchAttributes: in.attributes(o.prog.Name), Memo: in.memo(o.prog),
	}
	var err error
	var s snapshot
	if limit <= 0 {
		_, err = b.o.Client.ExecuteWorkflow(ctx, options, WorkflowType, in)
	} else {
		ctx, cancel := context.WithTimeout(ctx, limit+answerTime)
		defer cancel()
		var h client.WorkflowUpdateHandle
		h, err = b.o.Client.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
			StartWorkflowOperation: b.o.Client.NewWithStartWorkflowOperation(options, WorkflowType, in),
			UpdateOptions:          client.UpdateWorkflowOptions{UpdateName: updateCall, Args: []any{call{Wait: limit}}, WaitForStage: client.WorkflowUpdateStageCompleted},
		})
		if err == nil {
			err = h.Get(ctx, &s)
		}
	}
	if err != nil && limit > 0 && !isType[*serviceerror.WorkflowExecutionAlreadyStarted](err) {
		// The run may have started, and no worker has answered.
		if _, unknown := b.end(context.WithoutCancel(ctx), in.Config.ExecutionID); unknown == nil {
			return nil, nil
		}
	}
	switch {
	case isType[*serviceerror.WorkflowExecutionAlreadyStarted](err):
		return nil, errStarted
	case err != nil || limit <= 0:
		return nil, err
	}
	return &s, nil
}

func (b clientBackend) update(ctx context.Context, id string, c call, accepted func()) (*snapshot, error) {
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTime)
	defer cancel()
	h, err := b.o.Client.UpdateWorkflow(own, client.UpdateWorkflowOptions{
		WorkflowID: id, UpdateName: updateCall, Args: []any{c}, WaitForStage: client.WorkflowUpdateStageAccepted,
	})
	if err != nil {
		return nil, err
	}
	if accepted != nil {
		accepted()
	}
	var s snapshot
	if err := h.Get(ctx, &s); err != nil {
		if ctx.Err() != nil && carried(err) == nil {
			return nil, nil
		}
		return nil, err
	}
	return &s, nil
}

// turn implements turns.
func (b clientBackend) turn(ctx context.Context, id, turn, updateID string) (a attempt, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	h, err := b.o.Client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: id, UpdateID: updateID, UpdateName: updateTurn, Args: []any{turn}, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = h.Get(ctx, &a)
	}
	return a, err
}

func (b clientBackend) query(ctx context.Context, id, name string, arg, answer any) (bool, error) {
	var args []any
	if arg != nil {
		args = []any{arg}
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	ask := func(ctx context.Context) (*client.QueryWorkflowWithOptionsResponse, error) {
		return b.o.Client.QueryWorkflowWithOptions(ctx, &client.QueryWorkflowWithOptionsRequest{
			WorkflowID: id, QueryType: name, Args: args, QueryRejectCondition: queryRejected(name),
		})
	}
	first, stop := context.WithTimeout(ctx, lostTime)
	defer stop()
	r, err := ask(first)
	if err != nil && first.Err() != nil && ctx.Err() == nil {
		r, err = ask(ctx)
	}
	switch {
	case err != nil:
		return false, err
	case r.QueryRejected != nil:
		return true, nil
	}
	return false, r.QueryResult.Get(answer)
}

// queryRejected returns when a query is rejected: the view of a closed run is its result.
func queryRejected(name string) enums.QueryRejectCondition {
	if name == queryView {
		return enums.QUERY_REJECT_CONDITION_NOT_OPEN
	}
	return enums.QUERY_REJECT_CONDITION_NONE
}

func (b clientBackend) end(ctx context.Context, id string) (*closed, error) {
	d, err := b.o.Client.DescribeWorkflow(ctx, id, "")
	if err != nil {
		return nil, err
	}
	info := d.RawResponse.GetWorkflowExecutionInfo()
	switch info.GetStatus() {
	case enums.WORKFLOW_EXECUTION_STATUS_RUNNING, enums.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW:
		return &closed{info: info, open: true}, nil
	case enums.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		var s snapshot
		if err := b.o.Client.GetWorkflow(ctx, id, info.GetExecution().GetRunId()).Get(ctx, &s); err != nil {
			return nil, err
		}
		return &closed{info: info, result: &s}, nil
	}
	c := &closed{info: info, reason: terminatedText}
	if info.GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_FAILED {
		if err := b.o.Client.GetWorkflow(ctx, id, info.GetExecution().GetRunId()).Get(ctx, nil); err != nil {
			c.reason = "the workflow of the run has failed: " + err.Error()
		}
	}
	return c, nil
}

func (b clientBackend) list(ctx context.Context, query string, size int, token []byte) (*visibilityPage, error) {
	r, err := b.o.Client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: query, PageSize: int32(size), NextPageToken: token})
	if err != nil {
		return nil, err
	}
	return &visibilityPage{runs: r.GetExecutions(), next: r.GetNextPageToken()}, nil
}

func (b clientBackend) count(ctx context.Context, query string) (int64, error) {
	r, err := b.o.Client.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Query: query})
	return r.GetCount(), err
}

func (b clientBackend) pollers(ctx context.Context, queue string) (bool, error) {
	r, err := b.o.Client.WorkflowService().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
		Namespace: b.o.Namespace, TaskQueue: &taskqueue.TaskQueue{Name: queue}, TaskQueueType: enums.TASK_QUEUE_TYPE_ACTIVITY,
	})
	return len(r.GetPollers()) > 0, err
}

func (b clientBackend) sleep(ctx context.Context, d time.Duration) error { return wait.For(ctx, d) }

func (b clientBackend) now() time.Time { return time.Now() }
