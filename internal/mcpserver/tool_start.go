package mcpserver

import (
	"context"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

func startTool(defaultMode machine.Mode) *tool {
	inProcess, here := string(machine.InProcess), defaultMode
	if here == "" {
		here = machine.InProcess
	}
	return &tool{
		name:  "workflow_start",
		title: "Start workflow execution",
		description: "Starts a run of a workflow definition and answers where it stopped. pending says what the run " +
			"waits for, next which call to make.",
		annotations: mcp.ToolAnnotations{DestructiveHint: new(false), OpenWorldHint: new(true)},
		arguments: []property{
			optional("definition", members{
				{"anyOf", []members{{{"type", "object"}}, {{"type", "string"}}}},
				{"description", "The definition: an object, or JSON or YAML text. Resource awp://guide says how to write one. Required unless definition_ref is given."},
			}),
			optional("definition_ref", aText("A definition that has been run here before: its name, name@version or hash.")),
			optional("input", obj("The first state; default {}.")),
			optional("execution_id", aText("Your id for the run; left out, one is made. An id that is in use is refused.")),
			optional("activity_execution_mode", oneOf("Who performs steps, model calls, tool calls and delegates: host_mediated "+
				"(you, through workflow_submit_activity) or in_process (this server). Default here: "+string(here)+".",
				inProcess, string(machine.HostMediated))),
			optional("allow_existing_execution_id", describe("boolean", "With execution_id: if that run exists, answer where it "+
				"stands instead of refusing, and take it up again if its process has died. Makes a repeated start safe.")),
			optional("branch_order", oneOf("How parallel branches run: concurrent (default) or sequential.",
				string(machine.Concurrent), string(machine.Sequential))),
			waitArgument,
		},
		answer:  append(runAnswer(), warningsProperty),
		invalid: problem.ValidationError,
		call: func(ctx context.Context, d *desk, a *arguments) (*answer, error) {
			req := graph.StartRequest{
				ExecutionID:   a.text("execution_id", false),
				Definition:    a.definition("definition", problem.ValidationError),
				DefinitionRef: a.text("definition_ref", false),
				Input:         a.object("input", false),
				Mode:          a.mode(),
				Branches:      machine.BranchOrder(a.choice("branch_order", string(machine.Concurrent), string(machine.Sequential))),
				AllowExisting: a.boolean("allow_existing_execution_id", false),
				Wait:          a.wait(),
			}
			if req.Mode == "" {
				req.Mode = defaultMode
			}
			switch sent, named := a.values["definition"] != nil, req.DefinitionRef != ""; {
			case sent && named:
				a.issue("definition_ref", "and definition were both given; give one")
			case !sent && !named && a.values["definition_ref"] == nil:
				a.issue("definition", "is required, unless definition_ref names a stored one")
			}
			if err := a.problem(); err != nil {
				return nil, err
			}
			run, err := d.Start(ctx, req)
			return withWarnings(warningsOf(req.Definition))(d.ran(ctx, run, err, ""))
		},
	}
}

// withWarnings adds the warnings about the definition to the answer of a start.
func withWarnings(w warnings) func(*answer, error) (*answer, error) {
	return func(ans *answer, err error) (*answer, error) {
		if ended, ok := errors.AsType[*endedInFailure](err); ok {
			ended.warnings = w
		}
		if ans != nil && len(w) > 0 {
			ans.headline += w.headline()
			ans.content.put("warnings", w.encode())
		}
		return ans, err
	}
}
