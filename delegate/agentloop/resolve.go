package agentloop

import "strconv"

// Resolve returns a configuration with its defaults. The failure, AGENT_CONFIG_INVALID, describes the first error and its place; nil if the
// configuration is valid. New does the same.
func Resolve(c Config) (Config, *Failure) {
	c = c.withFallbacks().withDefaults()
	return c, c.check(strconv.Quote(c.Name), 0)
}
