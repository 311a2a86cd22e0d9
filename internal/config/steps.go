package config

import (
	"os"
	"os/exec"
	"strings"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/stepcommand"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/config/envname"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/manifest"
)

// steps builds the registry of step handlers: fixed results and programs.
func (c *Config) steps(e *Executors) (activities.Executor, error) {
	registry := activities.NewStepRegistry()
	if err := registry.RegisterStatic(c.StepHandlers); err != nil {
		return nil, err
	}
	if c.StepCommands != nil {
		var err error
		if e.commands, err = c.Commands(c.StepCommands, envname.StepCommands); err != nil {
			return nil, err
		}
		if err := e.commands.Register(registry); err != nil {
			return nil, err
		}
	}
	return registry.Frozen(), nil
}

// Commands makes the executor of a list of step commands. Errors name the place of the list: a variable, a file.
// The caller closes the executor.
func (c *Config) Commands(list map[string]manifest.StepCommand, place string) (*stepcommand.Commands, error) {
	commands := make(map[string]stepcommand.Command, len(list))
	for name, s := range list {
		given := s.Directory != ""
		s.Directory = c.env.absolute(s.Directory)
		if strings.ContainsAny(s.Command, `/\`) {
			s.Command = c.env.absolute(s.Command) // else it would be relative to cwd on some systems only
		}
		if _, err := exec.LookPath(s.Command); err != nil {
			return nil, problem.New(problem.UsageError, "%s: cannot run program %q of handler %q", place, s.Command, name).
				WithCause(err).WithHint("Write a program in PATH, or the path of an executable file.")
		}
		if info, err := os.Stat(s.Directory); given && (err != nil || !info.IsDir()) {
			return nil, problem.New(problem.UsageError, "%s: cwd %s of handler %q must be a directory", place, s.Directory, name).
				WithHint("Create it, or write another directory in cwd.")
		}
		c.env.secrets.addNamed(s.Env)
		commands[name] = s
	}
	return stepcommand.New(stepcommand.Config{
		Commands: commands, Environ: c.env.Variables, Secret: c.env.secret, Logger: c.Log,
	})
}

// loadStepHandlers reads WORKFLOW_ENGINE_STEP_HANDLERS: fixed results by handler name (spec: activities, 7.2).
func loadStepHandlers(c *Config, _ setting, env Environment) error {
	handlers, err := env.object(envname.StepHandlers)
	if err != nil {
		return err
	}
	if err := activities.NewStepRegistry().RegisterStatic(handlers); err != nil {
		return problem.New(problem.UsageError, "%s", envname.StepHandlers).WithCause(err).
			WithHint("Write the handler as in config.handler of a step, for instance urn:example:resize.")
	}
	c.StepHandlers = handlers
	return nil
}

// loadStepCommands reads WORKFLOW_ENGINE_STEP_COMMANDS: the programs that perform steps, as JSON or as the path of a
// file. An invalid list ends the start with all its findings.
func loadStepCommands(c *Config, _ setting, env Environment) error {
	text, file, err := env.text(envname.StepCommands)
	if err != nil || text == nil {
		return err
	}
	hint := "Set it to {\"stepCommands\": {…}}, or to the path of a file with it."
	if file != "" {
		hint = "See workflows-engine tool validate " + file + "."
	}
	commands, findings := manifest.ParseStepCommands(text)
	if findings.HasErrors() {
		e := problem.New(problem.UsageError, "invalid %s", placeOf(envname.StepCommands, file)).WithHint("%s", hint)
		e.Findings = findings
		return e
	}
	for _, name := range jsonvalue.Keys(c.StepHandlers) {
		if _, both := commands[strings.TrimSpace(name)]; both {
			return problem.New(problem.UsageError, "handler %q is in %s and in %s", name, envname.StepHandlers, envname.StepCommands).
				WithHint("Leave it out of one of them.")
		}
	}
	c.StepCommands = commands
	return nil
}
