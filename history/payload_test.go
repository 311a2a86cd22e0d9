package history_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

type (
	obj     = map[string]any
	payload = history.Payload
)

var (
	someSpan = &history.ParallelSpan{ParallelNodeID: "p", JoinTargetID: "j", BranchName: "b1", BranchEntryNodeID: "a"}
	someTime = time.Date(2026, 11, 21, 1, 3, 46, 919e6, time.UTC)
)

const spanText = `"parallelSpan":{"parallelNodeId":"p","joinTargetId":"j","branchName":"b1","branchEntryNodeId":"a"}`

// payloads has every record with the members that the protocol gives it (spec: execution, 2.2, 2.3 and 9.3) and those
// that this engine adds.
var payloads = []struct {
	name    history.Name
	payload payload
	text    string // without the braces and executionId
}{
	{history.ScheduleNode, payload{NodeID: "n"}, `,"nodeId":"n"`},
	{history.CompleteNode, payload{NodeID: "n", Output: obj{}}, `,"nodeId":"n","output":{}`},
	{history.CompleteNode, payload{NodeID: "n", Output: obj{"b": 1.0, "a": "x"}}, `,"nodeId":"n","output":{"a":"x","b":1}`},
	{history.FailNode, payload{NodeID: "n", Reason: "activity_failed", Message: "no \"luck\"", Code: "TIMEOUT"},
		`,"nodeId":"n","reason":"activity_failed","message":"no \"luck\"","code":"TIMEOUT"`},
	{history.FailNode, payload{Reason: "orchestration_error", Message: "m", FailedNodeID: "n"},
		`,"reason":"orchestration_error","message":"m","failedNodeId":"n"`},
	{history.FailNode, payload{NodeID: "n", Reason: "activity_failed", Message: "m", Code: "C", CaughtBy: "p", Target: "t"},
		`,"nodeId":"n","reason":"activity_failed","message":"m","caughtBy":"p","target":"t","code":"C"`},
	{history.StartParallel, payload{NodeID: "p", Join: "n_of_m", BranchNames: []string{"b1", "b2"}, N: 1},
		`,"nodeId":"p","join":"n_of_m","branchNames":["b1","b2"],"n":1`},
	{history.JoinParallel, payload{NodeID: "p", Join: "all"}, `,"nodeId":"p","join":"all"`},
	{history.CancelParallelBranch, payload{NodeID: "p", BranchName: "b2"}, `,"nodeId":"p","branchName":"b2"`},
	{history.StartTimer, payload{NodeID: "w", TimerKind: "duration", WaitMS: history.Some(0.0)}, `,"nodeId":"w","kind":"duration","wait_ms":0`},
	{history.StartTimer, payload{NodeID: "w", TimerKind: "until", Until: "2999-01-01"}, `,"nodeId":"w","kind":"until","until":"2999-01-01"`},
	{history.StartSignalWait, payload{NodeID: "w", SignalName: "go"}, `,"nodeId":"w","signalName":"go"`},
	{history.DeliverSignal, payload{NodeID: "w", SignalName: "go", SignalPayload: obj{}}, `,"nodeId":"w","signalName":"go","payload":{}`},
	{history.RaiseInterrupt, payload{NodeID: "i"}, `,"nodeId":"i","prompt":""`},
	{history.ResumeInterrupt, payload{NodeID: "i"}, `,"nodeId":"i"`},
	{history.StartSubworkflow, payload{NodeID: "v", WorkflowRef: "urn:w", ChildExecutionID: "x:sub:v"},
		`,"nodeId":"v","workflowRef":"urn:w","childExecutionId":"x:sub:v"`},
	{history.CompleteSubworkflow, payload{NodeID: "v", WorkflowRef: "urn:w", ChildExecutionID: "x:sub:v"},
		`,"nodeId":"v","workflowRef":"urn:w","childExecutionId":"x:sub:v"`},
	{history.CancelExecution, payload{}, ``},
	{history.CancelExecution, payload{NodeID: "n", Reason: "why"}, `,"nodeId":"n","reason":"why"`},

	{history.ExecutionStarted, payload{WorkflowName: "w", WorkflowVersion: "1", InputKeys: []string{}},
		`,"workflowName":"w","workflowVersion":"1","inputKeys":[]`},
	{history.ExecutionStarted,
		payload{
			WorkflowName: "w", WorkflowVersion: "1", InputKeys: []string{"2", "a"}, DefinitionHash: "d", InputHash: "i",
			Input: obj{"a": nil}, Mode: "in_process", Branches: "concurrent", ParentExecutionID: "x", Depth: 1, Priority: 3, TraceParent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", ForkedFrom: history.ForkOrigin{ExecutionID: "y", Seq: 7},
		},
		`,"workflowName":"w","workflowVersion":"1","inputKeys":["2","a"],"definitionHash":"d","inputHash":"i","input":{"a":null},` +
			`"branches":"concurrent","depth":1,"traceParent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","priority":3,"forkedFrom":{"executionId":"y","seq":7},"activityExecutionMode":"in_process","parentExecutionId":"x"`},
	{history.ExecutionStarted,
		payload{InputKeys: []string{}, Title: "Refund \"17\"", Subworkflows: map[string]string{"child": "00ff"}, Attempts: map[string]int{"tool_call": 2, "llm_call": 3}, Labels: map[string]string{"customer": "17", "a b": ""}, Notify: []string{"ops", "crm"}, Queue: "gpu"},
		`,"inputKeys":[],"title":"Refund \"17\"","labels":{"a b":"","customer":"17"},"notify":["ops","crm"],"queue":"gpu","attempts":{"llm_call":3,"tool_call":2},"subworkflows":{"child":"00ff"}`},
	{history.ExecutionStarted,
		payload{
			WorkflowName: "w", WorkflowVersion: "1", InputKeys: []string{}, ParentExecutionID: "x",
			Actor:      &history.Actor{Via: "mcp", Name: "n", Title: "t", Version: "2"},
			ImportedAt: someTime, ImportedBy: &history.Actor{Via: "command"},
		},
		`,"workflowName":"w","workflowVersion":"1","inputKeys":[],"parentExecutionId":"x","actor":{"via":"mcp","name":"n","title":"t","version":"2"},` +
			`"importedAt":"2026-11-21T01:03:46.919Z","importedBy":{"via":"command"}`},
	{history.NodeScheduled, payload{NodeID: "n", Visit: 2, Span: someSpan}, `,"nodeId":"n","visit":2,` + spanText},
	{history.NodeScheduled, payload{NodeID: "n", Queued: true}, `,"nodeId":"n","queued":true`},
	{history.ExecutionCompleted, payload{Result: history.Some(1.0), Partial: map[string]string{"n": "AGENT_TURNS_EXCEEDED"}}, `,"result":1,"partial":{"n":"AGENT_TURNS_EXCEEDED"}`},
	{history.NodeScheduled, payload{NodeID: "n", FailFast: true}, `,"nodeId":"n","failFast":true`},
	{history.StateUpdated, payload{State: obj{"a": 1.0}, Correction: true}, `,"state":{"a":1},"correction":true`},
	{history.ActivityRequested, payload{NodeID: "n", NodeType: "step", TimeoutMS: 5000, Span: someSpan, Attempt: 1},
		`,"nodeId":"n","nodeType":"step","timeoutMs":5000,` + spanText + `,"attempt":1`},
	{history.ActivityRequested,
		payload{
			NodeID: "d", NodeType: "agent_delegate", AgentID: "coder", Protocol: "a2a", Correlation: "x:delegate:d",
			DelegateInput: obj{"task": "T"}, Mode: "host_mediated",
		},
		`,"nodeId":"d","nodeType":"agent_delegate","agentId":"coder","protocol":"a2a","delegateCorrelationId":"x:delegate:d",` +
			`"delegateInput":{"task":"T"},"activityExecutionMode":"host_mediated"`},
	{history.ActivityRequested, payload{NodeID: "n", NodeType: "llm_call", Attempt: 1, Request: obj{"model": "m", "item": 0.0}},
		`,"nodeId":"n","nodeType":"llm_call","attempt":1,"request":{"item":0,"model":"m"}`},
	{history.InterruptRaised, payload{NodeID: "n", Prompt: "p", NodeType: "step", Attempt: 1, AgentStep: obj{"key": "q1", "kind": "question", "n": 3.0}},
		`,"nodeId":"n","prompt":"p","nodeType":"step","attempt":1,"agentStep":{"key":"q1","kind":"question","n":3}`},
	{history.ActivityCompleted,
		payload{
			NodeID: "d", NodeType: "agent_delegate", Span: someSpan, Result: history.Some(obj{"r": 1.5}), Correlation: "c", ExternalTask: "t-1", ExternalContext: "k-1",
			Replayed: true, IdempotencyKey: "k", Usage: obj{"tokens": 7.0},
		},
		`,"nodeId":"d","nodeType":"agent_delegate",` + spanText + `,"result":{"r":1.5},"delegateCorrelationId":"c","externalTaskId":"t-1","externalContextId":"k-1",` +
			`"idempotencyKey":"k","usage":{"tokens":7},"replayed":true`},
	{history.FailNode, payload{NodeID: "n", Reason: "r", Message: "m", Code: "C", Data: obj{"raised": "v"}},
		`,"nodeId":"n","reason":"r","message":"m","code":"C","data":{"raised":"v"}`},
	{history.ActivityFailed, payload{NodeID: "n", Error: "e", Attempt: 1, Code: "C", WillRetry: true, RetryAt: someTime, Usage: obj{"tokens": 7.0}},
		`,"nodeId":"n","error":"e","attempt":1,"code":"C","willRetry":true,"retryAt":"2026-11-21T01:03:46.919Z","usage":{"tokens":7}`},
	{history.ActivityFailed, payload{NodeID: "n", Error: "e", Attempt: 1, WillRetry: true, Repair: obj{"answer": "no"}},
		`,"nodeId":"n","error":"e","attempt":1,"willRetry":true,"repair":{"answer":"no"}`},
	{history.ActivityFailed, payload{NodeID: "n", Error: "e", Attempt: 1, WillRetry: true, Repair: obj{}},
		`,"nodeId":"n","error":"e","attempt":1,"willRetry":true,"repair":{}`},
	{history.StateUpdated, payload{NodeID: "n", State: obj{"é": []any{true, "\u2028"}}}, `,"nodeId":"n","state":{"é":[true,"` + "\u2028" + `"]}`},
	{history.CheckpointWritten,
		payload{
			NodeID: "n", Policy: "every_n_nodes", IntervalNodes: 2, WorkflowVersion: "1", DefinitionHash: "d", LastAppliedEventSeq: 15,
			StateRef: obj{}, Span: someSpan,
		},
		`,"nodeId":"n","policy":"every_n_nodes","intervalNodes":2,"workflowVersion":"1","definitionHash":"d",` + spanText +
			`,"lastAppliedEventSeq":15,"stateRef":{"kind":"inline_state","state":{}}`},
	{history.InterruptRaised, payload{NodeID: "i", Prompt: "Which?"}, `,"nodeId":"i","prompt":"Which?"`},
	{history.InterruptResumed, payload{NodeID: "i", SignalPayload: obj{"a": 1.0}}, `,"nodeId":"i","payload":{"a":1}`},
	{history.ParallelForked, payload{NodeID: "p", Join: "all", BranchNames: []string{"b1"}}, `,"nodeId":"p","join":"all","branchNames":["b1"]`},
	{history.ParallelJoined, payload{NodeID: "p", Join: "any", Winners: []string{"b1"}}, `,"nodeId":"p","join":"any","winners":["b1"]`},
	{history.ParallelBranchCancelled, payload{NodeID: "p", BranchName: "b2"}, `,"nodeId":"p","branchName":"b2"`},
	{history.TimerStarted, payload{NodeID: "w", TimerKind: "until", DueAt: someTime}, `,"nodeId":"w","kind":"until","dueAt":"2026-11-21T01:03:46.919Z"`},
	{history.TimerFired, payload{NodeID: "w", TimerKind: "until"}, `,"nodeId":"w","kind":"until"`},
	{history.SignalWaitStarted, payload{NodeID: "w", SignalName: "go"}, `,"nodeId":"w","signalName":"go"`},
	{history.SignalReceived, payload{NodeID: "w", SignalName: "go", SignalPayload: obj{"by": "alice"}},
		`,"nodeId":"w","signalName":"go","payload":{"by":"alice"}`},
	{history.SignalKept, payload{SignalName: "go", SignalPayload: obj{"by": "alice"}, IdempotencyKey: "k"},
		`,"signalName":"go","payload":{"by":"alice"},"idempotencyKey":"k"`},
	{history.NodeScheduled, payload{NodeID: "u", Compensates: "n#2"}, `,"nodeId":"u","compensates":"n#2"`},
	{history.RollbackStarted, payload{NodeID: "n", Reason: "catch", Code: "NO", Compensations: 2},
		`,"nodeId":"n","reason":"catch","compensations":2,"code":"NO"`},
	{history.MapStarted, payload{NodeID: "n", Items: history.Some(3.0)}, `,"nodeId":"n","items":3`},
	{history.SubworkflowStarted,
		payload{NodeID: "v", WorkflowRef: "urn:w", ParentExecutionID: "x", ChildExecutionID: "x:sub:v", ChildDefinitionHash: "h"},
		`,"nodeId":"v","workflowRef":"urn:w","parentExecutionId":"x","childExecutionId":"x:sub:v","childDefinitionHash":"h"`},
	{history.SubworkflowCompleted,
		payload{
			NodeID: "v", WorkflowRef: "urn:w", ParentExecutionID: "x", ChildExecutionID: "x:sub:v", ChildFinalState: obj{},
			ChildResult: history.Some(nil), MergedOutput: obj{"a": 1.0},
		},
		`,"nodeId":"v","workflowRef":"urn:w","parentExecutionId":"x","childExecutionId":"x:sub:v","childFinalState":{},"childResult":null,"mergedOutput":{"a":1}`},
	{history.SubworkflowCompleted,
		payload{NodeID: "v", WorkflowRef: "urn:w", ParentExecutionID: "x", ChildExecutionID: "x:sub:v", Failed: true, Error: "e"},
		`,"nodeId":"v","error":"e","workflowRef":"urn:w","parentExecutionId":"x","childExecutionId":"x:sub:v","failed":true`},
	{history.ExecutionCompleted, payload{Result: history.Some(nil)}, `,"result":null`},
	{history.NodeScheduled, payload{NodeID: "n", DeadlineAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}, `,"nodeId":"n","deadlineAt":"2026-01-02T03:04:05.000Z"`},
	{history.TimerFired, payload{TimerKind: "deadline"}, `,"kind":"deadline"`},
	{history.ExecutionFailed, payload{Error: "boom"}, `,"error":"boom"`},
	{history.ExecutionFailed,
		payload{
			Error: "command index 3", Code: "NONDETERMINISM_DETECTED",
			Context: &history.MismatchContext{
				Expected: history.CommandIdentity{Name: history.ScheduleNode, Seq: 6, NodeID: "a"},
				Actual:   history.CommandIdentity{Name: history.FailNode},
			},
		},
		`,"error":"command index 3","code":"NONDETERMINISM_DETECTED","context":{"expected":{"name":"ScheduleNode","seq":6,"nodeId":"a"},"actual":{"name":"FailNode"}}`},
	{history.TimerStarted, payload{NodeID: "n", Span: &history.ParallelSpan{ParallelNodeID: "p", BranchName: "b"}, BlockVisit: 2}, `,"nodeId":"n","parallelSpan":{"parallelNodeId":"p","joinTargetId":"","branchName":"b","branchEntryNodeId":""},"blockVisit":2`},
	{history.ExecutionCancelled, payload{NodeID: "n", Reason: "why"}, `,"nodeId":"n","reason":"why"`},
	{history.ExecutionCancelled, payload{Reason: "moved", KeepTasks: true}, `,"reason":"moved","keepTasks":true`},
}

