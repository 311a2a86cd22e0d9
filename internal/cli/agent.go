package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/delegate/agent"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/agentfile"
	"github.com/workflows-engine/workflows-engine/internal/config"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

func newAgent(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:   "agent",
		Short: "Manage agents",
		Long: `Manage the agents of the list in --agents or $WORKFLOW_ENGINE_AGENTS, and run one. An agent asks a model, calls tools and asks
people until it has an answer. Each of its steps is recorded, so that it continues after a crash.`,
	}, newAgentList(a), newAgentShow(a), newAgentValidate(a), newAgentRun(a), newAgentTranscript(a))
}

func newAgentList(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List agents",
		Example: "  workflows-engine agent list --agents agents.json",
		Args:    exactly(),
		RunE:    func(*cobra.Command, []string) error { return a.listAgents(asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, one object a line")
	return cmd
}

// loadAgents loads the configuration of a command that needs agents. load is Load of the flags, or LoadAgentList.
func (a *app) loadAgents(load func(config.Environment) (*config.Config, error)) (*config.Config, error) {
	c, err := load(a.env)
	if err != nil {
		return nil, err
	}
	if c.Agents == nil {
		return nil, usage("no agents are configured").WithHint("Name a file with --agents FILE or WORKFLOW_ENGINE_AGENTS.")
	}
	return c, nil
}

func (a *app) listAgents(asJSON bool) error {
	c, err := a.loadAgents(a.flags.LoadAgentList)
	if err != nil {
		return err
	}
	rows := [][]string{{"NAME", "MODELS", "TOOLS", "DESCRIPTION"}}
	for _, name := range slices.Sorted(maps.Keys(c.Agents.Agents)) {
		g := c.Agents.Agents[name]
		var tools []string
		for _, t := range g.Tools {
			tools = append(tools, t.String())
		}
		if asJSON {
			line := jsonvalue.Ordered{{"name", name}, {"description", g.Description}, {"models", g.Models}, {"tools", orEmpty(tools)}}
			if err := writeLine(a.stdout, line); err != nil {
				return err
			}
			continue
		}
		rows = append(rows, []string{name, problem.AndList(g.Models), dash(cut(problem.AndList(tools), 60)), dash(cut(g.Description, 80))})
	}
	if asJSON {
		return nil
	}
	return writeTable(a.human, rows)
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

func newAgentShow(a *app) *cobra.Command {
	var tools bool
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show the configuration of an agent",
		Long: `Print the configuration of an agent as JSON, with the defaults filled in: instructions, models and their addresses, gates, budgets
and sub-agents. Secrets are shown as references. --tools connects to its servers and adds the tools with their schemas, and warns of
likely mistakes on standard error.`,
		Example:           "  workflows-engine agent show researcher --agents agents.json --tools",
		Args:              exactly("NAME"),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.showAgent(cmd.Context(), args[0], tools) },
		ValidArgsFunction: a.completeAgents,
	}
	cmd.Flags().BoolVar(&tools, "tools", false, "connect to the servers and list the tools with their schemas")
	return cmd
}

// noAgent returns the error for the name of an agent that is not configured.
func noAgent(c *config.Config, name string) error {
	e := usage("agent %q not found", name)
	known := slices.Sorted(maps.Keys(c.Agents.Agents))
	if near := suggest.DidYouMean(name, known); near != "" {
		return e.WithHint("D%s", near[1:])
	}
	return e.WithHint("Use %s.", problem.OrList(known))
}

func (a *app) showAgent(ctx context.Context, name string, withTools bool) error {
	c, err := a.loadAgents(a.flags.Load)
	if err != nil {
		return err
	}
	g, ok := c.Agents.Agents[name]
	if !ok {
		return noAgent(c, name)
	}
	c.Log = a.logger(c)
	executors, err := c.Executors()
	if err != nil {
		return err
	}
	err = func() error {
		resolved, _ := executors.Agents.Config(name)
		endpoints := map[string]any{}
		for _, model := range g.Models {
			endpoints[model] = endpointOf(c, c.Agents.Models[model])
		}
		shown := jsonvalue.Ordered{{"agent", agentfile.InDollars(resolved)}, {"endpoints", endpoints}}
		if withTools {
			tools, err := a.checkTools(ctx, executors.Agents, name)
			if err != nil {
				return err
			}
			shown.Put("tools", tools)
		} else {
			list := []string{}
			for _, t := range g.Tools {
				list = append(list, t.String())
			}
			shown.Put("tools", list)
		}
		return writeEncoded(a.stdout, shown)
	}()
	return firstError(err, executors.Close())
}

// endpointOf returns the address of a model and the reference to its key.
func endpointOf(c *config.Config, m agentfile.Model) map[string]any {
	e := m.Endpoint
	if e == nil {
		return map[string]any{"baseUrl": c.LLM.BaseURL, "from": "WORKFLOW_ENGINE_LLM_CONFIG"}
	}
	at := map[string]any{"baseUrl": e.BaseURL}
	if e.NoAuth {
		at["noAuth"] = true
	} else {
		at["key"] = e.KeyReference
	}
	return at
}

func newAgentValidate(a *app) *cobra.Command {
	var tools bool
	cmd := &cobra.Command{
		Use:   "validate FILE",
		Short: "Validate a list of agents",
		Long: `Validate a list of agents. Its secrets, files and directories must exist. Servers, step handlers and the provider of
models are checked against --mcp-config, $WORKFLOW_ENGINE_STEP_COMMANDS and $WORKFLOW_ENGINE_LLM_CONFIG, if these are set.

--check-tools connects to the servers and lists the tools of each agent. It warns of patterns that match no tool, and of more than 128 tools.`,
		Example: "  workflows-engine agent validate agents.json --mcp-config mcp.json --check-tools",
		Args:    namedFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.flags.LoadForAgents(a.env)
			if err != nil {
				return err
			}
			list, err := readOperatorFile(a, args[0], func(text []byte) (*agentfile.File, problem.Findings) {
				around := c.AroundAgents(args[0])
				if tools {
					around.NoServers = c.NoServers()
				}
				return agentfile.Parse(text, around)
			})
			if err != nil {
				return err
			}
			if tools {
				if err := a.checkAllTools(cmd.Context(), c, args[0], list); err != nil {
					return err
				}
			}
			fmt.Fprintf(a.human, "OK: %s: %s, %s\n", args[0], count(len(list.Models), "model"), count(len(list.Agents), "agent"))
			return nil
		},
	}
	cmd.Flags().BoolVar(&tools, "check-tools", false, "connect to the servers and list the tools of each agent")
	return cmd
}

