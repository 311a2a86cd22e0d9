package temporal

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"google.golang.org/protobuf/proto"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/chat/chattest"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/view"
	runs "github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/config"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// The tests of this file take minutes. They print figures.

var killing = flag.Duration("killing", 5*time.Minute, "how long TestNightlyKilledWorkers kills workers")

// workerVariable makes the test binary a worker; its value is a workerSettings.
const workerVariable = "WORKFLOW_ENGINE_TEST_TEMPORAL_WORKER"

type workerSettings struct {
	// Address, Namespace and TaskQueue are those of Temporal, Side is the directory of the side store. Otherwise the runs are in the database
	// SQLite, or Postgres with Schema.
	Address, Namespace, TaskQueue, Side string
	SQLite, Postgres, Schema            string
	// Attempts is the file for idempotency keys. Without it the worker performs the examples.
	Attempts string
}

// lostSoon is the WorkerLost of tests that kill workers.
const lostSoon = 5 * time.Second

func TestMain(m *testing.M) {
	if text := os.Getenv(workerVariable); text != "" {
		if err := beWorker(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// beWorker performs runs until the process is killed. Each attempt adds its idempotency key to a file before and after its work.
func beWorker(text string) error {
	var s workerSettings
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return err
	}
	if s.Attempts == "" {
		return performExamples(s)
	}
	c, err := client.Dial(client.Options{HostPort: s.Address, Namespace: s.Namespace, Logger: log.NewStructuredLogger(discard)})
	if err != nil {
		return err
	}
	attempts, err := os.OpenFile(s.Attempts, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	w, err := NewWorker(Options{Client: c, Namespace: s.Namespace, TaskQueue: s.TaskQueue, WorkerLost: lostSoon, Activities: steps(
		func(_ context.Context, req activities.Request) (any, error) {
			if _, err := attempts.WriteString(req.IdempotencyKey + "\n"); err != nil {
				return nil, err
			}
			time.Sleep(time.Duration(20+rand.IntN(80)) * time.Millisecond) // the work
			return map[string]any{req.NodeID: req.IdempotencyKey}, nil
		})})
	if err == nil {
		err = w.Start()
	}
	if err != nil {
		return err
	}
	return untilTheEnd()
}

// untilTheEnd tells the test that the worker performs runs, and waits for the end of the test.
func untilTheEnd() error {
	_, err := fmt.Println("ready")
	if err == nil {
		_, err = os.Stdin.Read(make([]byte, 1))
	}
	return err
}

// startWorker starts a worker process and waits until it polls.
func startWorker(t *testing.T, s workerSettings) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), workerVariable+"="+string(text)), os.Stderr
	if _, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		_, err = out.Read(make([]byte, 16))
	}
	if err != nil {
		t.Fatal(err)
	}
	return cmd
}