func TestPayloadRoundTrip(t *testing.T) {
	t.Parallel()
	for _, c := range payloads {
		r := history.Record{Kind: c.name.Kind(), Name: c.name, Payload: c.payload}
		want := `{"executionId":"x\"1"` + c.text + `}`
		got := string(r.AppendPayload([]byte("before"), `x"1`))
		if got != "before"+want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, want)
		}
		back, err := history.DecodePayload(c.name, []byte(want))
		if err != nil || !reflect.DeepEqual(back, c.payload) {
			t.Errorf("%s read again:\n got %+v, %v\nwant %+v", c.name, back, err, c.payload)
		}
	}
}

// TestPayloadCoverage holds the table above against the record names and the members of Payload.
func TestPayloadCoverage(t *testing.T) {
	t.Parallel()
	covered := map[string]bool{}
	var names []history.Name
	for _, c := range payloads {
		names = append(names, c.name)
		v := reflect.ValueOf(c.payload)
		for i := range v.NumField() {
			if !v.Field(i).IsZero() {
				covered[v.Type().Field(i).Name] = true
			}
		}
	}
	for _, name := range history.Names() {
		if !slices.Contains(names, name) {
			t.Errorf("no payload of %s", name)
		}
	}
	for f := range reflect.TypeFor[payload]().Fields() {
		if f.IsExported() && !covered[f.Name] {
			t.Errorf("no payload with %s", f.Name)
		}
	}
}

