package conformance_test

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/history/historysql"
)

// told is what the process was told and did before a cut.
type told struct {
	acked, definitions, performed map[string]int64
	at                            time.Time
}

// told returns what the process was told and did before an operation.
func (w *powerRun) told(before int) told {
	k := told{map[string]int64{}, map[string]int64{}, map[string]int64{}, time.Time{}}
	for _, op := range w.ops[:before] {
		m := op.mark
		if op.kind != opMark {
			continue
		}
		k.at = m.at
		switch m.what {
		case "ack":
			k.acked[m.name] = max(k.acked[m.name], m.seq)
		case "definition":
			k.definitions[m.name] = 1
		case "perform":
			k.performed[m.name] = 1
		}
	}
	return k
}

// powerCut is a cut of a run, and one of the images that it may leave.
type powerCut struct {
	*powerRun
	at    int // the number of operations before it
	told  told
	image map[string][]byte
	what  string
}

// cuts calls try with images of cuts of the run: of at most so many cuts, and so many images of each. It returns the number of cuts.
func (w *powerRun) cuts(limit, images int, seed uint64, try func(*powerCut)) (cuts int) {
	begin := 0
	if w.filled {
		begin = slices.IndexFunc(w.ops, func(op diskOp) bool { return op.mark.what == "begun" })
	}
	rng, d := rand.New(rand.NewPCG(seed, uint64(w.number))), newDisk(w.disk)
	step := spread(len(w.ops)-begin, limit)
	next := float64(begin) + rng.Float64()*(step-1)
	seen := map[[sha256.Size]byte]bool{}
	for i := range len(w.ops) + 1 {
		if float64(i) >= next {
			next += step
			cuts++
			k := w.told(i)
			for n := range images {
				how := fate(rng.IntN(int(fates)))
				p := &powerCut{w, i, k, d.image(how, rng), fmt.Sprintf("seed %d, cut before operation %d of %d, image %d (fate %d)", seed, i, len(w.ops), n, how)}
				if sum := checksum(p.image, k); !seen[sum] {
					seen[sum] = true
					try(p)
				}
			}
		}
		if i < len(w.ops) {
			d.apply(w.first+1+i, w.ops[i])
		}
	}
	return cuts
}

