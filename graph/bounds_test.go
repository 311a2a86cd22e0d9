package graph_test

import (
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// TestBoundsOverDatabases: heartbeats, queues, their time-outs and deadlines hold over SQLite and PostgreSQL, where a second process reads what
// the first one has recorded. The in-memory tests check the times.
func TestBoundsOverDatabases(t *testing.T) {
	t.Parallel()
	ofProcesses(t, func(t *testing.T, open func() history.Store) {
		store := open()
		hanging, gpu := &script{answers: answers{"a": hang}}, &script{}
		front := newRunner(t, store, graph.Options{Activities: hanging, Queues: []string{"default"}})
		caught := func(id string, code problem.Code) {
			t.Helper()
			run := settled(t, front, id)
			wantStatus(t, run, machine.Completed)
			if why, _ := run.FinalState["why"].(object); why["code"] != string(code) {
				t.Errorf("%s caught %v", id, why)
			}
			wantTrue(t, store, id)
		}
		start(t, front, "heartbeat", workflowWith(t, "beats", `"x-workflows-engine":{"uses":["catch","heartbeat"]}`, []string{
			startNode(), tool("a", `"heartbeat":"200ms"`, `"catch":[{"codes":["HEARTBEAT_TIMEOUT"],"target":"z","as":"why"}]`), tool("z"), endNode(),
		}, "s a", "a e", "z e"), nil)
		start(t, front, "deadline", deadlined(t, "", `"deadline":"300ms"`, `"retry":{"max_attempts":9}`), nil)
		start(t, front, "map", deadlined(t, `,"map"`, `"deadline":"300ms"`, `"map":{"items":"[1,2,3]","concurrency":2}`), nil)
		start(t, front, "queue timeout", queued(t, `"queue":"gpu"`, `"queue_timeout":"300ms"`), nil)
		start(t, front, "run", workflowWith(t, "late", `"x-workflows-engine":{"uses":["deadline"],"deadline":"300ms"}`, []string{startNode(), interrupt("ask"), endNode()}, "s ask", "ask e"), nil)
		caught("heartbeat", problem.HeartbeatTimeout)
		caught("deadline", problem.Timeout)
		caught("map", problem.Timeout)
		caught("queue timeout", problem.QueueTimeout)
		run := status(t, front, "run")
		for !run.Status.Terminal() {
			w := graph.WaitAtMost(time.Minute)
			var err error
			if run, err = front.Status(t.Context(), graph.StatusRequest{ExecutionID: "run", Wait: &w, Since: run.Seq}); err != nil {
				t.Fatal(err)
			}
		}
		if run.ErrorCode != string(problem.RunTimeout) {
			t.Errorf("failed with %s", run.ErrorCode)
		}
		wantTrue(t, store, "run")
		newRunner(t, open(), graph.Options{Activities: gpu, Work: graph.WorkAll, Queues: []string{"gpu"}})
		start(t, front, "queue", queued(t, `"queue":"gpu"`), nil)
		wantStatus(t, settled(t, front, "queue"), machine.Completed)
		if gpu.count() != 1 {
			t.Errorf("the worker of the queue performed %d attempts", gpu.count())
		}
	})
}
