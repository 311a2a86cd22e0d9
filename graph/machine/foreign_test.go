package machine_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

var rowForm = regexp.MustCompile(`^([CE]) (\w+)(?:\((\S+)\))?(?: (\{.*\}))?$`)

// rows reads a history of the npm engine as an import stores it, written one record a line: "C ScheduleNode(t)",
// "E StateUpdated(t) {"state":{}}".
func rows(t *testing.T, text string) []history.Record {
	t.Helper()
	var out []history.Record
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		m := rowForm.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("row %q", line)
		}
		raw := `{"executionId":"x"`
		if m[3] != "" {
			raw += fmt.Sprintf(`,"nodeId":%q`, m[3])
		}
		if rest := strings.TrimPrefix(m[4], "{"); rest != "" && rest != "}" {
			raw += "," + rest
		} else {
			raw += "}"
		}
		p, err := history.DecodePayload(history.Name(m[2]), []byte(raw))
		if err != nil {
			t.Fatalf("row %q: %v", line, err)
		}
		kind := history.Event
		if m[1] == "C" {
			kind = history.Command
		}
		if history.Name(m[2]) == history.ExecutionStarted {
			p.Branches = string(machine.Sequential)
		}
		seq := int64(len(out) + 1)
		out = append(out, history.Record{Seq: seq, Foreign: true, Kind: kind, Name: history.Name(m[2]), Payload: p, CreatedAt: epoch.Truncate(time.Millisecond).Add(time.Duration(seq) * time.Second)})
	}
	return out
}

const (
	begun = `
		E ExecutionStarted {"workflowName":"w","workflowVersion":"1","inputKeys":["a"]}
		C ScheduleNode(s)
		E NodeScheduled(s)
		C CompleteNode(s) {"output":{}}
		E StateUpdated(s) {"state":{"a":1}}`
	linearDefinition = `{"document":{"schema":"urn:t","name":"w","version":"1"},"state_schema":{"type":"object"},
		"nodes":[{"id":"s","type":"start"},{"id":"t","type":"tool_call","config":{"server":"s","tool":"t"},"retry":{"max_attempts":3}},{"id":"e","type":"end","config":{"output_mapping":".r"}}],
		"edges":[{"source":"__start__","target":"s"},{"source":"s","target":"t"},{"source":"t","target":"e"}]}`
	approvalDefinition = `{"document":{"schema":"urn:t","name":"w","version":"1"},"state_schema":{"type":"object"},
		"nodes":[{"id":"s","type":"start"},{"id":"i","type":"interrupt","config":{"prompt":"?","resume_schema":{"type":"object"}}},
			{"id":"p","type":"parallel","config":{"join":"all","branches":[{"name":"b","entry":"t"}]}},{"id":"t","type":"tool_call","config":{"server":"s","tool":"t"}},{"id":"e","type":"end","config":{"output_mapping":".r"}}],
		"edges":[{"source":"__start__","target":"s"},{"source":"s","target":"i"},{"source":"i","target":"p"},{"source":"p","target":"e"},{"source":"t","target":"e"}]}`
	signalDefinition = `{"document":{"schema":"urn:t","name":"w","version":"1"},"state_schema":{"type":"object","properties":{"l":{"type":"array","reducer":"append"}}},
		"nodes":[{"id":"s","type":"start"},{"id":"i","type":"wait","config":{"kind":"signal","signal":"go"}},
			{"id":"p","type":"parallel","config":{"join":"all","branches":[{"name":"b","entry":"t"}]}},{"id":"t","type":"tool_call","config":{"server":"s","tool":"t"}},{"id":"e","type":"end","config":{"output_mapping":".l"}}],
		"edges":[{"source":"__start__","target":"s"},{"source":"s","target":"i"},{"source":"i","target":"p"},{"source":"p","target":"e"},{"source":"t","target":"e"}]}`
	anyDefinition = `{"document":{"schema":"urn:t","name":"w","version":"1"},"state_schema":{"type":"object"},
		"nodes":[{"id":"s","type":"start"},{"id":"p","type":"parallel","config":{"join":"any","branches":[{"name":"b1","entry":"t1"},{"name":"b2","entry":"t2"}]}},
			{"id":"t1","type":"tool_call","config":{"server":"s","tool":"t"}},{"id":"t2","type":"tool_call","config":{"server":"s","tool":"t"}},{"id":"e","type":"end","config":{"output_mapping":".r"}}],
		"edges":[{"source":"__start__","target":"s"},{"source":"s","target":"p"},{"source":"p","target":"e"},{"source":"t1","target":"e"},{"source":"t2","target":"e"}]}`
	timerDefinition = `{"document":{"schema":"urn:t","name":"w","version":"1"},"state_schema":{"type":"object"},
		"nodes":[{"id":"s","type":"start"},{"id":"w","type":"wait","config":{"kind":"duration","duration":"1h"}},{"id":"e","type":"end"}],
		"edges":[{"source":"__start__","target":"s"},{"source":"s","target":"w"},{"source":"w","target":"e"}]}`
)

