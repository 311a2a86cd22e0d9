package agentloop

import "strconv"

// Resolve returns a configuration with its defaults. The failure, with AGENT_CONFIG_INVALID, says what is wrong with it and where; nil if
// nothing is. New does the same.
func Resolve(c Config) (Config, *Failure) {
	c = c.withFallbacks().withDefaults()
	return c, c.check(strconv.Quote(c.Name), 0)
}
