package manifest

import (
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/activities/stepcommand"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonobject"
)

// StepCommand is the program that performs the steps of one handler. Values of Env may be references to secrets; they
// are as written here.
type StepCommand = stepcommand.Command

// The largest values of the two limits: a day, and 1 GiB.
const (
	maxTimeoutMs   = 24 * 60 * 60 * 1000
	maxOutputBytes = 1 << 30
)

// ParseStepCommands reads and checks the operator's list of programs that perform steps, by handler name. The map is nil
// if one of the findings is an error; all problems are listed, as Parse does.
func ParseStepCommands(text []byte) (map[string]StepCommand, problem.Findings) {
	commands, findings := parse(text, readStepCommands)
	if commands == nil {
		return nil, findings
	}
	return *commands, findings
}

func readStepCommands(root *jsonobject.Object) *map[string]StepCommand {
	root.Known("$schema")
	list := root.Get("stepCommands")
	root.Close()
	switch {
	case !list.Present():
		root.Missing("stepCommands").Hint = `Write {"stepCommands": {"urn:example:resize": {"command": "python3", "args": ["resize.py"]}}}.`
		return nil
	case list.Map() == nil:
		return nil
	case len(list.Map()) == 0:
		list.Fail("minProperties", "stepCommands names no handler").Hint = "Name at least one handler, or leave the setting out."
	}
	commands := map[string]StepCommand{}
	for name, v := range list.Members() {
		name = strings.TrimSpace(name)
		_, twice := commands[name]
		switch {
		case name == "":
			v.AtName().Fail("minLength", "a handler has a blank name, which no step can name").Hint = "Use a URN, as config.handler of the step does."
		case twice:
			v.AtName().Fail("unique", "duplicate handler %q", name).Hint = "Leave one of them out."
		}
		commands[name] = readStepCommand(v.Object())
	}
	return &commands
}

func readStepCommand(o *jsonobject.Object) (s StepCommand) {
	if o == nil {
		return s
	}
	command := o.Require("command")
	text := plainText(command)
	if s.Command = strings.TrimSpace(text); s.Command == "" && text != "" {
		command.Fail("minLength", "must not be blank")
	}
	s.Args, s.Env, s.Directory = o.Get("args").Texts(), o.Get("env").TextMap(), plainText(o.Get("cwd"))
	timeout, _ := o.Get("timeoutMs").Whole(1, maxTimeoutMs)
	size, _ := o.Get("maxOutputBytes").Whole(1, maxOutputBytes)
	s.Timeout, s.MaxOutputBytes = time.Duration(timeout)*time.Millisecond, int(size)
	o.Close()
	return s
}
