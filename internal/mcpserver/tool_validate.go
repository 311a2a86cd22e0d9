package mcpserver

import (
	"context"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/lint"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/calls"
	"github.com/workflows-engine/workflows-engine/internal/picture"
)

func validateTool() *tool {
	return &tool{
		name:        "workflow_validate",
		title:       "Check a workflow definition",
		description: "Checks a definition without running it: every problem with its place and fix, warnings, and the graph as text.",
		annotations: mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: new(false), OpenWorldHint: new(false)},
		arguments:   []property{required("definition", calls.DefinitionSchema("The definition: an object, or JSON or YAML text."))},
		answer: []property{
			required("valid", describe("boolean", "Whether it can be started.")),
			optional("errors", describe("array", "code, message, hint, instancePath, line.")),
			optional("warnings", describe("array", "The same.")),
			optional("graph", str("A line a node.")),
		},
		invalid: problem.ValidationError,
		call: func(ctx context.Context, s *server, a *arguments) (*answer, error) {
			a.Require("definition")
			doc := s.definition(a, problem.ValidationError)
			if len(a.Report.Findings) > 0 {
				return nil, a.Problem()
			}
			var (
				prog     *definition.Program
				findings problem.Findings
			)
			if a.Refused != nil {
				findings = a.Refused.Findings
			} else {
				agents, skills := s.agentNames()
				prog, findings = lint.Compile(doc, lint.Options{Options: definition.Options{Runnable: true}, Subworkflow: s.subworkflows(ctx), Agents: agents, Skills: skills})
			}
			if a.NoLines {
				findings = pointersOnly(findings)
			}
			return judged(prog, findings, a.Refused), nil
		},
	}
}

// judged returns the answer with the findings about a definition; refused is the error of reading it, or nil.
func judged(prog *definition.Program, findings problem.Findings, refused *problem.Error) *answer {
	ans := &answer{content: members{{"valid", prog != nil}}}
	var errors, warnings []members
	found := map[problem.Severity]int{}
	for _, f := range findings {
		list, mark := &errors, "- "
		if f.Severity == problem.SeverityWarning {
			list, mark = &warnings, "- warning: "
		}
		found[f.Severity]++
		if len(*list) < maxFindings {
			*list = append(*list, encodeFinding(f))
			ans.lines = append(ans.lines, mark+findingText(f))
		}
	}
	if refused != nil && len(errors) == 0 {
		errors = []members{{{"code", string(refused.Code)}, {"message", refused.Error()}, {"hint", refused.Hint}}}
		ans.lines = append(ans.lines, "- "+refused.Error())
		found[problem.SeverityError] = 1
	}
	if more := found[problem.SeverityError] - len(errors); more > 0 {
		ans.content.Put("errors_left_out", float64(more))
		ans.lines = append(ans.lines, fmt.Sprintf("- and %d more: fix these first", more))
	}
	if more := found[problem.SeverityWarning] - len(warnings); more > 0 {
		ans.content.Put("warnings_left_out", float64(more))
		ans.lines = append(ans.lines, fmt.Sprintf("- and %s more", count(more, "warning")))
	}
	if errors != nil {
		ans.content.Put("errors", errors)
	}
	if warnings != nil {
		ans.content.Put("warnings", warnings)
	}
	ans.headline = "The definition is not valid: " + count(found[problem.SeverityError], "problem") + "."
	if prog != nil {
		graph := picture.Text(prog, nil)
		ans.content.Put("graph", graph)
		ans.headline = "The definition is valid, with " + count(found[problem.SeverityWarning], "warning") + "."
		ans.lines = append(ans.lines, graph)
	}
	return ans
}
