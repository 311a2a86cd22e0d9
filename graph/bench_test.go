package graph_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
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

// lengths of histories, the longest of which are left out of short runs.
func lengths(all ...int64) []int64 {
	if testing.Short() {
		return slices.DeleteFunc(all, func(n int64) bool { return n > 1000 })
	}
	return all
}

// hostRun makes a database with the host-mediated run "long" of at least that many records, without waiting for the
// disk, and gives its path and the number of submits.
func hostRun(b *testing.B, length int64) (path string, n int) {
	b.Helper()
	path = filepath.Join(b.TempDir(), "long.db")
	store := open(b, path, historysql.Normal)
	r, err := graph.New(store, hostOptions)
	if err != nil {
		b.Fatal(err)
	}
	run := start(b, r, "long", endless(b, 1<<30), object{"n": 0})
	for ; run.Seq < length; n++ {
		run = submit(b, r, "long", "a", object{"n": n})
	}
	if err := errors.Join(r.Close(), store.Close()); err != nil {
		b.Fatal(err)
	}
	return path, n
}

var hostOptions = graph.Options{DefaultMode: machine.HostMediated, MaxVisits: 1 << 30}

func open(b *testing.B, path, synchronous string) *historysql.Store {
	b.Helper()
	store, err := historysql.Open(b.Context(), path, historysql.Options{Synchronous: synchronous})
	if err != nil {
		b.Fatal(err)
	}
	return store
}

// BenchmarkSubmit measures one submit of a host-mediated run at several lengths of its history, with the machine at
// hand and after a restart; beside it, in turns, one commit of the driver's own.
func BenchmarkSubmit(b *testing.B) {
	for _, length := range lengths(10, 100, 1000, 10_000, 100_000) {
		b.Run(fmt.Sprintf("records=%d", length), func(b *testing.B) {
			path, n := hostRun(b, length)
			store := open(b, path, historysql.Full)
			defer store.Close()
			next := func(r *graph.Runner) {
				n++
				submit(b, r, "long", "a", object{"n": n})
			}
			first := newRunner(b, store, hostOptions)
			begun := time.Now()
			next(first)
			afterRestart := time.Since(begun)
			raw := openRaw(b)
			var took, rawTook []time.Duration
			for b.Loop() {
				begun := time.Now()
				next(first)
				took = append(took, time.Since(begun))
				begun = time.Now()
				raw.commit(b)
				rawTook = append(rawTook, time.Since(begun))
			}
			slices.Sort(took)
			slices.Sort(rawTook)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "median-µs")
			b.ReportMetric(float64(rawTook[len(rawTook)/2].Microseconds()), "raw-median-µs")
			b.ReportMetric(0, "ns/op") // an iteration is both, so its time says nothing
			b.ReportMetric(float64(afterRestart.Microseconds()), "after-restart-µs")
		})
	}
}

// BenchmarkColdResume measures what a new process pays to go on with a long run: opening the file, making a Runner, and
// the first call. The host's run is submitted to. The run in process was killed 60 commits after its newest position, so
// that its tail is read again, and is asked for its status.
func BenchmarkColdResume(b *testing.B) {
	for _, length := range lengths(100, 1000, 100_000) {
		b.Run(fmt.Sprintf("records=%d/host", length), func(b *testing.B) {
			path, n := hostRun(b, length)
			for b.Loop() {
				n++
				cold(b, path, hostOptions, func(r *graph.Runner) { submit(b, r, "long", "a", object{"n": n}) })
			}
		})
		b.Run(fmt.Sprintf("records=%d/in_process", length), func(b *testing.B) {
			path := killedRun(b, length)
			for b.Loop() {
				cold(b, path, graph.Options{}, func(r *graph.Runner) {
					if run := status(b, r, "long"); run.Status != machine.Running || run.Seq < length {
						b.Fatalf("%s at %d", run.Status, run.Seq)
					}
				})
			}
		})
	}
}

func cold(b *testing.B, path string, o graph.Options, call func(r *graph.Runner)) {
	store := open(b, path, historysql.Full)
	r, err := graph.New(store, o)
	if err != nil {
		b.Fatal(err)
	}
	call(r)
	b.StopTimer()
	if err := errors.Join(r.Close(), store.Close()); err != nil {
		b.Fatal(err)
	}
	b.StartTimer()
}

// killedRun makes a database as a killed process leaves it, in the middle of the run "long" of at least that many
// records, and gives its path.
func killedRun(b *testing.B, length int64) string {
	b.Helper()
	path, left := filepath.Join(b.TempDir(), "long.db"), filepath.Join(b.TempDir(), "left.db")
	store := open(b, path, historysql.Normal)
	var seq, calls int64
	stuck := make(chan struct{})
	r, err := graph.New(store, graph.Options{
		MaxVisits: 1 << 30, DefaultMode: machine.InProcess,
		OnRecord: func(e graph.RecordEvent) { seq += int64(len(e.Records)) },
		Activities: activities.ExecutorFunc(func(ctx context.Context, req activities.Request) (activities.Result, error) {
			if calls++; seq >= length && calls%64 == 60 {
				close(stuck)
				<-ctx.Done()
				return activities.Result{}, ctx.Err()
			}
			return activities.Stub{}.Execute(ctx, req)
		}),
	})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := r.Start(b.Context(), graph.StartRequest{ExecutionID: "long", Definition: endless(b, 1<<30), Input: object{"n": 0}, Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
		b.Fatal(err)
	}
	<-stuck
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(path + suffix)
		if err == nil {
			err = os.WriteFile(left+suffix, data, 0o600)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	if err := errors.Join(r.Close(), store.Close()); err != nil {
		b.Fatal(err)
	}
	return left
}

// BenchmarkMemory reports the heap after a tenth of the runs and after all: -benchtime=100000x makes a hundred thousand,
// each of three nodes.
func BenchmarkMemory(b *testing.B) {
	store := open(b, filepath.Join(b.TempDir(), "runs.db"), historysql.Normal)
	defer store.Close()
	r := newRunner(b, store, graph.Options{Activities: activities.Stub{}})
	d := linear(b, "lin", "a", "b", "c")
	report := func(name string) {
		runtime.GC()
		runtime.GC() // the second one empties what the first kept for pools
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		b.ReportMetric(float64(m.HeapAlloc)/1024, name)
	}
	for i := range b.N {
		start(b, r, "", d, object{"in": i})
		if i == b.N/10 {
			report("KiB-at-a-tenth")
		}
	}
	report("KiB-at-the-end")
}

func BenchmarkStart(b *testing.B) {
	r := newRunner(b, disk(b), graph.Options{DefaultMode: machine.HostMediated})
	d := linear(b, "lin", "a")
	for b.Loop() {
		start(b, r, "", d, object{"in": 1})
	}
}

// BenchmarkStatus asks for the status of a run that waits, of one that has ended, and of one with a long history.
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
	for _, length := range lengths(1000, 100_000) {
		b.Run(fmt.Sprintf("records=%d", length), func(b *testing.B) {
			path, _ := hostRun(b, length)
			store := open(b, path, historysql.Full)
			defer store.Close()
			r := newRunner(b, store, hostOptions)
			for b.Loop() {
				status(b, r, "long")
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
