package manifest

import (
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/activities/stepcommand"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/document"
	"github.com/workflows-engine/workflows-engine/schemas"
)

// StepCommand is the program that performs the steps of one handler. Values of Env may be references to secrets; they are as written here.
type StepCommand = stepcommand.Command

var stepCommands = document.Kind{
	Schema: schemas.StepCommands, Code: problem.ManifestInvalid, Syntax: problem.ManifestSyntax, MaxBytes: MaxBytes,
}

// ParseStepCommands reads and checks the operator's list of programs that perform steps, by handler name. The map is nil if one of the
// findings is an error; all problems are listed, as Parse does.
func ParseStepCommands(text []byte) (map[string]StepCommand, problem.Findings) {
	var written struct {
		Commands map[string]struct {
			Command        string            `json:"command"`
			Args           []string          `json:"args"`
			Env            map[string]string `json:"env"`
			Directory      string            `json:"cwd"`
			TimeoutMs      int               `json:"timeoutMs"`
			MaxOutputBytes int               `json:"maxOutputBytes"`
		} `json:"stepCommands"`
	}
	d := stepCommands.Read(text, &written)
	if !d.Decoded() {
		return nil, d.Findings()
	}
	commands := map[string]StepCommand{}
	for _, name := range d.Names("/stepCommands") {
		c := written.Commands[name]
		handler := strings.TrimSpace(name)
		if _, twice := commands[handler]; twice {
			d.FailName(document.At("stepCommands", name), "unique", "duplicate handler %q", handler).Hint = "Leave one of them out."
		}
		commands[handler] = StepCommand{
			Command: strings.TrimSpace(c.Command), Args: c.Args, Env: c.Env, Directory: c.Directory,
			Timeout: time.Duration(c.TimeoutMs) * time.Millisecond, MaxOutputBytes: c.MaxOutputBytes,
		}
	}
	if !d.Valid() {
		return nil, d.Findings()
	}
	return commands, nil
}
