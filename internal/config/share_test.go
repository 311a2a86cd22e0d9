package config_test

import (
	"slices"
	"testing"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/internal/config"
)

// TestSharing reads the settings by which processes share runs.
func TestSharing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args, env []string
		capacity  int
		queues    []string
		label     string
		queued    int
	}{
		{nil, nil, 100, nil, "", 100_000},
		{[]string{"--capacity", "7", "--queues", "a, b,a", "--fair-label", "customer", "--max-queued", "9"}, nil, 7, []string{"a", "b"}, "customer", 9},
		{[]string{"--capacity=0"}, []string{"WORKFLOW_ENGINE_CAPACITY=5", "WORKFLOW_ENGINE_QUEUES=gpu", "WORKFLOW_ENGINE_FAIR_LABEL=tenant", "WORKFLOW_ENGINE_MAX_QUEUED=0"}, -1, []string{"gpu"}, "tenant", -1},
	} {
		cfg, err := load(t, environment(c.env...), c.args...)
		if err != nil {
			t.Fatal(err)
		}
		o := cfg.RunnerOptions(config.Executors{}, nil)
		if o.Capacity != c.capacity || o.MaxQueued != c.queued || !slices.Equal(o.Queues, c.queues) || (o.Queues == nil) != (c.queues == nil) || o.FairLabel != c.label || o.Version == "" {
			t.Errorf("%q %q: capacity %d, %d queued, queues %q, label %q, version %q", c.args, c.env, o.Capacity, o.MaxQueued, o.Queues, o.FairLabel, o.Version)
		}
	}
	for _, args := range [][]string{{"--capacity", "-1"}, {"--capacity", "many"}, {"--queues", "a,,b"}, {"--queues", "a/b"}, {"--max-queued", "100001"}, {"--max-queued", "-1"}} {
		if _, err := load(t, environment(), args...); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
	if w, err := config.ParseWork("None"); w != graph.WorkNone || err != nil {
		t.Errorf("%s %v", w, err)
	}
	if _, err := config.ParseWork("some"); err == nil {
		t.Error("--work some is accepted")
	}
}

// TestTargetsOfExecutors: the configured executors list their handlers, servers and agents.
func TestTargetsOfExecutors(t *testing.T) {
	t.Parallel()
	e := executors(t, `WORKFLOW_ENGINE_STEP_COMMANDS={"stepCommands":{"urn:c":{"command":"go"}}}`, handlers, models)
	for kind, want := range map[string][]string{"step": {"urn:c", "urn:x"}, "llm_call": {""}} {
		can := activities.CapabilitiesOf(e.Within(nil).Activities, activities.Node{Type: kind})
		if can.Targets == nil || !slices.Equal(can.Targets(), want) {
			t.Errorf("%s: want targets %q", kind, want)
		}
	}
	if activities.CapabilitiesOf(executors(t, "WORKFLOW_ENGINE_PROFILE=demo").Activities, activities.Node{Type: "step"}).Targets != nil {
		t.Error("stubs have targets")
	}
}
