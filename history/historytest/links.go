package historytest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// linked makes the batch that begins a run with a link.
func linked(t *testing.T, id string, l history.Link, ended bool) history.Batch {
	t.Helper()
	all := lines(Start("w", "in_process"))
	if ended {
		all = lines(Start("w", "in_process"), End())
	}
	b := NewTrace(t, id).Batch(all...)
	b.Link = &l
	return b
}

func links(t *testing.T, s history.Store) {
	ctx := t.Context()
	show := func(id string) string {
		t.Helper()
		var out []string
		for _, l := range got[[]history.Link](t)(s.Links(ctx, id)) {
			out = append(out, fmt.Sprintf("%s %s>%s@%d %q %s %d", l.Kind, l.From, l.To, l.Seq, l.Actor, l.Phase, l.At.UnixMilli()-Begin.UnixMilli()))
		}
		return strings.Join(out, "; ")
	}
	same := func(id, want string) {
		t.Helper()
		if found := show(id); found != want {
			t.Errorf("links of %s: %s, want %s", id, found, want)
		}
	}
	endsNotifying(t, s, "a")
	must(t, s.Append(ctx, linked(t, "f", history.Link{From: "a", Kind: history.Forked, Seq: 3, At: Begin}, true)))
	must(t, s.Append(ctx, linked(t, "r", history.Link{From: "a", Kind: history.Retried, Seq: 4, Actor: "ann (command)", At: Begin.Add(time.Second)}, true)))
	want := `fork a>f@3 "" completed 0; retry a>r@4 "ann (command)" completed 1000`
	same("a", want)
	same("r", `retry a>r@4 "ann (command)" completed 1000`)
	same("nobody", "")

	// A completed retry prevents another one, a fork does not, and Again allows it.
	second := history.Link{From: "a", Kind: history.Retried, Seq: 4, At: Begin.Add(2 * time.Second)}
	err := s.Append(ctx, linked(t, "r2", second, false))
	if !errors.Is(err, problem.AlreadyRetried) || !strings.Contains(err.Error(), `"r"`) {
		t.Errorf("a second retry: %v", err)
	}
	if records := got[[]history.Record](t)(s.Read(ctx, "r2", 1, 0)); len(records) > 0 {
		t.Error("a refused retry has begun")
	}
	same("a", want)
	second.Again = true
	must(t, s.Append(ctx, linked(t, "r2", second, false)))
	same("a", want+`; retry a>r2@4 "" running 2000`)
	if p, ok := s.(history.Pruner); ok {
		got[history.PrunePage](t)(p.Prune(ctx, history.PruneQuery{Before: Begin.Add(time.Hour), Limit: 1, Phases: []history.Phase{history.PhaseCompleted}}))
		if found := show("a"); strings.Count(found, ">") == 3 {
			t.Errorf("links of runs that are deleted: %s", found)
		}
	}
}

func oneRetry(t *testing.T, s history.Store) {
	endsNotifying(t, s, "a")
	var begun atomic.Int64
	var all sync.WaitGroup
	for i := range 8 {
		b := linked(t, fmt.Sprintf("r%d", i), history.Link{From: "a", Kind: history.Retried, Seq: 1, At: Begin}, false)
		all.Go(func() {
			switch err := s.Append(t.Context(), b); {
			case err == nil:
				begun.Add(1)
			case !errors.Is(err, problem.AlreadyRetried):
				t.Error(err)
			}
		})
	}
	all.Wait()
	if begun.Load() != 1 {
		t.Errorf("%d retries have begun", begun.Load())
	}
}
