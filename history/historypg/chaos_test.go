package historypg_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historypg"
	"github.com/workflows-engine/workflows-engine/history/historypg/pgtest"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// chaosWorker makes the test binary a worker: the address of the server, the schema, the file of attempts, and how far its clock is off.
const chaosWorker = "HISTORYPG_TEST_WORKER"

const (
	chaosProcesses = 4
	chaosNodes     = 8
	chaosLease     = 5 * time.Second
)

// TestChaosWorker performs runs until it is killed.
func TestChaosWorker(t *testing.T) {
	setting := os.Getenv(chaosWorker)
	if setting == "" {
		t.Skip("a process of TestChaos")
	}
	parts := strings.Split(setting, "|")
	attempts := enginetest.Must(os.OpenFile(parts[2], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600))
	off := enginetest.Must(time.ParseDuration(parts[3]))
	perform := activities.ExecutorFunc(func(ctx context.Context, r activities.Request) (activities.Result, error) {
		if _, err := fmt.Fprintln(attempts, r.IdempotencyKey); err != nil { // one write: lines of several processes do not mix
			return activities.Result{}, err
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return activities.Result{}, context.Cause(ctx)
		}
		return activities.Result{Output: map[string]any{"at": r.IdempotencyKey}}, nil
	})
	options := graph.Options{Activities: perform, Work: graph.WorkAll, LeaseTTL: chaosLease}
	if off != 0 {
		options.Now = func() time.Time { return time.Now().Add(off) }
	}
	for { // the server may be away
		store, err := historypg.Open(t.Context(), parts[0], historypg.Options{Schema: parts[1]})
		if err == nil {
			_, err = graph.New(store, options)
			if err != nil {
				t.Fatal(err)
			}
			select {} // until it is killed
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// chaosDefinition has chaosNodes activities, one after another.
func chaosDefinition() *definition.Document {
	nodes, edges, last := `{"id":"begin","type":"start"}`, `{"source":"__start__","target":"begin"}`, "begin"
	for i := range chaosNodes {
		id := "n" + strconv.Itoa(i)
		nodes += fmt.Sprintf(`,{"id":%q,"type":"step","config":{"handler":"work"}}`, id)
		edges += fmt.Sprintf(`,{"source":%q,"target":%q}`, last, id)
		last = id
	}
	return enginetest.Must(definition.Parse(fmt.Appendf(nil, `{"document":{"schema":"https://agent-workflow.dev/schemas/workflow-definition.json",
		"name":"chaos","version":"1.0.0"},"state_schema":{"type":"object"},"nodes":[%s,{"id":"finish","type":"end"}],"edges":[%s,{"source":%q,"target":"finish"}]}`,
		nodes, edges, last)))
}

// TestChaos: four workers, of which one is killed each second, and a server that is stopped hard each 15 seconds. No run is lost, no outcome
// is recorded twice, and few attempts are performed twice, also if the clocks of two workers are an hour off.
func TestChaos(t *testing.T) {
	t.Parallel()
	if testing.Short() || soak.UnderRace && !soak.On() {
		t.Skip("the processes take their time")
	}
	for _, c := range []struct {
		name string
		off  time.Duration
	}{{"equal clocks", 0}, {"clocks an hour off", time.Hour}} {
		t.Run(c.name, func(t *testing.T) {
			if c.off != 0 && !soak.On() {
				t.Skip("in the long form")
			}
			chaos(t, time.Duration(soak.Setting("SOAK_SECONDS", soak.Size(20, 20, 600)))*time.Second, c.off)
		})
	}
}

func chaos(t *testing.T, lasts, off time.Duration) {
	server, schema := pgtest.New(t), pgtest.Schema(t)
	file := filepath.Join(t.TempDir(), "attempts")
	begin := func(i int) *exec.Cmd {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestChaosWorker$", "-test.timeout", "0")
		shift := []time.Duration{0, 0, off, -off}[i%4]
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%s|%s|%s", chaosWorker, server.URL(), schema, file, shift))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	workers := make([]*exec.Cmd, chaosProcesses)
	for i := range workers {
		workers[i] = begin(i)
	}
	kill := func(i int) {
		_ = workers[i].Process.Kill()
		_ = workers[i].Wait() // it ends with an error after a kill
	}
	defer func() {
		for i := range workers {
			kill(i)
		}
	}()
	store := enginetest.Must(historypg.Open(t.Context(), server.URL(), historypg.Options{Schema: schema}))
	front := enginetest.Closing(t, enginetest.Must(graph.New(store, graph.Options{Work: graph.WorkNone})))
	var started atomic.Int64
	ctx, stop := context.WithTimeout(t.Context(), lasts)
	defer stop()
	starts := make(chan struct{})
	go func() {
		defer close(starts)
		d := chaosDefinition()
		for ctx.Err() == nil {
			id := "r" + strconv.FormatInt(started.Load(), 10)
			_, err := front.Start(t.Context(), graph.StartRequest{ExecutionID: id, Definition: d, Wait: graph.WaitAtMost(0), AllowExisting: true})
			if err != nil { // it may be stored or not: the same call is repeated
				if !errors.Is(err, problem.StoreUnavailable) && !errors.Is(err, problem.StoreOutcomeUnknown) && !errors.Is(err, problem.StoreLocked) {
					t.Error(err)
					return
				}
				time.Sleep(50 * time.Millisecond)
				continue
			}
			started.Add(1)
			time.Sleep(20 * time.Millisecond)
		}
	}()
	kills, stops := 0, 0
	for second := 1; ; second++ {
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		i := rand.IntN(chaosProcesses)
		kill(i)
		workers[i] = begin(i)
		kills++
		if second%15 == 8 {
			server.Stop(t, true)
			time.Sleep(300 * time.Millisecond)
			server.Start(t)
			stops++
		}
	}
	<-starts
	runs := int(started.Load())
	deadline := time.Now().Add(2 * time.Minute)
	for {
		n, err := store.Count(t.Context(), history.ListQuery{Phase: history.PhaseCompleted}, runs+1)
		if err == nil && n == runs {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d runs have completed (%v)", n, runs, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	performed := performedOf(t, file)
	total, doubles := 0, 0
	for _, n := range performed {
		total += n
		doubles += n - 1
	}
	for id := range runs {
		wantOutcomesOnce(t, front, "r"+strconv.Itoa(id))
	}
	findings := 0
	if _, err := store.Verify(t.Context(), "", false, func(f history.Finding) {
		findings++
		t.Errorf("verify: %+v", f)
	}); err != nil || findings > 0 {
		t.Errorf("verify: %d findings, %v", findings, err)
	}
	t.Logf("%d runs, %d attempts, %d performed twice, %d kills, %d stops of the server", runs, total, doubles, kills, stops)
	if len(performed) != runs*chaosNodes {
		t.Errorf("%d attempts have begun, want %d", len(performed), runs*chaosNodes)
	}
	// Each kill and each stop of the server may repeat what was in flight.
	if limit := max(total/100, (kills+chaosProcesses*stops)*4); doubles > limit {
		t.Errorf("%d of %d attempts were performed twice, at most %d may be", doubles, total, limit)
	}
}

// performedOf counts how often each attempt was performed.
func performedOf(t *testing.T, file string) map[string]int {
	t.Helper()
	f := enginetest.Must(os.Open(file))
	defer f.Close()
	counts := map[string]int{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		counts[lines.Text()]++
	}
	return counts
}

// wantOutcomesOnce: each node has one request and one outcome.
func wantOutcomesOnce(t *testing.T, r *graph.Runner, id string) {
	t.Helper()
	records, err := r.History(t.Context(), graph.HistoryRequest{ExecutionID: id})
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for i := range records {
		if n := records[i].Payload.NodeID; strings.HasPrefix(n, "n") {
			counts[string(records[i].Name)+" "+n]++
		}
	}
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		if counts[what] != 1 {
			t.Errorf("run %s has %d records %s", id, counts[what], what)
		}
	}
}
