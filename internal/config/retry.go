package config

import (
	"strconv"
	"strings"

	"github.com/workflows-engine/workflows-engine/internal/config/envname"
)

// maxDefaultAttempts is the most that --default-retry may say.
const maxDefaultAttempts = 100

// loadDefaultRetry reads how often activities without a retry policy are attempted, as in "llm_call=3, tool_call=2".
func (f *Flags) loadDefaultRetry(c *Config, env Environment) error {
	s := f.pick(env, flagRetry, envname.DefaultRetry, "")
	if strings.TrimSpace(s.value) == "" {
		return nil
	}
	c.Attempts = map[string]int{}
	for entry := range strings.SplitSeq(s.value, ",") {
		nodeType, number, _ := strings.Cut(entry, "=")
		nodeType = strings.TrimSpace(nodeType)
		attempts, err := strconv.Atoi(strings.TrimSpace(number))
		if err != nil || attempts < 1 || attempts > maxDefaultAttempts || nodeType != "llm_call" && nodeType != "tool_call" {
			return refuse(s, "Write llm_call=attempts, tool_call=attempts or both, separated by a comma, with 1 to %d attempts.", maxDefaultAttempts)
		}
		if _, twice := c.Attempts[nodeType]; twice {
			return refuse(s, "Write %s once.", nodeType)
		}
		c.Attempts[nodeType] = attempts
	}
	return nil
}
