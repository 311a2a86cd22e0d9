package machine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

const (
	// routedDefinition has expressions whose values in the tests' histories are not those that this engine would find.
	routedDefinition = `{"document":{"schema":"urn:t","name":"w","version":"1"},"state_schema":{"type":"object","properties":{"l":{"type":"array","reducer":"append"}}},
		"nodes":[{"id":"s","type":"start"},
			{"id":"set","type":"set_state","config":{"assignments":{"word":{"jq":"\"é\"|test(\"^[a-z]$\")"},"l":{"literal":1}}}},
			{"id":"w","type":"switch","config":{"cases":[{"when":".word","target":"t"}],"default":"d"}},
			{"id":"d","type":"agent_delegate","config":{"agent_id":"a","protocol":"a2a","input_mapping":{"text":"${ .word|tojson }"}}},
			{"id":"t","type":"llm_call","config":{"model":"m","prompt":"p","output_schema":{"type":"object","properties":{"n":{"type":"string"}}}}},
			{"id":"v","type":"subworkflow","config":{"workflow_ref":"urn:c","input_mapping":{"n":"${ .word|error }"}}},
			{"id":"e","type":"end"}],
		"edges":[{"source":"__start__","target":"s"},{"source":"s","target":"set"},{"source":"set","target":"w"},{"source":"t","target":"v"},{"source":"d","target":"e"},{"source":"v","target":"e"}]}`
	loopDefinition = `{"document":{"schema":"urn:t","name":"w","version":"1"},"state_schema":{"type":"object"},
		"nodes":[{"id":"s","type":"start"},{"id":"t","type":"step","config":{"handler":"h"},"retry":{"max_attempts":3}},
			{"id":"w","type":"switch","config":{"cases":[{"when":".n < 3","target":"t"}],"default":"e"}},{"id":"e","type":"end"}],
		"edges":[{"source":"__start__","target":"s"},{"source":"s","target":"t"},{"source":"t","target":"w"}]}`
)

// theirs reads rows of another engine that follow a history.
func theirs(t *testing.T, before []history.Record, text string) []history.Record {
	t.Helper()
	more := rows(t, text)
	for i := range more {
		more[i].Seq += int64(len(before))
		more[i].Foreign = true
	}
	return append(before, more...)
}