func checksum(image map[string][]byte, k told) (sum [sha256.Size]byte) {
	h := sha256.New()
	fmt.Fprintln(h, k.acked, k.definitions, len(k.performed))
	for _, path := range slices.Sorted(maps.Keys(image)) {
		fmt.Fprintln(h, path, len(image[path]))
		h.Write(image[path])
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// put writes the image below a folder.
func (p *powerCut) put(t *testing.T, dir string) {
	t.Helper()
	for path, content := range p.image {
		to := filepath.Join(dir, strings.TrimPrefix(path, p.disk))
		if isIndex(path) {
			content = resized(slices.Clone(content), 32<<10)
		}
		err := os.MkdirAll(filepath.Dir(to), 0o700)
		if err == nil {
			err = os.WriteFile(to, content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// examine compares what is stored after the cut with what the process was told, and with what the whole run recorded.
func (p *powerCut) examine(x *trial) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	stored := map[string]int64{}
	requested := map[string]bool{}
	for id := range x.executions() {
		records := x.records(id)
		stored[id] = int64(len(records))
		if len(records) > len(p.records[id]) {
			fault("%s has %d records, the whole run had %d", id, len(records), len(p.records[id]))
			continue
		}
		for i, r := range records {
			if got, want := recordText(id, &r), recordText(id, &p.records[id][i]); got != want {
				fault("%s: record %d is\n%s\nand was\n%s", id, i+1, got, want)
			}
			if r.Name == history.ActivityRequested {
				requested[fmt.Sprintf("%s:%s#%d.%d", id, r.Payload.NodeID, max(r.Payload.Visit, 1), max(r.Payload.Attempt, 1))] = true
			}
		}
	}
	if p.synchronous == historysql.Normal {
		return faults // the newest batches may be lost
	}
	for id, seq := range p.told.acked {
		if stored[id] < seq {
			fault("%s: record %d was acknowledged, %d are stored", id, seq, stored[id])
		}
	}
	for hash := range p.told.definitions {
		if _, err := x.store.Definition(x.t.Context(), hash); err != nil {
			fault("the definition %s was acknowledged: %v", hash, err)
		}
	}
	for key := range p.told.performed {
		if !requested[key] {
			fault("%s was performed, and its request is not stored", key)
		}
	}
	return faults
}

func recordText(id string, r *history.Record) string {
	return fmt.Sprintf("%d %s %s %s %v", r.Seq, r.Kind, r.Name, r.Text(id), r.CreatedAt)
}

// file returns the path of the database in an image that was put into dir.
func (p *powerCut) file(dir string) string {
	return filepath.Join(dir, strings.TrimPrefix(p.path, p.disk))
}

// open opens the image on a machine that started after the cut, in a bubble. The files are in dir.
func (p *powerCut) open(t *testing.T, dir string, o historysql.Options) (*trial, error) {
	booted := time.Now()
	o.Synchronous, o.Now, o.Uptime = historysql.Normal, time.Now, func() (string, time.Duration) { return "second", time.Since(booted) }
	store, err := historysql.Open(t.Context(), p.file(dir), o)
	if err != nil {
		return nil, err
	}
	return newTrial(t, p.c, crashMode{p.mode, false}, store), nil
}

// faults opens the image and returns what is wrong with it.
func (p *powerCut) faults(t *testing.T) (faults []string) {
	dir := t.TempDir()
	p.put(t, dir)
	x, err := p.open(t, dir, historysql.Options{})
	if err != nil {
		return []string{err.Error()}
	}
	defer x.closeStore()
	if _, err := x.store.(history.Verifier).Verify(t.Context(), "", false, func(f history.Finding) { faults = append(faults, f.Message) }); err != nil {
		faults = append(faults, err.Error())
	}
	return append(faults, p.examine(x)...)
}

// check opens the image, examines it, and drives the run to its end. It keeps an image that fails. See misled for the result.
func (p *powerCut) check(t *testing.T) (misled bool) {
	if t.Failed() {
		return false
	}
	dir, err := os.MkdirTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	p.put(t, dir)
	inBubble(t, func(t *testing.T) {
		time.Sleep(time.Until(p.told.at.Add(10 * time.Second)))
		misled = p.misled(t, dir)
		p.survive(t, dir)
	})
	if !t.Failed() {
		_ = os.RemoveAll(dir)
		return misled
	}
	if dir, err = os.MkdirTemp("", "powercut"); err == nil {
		p.put(t, dir)
		t.Logf("the image is in %s", dir)
	}
	return misled
}

// misled reports whether the image is refused because it holds the index of a WAL, and no WAL, although the process has closed the
// database and removed both: a file system may lose the one removal and keep the other. File systems that keep the order do not, since
// SQLite removes the index first. It then does as the error says.
func (p *powerCut) misled(t *testing.T, dir string) bool {
	wal := p.path + "-wal"
	if p.image[p.path+"-shm"] == nil || p.image[wal] != nil {
		return false
	}
	if !slices.ContainsFunc(p.ops[:p.at], func(op diskOp) bool { return op.kind == opRemove && op.path == wal }) {
		return false
	}
	x, err := p.open(t, dir, historysql.Options{})
	if err == nil {
		x.closeStore()
		return false
	}
	index := filepath.Base(p.path) + "-shm"
	if e, ok := problem.As(err); !ok || e.Code != problem.HistoryCorrupt || !strings.Contains(e.Hint, "remove "+index) {
		t.Errorf("%s: %v", p.what, err)
	}
	if err := os.Remove(p.file(dir) + "-shm"); err != nil {
		t.Error(err)
	}
	return true
}

// survive examines the image, as a reader and as the next process, and drives the run to its end.
func (p *powerCut) survive(t *testing.T, dir string) {
	if len(p.told.acked) > 0 && p.synchronous == historysql.Full {
		p.read(t, dir)
	}
	x, err := p.open(t, dir, historysql.Options{})
	if err != nil {
		t.Errorf("%s: %v", p.what, err)
		return
	}
	defer x.closeStore()
	x.verify(p.what)
	for _, f := range p.examine(x) {
		t.Errorf("%s: %s", p.what, f)
	}
	for key := range p.told.performed {
		x.keys[key] = true
	}
	before := map[string][]history.Record{}
	for id := range x.executions() {
		before[id] = x.records(id)
	}
	x.given = maps.Clone(p.given)
	r := x.runner(x.fault)
	if x.run, err = x.drive(r); err != nil {
		t.Errorf("%s: %v", p.what, err)
	}
	for range 2 { // recover what the cut left besides the run itself
		time.Sleep(2 * leaseTTL)
		if _, err := r.Recover(t.Context(), graph.RecoverRequest{}); err != nil {
			t.Errorf("%s: %v", p.what, err)
		}
		synctest.Wait()
	}
	x.close(r)
	for id, records := range before {
		after := x.records(id)
		if len(after) < len(records) || !slices.EqualFunc(after[:len(records)], records, func(a, b history.Record) bool { return recordText(id, &a) == recordText(id, &b) }) {
			t.Errorf("%s: the records of %s have changed", p.what, id)
		}
	}
	x.compare(p.undisturbed(t), p.what)
}

// read examines the image as a process that only reads.
func (p *powerCut) read(t *testing.T, dir string) {
	x, err := p.open(t, dir, historysql.Options{ReadOnly: true})
	if err != nil {
		t.Errorf("%s: to read: %v", p.what, err)
		return
	}
	defer x.closeStore()
	for _, f := range p.examine(x) {
		t.Errorf("%s: to read: %s", p.what, f)
	}
}

// undisturbed returns the trial of the whole run.
func (p *powerCut) undisturbed(t *testing.T) *trial {
	want := newTrial(t, p.c, crashMode{p.mode, false}, historymem.New())
	want.run, want.keys = p.run, p.keys
	for id, records := range p.records {
		b := history.Batch{ExecutionID: id, Records: slices.Clone(records), Execution: history.Project(id, records)}
		if err := want.store.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	return want
}