// TestNamesAreComplete compares Names with the constants of record.go.
func TestNamesAreComplete(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile("record.go")
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`(?m)^\t\w+\s+Name += "(\w+)"`).FindAllSubmatch(src, -1)
	var want []history.Name
	for _, d := range declared {
		want = append(want, history.Name(d[1]))
	}
	if got := history.Names(); !slices.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	if k := history.Name("EmitSignal").Kind(); k != "" {
		t.Errorf("a name that the protocol does not write is a %q", k)
	}
}

func TestDecodePayloadLenient(t *testing.T) {
	t.Parallel()
	cases := []struct {
		raw  string
		want payload
	}{
		{`{}`, payload{}},
		{`{"executionId":7,"nodeId":null,"visit":"2","output":[],"state":"x","branchNames":["a",1],"n":1.5,"attempt":1e300}`, payload{}},
		{`{"parallelSpan":{"parallelNodeId":"p","joinTargetId":"j","branchName":"b"},"willRetry":"true","timeoutMs":false}`, payload{}},
		{`{"dueAt":"soon","deadline":5,"stateRef":{"kind":"blob","state":{}},"context":[]}`, payload{}},
		{`{"stateRef":{"kind":"inline_state","state":{"a":1},"more":1},"unknown":{"x":[1]}}`, payload{StateRef: obj{"a": 1.0}}},
		{`{"result":null,"wait_ms":"x"}`, payload{Result: history.Some(nil), WaitMS: history.Some("x")}},
		{`{"context":{"expected":3}}`, payload{Context: &history.MismatchContext{}}},
		{`{"dueAt":"2026-11-21T03:03:46.919+02:00","nodeId":"a","nodeId":"b"}`, payload{NodeID: "b", DueAt: someTime}},
	}
	for _, c := range cases {
		got, err := history.DecodePayload(history.NodeScheduled, []byte(c.raw))
		if got = got.WithoutNote(); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\n got %+v, %v\nwant %+v", c.raw, got, err, c.want)
		}
	}
	for _, raw := range []string{``, `null`, `[]`, `"x"`, `{"a":1`, `{"a":1}}`, "\x00"} {
		if _, err := history.DecodePayload(history.NodeScheduled, []byte(raw)); !errors.Is(err, problem.HistoryCorrupt) {
			t.Errorf("%q: got %v, want %s", raw, err, problem.HistoryCorrupt)
		}
	}
}

