package temporal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historypg"
	"github.com/workflows-engine/workflows-engine/history/historypg/pgtest"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/internal/catalog"
	"github.com/workflows-engine/workflows-engine/internal/config"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/runjson"
)

// lease is the lease of the workers of TestNightlySameAnswers, which are killed.
const lease = 2 * time.Second

// openStore opens the database of a worker.
func (s *workerSettings) openStore(ctx context.Context) (history.Store, error) {
	if s.SQLite != "" {
		return historysql.Open(ctx, s.SQLite, historysql.Options{})
	}
	return historypg.Open(ctx, s.Postgres, historypg.Options{Schema: s.Schema})
}

// performExamples performs the runs of examples until the process is killed.
func performExamples(s workerSettings) error {
	o, err := runnerOptions(config.Environment{}, "--store", "memory", "--profile", "demo")
	if err != nil {
		return err
	}
	o.Activities, o.Delegates = slow{o.Activities}, slow{o.Delegates}
	if s.Address == "" {
		store, err := s.openStore(context.Background())
		if err != nil {
			return err
		}
		r, err := graph.New(store, graph.Options{
			Activities: o.Activities, Delegates: o.Delegates, Attempts: o.Attempts, Workflows: allExamples{}, LeaseTTL: lease, Work: graph.WorkAll, Queues: []string{history.DefaultQueue},
		})
		if err != nil {
			return err
		}
		defer r.Close()
		return untilTheEnd()
	}
	side, err := OpenFileSideStore(s.Side)
	if err != nil {
		return err
	}
	data, err := NewDataConverter(side, nil)
	if err != nil {
		return err
	}
	c, err := client.Dial(client.Options{HostPort: s.Address, Namespace: s.Namespace, Logger: log.NewStructuredLogger(discard), DataConverter: data})
	if err != nil {
		return err
	}
	w, err := NewWorker(Options{
		SideStore: side, Converter: data, Client: c, Namespace: s.Namespace, TaskQueue: s.TaskQueue, WorkerLost: lostSoon, Activities: o.Activities, Delegates: o.Delegates, Attempts: o.Attempts, Workflows: allExamples{},
	})
	if err == nil {
		err = w.Start()
	}
	if err != nil {
		return err
	}
	return untilTheEnd()
}

// slow performs attempts as its executor does, so slowly that some are killed.
type slow struct{ activities.Executor }

func (s slow) Execute(ctx context.Context, req activities.Request) (activities.Result, error) {
	time.Sleep(time.Duration(rand.IntN(600)) * time.Millisecond) // the work
	return s.Executor.Execute(ctx, req)
}

func (s slow) Capabilities(n activities.Node) activities.Capabilities {
	return activities.CapabilitiesOf(s.Executor, n)
}

// allExamples finds the subworkflows of all examples.
type allExamples struct{}

func (allExamples) ResolveWorkflow(ctx context.Context, ref, pin string) (d *definition.Document, err error) {
	folders, err := filepath.Glob(filepath.Join(examples, "*"))
	for _, folder := range folders {
		if d, err = catalog.New(folder, catalog.Options{}).ResolveWorkflow(ctx, ref, pin); !errors.Is(err, problem.WorkflowNotFound) {
			break
		}
	}
	return d, err
}

// place is an engine whose workers are killed.
type place struct {
	name     string
	engine   graph.Engine
	settings workerSettings
}

// TestNightlySameAnswers drives every example with the script of its expectations over SQLite, PostgreSQL and Temporal, while one of two workers
// of each is killed from time to time. The answers differ in times only.
func TestNightlySameAnswers(t *testing.T) {
	sideDir := t.TempDir()
	side, err := OpenFileSideStore(sideDir)
	if err != nil {
		t.Fatal(err)
	}
	o := dial(t, Options{WorkerLost: lostSoon, Workflows: allExamples{}, SideStore: side})
	onTemporal, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	server := pgtest.Shared(t)
	places := []*place{
		{name: "SQLite", settings: workerSettings{SQLite: filepath.Join(t.TempDir(), "runs.db")}},
		{name: "PostgreSQL", settings: workerSettings{Postgres: server.URL(), Schema: pgtest.Schema(t)}},
		{name: "Temporal", engine: onTemporal, settings: workerSettings{Address: o.Address, Namespace: o.Namespace, TaskQueue: o.TaskQueue, Side: sideDir}},
	}
	for _, p := range places {
		if p.engine == nil {
			store, err := p.settings.openStore(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = store.Close() })
			r, err := graph.New(store, graph.Options{Work: graph.WorkNone, Workflows: allExamples{}, LeaseTTL: lease})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = r.Close() })
			p.engine = r
		}
	}
	files, err := filepath.Glob(filepath.Join(examples, "*", "expect.json"))
	if err != nil {
		t.Fatal(err)
	}
	prefix := unique(t)
	for _, p := range places {
		stop, kills := killFromTimeToTime(t, p.settings)
		began := time.Now()
		t.Cleanup(func() { stop(); t.Logf("%s: %d kills in %s", p.name, kills(), time.Since(began).Round(time.Second)) })
	}
	t.Run("examples", func(t *testing.T) {
		for _, file := range files {
			for _, script := range expectations(t, file) {
				folder := filepath.Dir(file)
				t.Run(filepath.Base(folder)+"/"+script["name"].(string), func(t *testing.T) {
					t.Parallel()
					d := withoutTimeouts(t, exampleDocument(t, folder))
					id := prefix + "-" + strings.NewReplacer("/", "-", " ", "-").Replace(filepath.Base(folder)+"-"+script["name"].(string))
					var answers [3][]string
					var all sync.WaitGroup
					for i, p := range places {
						all.Go(func() { answers[i] = follows(t, p.engine, id, d, script) })
					}
					all.Wait()
					for i := 1; i < len(places); i++ {
						if ordersFreely(t, folder) {
							break
						}
						if !slices.Equal(answers[0], answers[i]) {
							n := 0
							for n < min(len(answers[0]), len(answers[i])) && answers[0][n] == answers[i][n] {
								n++
							}
							t.Errorf("answer %d of %d and %d\n%s: %s\n%s: %s", n+1, len(answers[0]), len(answers[i]), places[0].name, answers[0][n:min(n+1, len(answers[0]))],
								places[i].name, answers[i][n:min(n+1, len(answers[i]))])
						}
					}
				})
			}
		}
	})
}

