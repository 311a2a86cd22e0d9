package historytest

import (
	"fmt"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
)

// benchID is as long as the random ids of runs.
const benchID = "0f8fad5b-d9cb-469f-a165-70867728950e"

// Benchmark measures the most common operations of runs: appending one record and an activity's six, with and without a position; and
// reading the tail and the projection.
func Benchmark(b *testing.B, open Open) {
	b.Run("append 1", func(b *testing.B) {
		benchAppend(b, open(b, nil), []string{"E NodeScheduled n12"}, nil)
	})
	b.Run("append 6", func(b *testing.B) {
		benchAppend(b, open(b, nil), Node("n12", "n13"), nil)
	})
	b.Run("append 6 with position", func(b *testing.B) {
		benchAppend(b, open(b, nil), Node("n12", "n13"), func(h *history.Batch) { h.Position = make([]byte, 600) })
	})
	b.Run("append 6 as owner", func(b *testing.B) {
		s := open(b, nil)
		must(b, s.Renew(b.Context(), "owner-0f8fad5b", time.Hour))
		benchAppend(b, s, Node("n12", "n13"), func(h *history.Batch) { h.Owner = "owner-0f8fad5b" })
	})
	b.Run("read tail", func(b *testing.B) {
		s := open(b, nil)
		x := NewTrace(b, benchID)
		x.Append(s, Start("w", "host_mediated")...)
		for range 200 {
			x.Append(s, Node("n12", "n13")...)
		}
		b.ReportAllocs()
		for b.Loop() {
			if rs, err := s.Read(b.Context(), benchID, x.Execution.Seq-5, 0); err != nil || len(rs) != 6 {
				b.Fatal(len(rs), err)
			}
		}
	})
	b.Run("execution", func(b *testing.B) {
		s := open(b, nil)
		x := NewTrace(b, benchID)
		x.Append(s, Start("w", "host_mediated")...)
		x.Append(s, Node("begin", "n13")...)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.Execution(b.Context(), benchID); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkList measures a page of a list of a thousand and of a hundred thousand runs; short mode skips the latter.
func BenchmarkList(b *testing.B, open Open) {
	for _, runs := range []int{1000, 20_000, 100_000} {
		if runs > 1000 && testing.Short() {
			continue
		}
		b.Run(fmt.Sprintf("list of %d", runs), func(b *testing.B) { benchList(b, open(b, nil), runs) })
	}
}

func benchAppend(b *testing.B, s history.Store, lines []string, add func(h *history.Batch)) {
	x := NewTrace(b, benchID)
	x.Append(s, Start("minimal-linear", "host_mediated")...)
	h := x.Batch(lines...)
	e := x.Execution
	b.ReportAllocs()
	for b.Loop() {
		if add != nil {
			add(&h)
		}
		if err := s.Append(b.Context(), h); err != nil {
			b.Fatal(err)
		}
		// Do the work of a machine and a runner for the next batch, as cheaply as possible.
		h.ExpectedSeq = e.Seq
		for i := range h.Records {
			h.Records[i].CreatedAt = h.Records[i].CreatedAt.Add(time.Millisecond)
			e.Apply(history.Record{Kind: h.Records[i].Kind, Name: h.Records[i].Name, Payload: h.Records[i].Payload, CreatedAt: h.Records[i].CreatedAt})
		}
		h.Execution = e
	}
}

// FillRuns appends runs of seven definitions, three a millisecond from Begin on. Every tenth waits for an activity. Every fiftieth has the label
// batch, of a thousand values, and a ninth of the others the label common.
func FillRuns(t testing.TB, s history.Store, runs int) {
	t.Helper()
	add := func(i int) error {
		x := NewTrace(t, fmt.Sprintf("%08x-d9cb-469f-a165-%012d", uint32(i)*2654435761, i))
		x.Now = Begin.Add(time.Duration(i/3) * time.Millisecond)
		rest := End()
		if i%10 == 0 {
			rest = Node("begin", "t")
		}
		start := Start(fmt.Sprintf("definition-%d", i%7), "host_mediated")
		if i%50 == 0 {
			start = []string{fmt.Sprintf(`E ExecutionStarted {"workflowName":"definition-%d","title":"Run %d","labels":{"batch":"%d","stage":"test"}}`, i%7, i, i%1000)}
		} else if i%9 == 0 {
			start = []string{fmt.Sprintf(`E ExecutionStarted {"workflowName":"definition-%d","labels":{"common":"yes"}}`, i%7)}
		}
		return s.Append(t.Context(), x.Batch(append(start, rest...)...))
	}
	const writers = 16 // appends that wait at the same time share a commit
	done := make(chan error, writers)
	for first := range writers {
		go func() {
			for i := first; i < runs; i += writers {
				if err := add(i); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range writers {
		must(t, <-done)
	}
}

// benchList lists a hundred of many runs, first page and middle, with each kind of filter.
func benchList(b *testing.B, s history.Store, runs int) {
	FillRuns(b, s, runs)
	middle := history.Cursor{UpdatedAt: Begin.Add(time.Duration(runs/6) * time.Millisecond), ExecutionID: "8"}.String()
	for name, q := range map[string]history.ListQuery{
		"first page":           {Limit: 100},
		"middle":               {Limit: 100, Cursor: middle},
		"phase":                {Limit: 100, Phase: history.PhaseAwaitingActivity, Cursor: middle},
		"definition":           {Limit: 100, DefinitionName: "definition-3", Cursor: middle},
		"definition and phase": {Limit: 100, DefinitionName: "definition-3", Phase: history.PhaseCompleted},
		"updated after":        {Limit: 100, UpdatedAfter: Begin.Add(time.Duration(runs/9) * time.Millisecond)},
		"updated before":       {Limit: 100, UpdatedBefore: Begin.Add(time.Duration(runs/9) * time.Millisecond)},
		"open":                 {Limit: 100, Phases: history.OpenPhases()},
		"oldest":               {Limit: 100, Phase: history.PhaseAwaitingActivity, Oldest: true},
		"roots":                {Limit: 100, Roots: true},
		"label":                {Limit: 100, Labels: map[string]string{"batch": "50"}},
		"common label":         {Limit: 100, Labels: map[string]string{"common": "yes"}},
		"no match":             {Limit: 100, DefinitionName: "definition-x"},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := s.List(b.Context(), q); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("count of "+name, func(b *testing.B) {
			for b.Loop() {
				if _, err := s.Count(b.Context(), q, 1001); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
