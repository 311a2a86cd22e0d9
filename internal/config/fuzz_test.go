package config_test

import (
	"errors"
	"testing"

	"github.com/spf13/pflag"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/config"
	"github.com/workflows-engine/workflows-engine/internal/config/envname"
)

// settingsFuzzed are the settings with a grammar of their own, each of which gets any text, in the variable or in a file.
var settingsFuzzed = []string{
	envname.LLM, envname.A2A, envname.MCPConfig, envname.StepCommands, envname.StepHandlers, envname.SigningKeys, envname.SigningMode,
	envname.WorkflowSources, envname.Limits, envname.MaxBytes, envname.MaxVisits, envname.WaitLimit, envname.Elicit, envname.Drain, envname.LogLevel,
}

// FuzzLoad: whatever a setting holds, the configuration is loaded, or refused with the code of wrong usage.
func FuzzLoad(f *testing.F) {
	for i, text := range []string{
		`{"baseUrl":"https://x/v1","apiKeyEnv":"KEY","stream":true,"requestTimeoutMs":5,"repair":false}`,
		`{"agents":{"a":{"baseUrl":"http://127.0.0.1:1","noAuth":true,"transport":"http-tasks","pollTimeoutMs":1e5}}}`,
		`{"mcpServers":{"s":{"url":"https://x/mcp","headers":{"H":"env:KEY"}}},"delegateAgents":{"a":{"server":"s","tool":"t"}}}`,
		`{"stepCommands":{"urn:x":{"command":"/bin/true","args":["-x"],"env":{"K":"env:KEY"},"cwd":"d"}}}`,
		`{"urn:x":{"a":1}}`, `{"k":"11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="}`, `require`,
		`{"allow":["https://x/flows/"],"privateNetworks":["10.0.0.0/8","::1"],"timeoutMs":1,"maxBytes":1}`,
		`step=20, llm:https://x/v1=4,llm:https://x/v1=1.5/s`, `1GiB`, `10`, `5m`, `20s`, `debug`,
	} {
		f.Add(uint8(i), []byte(text), i%2 == 0)
	}
	f.Fuzz(func(t *testing.T, which uint8, text []byte, file bool) {
		name, value := settingsFuzzed[int(which)%len(settingsFuzzed)], string(text)
		if file || name == envname.MCPConfig {
			value = "/w/setting.json"
		}
		env := environment(name+"="+value, "KEY=secret")
		env.Directory = t.TempDir() // nothing of it is there
		env.ReadFile = func(string) ([]byte, error) { return text, nil }
		for _, load := range []func(*config.Flags, config.Environment) (*config.Config, error){(*config.Flags).Load, (*config.Flags).LoadStore} {
			c, err := load(config.RegisterServer(pflag.NewFlagSet("fuzz", pflag.ContinueOnError)), env)
			if (c == nil) != (err != nil) || err != nil && !errors.Is(err, problem.UsageError) {
				t.Fatalf("%s=%s: %v, %v", name, value, c, err)
			}
		}
	})
}
