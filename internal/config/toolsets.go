package config

import (
	"context"
	"slices"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/toolcall"
	"github.com/workflows-engine/workflows-engine/delegate/agent"
	"github.com/workflows-engine/workflows-engine/delegate/agent/apicall"
	"github.com/workflows-engine/workflows-engine/delegate/agent/knowledge"
	"github.com/workflows-engine/workflows-engine/delegate/agent/mcptools"
	"github.com/workflows-engine/workflows-engine/delegate/agent/skills"
	"github.com/workflows-engine/workflows-engine/internal/agentfile"
)

// toolsets are the parts of agents' tools. A part is nil if no agent of the list uses it.
type toolsets struct {
	servers   *toolcall.Executor
	steps     activities.Executor
	apis      *apicall.APIs
	knowledge *knowledge.Library
	skills    *skills.Library
}

func (c *Config) newToolsets(list *agentfile.File, servers *toolcall.Executor, steps activities.Executor) (t toolsets, err error) {
	t = toolsets{servers: servers, steps: steps}
	services := map[string]apicall.Service{}
	for name, a := range list.APIs {
		services[name] = apicall.Service{
			BaseURL: a.BaseURL, Auth: c.authOf(a.Auth), AllowedPaths: a.AllowedPaths, AllowedMethods: a.AllowedMethods, MaxBodyBytes: a.MaxBodyBytes,
			MaxResponseBytes: a.MaxResponseBytes, Timeout: time.Duration(a.TimeoutMs) * time.Millisecond, PrivateNetworks: a.PrivateNetworks,
		}
	}
	if t.apis, err = apicall.New(apicall.Config{Services: services}); err != nil {
		return t, err
	}
	if k := list.Knowledge; k != nil {
		t.knowledge, err = knowledge.New(knowledge.Config{Path: k.Path, MaxSearchResults: k.MaxSearchResults, MaxReadBytes: k.MaxReadBytes})
		if err != nil {
			return t, err
		}
	}
	if s := list.Skills; s != nil {
		t.skills, err = skills.New(s.Path)
	}
	return t, err
}

// authOf resolves the references of a service at each call.
func (c *Config) authOf(a agentfile.Auth) apicall.Auth {
	secret := func(reference string) apicall.Secret {
		return func(context.Context) (string, error) { return c.env.secret(reference) }
	}
	switch a.Type {
	case "bearer":
		return apicall.Bearer(secret(a.TokenRef))
	case "header":
		return apicall.Header(a.Name, secret(a.ValueRef))
	case "basic":
		return apicall.Basic(secret(a.UserRef), secret(a.PassRef))
	}
	return nil
}

// agent makes an agent with its toolsets. Those with a text of their own come first, skills before knowledge bases, so that the system text
// has the same order whatever that of the list is.
func (s *toolsets) agent(a agentfile.Agent) (agent.Agent, error) {
	made := agent.Agent{Config: a.Config, Models: a.Models, SummaryModel: a.SummaryModel}
	list := slices.Clone(a.Tools)
	slices.SortStableFunc(list, func(a, b agentfile.Tool) int { return rank(a) - rank(b) })
	for _, t := range list {
		var set agent.Toolset
		var err error
		switch {
		case t.Builtin != "":
			made.AskPerson = true
			continue
		case t.Agent != "":
			made.Agents = append(made.Agents, agent.SubAgent{Name: t.Agent, Parallel: t.Parallel != nil && *t.Parallel, Gate: t.Gate})
			continue
		case t.Step != "":
			set = agent.NewStepTool(s.steps, t.Step, t.Name, t.Description, t.InputSchema, toolOptions(t)...)
		case t.APIs != nil:
			set, err = s.apis.Tools(t.APIs, toolOptions(t)...)
		case t.Knowledge != nil:
			set, err = s.knowledge.Tools(t.Knowledge, toolOptions(t)...)
		case t.Skills != nil:
			set, err = s.skills.Tools(t.Skills, toolOptions(t)...)
		default:
			set = mcptools.New(s.servers, t.Server, t.Allow, toolOptions(t)...)
		}
		if err != nil {
			return made, err
		}
		made.Tools = append(made.Tools, set)
	}
	return made, nil
}

func rank(t agentfile.Tool) int {
	switch {
	case t.Skills != nil:
		return 0
	case t.Knowledge != nil:
		return 1
	}
	return 2
}

// toolOptions are the settings of the list that replace those of the server.
func toolOptions(t agentfile.Tool) []agent.Option {
	var list []agent.Option
	if t.Parallel != nil {
		list = append(list, agent.WithParallel(*t.Parallel))
	}
	if t.OnCrash != "" {
		list = append(list, agent.WithOnCrash(t.OnCrash))
	}
	if t.Gate != "" {
		list = append(list, agent.WithGate(t.Gate))
	}
	return list
}
