package config

func loadProfile(c *Config, s setting, _ Environment) error {
	if s.value == "" {
		return nil
	}
	// Unlike in other choices, letter case counts: the protocol defines exactly "demo" (spec: cli-and-config, 4).
	if s.value != string(Demo) {
		return invalid(s, "Write demo, or leave it out: nodes without an executor are then rejected.")
	}
	c.Profile = Demo
	return nil
}

func loadRequests(c *Config, s setting, _ Environment) error {
	record, err := choose(s, "on", "off")
	c.OmitRequests = record == "off"
	return err
}

func loadLogLevel(c *Config, s setting, _ Environment) error {
	name, err := choose(s, "debug", "info", "warn", "error")
	if err != nil {
		return err
	}
	c.LogLevelGiven = s.from != ""
	return c.LogLevel.UnmarshalText([]byte(name)) // slog knows these names
}
