package graph_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

func heartbeats(t testing.TB, members ...string) *definition.Document {
	members = append([]string{`"heartbeat":"30s"`}, members...)
	return workflowWith(t, "beats", `"x-workflows-engine":{"uses":["catch","heartbeat"]}`,
		[]string{startNode(), tool("a", append(members, `"catch":[{"codes":["HEARTBEAT_TIMEOUT"],"target":"z","as":"why"}]`)...), tool("z"), endNode()}, "s a", "a e", "z e")
}

// TestASilentAttemptFails, is retried, and is caught in the end. One that reports is left alone, however long it takes.
func TestASilentAttemptFails(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer func(context.Context, activities.Request) (any, error)
		failed int
		took   time.Duration
		caught bool
	}{
		"silent": {after(time.Hour, nil), 2, time.Minute, true},
		"deaf": {func(context.Context, activities.Request) (any, error) {
			time.Sleep(5 * time.Minute)
			return object{"a": "late"}, nil
		}, 2, 64 * time.Second, true},
		"silent at first": {func(ctx context.Context, req activities.Request) (any, error) {
			if req.Attempt == 1 {
				<-ctx.Done()
				return nil, context.Cause(ctx)
			}
			return object{"a": 1}, nil
		}, 1, 30 * time.Second, false},
		"alive": {func(ctx context.Context, req activities.Request) (any, error) {
			for range 10 {
				time.Sleep(20 * time.Second)
				req.Heartbeat(nil)
			}
			return object{"a": req.Silence.String()}, ctx.Err()
		}, 0, 200 * time.Second, false},
		"just in time": {after(29*time.Second, object{}), 0, 29 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := historymem.New()
				x := &script{answers: answers{"a": tt.answer}}
				r := newRunner(t, store, graph.Options{Activities: x})
				begun := time.Now()
				start(t, r, "r", heartbeats(t, `"retry":{"max_attempts":2}`), nil)
				run := settled(t, r, "r")
				wantStatus(t, run, machine.Completed)
				if took := time.Since(begun); took != tt.took {
					t.Errorf("took %s, want %s", took, tt.took)
				}
				why, caught := run.FinalState["why"].(object)
				if caught != tt.caught || caught && (why["code"] != string(problem.HeartbeatTimeout) || why["message"] != "the attempt gave no sign of life for 30s") {
					t.Errorf("caught %v", why)
				}
				rs := records(t, store, "r")
				if n := count(rs, history.ActivityFailed); n != tt.failed {
					t.Errorf("%d attempts have failed, want %d", n, tt.failed)
				}
				if count(rs, history.ActivityCompleted) != 1 {
					t.Errorf("a late outcome was taken: %v", names(rs, history.Event))
				}
				time.Sleep(10 * time.Minute) // what is deaf ends
			})
		})
	}
}

// TestAHostNeedsNoHeartbeat: only attempts in process are watched.
func TestAHostNeedsNoHeartbeat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, _ := host(t, graph.Options{})
		start(t, r, "r", heartbeats(t), nil)
		time.Sleep(time.Hour)
		wantStatus(t, submit(t, r, "r", "a", object{"a": 1}), machine.Completed)
	})
}