// parts returns how many Temporal workflows a run has had: one more than it has continued as new.
func parts(t *testing.T, o Options, id string) (n int) {
	t.Helper()
	run := ""
	for {
		d, err := o.Client.DescribeWorkflow(t.Context(), id, run)
		if err != nil {
			t.Fatal(err)
		}
		n++
		first := o.Client.GetWorkflowHistory(t.Context(), id, d.RawResponse.GetWorkflowExecutionInfo().GetExecution().GetRunId(), false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		event, err := first.Next()
		if err != nil {
			t.Fatal(err)
		}
		if run = event.GetWorkflowExecutionStartedEventAttributes().GetContinuedExecutionRunId(); run == "" {
			return n
		}
	}
}

// ended waits for the end of a run.
func ended(t *testing.T, e *Engine, id string) *view.Run {
	t.Helper()
	for {
		run, err := e.Status(t.Context(), graph.StatusRequest{ExecutionID: id, Wait: &graph.Wait{Limit: 20 * time.Second}})
		if err != nil {
			t.Logf("status of %s: %v", id, err)
			continue // no worker has answered in time
		}
		if run.Status != machine.Running && run.Status != machine.AwaitingTimer {
			return run
		}
	}
}

// unique is an execution id that no other run of the server has.
func unique(t *testing.T) string {
	return strings.ReplaceAll(t.Name(), "/", "-") + fmt.Sprint(time.Now().UnixNano())
}

// TestNightlyKilledWorkers kills one of three worker processes each second while runs are started: no run is lost, and none has two outcomes of an
// attempt.
func TestNightlyKilledWorkers(t *testing.T) {
	o := dial(t, Options{WorkerLost: lostSoon})
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "attempts")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	settings := workerSettings{Address: o.Address, Namespace: o.Namespace, TaskQueue: o.TaskQueue, Attempts: file}
	var workers []*exec.Cmd
	kill := func() {
		_ = workers[0].Process.Kill()
		_ = workers[0].Wait()
		workers = workers[1:]
	}
	for range 3 {
		workers = append(workers, startWorker(t, settings))
	}
	t.Cleanup(func() {
		for len(workers) > 0 {
			kill()
		}
	})
	var nodes []string
	for n := range 4 {
		nodes = append(nodes, fmt.Sprintf(`{"id":"n%d","type":"step","config":{"handler":"x"}}`, n))
	}
	d := enginetest.Define(t, enginetest.Linear("killed", slices.Concat([]string{`{"id":"begin","type":"start"}`}, nodes, []string{`{"id":"end","type":"end"}`})...))
	prefix, open := unique(t), make(chan struct{}, 20)
	var all sync.WaitGroup
	var mu sync.Mutex
	var took []time.Duration
	over := time.After(*killing)
	second := time.NewTicker(time.Second)
	defer second.Stop()
	started, kills := 0, 0
starting:
	for {
		select {
		case <-over:
			break starting
		case <-second.C:
			kill()
			kills++
			workers = append(workers, startWorker(t, settings))
		case open <- struct{}{}:
			id := fmt.Sprint(prefix, "-", started)
			began := time.Now()
			if _, err := e.Start(t.Context(), graph.StartRequest{ExecutionID: id, Definition: d, Wait: graph.Wait{Limit: graph.NoWait}, AllowExisting: true}); err != nil {
				t.Fatalf("start of %s: %v", id, err)
			}
			started++
			all.Go(func() {
				defer func() { <-open }()
				if err := o.Client.GetWorkflow(context.WithoutCancel(t.Context()), id, "").Get(context.WithoutCancel(t.Context()), nil); err != nil {
					t.Errorf("%s: %v", id, err)
				}
				mu.Lock()
				took = append(took, time.Since(began))
				mu.Unlock()
			})
		}
	}
	all.Wait()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	performed, keys := strings.Count(string(text), "\n"), map[string]int{}
	for line := range strings.Lines(string(text)) {
		keys[line]++
	}
	for n := range started {
		id := fmt.Sprint(prefix, "-", n)
		run := ended(t, e, id)
		if run.Status != machine.Completed || len(run.FinalState) != len(nodes) {
			t.Errorf("%s: %s %s", id, run.Status, run.Error)
			continue
		}
		records, err := e.History(t.Context(), graph.HistoryRequest{ExecutionID: id})
		if err != nil {
			t.Fatal(err)
		}
		outcomes := 0
		for _, r := range records {
			if r.Name == runs.ActivityCompleted {
				outcomes++
			}
		}
		if outcomes != len(nodes) {
			t.Errorf("%s has %d outcomes of %d", id, outcomes, len(nodes))
		}
	}
	slices.Sort(took)
	t.Logf("%d kills in %s, %d runs of %d nodes, %d attempts, %.2f %% performed twice; a run took p50 %s, p99 %s, at most %s", kills, *killing, started, len(nodes),
		len(keys), 100*float64(performed-len(keys))/float64(max(len(keys), 1)), took[len(took)/2].Round(time.Millisecond), took[len(took)*99/100].Round(time.Millisecond),
		took[len(took)-1].Round(time.Millisecond))
}

// TestNightlyTenThousandNodes: one run performs 10,000 nodes, up to 50 at a time, and continues as new several times.
func TestNightlyTenThousandNodes(t *testing.T) {
	const rounds, items = 100, 100
	d := enginetest.Define(t, fmt.Sprintf(`{"document":{"schema":"urn:test","name":"many","version":"1"},"x-workflows-engine":{"uses":["map"]},"state_schema":{"type":"object"},
		"nodes":[{"id":"begin","type":"start"},{"id":"each","type":"step","map":{"items":"[range(%d)]","as":"i","concurrency":50},"config":{"handler":"x"}},
			{"id":"count","type":"set_state","config":{"assignments":{"n":{"jq":".n + 1"}}}},
			{"id":"more","type":"switch","config":{"cases":[{"when":".n < %d","target":"each"}],"default":"end"}},{"id":"end","type":"end"}],
		"edges":[{"source":"__start__","target":"begin"},{"source":"begin","target":"each"},{"source":"each","target":"count"},{"source":"count","target":"more"}]}`, items, rounds))
	var performed atomic.Int64
	e, o := serve(t, Options{Archive: OpenFileArchive(t.TempDir()), Activities: steps(func(context.Context, activities.Request) (any, error) {
		performed.Add(1)
		return map[string]any{"done": true}, nil
	})})
	id, began := unique(t), time.Now()
	start(t, e, graph.StartRequest{ExecutionID: id, Definition: d, Input: map[string]any{"n": 0.0}, Wait: graph.Wait{Limit: graph.NoWait}})
	run := ended(t, e, id)
	took := time.Since(began)
	if run.Status != machine.Completed || run.FinalState["n"] != float64(rounds) {
		t.Fatalf("%s %s %s", run.Status, run.Error, jsonvalue.Canonical(run.FinalState))
	}
	n := parts(t, o, id)
	if n < 3 {
		t.Errorf("the run has %d parts", n)
	}
	records, err := e.History(t.Context(), graph.HistoryRequest{ExecutionID: id})
	if err != nil || int64(len(records)) != run.Seq {
		t.Errorf("%d records of %d (%v)", len(records), run.Seq, err)
	}
	t.Logf("%d nodes, performed %d times, in %s: %.0f a second, %d parts, %d records", rounds*items, performed.Load(), took.Round(time.Millisecond),
		rounds*items/took.Seconds(), n, len(records))
}

