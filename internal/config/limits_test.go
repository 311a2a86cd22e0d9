package config_test

import (
	"errors"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/config"
	"github.com/workflows-engine/workflows-engine/internal/memory"
)

func TestLimits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args, env []string
		want      config.Limits
	}{
		{nil, nil, config.Limits{}},
		{
			[]string{"--max-visits", "50", "--max-records", "70000", "--max-bytes", "2GiB", "--max-pending", "9"}, nil,
			config.Limits{Visits: 50, Records: 70_000, Bytes: 2 << 30, Pending: 9},
		},
		{
			[]string{"--max-visits=7"}, []string{"WORKFLOW_ENGINE_MAX_VISITS=8", "WORKFLOW_ENGINE_MAX_BYTES=1000", "WORKFLOW_ENGINE_MAX_RECORDS=5", "WORKFLOW_ENGINE_MAX_PENDING=6"},
			config.Limits{Visits: 7, Records: 5, Bytes: 1000, Pending: 6},
		},
		{
			[]string{"--max-depth", "2", "--max-tree-runs", "30", "--max-tree-visits=7", "--max-tree-records=8", "--max-tree-bytes=1GiB"}, []string{"WORKFLOW_ENGINE_MAX_TREE_PENDING=6"},
			config.Limits{Depth: 2, Tree: graph.TreeLimits{Runs: 30, Visits: 7, Records: 8, Bytes: 1 << 30, Pending: 6}},
		},
		{
			nil, []string{
				"WORKFLOW_ENGINE_MAX_DEPTH=1", "WORKFLOW_ENGINE_MAX_TREE_RUNS=2", "WORKFLOW_ENGINE_MAX_TREE_VISITS=3", "WORKFLOW_ENGINE_MAX_TREE_RECORDS=4", "WORKFLOW_ENGINE_MAX_TREE_BYTES=5KiB",
			},
			config.Limits{Depth: 1, Tree: graph.TreeLimits{Runs: 2, Visits: 3, Records: 4, Bytes: 5 << 10}},
		},
		{[]string{"--max-bytes", "3 MiB"}, nil, config.Limits{Bytes: 3 << 20}},
	} {
		cfg, err := load(t, environment(c.env...), c.args...)
		if err != nil || cfg.Limits != c.want {
			t.Errorf("%v %v: got %+v, %v", c.args, c.env, cfg, err)
		}
	}
	for _, arg := range []string{"--max-visits=0", "--max-visits=-1", "--max-visits=many", "--max-visits=1KiB", "--max-records=1.5", "--max-pending=99999999999", "--max-bytes=0MiB", "--max-bytes=GiB", "--max-bytes=99999999999GiB", "--max-depth=0", "--max-tree-runs=-1", "--max-tree-bytes=0"} {
		if _, err := load(t, environment(), arg); !errors.Is(err, problem.UsageError) {
			t.Errorf("%s: got %v", arg, err)
		}
	}
}

func TestMaxMemory(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args, env []string
		want      int64
	}{
		{nil, nil, memory.Default},
		{[]string{"--max-memory=0"}, nil, 0},
		{[]string{"--max-memory", "2GiB"}, []string{"WORKFLOW_ENGINE_MAX_MEMORY=1GiB"}, 2 << 30},
		{nil, []string{"WORKFLOW_ENGINE_MAX_MEMORY=100000000"}, 100_000_000},
	} {
		if cfg, err := load(t, environment(c.env...), c.args...); err != nil || cfg.MaxMemory != c.want {
			t.Errorf("%v %v: got %+v, %v", c.args, c.env, cfg, err)
		}
	}
	for _, arg := range []string{"--max-memory=-1", "--max-memory=much"} {
		if _, err := load(t, environment(), arg); !errors.Is(err, problem.UsageError) {
			t.Errorf("%s: got %v", arg, err)
		}
	}
}
