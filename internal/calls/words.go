package calls

import (
	"maps"
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/config/envname"
	"github.com/workflows-engine/workflows-engine/internal/shellword"
)

// Words returns the words that replace names of the Go library in hints: those of one adapter, and the names of arguments and settings that
// all callers share. A call that no caller can make is the operator's.
func Words(own problem.Glossary) problem.Glossary {
	g := problem.Glossary{
		"StartRequest.AllowExisting": "allow_existing_execution_id", "StatusRequest.Wait": "wait_ms",
		"ForkRequest.Again": "again true", "ForkRequest.RepeatEffects": "anew true with repeat_effects true",
		"Runner.Prune":  "the operator's workflows-engine db prune --older-than 30d",
		"Runner.Verify": "the operator's workflows-engine db verify", "ExportOptions.Redact": "--redact",
		"DatabaseOptions.Definitions": "--definition FILE",
	}
	maps.Copy(g, envname.Options)
	g["Options.Workflows"] = "the operator's --workflow-dir"
	maps.Copy(g, own)
	return g
}

// CommandWords returns the words that replace names of the Go library in hints to people: commands about a run ("" writes ID), with the flags
// store that name its database.
func CommandWords(id string, store ...string) problem.Glossary {
	const program = "workflows-engine"
	if id == "" {
		id = "ID"
	}
	database := ""
	if len(store) > 0 {
		database = " " + shellword.Line(store...)
	}
	about := func(command string, flags ...string) string {
		return shellword.Command([]string{program, command}, []string{id}, slices.Concat(store, flags)...)
	}
	g := problem.Glossary{
		"Runner.Status": about("status"), "Runner.List": program + " list" + database,
		"Runner.Drive":                about("recover", "--definition", "FILE"),
		"Runner.Prune":                program + " db prune --older-than 30d" + database,
		"DatabaseOptions.Definitions": "--definition FILE",
		"Runner.Verify":               program + " db verify --repair" + database,
		"StartRequest.AllowExisting":  about("recover"),
		"ForkRequest.Again":           "--again", "ForkRequest.RepeatEffects": "--anew with --repeat-effects",
		"ForkRequest.Anew": about("retry", "--anew"), "ForkRequest.CurrentAgentConfig": about("retry", "--agent-config", "current"),
		"StatusRequest.Wait": "--wait", "ExportOptions.Redact": "--redact",
	}
	maps.Copy(g, envname.Options)
	return g
}
