package conformance_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// Power cuts. A process runs every example over real files, under strace, and says beside them what was acknowledged to it. Its system
// calls are then made again on a model of a disk (powercut_disk_test.go), which is cut off before one of them. What may be left of the
// files is opened: it must hold every acknowledged record, nothing but the beginning of each run's records, and no damage; and the run,
// driven on by the next process, must end as it did without the cut, performing nothing whose outcome is recorded.
//
// With Options.Synchronous Normal, the newest batches may be lost, acknowledged or not. All else holds.

// powerRun is what a case did, and where its operations are in the trace.
type powerRun struct {
	powerCase
	path    string // of the database, in the folder disk
	disk    string
	number  int
	ops     []diskOp
	first   int // the number of its first operation in the trace
	given   map[string]object
	keys    map[string]bool
	records map[string][]history.Record
	run     *view.Run
}

// tracedWorker runs a test of this binary under strace, as a process that works in the folder root.
func tracedWorker(t *testing.T, worker string) (root string, ops []diskOp) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short leaves out what starts processes")
	}
	if err := exec.CommandContext(t.Context(), "strace", "-y", "--seccomp-bpf", "-f", "-o", os.DevNull, "true").Run(); err != nil {
		t.Skipf("strace tells what happens to the files, and does not run here: %v", err)
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err == nil {
		err = os.Mkdir(powerDisk(root), 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+worker+"$")
	cmd.Env = append(os.Environ(), powerFolder+"="+root)
	return root, traced(t, powerDisk(root), powerMarks(root), cmd)
}

// ofCase returns what a case did, and where it begins in the trace.
func ofCase(ops []diskOp, name string) (of []diskOp, first int) {
	first = slices.IndexFunc(ops, func(op diskOp) bool { return op.mark.what == "case" && op.mark.name == name })
	of = ops[first+1:]
	if next := slices.IndexFunc(of, func(op diskOp) bool { return op.mark.what == "case" }); next >= 0 {
		of = of[:next]
	}
	return of, first
}

// tracedRuns runs every case under strace.
func tracedRuns(t *testing.T) []*powerRun {
	t.Helper()
	root, ops := tracedWorker(t, "TestPowerCutWorker")
	given := map[int]map[string]object{}
	text, err := os.ReadFile(filepath.Join(root, "given.json"))
	if err == nil {
		err = json.Unmarshal(text, &given)
	}
	if err != nil {
		t.Fatal(err)
	}
	var runs []*powerRun
	for number, p := range powerCases(t) {
		w := &powerRun{powerCase: p, number: number, path: powerFile(powerDisk(root), number), disk: powerDisk(root), given: given[number], keys: map[string]bool{}}
		w.ops, w.first = ofCase(ops, p.name())
		for _, op := range w.ops {
			if op.mark.what == "perform" {
				w.keys[op.mark.name] = true
			}
		}
		inBubble(t, func(t *testing.T) { w.outcome(t) })
		runs = append(runs, w)
	}
	return runs
}

// outcome reads how the run has ended.
func (w *powerRun) outcome(t *testing.T) {
	store, err := openPowered(t, w.path, "first", time.Now(), historysql.Normal)
	if err != nil {
		t.Fatal(err)
	}
	x := newTrial(t, w.c, crashMode{w.mode, false}, store)
	defer x.closeStore()
	r := x.runner(x.fault)
	defer x.close(r)
	if w.run, err = r.Status(t.Context(), graph.StatusRequest{ExecutionID: crashRun}); err != nil {
		t.Fatal(err)
	}
	w.records = map[string][]history.Record{}
	for id := range x.executions() {
		w.records[id] = x.records(id)
	}
	if w.mode == machine.InProcess && (w.run.Status != machine.Completed || !jsonvalue.Equal(w.run.Result, w.c.result)) {
		t.Errorf("%s: %s %s, result %s, want %s", w.name(), w.run.Status, w.run.Error, jsonvalue.Canonical(w.run.Result), jsonvalue.Canonical(w.c.result))
	}
}

// TestPowerCut: after a power cut at any moment, everything acknowledged is there, and every run goes on to the same end. The short
// form cuts one run before every sixth of its operations, and the others before fewer.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	runs := tracedRuns(t)
	var cuts, images, misled atomic.Int64
	began, seconds := time.Now(), time.Duration(soak.Setting("SOAK_SECONDS", 60))*time.Second
	for round := 0; round == 0 || soak.On() && time.Since(began) < seconds && !t.Failed(); round++ {
		t.Run(fmt.Sprint("round ", round), func(t *testing.T) {
			for i, w := range runs {
				t.Run(w.name(), func(t *testing.T) {
					t.Parallel()
					limit := soak.Size(2, 1, 40)
					if i == 0 {
						limit = soak.Size(len(w.ops)/6, 4, len(w.ops))
					}
					tried := 0
					n := w.cuts(limit, soak.Size(1, 1, 2), uint64(soak.Setting("SOAK_SEED", 1)+round), func(p *powerCut) {
						tried++
						if p.check(t) {
							misled.Add(1)
						}
					})
					cuts.Add(int64(n))
					images.Add(int64(tried))
				})
			}
		})
	}
	t.Logf("%d runs, %d cuts, %d images, %d of them refused", len(runs), cuts.Load(), images.Load(), misled.Load())
	t.Run("a flush is missing", func(t *testing.T) { missingFlushes(t, runs) })
}

// missingFlushes takes single flushes out of traces, so that the images of a cut lack something: the checks above must notice.
func missingFlushes(t *testing.T, runs []*powerRun) {
	for _, w := range runs[:2] { // in the second, the WAL is copied to the database while the run is under way
		struck, written := map[string]int{}, map[string]bool{}
		for i, op := range w.ops {
			unflushed := written[op.path]
			written[op.path] = op.kind != opFlush
			if op.kind != opFlush || op.path != w.path && op.path != w.path+"-wal" {
				continue
			}
			what := strings.TrimPrefix(op.path, filepath.Dir(w.path))
			if struck[what] == soak.Size(100, 3, 100) {
				continue
			}
			next := i + 1
			for next < len(w.ops) && (w.ops[next].kind != opFlush || w.ops[next].path != op.path) {
				next++
			}
			acknowledged := slices.ContainsFunc(w.ops[i:next], func(op diskOp) bool { return op.mark.what == "ack" })
			if begun := slices.IndexFunc(w.ops, func(op diskOp) bool { return op.mark.what == "begun" }); !unflushed || !acknowledged || i < begun {
				continue
			}
			d := newDisk(w.disk)
			for n, op := range w.ops[:next] {
				if n != i {
					d.apply(w.first+1+n, op)
				}
			}
			p := &powerCut{powerRun: w, at: next, told: w.told(next), image: d.image(nothing, rand.New(rand.NewPCG(1, uint64(i))))}
			var faults []string
			inBubble(t, func(t *testing.T) { faults = p.faults(t) })
			if len(faults) == 0 {
				t.Errorf("%s: the flush of %s, operation %d of %d, is missing until %d, and nobody notices", w.name(), what, i, len(w.ops), next)
			}
			struck[what]++
		}
		t.Logf("%s: flushes without which something is lost: %v", w.name(), struck)
		if struck["/runs.db-wal"] < 3 || w.filled && struck["/runs.db"] == 0 {
			t.Errorf("%s: %v", w.name(), struck)
		}
	}
}
