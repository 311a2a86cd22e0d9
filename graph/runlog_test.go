package graph_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// lines is a log in memory, without times.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) logger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "next_attempt" && a.Value.String() != "none" {
			return slog.Attr{}
		}
		return a
	}}))
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// TestFailedAttemptsAndEndsOfRunsAreLogged has a line for each, at its level, with nothing that the run works on. A run that another
// process takes over is logged by whoever records, and not again.
func TestFailedAttemptsAndEndsOfRunsAreLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const secret = "s3cret"
		var log lines
		store := historymem.New()
		fails := func(context.Context, activities.Request) (any, error) {
			return nil, &activities.Failure{Code: "BROKEN", Message: "no luck"}
		}
		o := graph.Options{Activities: &script{answers: answers{"a": fails, "ok": func(context.Context, activities.Request) (any, error) { return object{"x": secret}, nil }}}, Logger: log.logger(slog.LevelDebug)}
		r := newRunner(t, store, o)
		failing := workflow(t, "w", []string{startNode(), tool("ok"), tool("a", `"retry":{"max_attempts":2,"initial_interval":"1m"}`), endNode()}, "s ok", "ok a", "a e")
		if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: failing, Input: object{"in": secret}, Wait: waitFor(0)}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		closeRunner(t, r)
		r = newRunner(t, store, o)
		if _, err := r.Recover(t.Context(), graph.RecoverRequest{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		wantStatus(t, settled(t, r, "r"), machine.Failed)
		wantStatus(t, start(t, r, "good", linear(t, "x", "ok"), nil), machine.Completed)
		start(t, r, "gone", workflow(t, "i", []string{startNode(), interrupt("q"), endNode()}, "s q", "q e"), nil)
		if _, err := r.Cancel(t.Context(), graph.CancelRequest{ExecutionID: "gone", Reason: secret}); err != nil {
			t.Fatal(err)
		}
		host, err := graph.New(store, graph.Options{DefaultMode: machine.HostMediated, Logger: log.logger(slog.LevelDebug)})
		if err != nil {
			t.Fatal(err)
		}
		start(t, host, "hosted", linear(t, "x", "b"), nil)
		if _, err := host.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "hosted", NodeID: "b", Error: "the host said no", Code: "NO"}); err != nil {
			t.Fatal(err)
		}
		closeRunner(t, host)
		synctest.Wait() // lines are written behind what they tell
		for line, want := range map[string]int{
			`level=DEBUG msg="attempt begun" execution_id=r node_id=a attempt=1`:                                                         1,
			`level=DEBUG msg="attempt ended" execution_id=r node_id=a attempt=2`:                                                         1,
			`level=WARN msg="attempt failed" execution_id=r node_id=a attempt=1 code=BROKEN`:                                             1,
			`level=WARN msg="attempt failed" execution_id=r node_id=a attempt=2 code=BROKEN next_attempt=none error="no luck`:            1,
			`level=WARN msg="attempt failed" execution_id=hosted node_id=b attempt=1 code=NO next_attempt=none error="the host said no"`: 1,
			`level=ERROR msg="run ended" execution_id=r outcome=failed code=BROKEN error=`:                                               1,
			`level=ERROR msg="run ended" execution_id=hosted outcome=failed code=NO`:                                                     1,
			`level=INFO msg="run ended" execution_id=good outcome=completed`:                                                             1,
			`level=INFO msg="run ended" execution_id=gone outcome=cancelled`:                                                             1,
			`msg="attempt failed"`: 3,
			`msg="run ended"`:      4,
			secret:                 0,
		} {
			if n := strings.Count(log.String(), line); n != want {
				t.Errorf("%d times, want %d: %s\n%s", n, want, line, &log)
			}
		}
	})
}
