package machine_test

import (
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
)

// TestRequestsOfOlderReleasesStayOpen: releases that filled nothing in asked a host for attempts whose templates are wrong. Such a run
// still waits for its host, who gets the config as written, and goes on with its outcome.
func TestRequestsOfOlderReleasesStayOpen(t *testing.T) {
	t.Parallel()
	prog := compile(t, `{"document":{"schema":"urn:test","name":"w","version":"1"},"state_schema":{"type":"object"},"nodes":[{"id":"s","type":"start"},
		{"id":"a","type":"tool_call","metadata":{"argument_templates":true},"config":{"server":"x","tool":"a","arguments":{"n":"${ .who.name }"}}},
		{"id":"e","type":"end"}],"edges":[{"source":"__start__","target":"s"},{"source":"s","target":"a"},{"source":"a","target":"e"}]}`)
	began := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	cfg := machine.Config{ExecutionID: "r", Mode: machine.HostMediated}
	rows := machine.Start(prog, cfg, map[string]any{"who": "Ann"}, began).Ready().Records
	for i := range rows {
		if rows[i].Name == history.ActivityFailed {
			rows = rows[:i]
			break
		}
	}
	if last := rows[len(rows)-1]; last.Name != history.ActivityRequested {
		t.Fatalf("the history ends with %s", last.Name)
	}
	m, err := machine.Replay(prog, cfg, roundTrip(t, rows), nil, began.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if b := m.Ready(); len(b.Records) > 0 {
		t.Errorf("the replay adds %s", describe(b.Records[0]))
	}
	ws := m.Pending()
	if len(ws) != 1 || !ws[0].Host || ws[0].Filled != nil {
		t.Fatalf("pending %+v", ws)
	}
	if err := m.Handle(machine.Outcome{Host: true, NodeID: "a", OK: true}, began.Add(time.Hour)); err != nil || m.Status() != machine.Completed {
		t.Errorf("%s, %v", m.Status(), err)
	}
}