// Histories of the reference engine: the status of the machine rebuilt from them, and the records that it adds.
func TestForeignHistories(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, definition, rows string
		mode                   machine.Mode
		status                 machine.Status
		pending                string
		adds                   string
	}{
		{
			name: "cut between the outcome and the completion", definition: linearDefinition,
			rows: begun + `
				C ScheduleNode(t)
				E NodeScheduled(t)
				E ActivityRequested(t) {"nodeType":"tool_call","attempt":1}
				E ActivityCompleted(t) {"result":{"r":1}}`,
			status: machine.Completed,
			adds:   "CompleteNode(t) StateUpdated(t) ScheduleNode(e) NodeScheduled(e) CompleteNode(e) ExecutionCompleted",
		},
		{
			name: "cut after a command", definition: linearDefinition, mode: machine.HostMediated,
			rows:   begun + "\nC ScheduleNode(t)",
			status: machine.AwaitingActivity, pending: "t#1.1",
			adds: "NodeScheduled(t) ActivityRequested(t)",
		},
		{
			name: "a repeated start of a completed run", definition: linearDefinition,
			rows: begun + `
				C ScheduleNode(t)
				E NodeScheduled(t)
				E ActivityRequested(t) {"nodeType":"tool_call","attempt":1}
				E ActivityCompleted(t) {"result":{"r":1}}
				C CompleteNode(t) {"output":{"r":1}}
				E StateUpdated(t) {"state":{"a":1,"r":1}}
				C ScheduleNode(e)
				E NodeScheduled(e)
				C CompleteNode(e) {"output":{}}
				E ExecutionCompleted {"result":1}
				E NodeScheduled(s)
				E StateUpdated(s) {"state":{"a":1}}
				E NodeScheduled(t)
				E StateUpdated(t) {"state":{"a":1,"r":1}}
				E NodeScheduled(e)
				E ExecutionCompleted {"result":1}`,
			status: machine.Completed,
		},
		{
			name: "a repeated start while a host activity is pending", definition: linearDefinition, mode: machine.HostMediated,
			rows: begun + `
				C ScheduleNode(t)
				E NodeScheduled(t)
				E ActivityRequested(t) {"nodeType":"tool_call","attempt":1}
				E NodeScheduled(s)
				E StateUpdated(s) {"state":{"a":1}}
				E NodeScheduled(t)
				E ActivityRequested(t) {"nodeType":"tool_call","attempt":1}`,
			status: machine.AwaitingActivity, pending: "t#1.1",
		},
		{
			name: "attempts go on counting (W-19)", definition: linearDefinition, mode: machine.HostMediated,
			rows: begun + `
				C ScheduleNode(t)
				E NodeScheduled(t)
				E ActivityRequested(t) {"nodeType":"tool_call","attempt":1}
				E ActivityFailed(t) {"error":"no","attempt":1,"willRetry":true}
				E ActivityRequested(t) {"nodeType":"tool_call","attempt":2}`,
			status: machine.AwaitingActivity, pending: "t#1.2",
		},
		{
			name: "a completion after a failure wins (W-14)", definition: linearDefinition,
			rows: begun + `
				C ScheduleNode(t)
				E NodeScheduled(t)
				E ActivityRequested(t) {"nodeType":"tool_call","attempt":1}
				E ActivityFailed(t) {"error":"no","attempt":1}
				C FailNode(t) {"reason":"activity_failed","message":"no"}
				E ExecutionFailed {"error":"no"}
				E ActivityCompleted(t) {"nodeType":"tool_call","result":{"r":1}}
				C CompleteNode(t) {"output":{"r":1}}
				E StateUpdated(t) {"state":{"a":1,"r":1}}
				C ScheduleNode(e)
				E NodeScheduled(e)
				C CompleteNode(e) {"output":{}}
				E ExecutionCompleted {"result":1}`,
			status: machine.Completed,
		},
		{
			name: "replay passes a resumed interrupt (W-06)", definition: approvalDefinition, mode: machine.HostMediated,
			rows: begun + `
				C ScheduleNode(i)
				E NodeScheduled(i)
				C RaiseInterrupt(i) {"prompt":"?"}
				E InterruptRaised(i) {"prompt":"?"}
				C ResumeInterrupt(i)
				E InterruptResumed(i)
				C CompleteNode(i) {"output":{"ok":true}}
				E StateUpdated(i) {"state":{"a":1,"ok":true}}
				C ScheduleNode(p)
				E NodeScheduled(p)
				C StartParallel(p) {"join":"all","branchNames":["b"]}
				E ParallelForked(p) {"join":"all","branchNames":["b"]}
				C ScheduleNode(t)
				E NodeScheduled(t)
				E ActivityRequested(t) {"nodeType":"tool_call","attempt":1,"parallelSpan":{"parallelNodeId":"p","joinTargetId":"e","branchName":"b","branchEntryNodeId":"t"}}
				E ActivityCompleted(t) {"nodeType":"tool_call","result":{"r":2}}
				E NodeScheduled(s)
				E NodeScheduled(i)
				E InterruptRaised(i) {"prompt":"?"}`,
			status: machine.Completed,
			adds: "CompleteNode(t) StateUpdated(t) CheckpointWritten(t) JoinParallel(p) ParallelJoined(p) CompleteNode(p) StateUpdated(p) CheckpointWritten(p) " +
				"ScheduleNode(e) NodeScheduled(e) CompleteNode(e) ExecutionCompleted",
		},
		{
			name: "the last answer to an interrupt counts", definition: approvalDefinition, mode: machine.HostMediated,
			rows: begun + `
				C ScheduleNode(i)
				E NodeScheduled(i)
				C RaiseInterrupt(i) {"prompt":"?"}
				E InterruptRaised(i) {"prompt":"?"}
				C ResumeInterrupt(i)
				E InterruptResumed(i)
				C CompleteNode(i) {"output":{"ok":1}}
				E StateUpdated(i) {"state":{"a":1,"ok":1}}
				C ScheduleNode(p)
				C StartParallel(p)
				C ScheduleNode(t)
				E ActivityRequested(t) {"nodeType":"tool_call","attempt":1}
				E InterruptRaised(i) {"prompt":"?"}
				C ResumeInterrupt(i)
				E InterruptResumed(i)
				C CompleteNode(i) {"output":{"ok":2}}
				E StateUpdated(i) {"state":{"a":1,"ok":2}}
				C ScheduleNode(p)
				E NodeScheduled(p)
				C StartParallel(p)
				E ParallelForked(p)
				C ScheduleNode(t)
				E NodeScheduled(t)
				E ActivityRequested(t) {"nodeType":"tool_call","attempt":1}`,
			status: machine.AwaitingActivity, pending: "t#1.1",
		},
		{
			name: "replay passes a delivered signal and merges its payload (W-06b)", definition: signalDefinition, mode: machine.HostMediated,
			rows: begun + `
				C ScheduleNode(i)
				E NodeScheduled(i)
				C StartSignalWait(i) {"signalName":"go"}
				E SignalWaitStarted(i) {"signalName":"go"}
				C DeliverSignal(i) {"signalName":"go","payload":{"l":[1]}}
				E SignalReceived(i) {"signalName":"go","payload":{"l":[1]}}
				C CompleteNode(i) {"output":{"l":[1]}}
				E StateUpdated(i) {"state":{"a":1,"l":[1]}}
				C ScheduleNode(p)
				E NodeScheduled(p)
				C StartParallel(p)
				E ParallelForked(p)
				C ScheduleNode(t)
				E NodeScheduled(t)
				E ActivityRequested(t) {"nodeType":"tool_call","attempt":1}
				E ActivityCompleted(t) {"nodeType":"tool_call","result":{"l":2}}`,
			status: machine.Completed,
			adds: "CompleteNode(t) StateUpdated(t) CheckpointWritten(t) JoinParallel(p) ParallelJoined(p) CompleteNode(p) StateUpdated(p) CheckpointWritten(p) " +
				"ScheduleNode(e) NodeScheduled(e) CompleteNode(e) ExecutionCompleted",
		},
		{
			name: "a tolerated failure is not performed again (W-18), and its ExecutionFailed does not count (W-11)", definition: anyDefinition, mode: machine.HostMediated,
			rows: begun + `
				C ScheduleNode(p)
				E NodeScheduled(p)
				C StartParallel(p)
				E ParallelForked(p)
				C ScheduleNode(t1)
				E NodeScheduled(t1)
				E ActivityRequested(t1) {"nodeType":"tool_call","attempt":1}
				E ActivityFailed(t1) {"error":"no","attempt":1}
				C FailNode(t1) {"reason":"activity_failed","message":"no"}
				E ExecutionFailed {"error":"no"}
				C ScheduleNode(t2)
				E NodeScheduled(t2)
				E ActivityRequested(t2) {"nodeType":"tool_call","attempt":1}`,
			status: machine.AwaitingActivity, pending: "t2#1.1",
		},
		{
			name: "a crash inside a wait leaves the rest of it (W-08)", definition: timerDefinition,
			rows: begun + `
				C ScheduleNode(w)
				E NodeScheduled(w)
				C StartTimer(w) {"kind":"duration","wait_ms":3600000}
				E TimerStarted(w) {"kind":"duration"}`,
			status: machine.AwaitingTimer, pending: "w#1",
		},
		{
			name: "a cancelled run stays cancelled", definition: linearDefinition,
			rows: begun + `
				C ScheduleNode(t)
				E NodeScheduled(t)
				E ActivityRequested(t) {"nodeType":"tool_call","attempt":1}
				C CancelExecution(t) {"reason":"enough"}
				E ExecutionCancelled(t) {"reason":"enough"}`,
			status: machine.Cancelled,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			recorded := rows(t, tt.rows)
			now := epoch.Add(time.Minute)
			m, err := machine.Replay(compile(t, tt.definition), machine.Config{ExecutionID: "x", Mode: tt.mode}, recorded, map[string]any{"a": 1.0}, now)
			if err != nil {
				t.Fatal(err)
			}
			batch := m.Ready()
			var adds []string
			for i, r := range batch.Records {
				if want := int64(len(recorded) + i + 1); r.Seq != want {
					t.Errorf("%s has seq %d, want %d", r.Name, r.Seq, want)
				}
				if want := now.Truncate(time.Millisecond); !r.CreatedAt.Equal(want) {
					t.Errorf("%s is of %s, want the present, %s", r.Name, r.CreatedAt, want)
				}
				name := string(r.Name)
				if r.Payload.NodeID != "" {
					name += "(" + r.Payload.NodeID + ")"
				}
				adds = append(adds, name)
			}
			if got := strings.Join(adds, " "); got != tt.adds {
				t.Errorf("adds\n%s\nwant\n%s", got, tt.adds)
			}
			if m.Status() != tt.status {
				msg, _, _ := m.Failure()
				t.Errorf("status %s (%s), want %s", m.Status(), msg, tt.status)
			}
			var pending []string
			for _, w := range m.Pending() {
				pending = append(pending, w.Key)
			}
			if got := strings.Join(pending, " "); got != tt.pending {
				t.Errorf("pending %q, want %q", got, tt.pending)
			}
		})
	}
}

