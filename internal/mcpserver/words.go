package mcpserver

import (
	"maps"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/config/envname"
)

// words are the names under which hosts know what the library's hints speak of. What no tool does is the operator's.
var words = withOptions(problem.Glossary{
	"Runner.Status": "workflow_status", "Runner.List": "workflow_list",
	"Runner.Drive":               "workflow_start with definition and allow_existing_execution_id",
	"StartRequest.AllowExisting": "allow_existing_execution_id", "StatusRequest.Wait": "wait_ms",
	"ForkRequest.Again": "again true", "ForkRequest.RepeatEffects": "anew true with repeat_effects true",
	"ForkRequest.Anew": "workflow_fork with anew true", "ForkRequest.CurrentAgentConfig": "workflow_fork with current_config true",
	"Runner.Prune":  "the operator's workflows-engine gc --older-than 30d",
	"Runner.Verify": "the operator's workflows-engine verify", "ExportOptions.Redact": "--redact",
})

func withOptions(g problem.Glossary) problem.Glossary {
	maps.Copy(g, envname.Options)
	g["Options.Workflows"] = "the operator's --workflow-dir"
	return g
}
