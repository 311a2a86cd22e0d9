package config

import (
	"slices"
	"strconv"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/history"
)

// loadCapacity reads the largest number of attempts in flight; 0 is no limit.
func loadCapacity(c *Config, s setting, _ Environment) error {
	n, err := strconv.ParseInt(strings.TrimSpace(s.value), 10, 32)
	if err != nil || n < 0 {
		return invalid(s, "Write a number of attempts, or 0 for no limit.")
	}
	if c.Capacity = int(n); n == 0 {
		c.Capacity = -1
	}
	return nil
}

// loadMaxQueued reads the largest number of runs that wait for a worker in a lane; 0 is no limit.
func loadMaxQueued(c *Config, s setting, _ Environment) error {
	n, err := strconv.ParseInt(strings.TrimSpace(s.value), 10, 32)
	if err != nil || n < 0 || n > history.MaxCounted {
		return invalid(s, "Write a number of runs up to %d, or 0 for no limit.", history.MaxCounted)
	}
	if c.MaxQueued = int(n); n == 0 {
		c.MaxQueued = -1
	}
	return nil
}

// loadQueues reads the names of queues; nil are all.
func loadQueues(c *Config, s setting, _ Environment) error {
	if strings.TrimSpace(s.value) == "" {
		return nil
	}
	for name := range strings.SplitSeq(s.value, ",") {
		if name = strings.TrimSpace(name); !history.IsQueueName(name) {
			return invalid(s, "Write names of queues with commas: at most %d letters, digits, dots, - and _ each.", history.MaxQueueName)
		}
		if !slices.Contains(c.Queues, name) {
			c.Queues = append(c.Queues, name)
		}
	}
	return nil
}

func loadFairLabel(c *Config, s setting, _ Environment) error {
	c.FairLabel = strings.TrimSpace(s.value)
	return nil
}

// ParseWork returns the value of --work.
func ParseWork(text string) (graph.Work, error) {
	return choose(setting{value: text, from: "--work"}, graph.WorkOwn, graph.WorkAll, graph.WorkNone)
}
