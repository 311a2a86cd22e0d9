package graph_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// TestTheTimeoutCountsRests: an attempt that rests until a time, or for an answer, fails when its timeout is over, and one that another
// process has taken over in between does not get more time.
func TestTheTimeoutCountsRests(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func() activities.End{
		"rest": func() activities.End { return activities.End{Until: time.Now().Add(time.Hour)} },
		"question": func() activities.End {
			return activities.End{Question: &activities.Question{Key: "q", Prompt: "Well?"}}
		},
		"work": nil, // goes on for too long, in two processes
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := historymem.New()
				o := graph.Options{Work: graph.WorkAll, Activities: journaled(func(ctx context.Context, j activities.Journal) (activities.End, error) {
					if err := j.Record(ctx, activities.Step{Key: "a", Kind: "made"}); err != nil {
						return activities.End{}, err
					}
					if end != nil {
						return end(), nil
					}
					<-ctx.Done()
					return activities.End{}, ctx.Err()
				})}
				begun := time.Now()
				r, err := graph.New(store, o)
				if err != nil {
					t.Fatal(err)
				}
				start(t, r, "r", clerical(t, `"timeout":"10m"`), nil)
				time.Sleep(6 * time.Minute)
				closeRunner(t, r)
				r = newRunner(t, store, o)
				run, err := r.Status(t.Context(), graph.StatusRequest{ExecutionID: "r", Wait: &graph.Wait{Limit: time.Hour}})
				for err == nil && !run.Status.Terminal() && time.Since(begun) < time.Hour {
					time.Sleep(time.Second)
					run, err = r.Status(t.Context(), graph.StatusRequest{ExecutionID: "r"})
				}
				if err != nil || run.Status != machine.Failed || run.ErrorCode != string(problem.Timeout) {
					t.Fatalf("%v %+v", err, run)
				}
				if took := run.UpdatedAt.Sub(begun); took < 10*time.Minute || took > 10*time.Minute+5*time.Second {
					t.Errorf("it has failed after %v", took)
				}
			})
		})
	}
}