// TestW08_TheRestOfAWaitIsCountedFromItsStart: the due time of a rebuilt timer is that of its TimerStarted record.
func TestW08_TheRestOfAWaitIsCountedFromItsStart(t *testing.T) {
	t.Parallel()
	recorded := rows(t, begun+`
		C ScheduleNode(w)
		E NodeScheduled(w)
		C StartTimer(w) {"kind":"duration","wait_ms":3600000}
		E TimerStarted(w) {"kind":"duration"}`)
	m, err := machine.Replay(compile(t, timerDefinition), machine.Config{ExecutionID: "x"}, recorded, nil, epoch.Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	started := recorded[len(recorded)-1].CreatedAt
	if got := m.Timers(); len(got) != 1 || !got[0].Due.Equal(started.Add(time.Hour)) {
		t.Errorf("timers %v, want one at %s", got, started.Add(time.Hour))
	}
}

// TestW27_AMismatchIsRecordedWhateverIsBeingReported: a definition that does not fit the recorded commands ends the run with
// both identities, also if the command that differs is the FailNode of another failure (W-27).
func TestW27_AMismatchIsRecordedWhateverIsBeingReported(t *testing.T) {
	t.Parallel()
	strict := strings.Replace(linearDefinition, `"state_schema":{"type":"object"}`, `"state_schema":{"type":"object","properties":{"r":{"type":"string"}}}`, 1)
	recorded := rows(t, begun+`
		C ScheduleNode(t)
		E NodeScheduled(t)
		E ActivityRequested(t) {"nodeType":"tool_call","attempt":1}
		E ActivityCompleted(t) {"result":{"r":1}}
		C CompleteNode(t) {"output":{"r":1}}
		E StateUpdated(t) {"state":{"a":1,"r":1}}
		C ScheduleNode(e)`)
	m, err := machine.Replay(compile(t, strict), machine.Config{ExecutionID: "x"}, recorded, nil, epoch)
	if err != nil {
		t.Fatal(err)
	}
	batch := m.Ready()
	if len(batch.Records) != 1 || batch.Records[0].Name != history.ExecutionFailed {
		t.Fatalf("records %v", batch.Records)
	}
	p := batch.Records[0].Payload
	if p.Code != "NONDETERMINISM_DETECTED" || !strings.Contains(p.Error, "command index 5") {
		t.Errorf("%s: %s", p.Code, p.Error)
	}
	if p.Context.Expected.Name != history.ScheduleNode || p.Context.Expected.NodeID != "e" || p.Context.Expected.Seq != 12 || p.Context.Actual.Name != history.FailNode {
		t.Errorf("context %+v", p.Context)
	}
	if m.Status() != machine.Failed {
		t.Errorf("status %s", m.Status())
	}
}

// TestRepeatedOutcomesAreNoFacts: a replay of the reference engine records the outcome of a visit again; only the first record
// counts.
func TestRepeatedOutcomesAreNoFacts(t *testing.T) {
	t.Parallel()
	for outcome, want := range map[string]machine.Status{
		`E ActivityCompleted(t) {"result":{"r":1},"replayed":true}`: machine.AwaitingActivity,
		`E ActivityCompleted(t) {"result":{"r":1}}`:                 machine.Completed,
	} {
		history := rows(t, begun+`
			C ScheduleNode(t)
			E NodeScheduled(t)
			E ActivityRequested(t) {"nodeType":"tool_call","attempt":1}
			`+outcome)
		m, err := machine.Replay(compile(t, linearDefinition), machine.Config{ExecutionID: "x", Mode: machine.HostMediated}, history, object{"a": 1.0}, epoch.Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		if m.Status() != want {
			t.Errorf("%s: the run is %s, want %s", outcome, m.Status(), want)
		}
	}
}

// TestATailWithAGapIsRefused: records that do not follow a position are no tail of it.
func TestATailWithAGapIsRefused(t *testing.T) {
	t.Parallel()
	prog := compile(t, linearDefinition)
	m := machine.Start(prog, machine.Config{ExecutionID: "x", Mode: machine.HostMediated}, object{"a": 1.0}, epoch)
	before := m.Ready().Records
	position := m.Position()
	if err := m.Handle(machine.Outcome{Host: true, NodeID: "t", Error: "no"}, epoch); err != nil {
		t.Fatal(err)
	}
	tail := m.Ready().Records
	for skipped := range tail {
		restored, err := machine.Restore(prog, position, before[machine.PositionStateSeq(position)-1].Payload.State)
		if err != nil {
			t.Fatal(err)
		}
		err = restored.Catchup(roundTrip(t, tail[skipped:]), epoch)
		if gap := skipped > 0; gap != errors.Is(err, problem.HistoryCorrupt) {
			t.Errorf("without %d records: %v", skipped, err)
		}
	}
}