// FuzzDecodePayload: no text makes the decoder panic, and what it takes from a text is the same after writing it.
func FuzzDecodePayload(f *testing.F) {
	for _, c := range payloads {
		f.Add(string(c.name), []byte(`{"executionId":"x"`+c.text+`}`))
	}
	f.Add("CompleteNode", []byte(`{"output":{"a":1e400,"b":"\ud800"},"visit":-3,"dueAt":"0000-01-01T00:00:00Z"}`))
	f.Add("ExecutionStarted", []byte(`{"inputKeys":[""],"depth":9007199254740993,"input":{"__proto__":1}}`))
	f.Fuzz(func(t *testing.T, name string, raw []byte) {
		p, err := history.DecodePayload(history.Name(name), raw)
		if err != nil {
			return
		}
		r := history.Record{Name: history.Name(name), Payload: p}
		first := r.AppendPayload(nil, "x")
		again, err := history.DecodePayload(r.Name, first)
		if err != nil {
			t.Fatalf("wrote %s: %v", first, err)
		}
		r.Payload = again
		if second := r.AppendPayload(nil, "x"); !bytes.Equal(first, second) {
			t.Fatalf("wrote\n%s\nthen\n%s", first, second)
		}
	})
}

// FuzzProjection: no history makes the fold panic, and a stored projection goes on like the original.
func FuzzProjection(f *testing.F) {
	traces, _ := filepath.Glob("testdata/projection/*.txt")
	for _, file := range traces {
		if text, err := os.ReadFile(file); err == nil {
			f.Add(text)
		}
	}
	names := history.Names()
	f.Fuzz(func(t *testing.T, script []byte) {
		e := history.Execution{ID: "x:sub:y"}
		for line := range bytes.Lines(script) {
			var name history.Name
			if i := slices.IndexFunc(names, func(n history.Name) bool { return bytes.Contains(line, []byte(n)) }); i >= 0 {
				name = names[i]
			}
			p, err := history.DecodePayload(name, line[max(0, bytes.IndexByte(line, '{')):])
			if err != nil {
				p = payload{NodeID: string(line[len(line)/2:])}
			}
			stored, err := history.ParseExecution(e.ID, e.AppendText(nil))
			if err != nil {
				t.Fatal(err)
			}
			r := history.Record{Kind: name.Kind(), Name: name, Payload: p, CreatedAt: someTime}
			e.Apply(r)
			stored.Apply(r)
			if got, want := stored.AppendText(nil), e.AppendText(nil); !bytes.Equal(got, want) {
				t.Fatalf("%s: the stored projection became\n%s\nthe original\n%s", name, got, want)
			}
		}
	})
}

func BenchmarkAppendPayload(b *testing.B) {
	r := history.Record{Kind: history.Event, Name: history.ActivityRequested, Payload: payload{
		NodeID: "n12", Visit: 2, NodeType: "step", TimeoutMS: 5000, Attempt: 1, Span: someSpan,
	}}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = r.AppendPayload(buf[:0], "0f8fad5b-d9cb-469f-a165-70867728950e")
	}
}

func BenchmarkDecodePayload(b *testing.B) {
	r := history.Record{Kind: history.Event, Name: history.ActivityRequested, Payload: payload{
		NodeID: "n12", Visit: 2, NodeType: "step", TimeoutMS: 5000, Attempt: 1, Span: someSpan,
	}}
	raw := r.AppendPayload(nil, "0f8fad5b-d9cb-469f-a165-70867728950e")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := history.DecodePayload(r.Name, raw); err != nil {
			b.Fatal(err)
		}
	}
}
