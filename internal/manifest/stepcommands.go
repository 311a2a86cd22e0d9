package manifest

import (
	"slices"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// StepCommand is the program that performs the steps of one handler. Values of Env may be references to secrets; they
// are as written here.
type StepCommand struct {
	// Command is started with Args.
	Command string
	Args    []string
	// Env is what the process gets beside the few variables that every child gets.
	Env map[string]string
	// Directory is the member "cwd"; "" means the engine's working directory.
	Directory string
	// Timeout bounds one call; 0 means the default.
	Timeout time.Duration
	// MaxOutputBytes bounds the answer; 0 means the default.
	MaxOutputBytes int
}

const stepCommandsMember = "stepCommands"

// stepCommandMembers are the members of a command, and of the file.
var (
	stepCommandMembers  = []string{"command", "args", "env", "cwd", "timeoutMs", "maxOutputBytes"}
	stepCommandsMembers = []string{stepCommandsMember, "$schema"}
)

// The largest values of the two limits: a day, and 1 GiB.
const (
	maxTimeoutMs   = 24 * 60 * 60 * 1000
	maxOutputBytes = 1 << 30
)

// ParseStepCommands reads and checks the operator's list of programs that perform steps, by handler name. The map is nil
// if one of the findings is an error; all problems are listed, as Parse does.
func ParseStepCommands(text []byte) (map[string]StepCommand, problem.Findings) {
	c := checker{}
	var commands map[string]StepCommand
	if node := c.parse(text); node != nil {
		commands = c.stepCommands(node)
	}
	c.findings.Sort()
	if c.findings.HasErrors() {
		return nil, c.findings
	}
	return commands, c.findings
}

func (c *checker) stepCommands(root *jsonvalue.Node) map[string]StepCommand {
	p := place{root, ""}
	if !c.is(p, jsonvalue.Object, "the list of step commands") {
		return nil
	}
	for _, member := range root.Members {
		if !slices.Contains(stepCommandsMembers, member.Name) {
			c.unknown(p, member, "the list of step commands", stepCommandsMembers)
		}
	}
	list := root.Get(stepCommandsMember)
	if list == nil {
		c.missing(p, stepCommandsMember, `Write {"stepCommands": {"urn:example:resize": {"command": "python3", "args": ["resize.py"]}}}.`)
		return nil
	}
	p = place{list, "/" + stepCommandsMember}
	if !c.is(p, jsonvalue.Object, stepCommandsMember) {
		return nil
	}
	if len(list.Members) == 0 {
		c.add(p, problem.ManifestInvalid, "minProperties", "stepCommands names no handler").Hint = "Name at least one handler, or leave the setting out."
	}
	commands := map[string]StepCommand{}
	for _, member := range list.Members {
		name := strings.TrimSpace(member.Name)
		_, twice := commands[name]
		switch {
		case name == "":
			c.addAt(member, p, "minLength", "a handler has a blank name, which no step can name").Hint = "Use a URN, as config.handler of the step does."
		case twice:
			c.addAt(member, p, "unique", "handler %q is there twice", name).Hint = "Leave one of them out."
		}
		commands[name] = c.stepCommand(p.at(member))
	}
	return commands
}

func (c *checker) stepCommand(p place) (s StepCommand) {
	if !c.is(p, jsonvalue.Object, "a step command") {
		return s
	}
	for _, member := range p.node.Members {
		at := p.at(member)
		switch member.Name {
		case "command":
			s.Command = strings.TrimSpace(c.text(at, "command"))
			if s.Command == "" && at.node.Str != "" {
				c.add(at, problem.ManifestInvalid, "minLength", "command is blank")
			}
		case "args":
			s.Args = c.texts(at, "args")
		case "env":
			s.Env = c.textMap(at, "env")
		case "cwd":
			s.Directory = c.text(at, "cwd")
		case "timeoutMs":
			s.Timeout = time.Duration(c.whole(at, "timeoutMs", maxTimeoutMs)) * time.Millisecond
		case "maxOutputBytes":
			s.MaxOutputBytes = c.whole(at, "maxOutputBytes", maxOutputBytes)
		default:
			c.unknown(p, member, "a step command", stepCommandMembers)
		}
	}
	if p.node.Get("command") == nil {
		c.missing(p, "command", "A step command needs the program that is started.")
	}
	return s
}
