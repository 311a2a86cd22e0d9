package config

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/toolcall"
	"github.com/workflows-engine/workflows-engine/delegate/agent"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/agentfile"
	"github.com/workflows-engine/workflows-engine/internal/config/envname"
)

// listAgents reads the list of agents without checking secrets, files and servers.
func listAgents(c *Config, s setting, env Environment) error {
	text, file, err := env.textOf(s.value, s.from)
	if err != nil || text == nil {
		return err
	}
	around := c.AroundAgents(file)
	around.Secret, around.Servers, around.Steps, around.Directories = nil, nil, nil, false
	list, findings := agentfile.Parse(text, around)
	if list == nil {
		return invalidAgents(s.from, file, findings)
	}
	c.Agents = list
	return nil
}

// invalidAgents returns the error of a list, with all its findings.
func invalidAgents(from, file string, findings problem.Findings) *problem.Error {
	e := problem.New(problem.UsageError, "invalid %s", placeOf(from, file))
	if file != "" {
		e = e.WithHint("See workflows-engine agent validate %s.", file)
	}
	e.Findings = findings
	return e
}

// loadAgents reads the agents that run inside the engine, as JSON or as the path of a file. The error of an invalid list has all its findings.
func loadAgents(c *Config, s setting, env Environment) error {
	text, file, err := env.textOf(s.value, s.from)
	if err != nil || text == nil {
		return err
	}
	around := c.AroundAgents(file)
	around.NoServers = c.NoServers()
	if len(around.Steps) == 0 {
		around.NoSteps = "set " + envname.StepCommands
	}
	if c.LLM == nil {
		around.NoProvider = "no provider of models is configured: set " + envname.LLM
	}
	list, findings := agentfile.Parse(text, around)
	if list == nil {
		e := invalidAgents(s.from, file, findings)
		if whole, _ := agentfile.Parse(text, c.AroundAgents(file)); whole != nil {
			e.Message = placeOf(s.from, file) + " names models, servers or steps that are not configured"
			e = e.WithHint("Set the missing options, or remove the entries that need them. The list itself is valid.")
		}
		return e
	}
	for name, address := range list.SecretsTo {
		env.notePlain(name, address)
	}
	c.Agents = list
	return nil
}

// AroundAgents returns the surroundings of a list of agents: the secrets and servers of this configuration, and the directory of its files of
// instructions. file is the path of the list, "" for a list in a variable.
func (c *Config) AroundAgents(file string) agentfile.Surroundings {
	folder := c.env.Directory
	if file != "" {
		folder = filepath.Dir(c.env.absolute(file))
	}
	beside := c.env
	beside.Directory = folder
	around := agentfile.Surroundings{
		ReadFile: func(path string) ([]byte, error) { return c.env.read(beside.absolute(path)) },
		Secret: func(reference string) error {
			_, err := c.env.secret(reference)
			return err
		},
		Absolute: beside.absolute, Directories: true,
	}
	for name := range c.StepHandlers {
		around.Steps = append(around.Steps, strings.TrimSpace(name))
	}
	around.Steps = slices.Sorted(slices.Values(slices.AppendSeq(around.Steps, maps.Keys(c.StepCommands))))
	if c.Manifest != nil {
		around.Servers = slices.Sorted(maps.Keys(c.Manifest.Servers))
	}
	return around
}

// NoServers returns a hint to configure MCP servers, "" if there are some.
func (c *Config) NoServers() string {
	if c.Manifest != nil {
		return ""
	}
	return "set --" + flagMCPConfig + " or " + envname.MCPConfig
}

// AgentNames returns the names of the configured agents, sorted; nil without agents.
func (c *Config) AgentNames() []string {
	if c.Agents == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(c.Agents.Agents))
}

// AgentSkills returns the skills of each agent that has some.
func (c *Config) AgentSkills() map[string][]string {
	skills := map[string][]string{}
	for _, name := range c.AgentNames() {
		a := c.Agents.Agents[name]
		if names := a.Skills(); names != nil {
			skills[name] = names
		}
	}
	return skills
}

// NewAgents makes the agents of a list. tools is the executor of the manifest, nil without one; steps performs step nodes.
func (c *Config) NewAgents(list *agentfile.File, tools *toolcall.Executor, steps activities.Executor) (*agent.Agents, error) {
	made := agent.Config{Models: map[string]agent.Model{}, Mask: c.env.secrets.maskAnswer, Log: c.Log}
	models, err := c.models()
	if err != nil {
		return nil, err
	}
	for name, m := range list.Models {
		model, err := models(name, m.Endpoint)
		if err != nil {
			return nil, problem.New(problem.AgentConfigInvalid, "model %q", name).WithCause(err)
		}
		made.Models[name] = agent.Model{Chat: model, Model: m.Model}
	}
	if made.Agents, err = list.Build(agentfile.Runtime{Servers: tools, Steps: steps, Secret: c.env.secret}); err != nil {
		return nil, err
	}
	return agent.New(made)
}
