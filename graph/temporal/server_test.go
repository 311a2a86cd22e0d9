package temporal

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/conformance"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/internal/transfer"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	runs "github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// serverVariable names the program of the server for tests, which `make temporal-server` builds.
const serverVariable = "WORKFLOW_ENGINE_TEST_TEMPORAL"

var update = flag.Bool("update", false, "record the event histories of testdata again; needs the server for tests")

// server is the server of the test binary: it ends when the binary does, since its input is closed then.
var server = sync.OnceValues(func() (*testServer, error) {
	cmd := exec.Command(os.Getenv(serverVariable))
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &testServer{in: in}
	_, err = fmt.Fscanln(bufio.NewReader(out), &s.address, &s.namespace)
	return s, err
})

type testServer struct {
	address, namespace string
	in                 io.Closer
}

// dial connects to the server for tests, or skips the test.
func dial(t *testing.T, o Options) Options {
	t.Helper()
	if os.Getenv(serverVariable) == "" {
		t.Skipf("no Temporal server: run make temporal-server, or set %s to the program graph/temporal/internal/devserver", serverVariable)
	}
	s, err := server()
	if err != nil {
		t.Fatal(err)
	}
	options := client.Options{HostPort: s.address, Namespace: s.namespace, Logger: log.NewStructuredLogger(discard)}
	if o.SideStore != nil && o.Converter == nil {
		if o.Converter, err = NewDataConverter(o.SideStore, nil); err != nil {
			t.Fatal(err)
		}
	}
	if options.DataConverter = o.Converter; o.Converter != nil {
		options.FailureConverter = NewFailureConverter(o.Converter)
	}
	c, err := client.Dial(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	o.Client, o.Address, o.Namespace = c, s.address, s.namespace
	o.TaskQueue = strings.ReplaceAll(t.Name(), "/", "-")
	return o
}

// serve starts an engine and a worker on the server for tests.
func serve(t *testing.T, o Options) (*Engine, Options) {
	t.Helper()
	o = dial(t, o)
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	performs(t, o)
	return e, o
}

func performs(t *testing.T, o Options) *Worker {
	t.Helper()
	w, err := NewWorker(o)
	if err == nil {
		err = w.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w
}

// TestOnAServer makes the calls of a run to a server.
func TestOnAServer(t *testing.T) {
	t.Parallel()
	e, o := serve(t, Options{Activities: steps(charged), Lanes: []string{"step:charge"}})
	id := t.Name() + fmt.Sprint(time.Now().UnixNano())
	run := start(t, e, graph.StartRequest{ExecutionID: id, Definition: approval(t), Title: "One", Labels: map[string]string{"team": id}, Priority: 7})
	if run.Status != machine.Interrupted || run.State["charged"] != true {
		t.Fatalf("%+v", run)
	}
	_, err := e.Start(t.Context(), graph.StartRequest{ExecutionID: id, Definition: approval(t)})
	requireCode(t, err, problem.DuplicateExecutionID)
	_, err = e.Resume(t.Context(), graph.ResumeRequest{ExecutionID: id, Payload: map[string]any{"no": 1.0}})
	if p := requireCode(t, err, problem.InvalidResumePayload); p.Hint == "" || p.At.NodeID != "ask" {
		t.Errorf("%+v", p)
	}
	performs(t, o) // another worker
	done, err := e.Resume(t.Context(), graph.ResumeRequest{ExecutionID: id, Payload: map[string]any{"approve": true}})
	if err != nil || done.Status != machine.Completed {
		t.Fatalf("%+v %v", done, err)
	}
	_, err = e.Resume(t.Context(), graph.ResumeRequest{ExecutionID: id, Payload: map[string]any{"approve": false}})
	requireCode(t, err, problem.InvalidResumePayload)
	records, err := e.History(t.Context(), graph.HistoryRequest{ExecutionID: id})
	if err != nil || int64(len(records)) != done.Seq {
		t.Errorf("%d records of %d (%v)", len(records), done.Seq, err)
	}
	_, err = e.Status(t.Context(), graph.StatusRequest{ExecutionID: "other"})
	requireCode(t, err, problem.ExecutionNotFound)
	for { // visibility follows
		page, err := e.List(t.Context(), runs.ListQuery{Phase: runs.PhaseCompleted, DefinitionName: "approval", Labels: map[string]string{"team": id}})
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Executions) == 1 {
			if x := page.Executions[0]; x.ID != id || x.Title != "One" || x.DefinitionHash != done.DefinitionHash || x.DefinitionVersion != "1" {
				t.Errorf("%+v", x)
			}
			break
		}
	}
	found, err := e.Definition(t.Context(), done.DefinitionHash)
	if err != nil || found.Hash() != done.DefinitionHash {
		t.Error(err)
	}
}

// TestExamplesOnAServer runs the examples on a server, and records their event histories with -update.
func TestExamplesOnAServer(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(examples, "*", "expect.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		folder := filepath.Dir(file)
		name := filepath.Base(folder)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, o := serve(t, demoOptions(t, folder))
			want := expectations(t, file)[0]
			input, _ := want["input"].(map[string]any)
			id := fmt.Sprint(name, time.Now().UnixNano())
			run, err := e.Start(t.Context(), graph.StartRequest{ExecutionID: id, Definition: exampleDocument(t, folder), Input: input})
			answers, _ := want["answers"].([]any)
			for _, a := range answers {
				if err == nil && !run.Status.Terminal() {
					run, err = give(t, e, run, a.(map[string]any))
				}
			}
			for err == nil && run.Status == machine.AwaitingTimer && time.Until(run.Pending[0].Due) < 20*time.Second {
				run, err = e.Status(t.Context(), graph.StatusRequest{ExecutionID: id, Wait: &graph.Wait{Limit: 30 * time.Second}})
			}
			if err != nil {
				t.Fatal(err)
			}
			if run.Status == machine.Failed || run.Status == machine.Running {
				t.Errorf("%+v", run)
			}
			if run.Status == machine.Completed && *update {
				record(t, o.Client, id, name)
			}
		})
	}
}

