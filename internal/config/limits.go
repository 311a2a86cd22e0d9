package config

import (
	"slices"
	"strconv"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/internal/memory"
)

// Limits bound the size of a run and of a tree of runs; 0 is the engine's default (graph.Options).
type Limits struct {
	Visits  int
	Records int64
	Bytes   int64
	Pending int
	Depth   int
	Tree    graph.TreeLimits
}

func loadMemory(c *Config, s setting, _ Environment) (err error) {
	if strings.TrimSpace(s.value) != "0" {
		c.MaxMemory, err = s.count(true)
	}
	return err
}

// MemoryBudget sets the memory limit of the runtime, and returns the budget that admits new work.
func (c *Config) MemoryBudget() *memory.Budget {
	return memory.Set(c.MaxMemory, c.env.Variable("GOMEMLIMIT"))
}

// loadAttemptLimits reads the limits of attempts, as in "step=20, llm_call=100/s, mcp:github=2, mcp:github=5/s".
func loadAttemptLimits(c *Config, s setting, _ Environment) error {
	if strings.TrimSpace(s.value) == "" {
		return nil
	}
	for entry := range strings.SplitSeq(s.value, ",") {
		l, ok := attemptLimit(entry)
		if !ok {
			return invalid(s, "Write class=attempts, or class=starts/s, with commas between them. A class is step, llm_call, "+
				"tool_call, agent_delegate, step:HANDLER, llm:ADDRESS, mcp:SERVER or agent:ID.")
		}
		i := slices.IndexFunc(c.AttemptLimits, func(o graph.Limit) bool { return o.Class == l.Class })
		if i < 0 {
			c.AttemptLimits = append(c.AttemptLimits, l)
			continue
		}
		same := &c.AttemptLimits[i]
		if same.Concurrent > 0 && l.Concurrent > 0 || same.PerSecond > 0 && l.PerSecond > 0 {
			return invalid(s, "Write one limit of each kind for %s.", l.Class)
		}
		same.Concurrent += l.Concurrent
		same.PerSecond += l.PerSecond
	}
	return nil
}

func attemptLimit(entry string) (l graph.Limit, ok bool) {
	at := strings.LastIndexByte(entry, '=')
	if at < 0 {
		return l, false
	}
	l.Class = strings.TrimSpace(entry[:at])
	kind, name, named := strings.Cut(l.Class, ":")
	switch kind {
	case "step":
		ok = !named || name != ""
	case "llm_call", "tool_call", "agent_delegate":
		ok = !named
	case "llm":
		l.Class, ok = strings.TrimRight(l.Class, "/"), name != ""
	case "mcp", "agent":
		ok = name != ""
	}
	number, rate := strings.CutSuffix(strings.TrimSpace(entry[at+1:]), "/s")
	var err error
	if rate {
		l.PerSecond, err = strconv.ParseFloat(strings.TrimSpace(number), 64)
	} else {
		l.Concurrent, err = strconv.Atoi(number)
	}
	return l, ok && err == nil && (l.Concurrent > 0 || l.PerSecond > 0 && l.PerSecond <= 1e9)
}

// maxDefaultAttempts is the largest number of attempts in --default-retry.
const maxDefaultAttempts = 100

// loadDefaultRetry reads how often activities without a retry policy are attempted, as in "llm_call=3, tool_call=2".
func loadDefaultRetry(c *Config, s setting, _ Environment) error {
	if strings.TrimSpace(s.value) == "" {
		return nil
	}
	c.Attempts = map[string]int{}
	for entry := range strings.SplitSeq(s.value, ",") {
		nodeType, number, _ := strings.Cut(entry, "=")
		nodeType = strings.TrimSpace(nodeType)
		attempts, err := strconv.Atoi(strings.TrimSpace(number))
		if err != nil || attempts < 1 || attempts > maxDefaultAttempts || nodeType != "llm_call" && nodeType != "tool_call" {
			return invalid(s, "Write llm_call=attempts, tool_call=attempts or both, separated by a comma, with 1 to %d attempts.", maxDefaultAttempts)
		}
		if _, twice := c.Attempts[nodeType]; twice {
			return invalid(s, "Write %s once.", nodeType)
		}
		c.Attempts[nodeType] = attempts
	}
	return nil
}
