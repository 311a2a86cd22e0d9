package config

import (
	"slices"
	"strconv"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/internal/config/envname"
)

// loadAttemptLimits reads the limits of attempts, as in "step=20, llm_call=100/s, mcp:github=2, mcp:github=5/s".
func (f *Flags) loadAttemptLimits(c *Config, env Environment) error {
	s := f.pick(env, flagLimits, envname.Limits, "")
	if strings.TrimSpace(s.value) == "" {
		return nil
	}
	for entry := range strings.SplitSeq(s.value, ",") {
		l, ok := attemptLimit(entry)
		if !ok {
			return refuse(s, "Write class=number of attempts, or class=number/s of starts a second, separated by commas. A class is step, llm_call, "+
				"tool_call, agent_delegate, step:HANDLER, llm:ADDRESS, mcp:SERVER or agent:ID.")
		}
		i := slices.IndexFunc(c.AttemptLimits, func(o graph.Limit) bool { return o.Class == l.Class })
		if i < 0 {
			c.AttemptLimits = append(c.AttemptLimits, l)
			continue
		}
		same := &c.AttemptLimits[i]
		if same.Concurrent > 0 && l.Concurrent > 0 || same.PerSecond > 0 && l.PerSecond > 0 {
			return refuse(s, "Write one limit of each kind for %s.", l.Class)
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