// TestNightlyTenMiB: a state of 10 MiB goes through activities with a side store.
func TestNightlyTenMiB(t *testing.T) {
	const size = 10 << 20
	large, side := strings.Repeat("0123456789abcdef", size/16), fileStore(t)
	e, o := serve(t, Options{SideStore: side, MaxDocumentBytes: 2 * size, Activities: steps(func(_ context.Context, req activities.Request) (any, error) {
		if s, ok := req.State()["text"].(string); ok {
			return map[string]any{"size": len(s)}, nil
		}
		return map[string]any{"text": large}, nil
	})})
	id, began := unique(t), time.Now()
	start(t, e, graph.StartRequest{ExecutionID: id, Wait: graph.Wait{Limit: graph.NoWait}, Definition: enginetest.Define(t, enginetest.Linear("large", `{"id":"begin","type":"start"}`,
		`{"id":"a","type":"step","config":{"handler":"x"}}`, `{"id":"b","type":"step","config":{"handler":"x"}}`, `{"id":"end","type":"end","config":{"output_mapping":".size"}}`))})
	run := ended(t, e, id)
	if run.Status != machine.Completed || run.Result != float64(size) {
		t.Fatalf("%s %s %s", run.Status, run.ErrorCode, run.Error)
	}
	d, err := o.Client.DescribeWorkflow(t.Context(), id, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("a state of %d bytes in %s: %d bytes of events", size, time.Since(began).Round(time.Millisecond), d.RawResponse.GetWorkflowExecutionInfo().GetHistorySizeBytes())
}

// TestNightlyAgent: an agent of 500 turns with a tool call each.
func TestNightlyAgent(t *testing.T) {
	const turns = 500
	var script []chattest.Reply
	for n := 1; n < turns; n++ {
		script = append(script, chattest.Calls(chattest.Call("total", fmt.Sprintf(`{"n":%d}`, n))))
	}
	model := chattest.Serve(t, append(script, chattest.Text(`{"done":true}`))...)
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "agents.json"), []byte(`{"models":{"m":{"model":"x","contextTokens":10000000,"endpoint":{"baseUrl":"`+model.URL+`","noAuth":true}}},
		"agents":{"clerk":{"instructions":"You count.","output":{"schema":{"type":"object"}},"budgets":{"turns":1000,"toolCalls":1000},
			"tools":[{"step":"urn:example:total","name":"total","description":"Adds.","inputSchema":{"type":"object"},"onCrash":"repeat"}]}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	own := configured(t, config.Environment{
		Home: folder, Directory: folder, ReadFile: os.ReadFile,
		Variables: []string{"WORKFLOW_ENGINE_AGENTS=agents.json", `WORKFLOW_ENGINE_STEP_HANDLERS={"urn:example:total":{"total":4}}`},
	}, "--store", "memory")
	own.SideStore = fileStore(t)
	e, o := serve(t, own)
	id, began := unique(t), time.Now()
	start(t, e, graph.StartRequest{ExecutionID: id, Wait: graph.Wait{Limit: graph.NoWait}, Definition: enginetest.Define(t, enginetest.Linear("agent", `{"id":"begin","type":"start"}`,
		`{"id":"a","type":"agent_delegate","config":{"agent_id":"clerk","protocol":"sdk","input_mapping":{"task":"Count."}}}`, `{"id":"end","type":"end"}`))})
	run := ended(t, e, id)
	if run.Status != machine.Completed {
		t.Fatalf("%s %s %s", run.Status, run.ErrorCode, run.Error)
	}
	if asked := len(model.Asked()); asked != turns {
		t.Errorf("%d turns", asked)
	}
	d, err := o.Client.DescribeWorkflow(t.Context(), id, "")
	if err != nil {
		t.Fatal(err)
	}
	info := d.RawResponse.GetWorkflowExecutionInfo()
	t.Logf("an agent of %d turns in %s: %d events, %d bytes of events, %d records", turns, time.Since(began).Round(time.Millisecond), info.GetHistoryLength(), info.GetHistorySizeBytes(), run.Seq)
}

// TestNightlyEncryption runs the examples with a key for payloads. No event has a text of the input or of an answer.
func TestNightlyEncryption(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(examples, "*", "expect.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		folder := filepath.Dir(file)
		t.Run(filepath.Base(folder), func(t *testing.T) {
			own := demoOptions(t, folder)
			own.SideStore = fileStore(t)
			if own.Converter, err = NewDataConverter(own.SideStore, []byte("0123456789abcdef0123456789abcdef")); err != nil {
				t.Fatal(err)
			}
			e, o := serve(t, own)
			want := expectations(t, file)[0]
			input, _ := want["input"].(map[string]any)
			id := unique(t)
			const title = "the title of the run"
			run, err := e.Start(t.Context(), graph.StartRequest{ExecutionID: id, Definition: exampleDocument(t, folder), Input: input, Title: title})
			answers, _ := want["answers"].([]any)
			secret := append(texts(input), title)
			for _, a := range answers {
				if err == nil && !run.Status.Terminal() {
					secret = append(secret, texts(a.(map[string]any)["resume"])...)
					secret = append(secret, texts(a.(map[string]any)["payload"])...)
					run, err = give(t, e, run, a.(map[string]any))
				}
			}
			if err != nil || run.Status == machine.Failed {
				t.Fatalf("%+v %v", run, err)
			}
			plain, err := client.Dial(client.Options{HostPort: o.Address, Namespace: o.Namespace, Logger: log.NewStructuredLogger(discard)})
			if err != nil {
				t.Fatal(err)
			}
			defer plain.Close()
			all := eventsOf(t, plain, id)
			for _, child := range childrenOf(run) {
				all = append(all, eventsOf(t, plain, child)...)
			}
			for _, s := range secret {
				if bytes.Contains(all, []byte(s)) {
					t.Errorf("%q is in the event history", s)
				}
			}
			t.Logf("%s: none of %d texts in %d bytes of events", run.Status, len(secret), len(all))
		})
	}
}

func childrenOf(run *view.Run) (ids []string) {
	if run.ChildExecutionID != "" {
		ids = append(ids, run.ChildExecutionID)
	}
	return ids
}

// texts lists the strings of a value that are long enough to be no accident.
func texts(v any) (list []string) {
	switch v := v.(type) {
	case string:
		if len(v) >= 5 {
			list = append(list, v)
		}
	case []any:
		for _, x := range v {
			list = append(list, texts(x)...)
		}
	case map[string]any:
		for _, x := range v {
			list = append(list, texts(x)...)
		}
	}
	return list
}

// eventsOf returns the event history of a workflow as the service stores it.
func eventsOf(t *testing.T, c client.Client, id string) (all []byte) {
	t.Helper()
	events := c.GetWorkflowHistory(t.Context(), id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			t.Fatal(err)
		}
		text, err := proto.Marshal(event)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text...)
	}
	return all
}

// TestNightlyChildren: a parent that continues as new between its subworkflows gets the result of each, those that run at the same time included.
func TestNightlyChildren(t *testing.T) {
	const rounds = 12 // as in the switch of the parent
	child := enginetest.Define(t, enginetest.Linear("child", `{"id":"begin","type":"start"}`, `{"id":"a","type":"step","config":{"handler":"x"}}`, `{"id":"end","type":"end"}`))
	parent := enginetest.Define(t, `{"document":{"schema":"urn:test","name":"parent","version":"1"},"state_schema":{"type":"object"},
		"nodes":[{"id":"begin","type":"start"},
			{"id":"both","type":"parallel","config":{"join":"all","branches":[{"name":"left","entry":"left"},{"name":"right","entry":"right"}]}},
			{"id":"left","type":"subworkflow","config":{"workflow_ref":"child","input_mapping":{"side":"left"}}},
			{"id":"right","type":"subworkflow","config":{"workflow_ref":"child","input_mapping":{"side":"right"}}},
			{"id":"count","type":"set_state","config":{"assignments":{"n":{"jq":".n + 1"}}}},
			{"id":"more","type":"switch","config":{"cases":[{"when":".n < 12","target":"both"}],"default":"end"}},{"id":"end","type":"end"}],
		"edges":[{"source":"__start__","target":"begin"},{"source":"begin","target":"both"},{"source":"both","target":"count"},{"source":"left","target":"count"},{"source":"right","target":"count"},{"source":"count","target":"more"}]}`)
	e, o := serve(t, Options{MaxEvents: 10, Archive: OpenFileArchive(t.TempDir()), Activities: steps(func(_ context.Context, req activities.Request) (any, error) {
		side, _ := req.State()["side"].(string)
		return map[string]any{side: side}, nil
	})})
	if err := e.RegisterWorkflow("child", child); err != nil {
		t.Fatal(err)
	}
	id := unique(t)
	start(t, e, graph.StartRequest{ExecutionID: id, Definition: parent, Input: map[string]any{"n": 0.0}, Wait: graph.Wait{Limit: graph.NoWait}})
	run := ended(t, e, id)
	if run.Status != machine.Completed || run.FinalState["n"] != float64(rounds) || run.FinalState["left"] != "left" || run.FinalState["right"] != "right" {
		t.Fatalf("%s %s %s", run.Status, run.Error, jsonvalue.Canonical(run.FinalState))
	}
	records, err := e.History(t.Context(), graph.HistoryRequest{ExecutionID: id})
	if err != nil || int64(len(records)) != run.Seq {
		t.Errorf("%d records of %d (%v)", len(records), run.Seq, err)
	}
	ends := 0
	for _, r := range records {
		if r.Name == runs.SubworkflowCompleted {
			ends++
		}
	}
	n := parts(t, o, id)
	if ends != 2*rounds || n < 3 {
		t.Errorf("%d subworkflows have ended, the parent has %d parts", ends, n)
	}
	t.Logf("%d subworkflows, the parent has %d parts", ends, n)
}

// TestNightlyStartsAndLists: each start answers with the run as it waits, and lists find runs by phase and label.
func TestNightlyStartsAndLists(t *testing.T) {
	const most = 100
	e, _ := serve(t, Options{Activities: steps(charged)})
	team := unique(t)
	var took []time.Duration
	for n := range most {
		began := time.Now()
		run := start(t, e, graph.StartRequest{ExecutionID: fmt.Sprint(team, "-", n), Definition: approval(t), Labels: map[string]string{"team": team, "half": fmt.Sprint(n % 2)}})
		took = append(took, time.Since(began))
		if run.Status != machine.Interrupted {
			t.Fatalf("%+v", run)
		}
		if n%4 == 0 {
			if _, err := e.Resume(t.Context(), graph.ResumeRequest{ExecutionID: run.ExecutionID, Payload: map[string]any{"approve": true}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	began := time.Now()
	for _, want := range []struct {
		q runs.ListQuery
		n int
	}{
		{runs.ListQuery{}, most}, {runs.ListQuery{Phase: runs.PhaseInterrupted}, most * 3 / 4}, {runs.ListQuery{Phase: runs.PhaseCompleted}, most / 4},
		{runs.ListQuery{Labels: map[string]string{"half": "1"}, Phase: runs.PhaseCompleted}, 0}, {runs.ListQuery{Labels: map[string]string{"half": "0"}, Phase: runs.PhaseInterrupted}, most / 4},
	} {
		q := want.q
		q.Labels = map[string]string{"team": team}
		for k, v := range want.q.Labels {
			q.Labels[k] = v
		}
		for got, err := -1, error(nil); got != want.n; { // visibility follows
			if got, err = e.Count(t.Context(), q, 10*most); err != nil {
				t.Fatal(err)
			}
		}
		found := 0
		for q.Limit = 7; ; {
			page, err := e.List(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			found += len(page.Executions)
			for _, x := range page.Executions {
				if x.Labels["team"] != team || q.Phase != "" && x.Phase != q.Phase {
					t.Errorf("%+v", x)
				}
			}
			if q.Cursor = page.NextCursor; q.Cursor == "" {
				break
			}
		}
		if found != want.n {
			t.Errorf("%d runs of %d in %+v", found, want.n, want.q)
		}
	}
	slices.Sort(took)
	t.Logf("a start that answers with the question: p50 %s, p99 %s; lists agreed after %s", took[most/2].Round(time.Millisecond/10), took[most*99/100].Round(time.Millisecond/10), time.Since(began).Round(time.Millisecond))
}
