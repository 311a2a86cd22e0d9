package cli

import (
	"bytes"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/fleet"
)

// TestWorkersAndQueue prints the processes and lanes of a database.
func TestWorkersAndQueue(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	about := history.About{
		Host: "box", PID: 71, Version: "1.2.3", Started: now.Add(-3 * time.Hour), Work: "all", Capacity: 100, InFlight: 100, Waiting: 12, Full: true,
		Performs: []string{"llm_call:", "step:a", "step:b", "step:c", "step:d", "step:e", "step:f", "step:g", "step:h", "tool_call:github"},
	}
	front := history.About{Host: "box", PID: 72, Version: "1.2.3", Started: now.Add(-time.Minute), Work: "none"}
	gpu := history.About{Host: "gpu-1", PID: 5, Version: "1.2.2", Started: now.Add(-50 * time.Hour), Work: "all", Queues: []string{"gpu"}, InFlight: 2, Performs: []string{"step"}}
	lane := func(queue, needs string, runs, workers int, waits time.Duration) fleet.Lane {
		return fleet.Lane{LaneUse: history.LaneUse{Lane: history.Lane{Queue: queue, Needs: needs}, Runs: runs, Since: now.Add(-waits)}, Workers: workers}
	}
	f := fleet.Fleet{
		Processes: []history.Process{
			{Name: "box:71/p71", Left: 20 * time.Second, Runs: 140, About: about},
			{Name: "box:72/p72", Left: 9 * time.Second, About: front},
			{Name: "gpu-1:5/p5", Left: 25 * time.Second, Runs: 2, About: gpu},
			{Name: "old", Left: 5 * time.Second, Runs: 1},
		},
		Lanes: []fleet.Lane{
			lane("default", "step:charge", 3, 0, 90*time.Minute), lane("default", "tool_call:github", history.MaxCounted, 1, 12*time.Second),
		},
	}
	var out bytes.Buffer
	a := &app{human: &out, stdout: &out, stderr: &out, columns: func() int { return 0 }}
	for _, err := range []error{a.writeWorkers(f, now), a.writeLanes(f, now), writeEncoded(&out, f.JSON()), writeEncoded(&out, f.LanesJSON())} {
		if err != nil {
			t.Fatal(err)
		}
	}
	a.writeUnserved(f)
	requireGolden(t, "workers", out.String())
}
