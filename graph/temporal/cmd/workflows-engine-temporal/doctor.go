package main

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/temporal"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/config"
	"github.com/workflows-engine/workflows-engine/internal/doctor"
	"github.com/workflows-engine/workflows-engine/internal/shellword"
)

// The codes of the findings.
const (
	codeService    doctor.Code = "temporal-service"
	codeNamespace  doctor.Code = "temporal-namespace"
	codeAttributes doctor.Code = "temporal-search-attributes"
	codeLimits     doctor.Code = "temporal-limits"
	codeWorkers    doctor.Code = "temporal-workers"
)

// diagnose adds the findings about the service.
func (s *service) diagnose(ctx context.Context, c *config.Config, r *doctor.Report) {
	at := s.value(address)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	t, err := s.dial(ctx, c)
	if err != nil {
		r.AddError(codeService, at, err, "")
		return
	}
	defer t.Close()
	r.Add(doctor.OK, codeService, at, "", "the service answers")
	name := s.value(namespace)
	d, err := t.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: name})
	if err != nil {
		r.Add(doctor.Problem, codeNamespace, at, shellword.Line("temporal", "operator", "namespace", "create", "--namespace", name), "namespace %s: %v", name, err)
		return
	}
	r.Add(doctor.OK, codeNamespace, at, "", "namespace %s keeps ended runs for %s", name, d.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration())
	if l := d.GetNamespaceInfo().GetLimits(); l.GetBlobSizeLimitError() > 0 {
		level, fix := doctor.OK, ""
		if l.GetBlobSizeLimitError() < leastValue {
			level, fix = doctor.Warning, "Raise limit.blobSize.error of the service to 2 MiB: larger states fail."
		}
		r.Add(level, codeLimits, at, fix, "values of at most %d bytes, memos of at most %d", l.GetBlobSizeLimitError(), l.GetMemoSizeLimitError())
	}
	s.attributes(ctx, t, r)
	s.workers(ctx, c, t, r)
}

// leastValue is the size of values that runs may need: a state of 1 MiB, and what stands beside it.
const leastValue = 2 << 20

// attributes reports the search attributes that runs need.
func (s *service) attributes(ctx context.Context, t client.Client, r *doctor.Report) {
	known, err := t.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: s.value(namespace)})
	needed := temporal.SearchAttributes()
	create := []string{"temporal", "operator", "search-attribute", "create", "--namespace", s.value(namespace)}
	lacking := 0
	for _, name := range slices.Sorted(maps.Keys(needed)) {
		kind, ok := known.GetCustomAttributes()[name]
		switch {
		case err == nil && ok && kind != needed[name]:
			r.Add(doctor.Problem, codeAttributes, s.value(address), "Remove it, or use another namespace.", "search attribute %s is a %s, not a %s", name, kind, needed[name])
			lacking++
		case err != nil || !ok:
			create = append(create, "--name", name, "--type", needed[name].String())
			lacking++
		}
	}
	switch {
	case err != nil:
		r.Add(doctor.Warning, codeAttributes, s.value(address), "If they are missing: "+shellword.Line(create...), "the search attributes cannot be listed: %v", err)
	case lacking == 0:
		r.Add(doctor.OK, codeAttributes, s.value(address), "", "the namespace has the search attributes of runs")
	case slices.Contains(create, "--name"):
		r.Add(doctor.Problem, codeAttributes, s.value(address), shellword.Line(create...), "the namespace lacks search attributes of runs")
	}
}

// workers reports who polls the task queues that runs use.
func (s *service) workers(ctx context.Context, c *config.Config, t client.Client, r *doctor.Report) {
	queues := c.Queues
	if len(queues) == 0 {
		queues = []string{history.DefaultQueue}
	}
	for _, queue := range queues {
		name := s.value(taskQueue) + "." + queue
		if s.polled(ctx, t, r, name, enums.TASK_QUEUE_TYPE_WORKFLOW) == 0 {
			r.Add(doctor.Warning, codeWorkers, name, program+" worker", "no worker performs runs of the queue %s: they wait", queue)
		}
		for _, kind := range slices.Concat([]string{"step", "llm_call", "tool_call", "a2a", "mcp", "sdk"}, s.lanes) {
			s.polled(ctx, t, r, name+"."+kind, enums.TASK_QUEUE_TYPE_ACTIVITY)
		}
	}
}

// polled reports the workers of a task queue, if it has any, and returns their number.
func (s *service) polled(ctx context.Context, t client.Client, r *doctor.Report, name string, kind enums.TaskQueueType) int {
	d, err := t.WorkflowService().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
		Namespace: s.value(namespace), TaskQueue: &taskqueue.TaskQueue{Name: name}, TaskQueueType: kind,
	})
	if err != nil {
		r.Add(doctor.Warning, codeWorkers, name, "", "the workers cannot be listed: %v", err)
		return -1
	}
	seen := map[string]bool{}
	for _, p := range d.GetPollers() {
		if seen[p.GetIdentity()] {
			continue
		}
		seen[p.GetIdentity()] = true
		who, walk, _ := strings.Cut(p.GetIdentity(), walkMark)
		level, fix := doctor.OK, ""
		if own := strconv.Itoa(machine.WalkVersion); kind == enums.TASK_QUEUE_TYPE_WORKFLOW && walk != own {
			level, fix = doctor.Warning, "Let all workers of a queue be of one release; a run walks as the release that began it."
			if walk == "" {
				walk = "unknown"
			}
		}
		if kind == enums.TASK_QUEUE_TYPE_WORKFLOW {
			r.Add(level, codeWorkers, name, fix, "worker %s, walk version %s", who, walk)
		} else {
			r.Add(level, codeWorkers, name, fix, "worker %s", who)
		}
	}
	return len(seen)
}
