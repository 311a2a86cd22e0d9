package machine_test

import (
	"errors"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

const backoffDefinition = `{"document":{"schema":"urn:t","name":"w","version":"1"},"state_schema":{"type":"object"},
	"nodes":[{"id":"s","type":"start"},{"id":"t","type":"tool_call","config":{"server":"s","tool":"t"},"retry":{"max_attempts":2,"initial_interval":"1m"}},
		{"id":"w","type":"wait","config":{"kind":"duration","duration":"1h"}},
		{"id":"i","type":"interrupt","config":{"prompt":"?","resume_schema":{"type":"object"}}},{"id":"e","type":"end"}],
	"edges":[{"source":"__start__","target":"s"},{"source":"s","target":"t"},{"source":"t","target":"w"},{"source":"w","target":"i"},{"source":"i","target":"e"}]}`

// TestW62_NothingIsSubmittedDuringBackOff: between two attempts the run awaits no activity.
func TestW62_NothingIsSubmittedDuringBackOff(t *testing.T) {
	t.Parallel()
	m := machine.Start(compile(t, backoffDefinition), machine.Config{ExecutionID: "x", Mode: machine.HostMediated}, nil, epoch)
	m.Ready()
	if err := m.Handle(machine.Outcome{Host: true, NodeID: "t", Error: "busy"}, epoch); err != nil {
		t.Fatal(err)
	}
	m.Ready()
	err := m.Handle(machine.Outcome{Host: true, NodeID: "t", OK: true}, epoch.Add(time.Second))
	if !errors.Is(err, problem.SubmitNotAwaiting) {
		t.Errorf("submit during back-off: %v", err)
	}
	if b := m.Ready(); len(b.Records) > 0 || m.Status() != machine.AwaitingTimer {
		t.Errorf("the run has changed: %s, %d records", m.Status(), len(b.Records))
	}
}

// TestW36_FactsHoldWhatHappened: the history has due times and the answer to an interrupt.
func TestW36_FactsHoldWhatHappened(t *testing.T) {
	t.Parallel()
	m := machine.Start(compile(t, backoffDefinition), machine.Config{ExecutionID: "x", Mode: machine.HostMediated}, nil, epoch)
	now := epoch
	records := m.Ready().Records
	for _, in := range []machine.Input{
		machine.Outcome{Host: true, NodeID: "t", Error: "busy"},
		machine.TimerFired{Key: "backoff:t#1.2"},
		machine.Outcome{Host: true, NodeID: "t", OK: true},
		machine.TimerFired{Key: "timer:w#1"},
		machine.Resume{Payload: map[string]any{"ok": true}},
	} {
		for _, tm := range m.Timers() {
			if tm.Due.After(now) {
				now = tm.Due
			}
		}
		if err := m.Handle(in, now); err != nil {
			t.Fatal(err)
		}
		records = append(records, m.Ready().Records...)
	}
	found := map[history.Name]bool{}
	for _, r := range records {
		switch p := r.Payload; r.Name {
		case history.ActivityFailed:
			found[r.Name] = p.RetryAt.Equal(r.CreatedAt.Add(time.Minute))
		case history.TimerStarted:
			found[r.Name] = p.DueAt.Equal(r.CreatedAt.Add(time.Hour))
		case history.InterruptResumed:
			found[r.Name] = p.SignalPayload["ok"] == true
		}
	}
	for _, name := range []history.Name{history.ActivityFailed, history.TimerStarted, history.InterruptResumed} {
		if !found[name] {
			t.Errorf("%s: facts are missing", name)
		}
	}
}
