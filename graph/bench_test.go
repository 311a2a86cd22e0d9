package graph_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/history/historysql"
)

// disk opens a database with the default durability: each commit is on the disk before it returns.
func disk(t testing.TB) history.Store {
	t.Helper()
	store, err := historysql.Open(t.Context(), filepath.Join(t.TempDir(), "runs.db"), historysql.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

// endless is a workflow that visits a tool call until n is at least the given number of visits.
func endless(t testing.TB, visits int) *definition.Document {
	t.Helper()
	return workflow(t, "endless", []string{startNode(), tool("a"),
		fmt.Sprintf(`{"id":"sw","type":"switch","config":{"cases":[{"when":".n < %d","target":"a"}],"default":"e"}}`, visits), endNode()}, "s a", "a sw")
}

// BenchmarkNodesInProcess runs linear workflows of 100 tool calls: one commit a node.
func BenchmarkNodesInProcess(b *testing.B) {
	ids := make([]string, 100)
	for i := range ids {
		ids[i] = fmt.Sprintf("n%d", i)
	}
	for name, open := range map[string]func(testing.TB) history.Store{
		"disk": disk, "memory": func(testing.TB) history.Store { return historymem.New() },
	} {
		b.Run(name, func(b *testing.B) {
			r := newRunner(b, open(b), graph.Options{Activities: activities.Stub{}})
			d := linear(b, "lin", ids...)
			for b.Loop() {
				if run := start(b, r, "", d, nil); run.Status != machine.Completed {
					b.Fatalf("%s: %s", run.Status, run.Error)
				}
			}
			b.ReportMetric(float64(b.N)*float64(len(ids))/b.Elapsed().Seconds(), "nodes/s")
		})
	}
}

// BenchmarkGrowth reports the bytes of database that an in-process node takes, for a small state and execution ids of 8
// and of 36 characters.
func BenchmarkGrowth(b *testing.B) {
	ids := make([]string, 100)
	for i := range ids {
		ids[i] = fmt.Sprintf("n%d", i)
	}
	for _, length := range []int{8, 36} {
		b.Run(fmt.Sprintf("id=%d", length), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "runs.db")
			store, err := historysql.Open(b.Context(), path, historysql.Options{})
			if err != nil {
				b.Fatal(err)
			}
			r := newRunner(b, store, graph.Options{Activities: activities.Stub{}})
			d := linear(b, "lin", ids...)
			runs := 0
			for b.Loop() {
				runs++
				start(b, r, fmt.Sprintf("%0*d", length, runs), d, object{"n": 1})
			}
			closeRunner(b, r)
			if err := store.Close(); err != nil {
				b.Fatal(err)
			}
			file, err := os.Stat(path)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(file.Size())/float64(runs*len(ids)), "B/node")
		})
	}
}

// BenchmarkSubmit measures one submit of a host-mediated run at several lengths of its history, with the machine at
// hand and after a restart.
func BenchmarkSubmit(b *testing.B) {
	for _, length := range []int64{10, 100, 1000, 10_000} {
		b.Run(fmt.Sprintf("records=%d", length), func(b *testing.B) {
			store := disk(b)
			o := graph.Options{DefaultMode: machine.HostMediated, MaxVisits: 1 << 30}
			r := newRunner(b, store, o)
			d := endless(b, 1<<30)
			n := 0
			next := func(r *graph.Runner, id string) *graph.Run {
				n++
				return submit(b, r, id, "a", object{"n": n})
			}
			id := start(b, r, "", d, object{"n": 0}).ExecutionID
			for next(r, id).Seq < length {
			}
			var took []time.Duration
			for b.Loop() {
				begun := time.Now()
				next(r, id)
				took = append(took, time.Since(begun))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "median-µs")
			begun := time.Now()
			next(newRunner(b, store, o), id)
			b.ReportMetric(float64(time.Since(begun).Microseconds()), "after-restart-µs")
		})
	}
}

func BenchmarkStart(b *testing.B) {
	r := newRunner(b, disk(b), graph.Options{DefaultMode: machine.HostMediated})
	d := linear(b, "lin", "a")
	for b.Loop() {
		start(b, r, "", d, object{"in": 1})
	}
}

func BenchmarkStatus(b *testing.B) {
	r := newRunner(b, disk(b), graph.Options{DefaultMode: machine.HostMediated})
	d := linear(b, "lin", "a")
	start(b, r, "waits", d, object{"in": 1})
	start(b, r, "done", d, object{"in": 1})
	submit(b, r, "done", "a", nil)
	for _, id := range []string{"waits", "done"} {
		b.Run(id, func(b *testing.B) {
			for b.Loop() {
				status(b, r, id)
			}
		})
	}
}

// BenchmarkAppend is what the store alone needs for a commit of the size that a submit makes.
func BenchmarkAppend(b *testing.B) {
	store := disk(b)
	r := newRunner(b, store, graph.Options{DefaultMode: machine.HostMediated, MaxVisits: 1 << 30})
	d := endless(b, 1<<30)
	start(b, r, "model", d, object{"n": 0})
	before := int64(len(records(b, store, "model")))
	submit(b, r, "model", "a", object{"n": 1})
	all := records(b, store, "model")
	head, batch := all[:before], all[before:]
	for _, rs := range [][]history.Record{head, batch} {
		for i := range rs {
			rs[i].Raw = nil
		}
	}
	e := history.Project("raw", head)
	if err := store.Append(b.Context(), history.Batch{ExecutionID: "raw", Records: head, Execution: e}); err != nil {
		b.Fatal(err)
	}
	_, position, err := store.Position(b.Context(), "model")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		expected := e.Seq
		for i := range batch {
			batch[i].Seq = 0
			e.Apply(batch[i])
		}
		if err := store.Append(b.Context(), history.Batch{ExecutionID: "raw", ExpectedSeq: expected, Records: batch, Execution: e, Position: position}); err != nil {
			b.Fatal(err)
		}
	}
}
