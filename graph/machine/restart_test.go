package machine_test

import (
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/machine"
)

// TestRestart: Restart restarts the timeout of an attempt in process, and the position keeps it.
func TestRestart(t *testing.T) {
	t.Parallel()
	prog := compile(t, `{"document":{"schema":"urn:test","name":"w","version":"1"},"state_schema":{"type":"object"},"nodes":[{"id":"s","type":"start"},
		{"id":"p","type":"parallel","config":{"join":"all","branches":[{"name":"1","entry":"a"},{"name":"2","entry":"b"},{"name":"3","entry":"w"}]}},
		{"id":"a","type":"tool_call","timeout":"10s","config":{"server":"x","tool":"a"}},
		{"id":"b","type":"tool_call","config":{"server":"x","tool":"b"}},
		{"id":"w","type":"wait","config":{"kind":"duration","duration":"1m"}},
		{"id":"e","type":"end"}],"edges":[{"source":"__start__","target":"s"},{"source":"s","target":"p"},{"source":"p","target":"e"},{"source":"a","target":"e"},
		{"source":"b","target":"e"},{"source":"w","target":"e"}]}`)
	began := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, mode := range []machine.Mode{machine.InProcess, machine.HostMediated} {
		m := machine.Start(prog, machine.Config{ExecutionID: "r", Mode: mode, Branches: machine.Concurrent, MaxVisits: 100}, nil, began)
		m.Ready()
		now := began.Add(time.Hour)
		for _, key := range []string{"b#1.1", "w#1", "a#1.2", "none"} {
			if e := m.Restart(key, now); e != nil {
				t.Errorf("%s: %s has a new deadline: %+v", mode, key, e)
			}
		}
		e, _ := m.Restart("a#1.1", now).(*machine.ActivityEffect)
		if mode == machine.HostMediated {
			if e != nil {
				t.Errorf("the host's attempt has a new deadline: %+v", e)
			}
			continue
		}
		if e != nil && !e.Requested.Equal(began) {
			t.Errorf("the attempt counts as requested at %v: what it sends may depend on that", e.Requested)
		}
		want := now.Add(10 * time.Second)
		if e == nil || !e.Deadline.Equal(want) {
			t.Fatalf("effect %+v", e)
		}
		b := m.Ready()
		if !b.TimersChanged || len(b.Records) > 0 || len(b.Effects) > 0 || len(b.Timers) != 2 || !b.Timers[0].Due.Equal(want) {
			t.Errorf("batch %+v", b)
		}
		again, err := machine.Restore(prog, m.Position(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if w, ok := again.TimedWait(b.Timers[0].Key); !ok || w.Key != "a#1.1" || !w.Deadline.Equal(want) {
			t.Errorf("restored %+v, %v", w, ok)
		}
		if w, ok := again.TimedWait(b.Timers[1].Key); !ok || w.Kind != machine.WaitTimer {
			t.Errorf("restored %+v, %v", w, ok)
		}
		if w, ok := again.TimedWait("deadline:b#1.1"); ok {
			t.Errorf("a timer that is not open belongs to %+v", w)
		}
	}
}
