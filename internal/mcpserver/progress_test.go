package mcpserver_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
)

// slowExecutor takes a second for every activity and sends a heartbeat after half of it.
type slowExecutor struct{}

func (slowExecutor) Execute(ctx context.Context, req activities.Request) (activities.Result, error) {
	for range 2 {
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
			return activities.Result{}, ctx.Err()
		}
		req.Heartbeat(map[string]any{"message": "half done"})
	}
	return activities.Result{Output: map[string]any{req.NodeID: true}}, nil
}

// TestProgress drives a run whose activities take time, and checks the notifications: the client's token, a rising progress,
// no faster than the client reads them, none after the answer, and none without a token.
func TestProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		runner := enginetest.Closing(t, enginetest.Must(graph.New(store, graph.Options{Activities: slowExecutor{}, DefaultMode: machine.InProcess})))
		here, there := mcp.NewInMemoryTransports()
		served := make(chan error, 1)
		go func() {
			served <- mcpserver.Serve(context.Background(), mcpserver.New(runner, mcpserver.Options{}), there)
		}()

		var mu sync.Mutex
		var told []*mcp.ProgressNotificationParams
		var at []time.Time
		client := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "0"}, &mcp.ClientOptions{
			ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
				mu.Lock()
				defer mu.Unlock()
				told, at = append(told, req.Params), append(at, time.Now())
			},
		})
		session, err := client.Connect(context.Background(), here, nil)
		if err != nil {
			t.Fatal(err)
		}
		call := func(token any, name string, args object) (map[string]any, []*mcp.ProgressNotificationParams) {
			t.Helper()
			params := &mcp.CallToolParams{Name: name, Arguments: args}
			if token != nil {
				params.SetProgressToken(token)
			}
			res, err := session.CallTool(context.Background(), params)
			if err != nil || res.IsError {
				t.Fatalf("%s: %+v, %v", name, res, err)
			}
			answered := time.Now()
			time.Sleep(10 * time.Second) // whatever came now would be too late
			mu.Lock()
			defer mu.Unlock()
			for i, p := range told {
				if p.ProgressToken != token || i > 0 && p.Progress <= told[i-1].Progress || at[i].After(answered) ||
					i > 0 && at[i].Sub(at[i-1]) < 250*time.Millisecond {
					t.Errorf("%s: notification %d at %s: %+v", name, i, at[i].Sub(at[0]), p)
				}
			}
			if len(at) > 0 && answered.Sub(at[len(at)-1]) < 100*time.Millisecond {
				t.Errorf("%s: the answer came only %s after a notification", name, answered.Sub(at[len(at)-1]))
			}
			list := told
			told, at = nil, nil
			return res.StructuredContent.(map[string]any), list
		}
		messages := func(list []*mcp.ProgressNotificationParams) (texts []string) {
			for _, p := range list {
				texts = append(texts, p.Message)
			}
			return texts
		}

		answer, list := call("token", "workflow_start", object{"definition": definitionFile(t, "fork"), "execution_id": "f"})
		want(t, answer, object{"status": "completed"})
		// Both begin at 0 s, send a heartbeat at 0.5 s, and end at 1 s with the call.
		if got := messages(list); len(got) != 2 || got[0] != "b [right] runs" && got[0] != "a [left] runs" ||
			got[1] != "b [right] is running: half done" && got[1] != "a [left] is running: half done" {
			t.Errorf("notifications of start: %q", got)
		}
		if _, list = call(nil, "workflow_start", object{"definition": definitionFile(t, "fork"), "execution_id": "silent"}); len(list) > 0 {
			t.Errorf("notifications without a token: %q", messages(list))
		}

		// A status call receives notifications too, also about a run that another call began.
		answer, list = call("seven", "workflow_start", object{"definition": definitionFile(t, "step"), "execution_id": "s", "wait_ms": 0})
		want(t, answer, object{"status": "running"})
		if len(list) > 0 {
			t.Errorf("notifications of a call that does not wait: %q", messages(list))
		}
		if answer, _ = call(nil, "workflow_status", object{"execution_id": "s"}); answer["phase"] != "completed" {
			t.Errorf("%v", answer)
		}
		if _, list = call("eight", "workflow_status", object{"execution_id": "s", "wait_ms": 1000}); len(list) > 0 {
			t.Errorf("notifications of an ended run: %q", messages(list))
		}

		// A notification just before the end arrives before the answer.
		if _, list = call("nine", "workflow_start", object{"definition": nap260}); len(list) != 1 {
			t.Errorf("notifications of a nap: %q", messages(list))
		}

		session.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

// nap260 is a run of 260 ms.
const nap260 = `{"document":{"schema":"s","name":"nap","version":"1"},"state_schema":{"type":"object"},
	"nodes":[{"id":"a","type":"start"},{"id":"w","type":"wait","config":{"kind":"duration","duration_ms":260}},{"id":"z","type":"end"}],
	"edges":[{"source":"__start__","target":"a"},{"source":"a","target":"w"},{"source":"w","target":"z"}]}`

// TestAnswerBehindProgress checks how long an answer waits after the last notification: a client that reads both at once may
// take the answer first, and then no longer knows the token of the notification.
func TestAnswerBehindProgress(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		ends       time.Duration // when the call has its answer, after its first news
		cancelled  bool
		told       int
		answeredAt time.Duration
	}{
		{"before anything is told", 249 * time.Millisecond, false, 0, 249 * time.Millisecond},
		{"at once behind it", 251 * time.Millisecond, false, 1, 350 * time.Millisecond},
		{"some time behind it", 340 * time.Millisecond, false, 1, 350 * time.Millisecond},
		{"long behind it", 400 * time.Millisecond, false, 1, 400 * time.Millisecond},
		{"at once behind it, and nobody waits", 251 * time.Millisecond, true, 1, 251 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				told, begun := 0, time.Now()
				report, stop := mcpserver.Reporter(func(float64, string) { told++ })
				report(graph.Progress{Kind: graph.NodeRuns, NodeID: "a"})
				time.Sleep(c.ends)
				report(graph.Progress{Kind: graph.NodeDone, NodeID: "a"})
				if c.cancelled {
					cancel()
				}
				stop(ctx)
				if at := time.Since(begun); at != c.answeredAt {
					t.Errorf("answered after %s, want %s", at, c.answeredAt)
				}
				time.Sleep(time.Second)
				if told != c.told {
					t.Errorf("%d notifications, want %d", told, c.told)
				}
			})
		})
	}
}

// A status call reports a run in progress at once, and answers when the run has ended.
func TestProgressOfStatus(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		runner := enginetest.Closing(t, enginetest.Must(graph.New(historymem.New(), graph.Options{Activities: slowExecutor{}})))
		d := enginetest.Must(definition.FromValue(definitionFile(t, "step")))
		if _, err := runner.Start(t.Context(), graph.StartRequest{ExecutionID: "s", Definition: d, Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
			t.Fatal(err)
		}
		var told []graph.Progress
		begun := time.Now()
		run, err := runner.Status(t.Context(), graph.StatusRequest{ExecutionID: "s", Wait: &graph.Wait{
			Limit: time.Minute, Progress: func(p graph.Progress) { told = append(told, p) },
		}})
		if err != nil || run.Status != machine.Completed || time.Since(begun) != time.Second {
			t.Errorf("after %s: %+v, %v", time.Since(begun), run, err)
		}
		if len(told) < 3 || told[0].Kind != graph.NodeRuns || told[1].Kind != graph.ExecutorAlive || told[1].NodeID != told[0].NodeID {
			t.Errorf("notifications %+v", told)
		}
	})
}
