package config

import (
	"strconv"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/internal/config/envname"
	"github.com/workflows-engine/workflows-engine/internal/memory"
)

// Limits bound what a run and a tree of runs may grow to; 0 means the engine's default (graph.Options).
type Limits struct {
	Visits  int
	Records int64
	Bytes   int64
	Pending int
	Depth   int
	Tree    graph.TreeLimits
}

func (f *Flags) loadLimits(c *Config, env Environment) error {
	var visits, pending, depth int64
	for _, l := range []struct {
		flag, variable string
		into           *int64
		sizes          bool
	}{
		{flagMaxVisits, envname.MaxVisits, &visits, false},
		{flagMaxRecords, envname.MaxRecords, &c.Limits.Records, false},
		{flagMaxBytes, envname.MaxBytes, &c.Limits.Bytes, true},
		{flagMaxPending, envname.MaxPending, &pending, false},
		{flagMaxDepth, envname.MaxDepth, &depth, false},
		{flagMaxTreeRuns, envname.MaxTreeRuns, &c.Limits.Tree.Runs, false},
		{flagMaxTreeVisits, envname.MaxTreeVisits, &c.Limits.Tree.Visits, false},
		{flagMaxTreeRecords, envname.MaxTreeRecords, &c.Limits.Tree.Records, false},
		{flagMaxTreeBytes, envname.MaxTreeBytes, &c.Limits.Tree.Bytes, true},
		{flagMaxTreePending, envname.MaxTreePending, &c.Limits.Tree.Pending, false},
	} {
		s := f.pick(env, l.flag, l.variable, "")
		if s.from == "" {
			continue
		}
		var err error
		if *l.into, err = s.count(l.sizes); err != nil {
			return err
		}
	}
	c.Limits.Visits, c.Limits.Pending, c.Limits.Depth = int(visits), int(pending), int(depth)
	return nil
}

func (f *Flags) loadMemory(c *Config, env Environment) (err error) {
	s := f.pick(env, flagMaxMemory, envname.MaxMemory, strconv.Itoa(memory.Default))
	if strings.TrimSpace(s.value) != "0" {
		c.MaxMemory, err = s.count(true)
	}
	return err
}

// MemoryBudget makes the bound of memory the runtime's and returns what admits new work.
func (c *Config) MemoryBudget() *memory.Budget {
	return memory.Set(c.MaxMemory, c.env.Variable("GOMEMLIMIT"))
}

// count reads a number above zero; a size may have a unit.
func (s setting) count(size bool) (int64, error) {
	digits, unit := strings.TrimSpace(s.value), int64(1)
	hint := "Write a number above zero, as in 50000."
	if size {
		hint = "Write a number of bytes above zero, with a unit if you like, as in 512MiB or 2GiB."
		for name, n := range map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
			if rest, ok := strings.CutSuffix(digits, name); ok {
				digits, unit = strings.TrimSpace(rest), n
			}
		}
	}
	n, err := strconv.ParseInt(digits, 10, 32)
	if size {
		n, err = strconv.ParseInt(digits, 10, 64)
	}
	if err != nil || n <= 0 || n > 1<<53/unit {
		return 0, refuse(s, "%s", hint)
	}
	return n * unit, nil
}