// withoutTimeouts removes the timeouts of attempts: on Temporal they include the time until a killed worker is noticed.
func withoutTimeouts(t *testing.T, d *definition.Document) *definition.Document {
	t.Helper()
	var document map[string]any
	if err := json.Unmarshal(d.Canonical(), &document); err != nil {
		t.Fatal(err)
	}
	for _, n := range document["nodes"].([]any) {
		node := n.(map[string]any)
		if kind := definition.Type(node["type"].(string)); kind.IsActivity() || kind == definition.AgentDelegate {
			delete(node, "timeout")
			delete(node, "timeout_ms")
		}
	}
	text, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	return enginetest.Define(t, string(text))
}

// killFromTimeToTime runs two workers, and kills one about every second, until stop is called.
func killFromTimeToTime(t *testing.T, s workerSettings) (stop func(), kills func() int) {
	workers := []*exec.Cmd{startWorker(t, s), startWorker(t, s)}
	end, ended, n := make(chan struct{}), make(chan struct{}), 0
	kill := func(i int) {
		_ = workers[i].Process.Kill()
		_ = workers[i].Wait()
	}
	go func() {
		defer close(ended)
		for {
			select {
			case <-end:
				kill(0)
				kill(1)
				return
			case <-time.After(time.Duration(500+rand.IntN(1000)) * time.Millisecond):
				i := rand.IntN(2)
				kill(i)
				n++
				workers[i] = startWorker(t, s)
			}
		}
	}()
	return func() { close(end); <-ended }, func() int { return n }
}

// follows follows a script and returns the answers of the run where it waits for the script, and at its end. A call is repeated until it succeeds.
func follows(t *testing.T, e graph.Engine, id string, d *definition.Document, script map[string]any) (answers []string) {
	call := func(f func() (*view.Run, error)) *view.Run {
		for n := 0; ; n++ {
			run, err := f()
			if err == nil {
				return run
			}
			if n == 100 {
				t.Errorf("%s: %v", id, err)
				return &view.Run{Status: machine.Failed}
			}
			select {
			case <-t.Context().Done():
			case <-time.After(100 * time.Millisecond): // the worker that answered was killed
			}
		}
	}
	input, _ := script["input"].(map[string]any)
	run := call(func() (*view.Run, error) {
		return e.Start(t.Context(), graph.StartRequest{ExecutionID: id, Definition: d, Input: input, AllowExisting: true, Mode: machine.InProcess})
	})
	given, _ := script["answers"].([]any)
	for n := 0; ; {
		for !run.Status.Terminal() && run.Status != machine.Interrupted && run.Status != machine.AwaitingSignal {
			run = call(func() (*view.Run, error) {
				return e.Status(t.Context(), graph.StatusRequest{ExecutionID: id, Wait: &graph.Wait{Limit: 5 * time.Second}})
			})
		}
		answers = append(answers, settled(t, run))
		if run.Status.Terminal() || n == len(given) {
			return answers
		}
		answer := given[n].(map[string]any)
		n++
		run = call(func() (*view.Run, error) {
			if payload, ok := answer["resume"].(map[string]any); ok {
				return e.Resume(t.Context(), graph.ResumeRequest{ExecutionID: id, InterruptID: run.Pending[0].ID, Payload: payload})
			}
			name, _ := answer["signal"].(string)
			payload, _ := answer["payload"].(map[string]any)
			return e.Signal(t.Context(), graph.SignalRequest{ExecutionID: id, Name: name, Payload: payload, IdempotencyKey: fmt.Sprint(n)})
		})
	}
}

// timed are the members of answers that hold times, or tell of a repeated call.
var timed = regexp.MustCompile(`(_at|_s|_ms|_in|due|deadline|^now|^repeated|^warnings)$`)

// settled returns an answer without times.
func settled(t *testing.T, run *view.Run) string {
	v, err := jsonvalue.Decode(runjson.Full(run, nil).Append(nil))
	if err != nil {
		t.Error(err)
	}
	strip(v)
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

func strip(v any) {
	switch v := v.(type) {
	case map[string]any:
		maps.DeleteFunc(v, func(name string, _ any) bool { return timed.MatchString(name) })
		for _, x := range v {
			strip(x)
		}
	case []any:
		for _, x := range v {
			strip(x)
		}
	}
}
