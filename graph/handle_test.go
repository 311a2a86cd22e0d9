package graph_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// TestAFailedRunIsHandled: by a retry that completes, or by somebody; both runs name each other, and a file keeps the mark.
func TestAFailedRunIsHandled(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{})
	ctx := graph.WithActor(t.Context(), history.Actor{Name: "ann", Via: "desk"})
	for _, id := range []string{"retried", "marked", "open"} {
		start(t, r, id, linear(t, "lin", "a"), nil)
		run, err := r.SubmitActivity(ctx, graph.SubmitRequest{ExecutionID: id, NodeID: "a", Error: "down"})
		if err != nil || run.Status != machine.Failed {
			t.Fatal(run, err)
		}
	}
	unhandled := func(want string) {
		t.Helper()
		page, err := r.List(ctx, history.ListQuery{Phase: history.PhaseFailed, Unhandled: true})
		var ids []string
		for i := range page.Executions {
			ids = append(ids, page.Executions[i].ID)
		}
		slices.Sort(ids)
		if got := strings.Join(ids, " "); got != want || err != nil {
			t.Errorf("unhandled: %s, %v, want %s", got, err, want)
		}
	}
	lineage := func(id string) string {
		t.Helper()
		page, err := r.List(ctx, history.ListQuery{})
		if err != nil {
			t.Fatal(err)
		}
		show := func(l *history.Lineage) string {
			text := "of " + l.RetryOf
			for _, retry := range l.Retries {
				text += fmt.Sprintf(", by %s %s", retry.To, retry.Phase)
			}
			if h := l.Handled; h != nil {
				text += fmt.Sprintf(", handled %q %q %q", h.Note, h.Retry, h.Actor)
			}
			return text
		}
		alone := show(&status(t, r, id).Lineage)
		for i := range page.Executions {
			if e := &page.Executions[i]; e.ID == id && show(&e.Lineage) != alone {
				t.Errorf("%s: %s in the list, %s in the status", id, show(&e.Lineage), alone)
			}
		}
		return alone
	}
	want := func(id, want string) {
		t.Helper()
		if got := lineage(id); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
	unhandled("marked open retried")

	if _, err := r.Fork(ctx, graph.ForkRequest{ExecutionID: "retried", NewExecutionID: "second"}); err != nil {
		t.Fatal(err)
	}
	want("retried", "of , by second awaiting_activity")
	want("second", "of retried")
	unhandled("marked open retried")
	submit(t, r, "second", "a", object{"ok": true})
	want("retried", `of , by second completed, handled "" "second" ""`)
	unhandled("marked open")

	if err := r.Handle(ctx, graph.HandleRequest{ExecutionID: "marked", Note: "sent by hand"}); err != nil {
		t.Fatal(err)
	}
	want("marked", `of , handled "sent by hand" "" "ann (desk)"`)
	unhandled("open")
	var file bytes.Buffer
	if err := r.Export(ctx, "marked", graph.ExportOptions{}, &file); err != nil {
		t.Fatal(err)
	}
	other, _ := host(t, graph.Options{})
	if _, err := other.Import(ctx, bytes.NewReader(file.Bytes())); err != nil {
		t.Fatal(err)
	}
	if h := status(t, other, "marked").Lineage.Handled; h == nil || h.Note != "sent by hand" || h.Actor != "ann (desk)" || h.At.IsZero() {
		t.Errorf("after the import: %+v", h)
	}
	if err := r.Handle(ctx, graph.HandleRequest{ExecutionID: "marked", Undo: true}); err != nil {
		t.Fatal(err)
	}
	want("marked", "of ")
	unhandled("marked open")

	unchanged(t, store, func() {
		wantCode(t, r.Handle(ctx, graph.HandleRequest{ExecutionID: "second", Note: "n"}), problem.ValidationError)
		wantCode(t, r.Handle(ctx, graph.HandleRequest{ExecutionID: "open", Note: " "}), problem.ValidationError)
		wantCode(t, r.Handle(ctx, graph.HandleRequest{ExecutionID: "nobody", Note: "n"}), problem.ExecutionNotFound)
	})
}