// What another engine recorded is not evaluated again: outputs, routes, states and inputs are those of the rows, also where this
// engine would find others.
func TestForeignValuesAreTakenAsRecorded(t *testing.T) {
	t.Parallel()
	set := begun + `
		C ScheduleNode(set)
		E NodeScheduled(set)
		C CompleteNode(set) {"output":{"word":true,"l":1}}
		E StateUpdated(set) {"state":{"a":1,"word":true,"l":[1],"theirs":{"b":1,"a":2}}}
		C ScheduleNode(w)
		E NodeScheduled(w)
		C CompleteNode(w) {"output":{}}
		E StateUpdated(w) {"state":{"a":1,"word":true,"l":[1],"theirs":{"b":1,"a":2}}}`
	asked := `
		C ScheduleNode(d)
		E NodeScheduled(d)
		E ActivityRequested(d) {"nodeType":"agent_delegate","agentId":"a","protocol":"a2a","delegateCorrelationId":"x:delegate:d","delegateInput":{"text":"theirs"}}`
	state := `{"a":1,"l":[1],"theirs":{"a":2,"b":1},"word":true}`
	for name, tt := range map[string]struct {
		rows   string
		status machine.Status
		at     string
		state  string
		input  string
	}{
		"output and state": {set, machine.AwaitingActivity, "t#1.1", state, ""},
		"the route":        {set + asked, machine.AwaitingActivity, "d#1.1", state, `{"text":"theirs"}`},
		"output_schema and a child's input": {set + `
			C ScheduleNode(t)
			E NodeScheduled(t)
			E ActivityRequested(t) {"nodeType":"llm_call","attempt":1}
			E ActivityCompleted(t) {"result":{"n":1}}
			C CompleteNode(t) {"output":{"n":1}}
			E StateUpdated(t) {"state":{"n":1}}
			C ScheduleNode(v)
			E NodeScheduled(v)
			C StartSubworkflow(v) {"workflowRef":"urn:c","childExecutionId":"x:sub:v"}
			E SubworkflowStarted(v) {"workflowRef":"urn:c","childExecutionId":"x:sub:v","parentExecutionId":"x"}
			E SubworkflowCompleted(v) {"workflowRef":"urn:c","childExecutionId":"x:sub:v","mergedOutput":{"c":1}}`, machine.Completed, "", `{"c":1,"n":1}`, ""},
		"a state repeated by a replay": {set + asked + `
			E NodeScheduled(s)
			E StateUpdated(s) {"state":{"a":1}}
			E NodeScheduled(set)
			E StateUpdated(set) {"state":{"other":1}}`, machine.AwaitingActivity, "d#1.1", state, `{"text":"theirs"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := machine.Replay(compile(t, routedDefinition), machine.Config{ExecutionID: "x", Mode: machine.HostMediated}, rows(t, tt.rows), nil, epoch)
			if err != nil {
				t.Fatal(err)
			}
			pending := m.Pending()
			if message, _, _ := m.Failure(); m.Status() != tt.status || string(jsonvalue.Canonical(m.State())) != tt.state {
				t.Fatalf("%s (%s) with %s", m.Status(), message, jsonvalue.Canonical(m.State()))
			}
			if tt.at != "" && (len(pending) != 1 || pending[0].Key != tt.at) {
				t.Fatalf("pending %+v", pending)
			}
			if tt.input != "" && string(jsonvalue.Canonical(pending[0].DelegateInput)) != tt.input {
				t.Errorf("input %s", jsonvalue.Canonical(pending[0].DelegateInput))
			}
		})
	}
}

// A failure that another engine recorded and a join tolerated stays one, whatever this engine would find.
func TestForeignFailureIsTakenAsRecorded(t *testing.T) {
	t.Parallel()
	d := strings.Replace(anyDefinition, `{"id":"t1","type":"tool_call","config":{"server":"s","tool":"t"}}`, `{"id":"t1","type":"set_state","config":{"assignments":{"x":{"literal":1}}}}`, 1)
	m, err := machine.Replay(compile(t, d), machine.Config{ExecutionID: "x", Mode: machine.HostMediated}, rows(t, begun+`
		C ScheduleNode(p)
		E NodeScheduled(p)
		C StartParallel(p)
		E ParallelForked(p)
		C ScheduleNode(t1)
		E NodeScheduled(t1)
		C FailNode(t1) {"reason":"set_state_failed","message":"no"}
		E ExecutionFailed {"error":"no"}
		C ScheduleNode(t2)`), nil, epoch)
	if err != nil {
		t.Fatal(err)
	}
	if p := m.Pending(); len(p) != 1 || p[0].Key != "t2#1.1" || m.State()["x"] != nil {
		t.Errorf("%s, pending %+v, state %v", m.Status(), p, m.State())
	}
}

// A run that this engine began and another continued goes on here, rebuilt from its whole history or caught up from a position.
func TestContinuedThereAndHereAgain(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		definition string
		mode       machine.Mode
		theirs     string
		status     machine.Status
		pending    string
		host       bool
		state      string
	}{
		"a request without a mode": {loopDefinition, machine.HostMediated, `
			E ActivityFailed(t) {"error":"no","attempt":1,"willRetry":true}
			E ActivityRequested(t) {"nodeType":"step","attempt":2}`, machine.AwaitingActivity, "t#1.2", true, `{"a":1}`},
		"a loop": {loopDefinition, machine.HostMediated, `
			E ActivityCompleted(t) {"nodeType":"step","result":{"n":1}}
			C CompleteNode(t) {"output":{"n":1}}
			E StateUpdated(t) {"state":{"a":1,"n":1}}
			C ScheduleNode(w)
			E NodeScheduled(w)
			C CompleteNode(w) {"output":{}}
			E StateUpdated(w) {"state":{"a":1,"n":1}}
			C ScheduleNode(t)
			E NodeScheduled(t)
			E ActivityRequested(t) {"nodeType":"step","attempt":1}
			E ActivityCompleted(t) {"nodeType":"step","result":{"n":2}}
			C CompleteNode(t) {"output":{"n":2}}
			E StateUpdated(t) {"state":{"a":1,"n":2}}
			C ScheduleNode(w)
			E NodeScheduled(w)
			C CompleteNode(w) {"output":{}}
			E StateUpdated(w) {"state":{"a":1,"n":2}}
			C ScheduleNode(t)
			E NodeScheduled(t)
			E ActivityRequested(t) {"nodeType":"step","attempt":1}`, machine.AwaitingActivity, "t#3.1", true, `{"a":1,"n":2}`},
		"a resumed interrupt": {approvalDefinition, machine.HostMediated, `
			C ResumeInterrupt(i)
			E InterruptResumed(i)
			C CompleteNode(i) {"output":{"ok":true}}
			E StateUpdated(i) {"state":{"a":1,"ok":true}}
			E CheckpointWritten(i) {"policy":"after_each_node","lastAppliedEventSeq":13}`, machine.AwaitingActivity, "t#1.1", true, `{"a":1,"ok":true}`},
		"an interrupt resumed twice (W-06)": {approvalDefinition, machine.HostMediated, `
			C ResumeInterrupt(i)
			E InterruptResumed(i)
			C CompleteNode(i) {"output":{"ok":1}}
			E StateUpdated(i) {"state":{"a":1,"ok":1}}
			C ScheduleNode(p)
			E InterruptRaised(i) {"prompt":"?"}
			C ResumeInterrupt(i)
			E InterruptResumed(i)
			C CompleteNode(i) {"output":{"ok":2}}
			E StateUpdated(i) {"state":{"a":1,"ok":2}}`, machine.AwaitingActivity, "t#1.1", true, `{"a":1,"ok":2}`},
		"a delivered signal": {signalDefinition, machine.HostMediated, `
			C DeliverSignal(i) {"signalName":"go","payload":{"l":[1]}}
			E SignalReceived(i) {"signalName":"go","payload":{"l":[1]}}
			C CompleteNode(i) {"output":{"l":[1]}}
			E StateUpdated(i) {"state":{"a":1,"l":[1]}}`, machine.AwaitingActivity, "t#1.1", true, `{"a":1,"l":[1]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prog := compile(t, tt.definition)
			began := machine.Start(prog, machine.Config{ExecutionID: "x", Mode: tt.mode}, object{"a": 1.0}, epoch)
			ours := roundTrip(t, began.Ready().Records)
			position := began.Position()
			all := theirs(t, ours, tt.theirs)
			now := epoch.Add(time.Hour)
			rebuilt, err := machine.Replay(prog, machine.Config{ExecutionID: "x"}, all, nil, now)
			if err != nil {
				t.Fatal(err)
			}
			var at map[string]any
			if seq := machine.PositionStateSeq(position); seq > 0 {
				at = ours[seq-1].Payload.State
			}
			caughtUp, err := machine.Restore(prog, position, at)
			if err != nil {
				t.Fatal(err)
			}
			if err := caughtUp.Catchup(all[len(ours):], now); err != nil {
				t.Fatal(err)
			}
			for form, m := range map[string]*machine.Machine{"rebuilt": rebuilt, "caught up": caughtUp} {
				p := m.Pending()
				if message, _, _ := m.Failure(); len(p) != 1 || p[0].Key != tt.pending || p[0].Host != tt.host || m.Status() != tt.status {
					t.Errorf("%s: %s (%s), pending %+v", form, m.Status(), message, p)
				}
				if got := string(jsonvalue.Canonical(m.State())); got != tt.state {
					t.Errorf("%s: state %s", form, got)
				}
			}
		})
	}
}
