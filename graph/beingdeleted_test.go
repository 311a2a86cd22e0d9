package graph_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// halfDeleted is a store in which one run is being deleted: rows of it are left, so that its id is taken, and it counts as not
// there.
type halfDeleted struct {
	history.Store
	id   string
	over atomic.Bool
}

func (s *halfDeleted) Execution(ctx context.Context, id string) (history.Execution, error) {
	if id == s.id && !s.over.Load() {
		return history.Execution{}, history.BeingDeleted(id)
	}
	return s.Store.Execution(ctx, id)
}

func (s *halfDeleted) Append(ctx context.Context, b history.Batch) error {
	if b.ExecutionID == s.id && !s.over.Load() {
		return b.Conflict()
	}
	return s.Store.Append(ctx, b)
}

func (s *halfDeleted) Import(ctx context.Context, i history.Import) error {
	return s.Store.(history.Importer).Import(ctx, i)
}

// TestARunThatIsBeingDeleted: every call about such a run, and every one that would begin another under its id, says that it
// is being deleted and what finishes that.
func TestARunThatIsBeingDeleted(t *testing.T) {
	t.Parallel()
	store := historymem.New()
	before := newRunner(t, store, graph.Options{Activities: &script{}})
	d := linear(t, "lin", "a")
	start(t, before, "r", d, nil)
	other := start(t, before, "other", d, nil)
	var file bytes.Buffer
	if err := graph.Export(t.Context(), store, "r", graph.ExportOptions{Now: time.Now()}, &file); err != nil {
		t.Fatal(err)
	}
	half := &halfDeleted{Store: store, id: "r"}
	r := newRunner(t, half, graph.Options{Activities: &script{}})
	ctx := t.Context()
	for name, call := range map[string]func() error{
		"status":  func() error { _, err := r.Status(ctx, graph.StatusRequest{ExecutionID: "r"}); return err },
		"history": func() error { _, err := r.History(ctx, graph.HistoryRequest{ExecutionID: "r"}); return err },
		"start":   func() error { _, err := r.Start(ctx, graph.StartRequest{ExecutionID: "r", Definition: d}); return err },
		"start, or the existing run": func() error {
			_, err := r.Start(ctx, graph.StartRequest{ExecutionID: "r", Definition: d, AllowExisting: true})
			return err
		},
		"submit": func() error {
			_, err := r.SubmitActivity(ctx, graph.SubmitRequest{ExecutionID: "r", NodeID: "a", OK: true})
			return err
		},
		"resume": func() error {
			_, err := r.Resume(ctx, graph.ResumeRequest{ExecutionID: "r", Payload: object{}})
			return err
		},
		"signal": func() error { _, err := r.Signal(ctx, graph.SignalRequest{ExecutionID: "r", Name: "go"}); return err },
		"cancel": func() error { _, err := r.Cancel(ctx, graph.CancelRequest{ExecutionID: "r"}); return err },
		"fork":   func() error { _, err := r.Fork(ctx, graph.ForkRequest{ExecutionID: "r", Seq: 1}); return err },
		"fork onto it": func() error {
			_, err := r.Fork(ctx, graph.ForkRequest{ExecutionID: "other", Seq: other.Seq, NewExecutionID: "r"})
			return err
		},
		"export": func() error { return graph.Export(ctx, half, "r", graph.ExportOptions{Now: time.Now()}, io.Discard) },
		"import": func() error { _, err := graph.Import(ctx, half, bytes.NewReader(file.Bytes())); return err },
	} {
		p, ok := problem.As(call())
		if !ok || p.Code != problem.DeletionUnfinished || p.At.ExecutionID != "r" || !strings.Contains(p.Message, "is being deleted") ||
			!strings.Contains(p.Hint, "Runner.Prune") {
			t.Errorf("%s: got %+v", name, p)
		}
	}
}

// TestASubworkflowWhoseIDIsBeingDeleted: a run that is to begin a subworkflow under an id of which rows are left is not
// failed for that; the subworkflow begins once they are gone.
func TestASubworkflowWhoseIDIsBeingDeleted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		half := &halfDeleted{Store: historymem.New(), id: "p:sub:v"}
		r := newRunner(t, half, graph.Options{Activities: &script{}, Work: graph.WorkAll})
		d := family(t, r, []string{startNode(), tool("a"), endNode()}, "s a", "a e")
		if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "p", Definition: d, Wait: graph.Wait{Limit: time.Minute}}); err != nil {
			t.Fatal(err)
		}
		wantStatus(t, status(t, r, "p"), machine.Running)
		half.over.Store(true)
		time.Sleep(10 * time.Minute) // of the bubble: the lease runs out, and the run is taken over
		wantStatus(t, status(t, r, "p"), machine.Completed)
	})
}
