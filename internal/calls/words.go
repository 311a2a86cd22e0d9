package calls

import (
	"maps"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/config/envname"
)

// Words returns the words that replace names of the Go library in hints: those of one adapter, and the names of arguments and settings that
// all callers share. A call that no caller can make is the operator's.
func Words(own problem.Glossary) problem.Glossary {
	g := problem.Glossary{
		"StartRequest.AllowExisting": "allow_existing_execution_id", "StatusRequest.Wait": "wait_ms",
		"ForkRequest.Again": "again true", "ForkRequest.RepeatEffects": "anew true with repeat_effects true",
		"Runner.Prune":  "the operator's workflows-engine gc --older-than 30d",
		"Runner.Verify": "the operator's workflows-engine verify", "ExportOptions.Redact": "--redact",
		"DatabaseOptions.Definitions": "--definition FILE",
	}
	maps.Copy(g, envname.Options)
	g["Options.Workflows"] = "the operator's --workflow-dir"
	maps.Copy(g, own)
	return g
}