// stopping is an engine that stops its worker.
type stopping struct {
	*Engine
	worker *Worker
}

func (s stopping) Close() error {
	s.worker.Stop()
	return s.Engine.Close()
}

// sharedLists are the vectors whose lists see the runs of other vectors, since all are in one namespace.
var sharedLists = []string{"interrupts.phase_after_resume", "interrupts.resume_unknown_run", "subworkflow.child_cancelled_with_parent"}

// TestParityVectorsOnAServer runs the vectors that make calls on a server, alone: each has a worker of its own.
func TestParityVectorsOnAServer(t *testing.T) {
	dial(t, Options{}) // or skip
	var n atomic.Int64
	report, err := conformance.Run(t.Context(), os.DirFS("../../conformance"), conformance.Options{
		Kind: "parity",
		NewEngine: func(o graph.Options) (graph.Engine, error) {
			own := dial(t, Options{Activities: o.Activities, Delegates: o.Delegates, Workflows: o.Workflows, Branches: o.Branches})
			own.TaskQueue = fmt.Sprint(own.TaskQueue, n.Add(1))
			own.Queues = []string{runs.DefaultQueue, "nightly", "gpu"} // those of the definitions
			e, err := New(own)
			return stopping{e, performs(t, own)}, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range report.Vectors {
		if v.Status != conformance.Pass && !slices.Contains(sharedLists, v.ID) {
			t.Errorf("%s: %v", v.ID, v.Problems)
		}
	}
}

// TestSubworkflowsOnAServer: a question of a subworkflow is answered through its parent, both continue as new, and a cancel reaches it.
func TestSubworkflowsOnAServer(t *testing.T) {
	t.Parallel()
	parent := enginetest.Define(t, `{"document":{"schema":"urn:test","name":"parent","version":"1"},"state_schema":{"type":"object"},
		"nodes":[{"id":"begin","type":"start"},{"id":"first","type":"subworkflow","config":{"workflow_ref":"approval","input_mapping":{"n":1}}},
			{"id":"second","type":"subworkflow","config":{"workflow_ref":"approval","input_mapping":{"n":2}}},{"id":"end","type":"end"}],
		"edges":[{"source":"__start__","target":"begin"},{"source":"begin","target":"first"},{"source":"first","target":"second"},{"source":"second","target":"end"}]}`)
	e, _ := serve(t, Options{Activities: steps(charged), MaxEvents: 12})
	if err := e.RegisterWorkflow("approval", approval(t)); err != nil {
		t.Fatal(err)
	}
	run := start(t, e, graph.StartRequest{Definition: parent})
	for n := range 2 {
		if run.Status != machine.Interrupted || run.Pending[0].ExecutionID == run.ExecutionID {
			t.Fatalf("%+v", run)
		}
		var err error
		if run, err = e.Resume(t.Context(), graph.ResumeRequest{ExecutionID: run.ExecutionID, Payload: map[string]any{"approve": true, "n": float64(n)}}); err != nil {
			t.Fatal(err)
		}
	}
	if run.Status != machine.Completed {
		t.Errorf("%+v", run)
	}
	run = start(t, e, graph.StartRequest{Definition: parent})
	run, err := e.Cancel(t.Context(), graph.CancelRequest{ExecutionID: run.ExecutionID, Reason: "enough"})
	if err != nil || run.Status != machine.Cancelled || run.Reason != "enough" {
		t.Fatalf("%+v %v", run, err)
	}
	child, err := e.Status(t.Context(), graph.StatusRequest{ExecutionID: run.ChildExecutionID})
	if err != nil || child.Status != machine.Cancelled && len(run.Warnings) == 0 {
		t.Errorf("%+v %v", child, err)
	}
}

// TestMovesOnAServer: a tree of runs moves to the server and back, and waits where it waited.
func TestMovesOnAServer(t *testing.T) {
	t.Parallel()
	var attempts atomic.Int32
	d, workflows := nested(t)
	o := Options{Workflows: workflows, Archive: OpenFileArchive(t.TempDir()), Activities: steps(func(context.Context, activities.Request) (any, error) {
		attempts.Add(1)
		return map[string]any{"charged": true}, nil
	})}
	e, o := serve(t, o)
	before, after := newRunner(t, o), newRunner(t, o)
	id := t.Name() + fmt.Sprint(time.Now().UnixNano())
	asked := start(t, before, graph.StartRequest{ExecutionID: id, Definition: d, Labels: map[string]string{"team": "a"}})
	move(t, before, e, id)
	there, err := e.Status(t.Context(), graph.StatusRequest{ExecutionID: id, Wait: &graph.Wait{Limit: time.Minute}})
	if err != nil || there.Status != machine.Interrupted || there.Seq != asked.Seq || there.Pending[0].ID != asked.Pending[0].ID || there.CreatedAt != asked.CreatedAt {
		t.Fatalf("%+v\nwas %+v (%v)", there, asked, err)
	}
	move(t, e, after, id)
	if *update {
		record(t, o.Client, id, "moved")
	}
	left := file(t, after, id)
	done, err := after.Resume(t.Context(), graph.ResumeRequest{ExecutionID: id, Payload: map[string]any{"approve": true}})
	if err != nil || done.Status != machine.Completed || attempts.Load() != 5 {
		t.Errorf("%d attempts, %+v %v", attempts.Load(), done, err)
	}
	_, err = e.Import(t.Context(), file(t, after, id))
	requireCode(t, err, problem.Unsupported)
	_, err = e.Import(t.Context(), left)
	requireCode(t, err, problem.DuplicateExecutionID)
}

// TestASubworkflowAtWorkMovesAfterItsAttempt: the outcome moves with it, and nothing is performed twice.
func TestASubworkflowAtWorkMovesAfterItsAttempt(t *testing.T) {
	t.Parallel()
	var attempts atomic.Int32
	began, release := make(chan struct{}), make(chan struct{})
	d, workflows := nested(t)
	id := t.Name() + fmt.Sprint(time.Now().UnixNano())
	o := Options{Workflows: workflows, Activities: steps(func(_ context.Context, req activities.Request) (any, error) {
		if attempts.Add(1) == 2 { // the first step of the subworkflow
			close(began)
			<-release
		}
		return map[string]any{"charged": true}, nil
	})}
	e, o := serve(t, o)
	start(t, e, graph.StartRequest{ExecutionID: id, Definition: d, Wait: graph.Wait{Limit: graph.NoWait}})
	<-began
	err := e.Export(t.Context(), id, graph.ExportOptions{Move: true}, io.Discard)
	if p := requireCode(t, err, problem.CancelNotAllowed); p.At.ExecutionID == id || p.At.NodeID != "before" {
		t.Errorf("%+v", p)
	}
	if run, err := e.Status(t.Context(), graph.StatusRequest{ExecutionID: id}); err != nil || run.Status.Terminal() {
		t.Fatalf("a rejected move has changed the run: %+v %v", run, err)
	}
	// The attempt begins after that check.
	if _, err := e.Cancel(t.Context(), graph.CancelRequest{ExecutionID: id, Reason: transfer.MovedToFile, KeepTasks: true}); err != nil {
		t.Fatal(err)
	}
	err = e.Export(t.Context(), id, graph.ExportOptions{Move: true}, io.Discard)
	if p := requireCode(t, err, problem.HistoryConflict); p.At.ExecutionID == id || p.Hint == "" {
		t.Errorf("%+v", p)
	}
	close(release)
	for errors.Is(err, problem.HistoryConflict) {
		err = e.Export(t.Context(), id, graph.ExportOptions{Move: true}, io.Discard)
	}
	r := newRunner(t, o)
	move(t, e, r, id)
	run, err := r.Drive(t.Context(), graph.DriveRequest{ExecutionID: id, Caller: graph.Caller{Wait: graph.WaitAtMost(time.Minute)}})
	if err != nil || run.Status != machine.Interrupted || attempts.Load() != 3 {
		t.Errorf("%d attempts, %+v, %v", attempts.Load(), run, err)
	}
}

// timeline tells when the events of a workflow came.
func timeline(t *testing.T, c client.Client, id string) (lines string) {
	t.Helper()
	events := c.GetWorkflowHistory(t.Context(), id, "", false, 0)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			t.Fatal(err)
		}
		lines += fmt.Sprintln(event.GetEventTime().AsTime().Format(time.StampMilli), event)
	}
	return lines
}

const historiesDir = "testdata/histories"

// record writes the event history of a run.
func record(t *testing.T, c client.Client, id, name string) {
	t.Helper()
	var h history.History
	events := c.GetWorkflowHistory(context.Background(), id, "", false, 0)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			t.Fatal(err)
		}
		h.Events = append(h.Events, event)
	}
	text, err := protojson.Marshal(&h)
	if err == nil {
		err = os.MkdirAll(historiesDir, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(historiesDir, name+".json"), text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestRecordedHistoriesReplay: this release walks the runs of earlier ones as they did.
func TestRecordedHistoriesReplay(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(historiesDir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Skipf("no event histories (%v)", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			r := worker.NewWorkflowReplayer()
			r.RegisterWorkflowWithOptions((&walker{}).walk, workflow.RegisterOptions{Name: WorkflowType})
			r.RegisterWorkflowWithOptions(deliver, workflow.RegisterOptions{Name: OutboxType})
			if err := r.ReplayWorkflowHistoryFromJSONFile(log.NewStructuredLogger(discard), file); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestLargeStatesOnAServer: with a side store, a state of 4 MiB goes through activities.
func TestLargeStatesOnAServer(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("0123456789abcdef", 4<<20/16)
	e, _ := serve(t, Options{SideStore: fileStore(t), MaxDocumentBytes: 8 << 20, Activities: steps(func(_ context.Context, req activities.Request) (any, error) {
		if s, ok := req.State()["text"].(string); ok {
			return map[string]any{"size": len(s)}, nil
		}
		return map[string]any{"text": large}, nil
	})})
	run := start(t, e, graph.StartRequest{Definition: twice(t)})
	if run.Status != machine.Completed || run.FinalState["size"] != float64(len(large)) {
		t.Errorf("%s %s %s", run.Status, run.ErrorCode, run.Error)
	}
}

// TestJournalsOnAServer: an agent asks, and continues from its journal in another worker.
func TestJournalsOnAServer(t *testing.T) {
	t.Parallel()
	o := dial(t, Options{Activities: &lister{}, SideStore: fileStore(t)})
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	w := performs(t, o)
	run := start(t, e, graph.StartRequest{Definition: journaled(t)})
	if run.Status != machine.Interrupted || run.Pending[0].Steps != 4 || run.Pending[0].Show == nil {
		t.Fatalf("%+v", run)
	}
	w.Stop()
	performs(t, o)
	run, err = e.Resume(t.Context(), graph.ResumeRequest{ExecutionID: run.ExecutionID, Payload: map[string]any{"text": "yes"}})
	if err != nil || run.Status != machine.Completed || run.FinalState["entries"] != 6.0 {
		t.Fatalf("%+v %v", run, err)
	}
}

// TestTerminatedRunsHaveFailed: an operator ends a run in Temporal.
func TestTerminatedRunsHaveFailed(t *testing.T) {
	t.Parallel()
	e, o := serve(t, Options{Activities: steps(charged)})
	run := start(t, e, graph.StartRequest{Definition: approval(t)})
	if err := o.Client.TerminateWorkflow(t.Context(), run.ExecutionID, "", "test"); err != nil {
		t.Fatal(err)
	}
	run, err := e.Status(t.Context(), graph.StatusRequest{ExecutionID: run.ExecutionID})
	if err != nil || run.Status != machine.Failed || run.ErrorCode != string(problem.Terminated) {
		t.Errorf("%+v %v", run, err)
	}
}

// TestARunContinuesAsNewOnAServer: the event history stays short, and the records are whole.
func TestARunContinuesAsNewOnAServer(t *testing.T) {
	t.Parallel()
	e, o := serve(t, Options{Activities: steps(charged), Archive: OpenFileArchive(t.TempDir()), MaxEvents: 30})
	run := start(t, e, graph.StartRequest{Definition: loop(t), Input: map[string]any{"n": 0.0}})
	for run.Status == machine.AwaitingSignal {
		var err error
		if run, err = e.Signal(t.Context(), graph.SignalRequest{ExecutionID: run.ExecutionID, Name: "next"}); err != nil {
			t.Fatal(err)
		}
	}
	if run.Status != machine.Completed {
		t.Fatalf("%+v\n%s", run, timeline(t, o.Client, run.ExecutionID))
	}
	records, err := e.History(t.Context(), graph.HistoryRequest{ExecutionID: run.ExecutionID})
	if err != nil || int64(len(records)) != run.Seq {
		t.Errorf("%d records of %d (%v)", len(records), run.Seq, err)
	}
	d, err := o.Client.DescribeWorkflow(t.Context(), run.ExecutionID, "")
	if err != nil || d.RawResponse.GetWorkflowExecutionInfo().GetFirstRunId() == d.RawResponse.GetWorkflowExecutionInfo().GetExecution().GetRunId() {
		t.Errorf("the run has not continued as new (%v)", err)
	}
}