// checkAllTools lists the tools of each agent of a list, in the order of the agents' names. The error counts the failures.
func (a *app) checkAllTools(ctx context.Context, c *config.Config, file string, list *agentfile.File) error {
	c.Log = a.logger(c)
	c.Agents = list
	executors, err := c.Executors()
	if err != nil {
		return err
	}
	failed := 0
	for _, name := range slices.Sorted(maps.Keys(list.Agents)) {
		tools, err := a.checkTools(ctx, executors.Agents, name)
		if ctx.Err() != nil {
			return firstError(context.Cause(ctx), executors.Close())
		}
		if err != nil {
			a.say("%s %s: %v\n", a.paint.bad("error:"), name, err)
			failed++
			continue
		}
		fmt.Fprintf(a.human, "%s: %s\n", name, count(len(tools), "tool"))
	}
	err = executors.Close()
	if failed > 0 {
		err = fmt.Errorf("%s: cannot list the tools of %d of %s", file, failed, count(len(list.Agents), "agent"))
	}
	return err
}

// checkTools lists the tools of an agent, with warnings about likely mistakes.
func (a *app) checkTools(ctx context.Context, agents *agent.Agents, name string) ([]agent.Tool, error) {
	tools, warnings, err := agents.Check(ctx, name)
	for _, warning := range warnings {
		a.say("warning: %s: %s\n", name, warning)
	}
	return tools, err
}

// completeAgents completes a command's first argument with the names of the agents.
func (a *app) completeAgents(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	c, err := a.flags.Load(a.env)
	if err != nil || c.Agents == nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(c.Agents.Agents)) {
		names = append(names, cobra.CompletionWithDesc(name, cut(c.Agents.Agents[name].Description, describedWidth)))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
