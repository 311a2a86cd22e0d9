package config

import (
	"slices"
	"strconv"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
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

// loadAttemptLimits reads the limits of attempts, as in "step=20, llm_call=100/s, mcp:github=2,5/s".
func loadAttemptLimits(c *Config, s setting, _ Environment) error {
	if strings.TrimSpace(s.value) == "" {
		return nil
	}
	class := ""
	for entry := range strings.SplitSeq(s.value, ",") {
		l, ok := attemptLimit(class, entry)
		if !ok {
			return invalid(s, "Write class=attempts, or class=starts/s, with commas between them. %s", knownClasses)
		}
		if why := unmatched(l.Class); why != "" {
			return invalid(s, "%s", why)
		}
		class = l.Class
		i := slices.IndexFunc(c.AttemptLimits, func(o graph.Limit) bool { return o.Class == l.Class })
		if i < 0 {
			c.AttemptLimits = append(c.AttemptLimits, l)
			continue
		}
		if !join(&c.AttemptLimits[i], l) {
			return invalid(s, "Write one limit of each kind for %s.", l.Class)
		}
	}
	return nil
}

const knownClasses = "A class is step, llm_call, tool_call, agent_delegate, step:HANDLER, llm:ADDRESS, mcp:SERVER or agent:ID."

// join adds a limit of the same class. ok is false if both have a limit of one kind.
func join(to *graph.Limit, l graph.Limit) (ok bool) {
	if to.Concurrent > 0 && l.Concurrent > 0 || to.PerSecond > 0 && l.PerSecond > 0 {
		return false
	}
	to.Concurrent += l.Concurrent
	to.PerSecond += l.PerSecond
	return true
}

// SharedLimits reads limits that processes share, one class in each text, as in "llm_call=20,150/s" and "step:charge=none"; none removes the
// limit.
func SharedLimits(texts []string) ([]history.SharedLimit, error) {
	var limits []history.SharedLimit
	for _, text := range texts {
		faulty := func(hint string, args ...any) ([]history.SharedLimit, error) {
			return nil, problem.New(problem.UsageError, "invalid limit %q", text).WithHint(hint, args...)
		}
		whole, removes := strings.CutSuffix(strings.TrimSpace(text), "=none")
		if removes {
			whole += "=1" // of which only the class is used
		}
		var joined graph.Limit
		for i, entry := range strings.Split(whole, ",") {
			l, ok := attemptLimit(joined.Class, entry)
			switch {
			case !ok:
				return faulty("Write CLASS=ATTEMPTS, CLASS=STARTS/s, both as in llm_call=20,150/s, or CLASS=none. %s", knownClasses)
			case unmatched(l.Class) != "":
				return faulty("%s", unmatched(l.Class))
			case i == 0:
				joined = l
			case l.Class != joined.Class:
				return faulty("Write a space between the limits of two classes.")
			case !join(&joined, l):
				return faulty("Write one limit of each kind for %s.", l.Class)
			}
		}
		if removes {
			joined = graph.Limit{Class: joined.Class}
		}
		limits = append(limits, history.SharedLimit{Class: joined.Class, Concurrent: joined.Concurrent, PerSecond: joined.PerSecond})
	}
	return limits, history.CheckLimits(limits)
}

// attemptLimit reads a limit. One without a class has that of the limit before it.
func attemptLimit(class, entry string) (l graph.Limit, ok bool) {
	at := strings.LastIndexByte(entry, '=')
	if at < 0 && class == "" {
		return l, false
	}
	if l.Class = class; at >= 0 {
		l.Class = strings.TrimSpace(entry[:at])
	}
	if l.Class == "llm" {
		l.Class = "llm_call"
	}
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
		l.Concurrent, err = strconv.Atoi(strings.TrimSpace(number))
	}
	return l, ok && err == nil && (l.Concurrent > 0 || l.PerSecond > 0 && l.PerSecond <= 1e9)
}

// unmatched returns a hint if no attempt can belong to a class.
func unmatched(class string) string {
	kind, name, named := strings.Cut(class, ":")
	switch {
	case named && name != strings.TrimSpace(name):
		return "No attempt has this class. Write the name without spaces around it: " + kind + ":" + strings.TrimSpace(name) + "."
	case kind == "llm" && !strings.HasPrefix(name, "http://") && !strings.HasPrefix(name, "https://"):
		return "No attempt has this class. Write the address of an endpoint after llm:, as in llm:https://api.example.com/v1; llm_call limits all models."
	}
	return ""
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
