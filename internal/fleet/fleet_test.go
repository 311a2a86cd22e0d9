package fleet_test

import (
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/fleet"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func lane(needs string) history.Lane {
	return history.Lane{Queue: history.DefaultQueue, Needs: needs}
}

// TestReadyText: a run that waits for a worker is told how many serve its lane, or what is missing.
func TestReadyText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		lane           history.Lane
		ahead, workers int
		want           string
	}{
		{lane("step:charge"), 12, 2, "a worker: lane default/step:charge, 12 ahead, since 2026-11-29 12:00:00Z; 2 workers serve it"},
		{lane("llm_call"), 0, 1, "a worker: lane default/llm_call, next, since 2026-11-29 12:00:00Z; 1 worker serves it"},
		{
			lane("step:charge"), 0, 0,
			`a worker: lane default/step:charge, next, since 2026-11-29 12:00:00Z; no worker serves it: start one with handler "charge" in WORKFLOW_ENGINE_STEP_COMMANDS or WORKFLOW_ENGINE_STEP_HANDLERS`,
		},
	} {
		got := fleet.ReadyText(&view.Ready{Place: history.Place{Ready: history.Ready{Lane: c.lane}, Ahead: c.ahead, Since: noon}, Workers: c.workers})
		if got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

// TestNeeded names the setting of each executor.
func TestNeeded(t *testing.T) {
	t.Parallel()
	for needs, want := range map[string]string{
		"llm_call":         "WORKFLOW_ENGINE_LLM_CONFIG",
		"llm_call:clerk":   `agent "clerk" in WORKFLOW_ENGINE_AGENTS or --agents`,
		"sdk:clerk":        `agent "clerk" in WORKFLOW_ENGINE_AGENTS or --agents`,
		"a2a:far":          `agent "far" in WORKFLOW_ENGINE_A2A_CONFIG`,
		"mcp:tool":         `agent "tool" in WORKFLOW_ENGINE_MCP_CONFIG`,
		"tool_call:github": `server "github" in WORKFLOW_ENGINE_MCP_CONFIG`,
		"":                 "workflows-engine worker",
	} {
		if got := fleet.Needed(lane(needs)); got != want {
			t.Errorf("%s: %s, want %s", needs, got, want)
		}
	}
	if got, want := fleet.Needed(history.Lane{Queue: "gpu", Needs: "llm_call"}), "WORKFLOW_ENGINE_LLM_CONFIG, for queue gpu (--queues)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestRead reads the processes and lanes of a store, and which processes serve a lane.
func TestRead(t *testing.T) {
	t.Parallel()
	ctx, store := t.Context(), historymem.New()
	for name, about := range map[string]history.About{
		"a": {Host: "box", PID: 7, Work: "all", Performs: []string{"llm_call:", "step:charge"}, Capacity: 100, InFlight: 3},
		"b": {Host: "box", PID: 8, Work: "all", Performs: []string{"step"}, Queues: []string{"gpu"}},
		"c": {Host: "box", PID: 9, Work: "none"},
		"d": {},
	} {
		if err := store.Renew(ctx, name, time.Minute); err != nil {
			t.Fatal(err)
		}
		if err := store.Describe(ctx, name, about); err != nil {
			t.Fatal(err)
		}
	}
	reader, ok := fleet.Of(store)
	if !ok {
		t.Fatal("the store lists no processes")
	}
	f, err := fleet.Read(ctx, reader)
	if err != nil || len(f.Processes) != 4 || len(f.Lanes) != 0 {
		t.Fatalf("%+v %v", f, err)
	}
	for name, want := range map[string]string{"a": "box:7", "d": "d", "gone": "gone"} {
		if got := f.NameOf(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	a, b, c, d := &f.Processes[0], &f.Processes[1], &f.Processes[2], &f.Processes[3]
	for i, text := range [][2]string{
		{fleet.Load(a), "3/100"},
		{fleet.Load(b), "0"},
		{fleet.Load(c), "0"},
		{fleet.Load(d), ""},
		{fleet.Queues(a), "all"},
		{fleet.Queues(b), "gpu"},
		{fleet.Queues(c), ""},
		{fleet.Performs(a, 8), "llm_call, step:charge"},
		{fleet.Performs(a, 1), "llm_call, 1 more"},
		{fleet.Performs(d, 8), ""},
	} {
		if text[0] != text[1] {
			t.Errorf("%d: %q, want %q", i, text[0], text[1])
		}
	}
	for place, want := range map[history.Lane]string{
		lane("step:charge"):                 "a worker, 4 ahead",
		lane("step:other"):                  "a worker: none serves default/step:other",
		lane("llm_call"):                    "a worker, 4 ahead",
		lane("llm_call:clerk"):              "a worker: none serves default/llm_call:clerk",
		{Queue: "gpu", Needs: "step:other"}: "a worker, 4 ahead",
	} {
		if got := f.PlaceText(history.Place{Ready: history.Ready{Lane: place}, Ahead: 4}); got != want {
			t.Errorf("%s: %q, want %q", place, got, want)
		}
	}
}

// TestUnserved: only lanes without a worker are unserved.
func TestUnserved(t *testing.T) {
	t.Parallel()
	f := fleet.Fleet{Lanes: []fleet.Lane{
		{LaneUse: history.LaneUse{Lane: lane("step:a"), Runs: 3, Since: noon}, Workers: 1},
		{LaneUse: history.LaneUse{Lane: lane("step:b"), Runs: 1, Since: noon}},
		{LaneUse: history.LaneUse{Lane: lane("step:c"), Runs: history.MaxCounted, Since: noon}},
	}}
	left := f.Unserved()
	if len(left) != 2 {
		t.Fatalf("%+v", left)
	}
	for i, want := range []string{
		"no worker serves default/step:b, where 1 run waits since 2026-11-29 12:00:00Z",
		"no worker serves default/step:c, where 100000+ runs wait since 2026-11-29 12:00:00Z",
	} {
		if got := left[i].Unserved(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
