package toolcall

import (
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// output turns a tool's result into an activity's output (spec: activities, 6.5): structured content if there is any,
// else the text blocks, else the blocks as they came. Structured content that is not an object becomes {"value": …}, as
// every output does. It is held against what the tool has agreed to, which may be nil.
func output(tool string, result *mcp.CallToolResult, agreed *contract) (any, error) {
	var texts []string
	for _, block := range result.Content {
		if text, ok := block.(*mcp.TextContent); ok {
			texts = append(texts, text.Text)
		}
	}
	text := strings.TrimSpace(strings.Join(texts, "\n"))
	switch {
	case result.IsError && text == "":
		return nil, activities.Fail(problem.MCPToolExecutionError, "tool %q reported an error without a text", tool)
	case result.IsError:
		return nil, activities.Fail(problem.MCPToolExecutionError, "%s", text)
	case result.StructuredContent != nil:
		value, err := jsonvalue.Normalize(result.StructuredContent)
		if err != nil {
			return nil, malformed(tool, err)
		}
		if agreed != nil {
			if violations := agreed.output().check(value); violations != "" {
				return nil, activities.Fail(problem.OutputSchemaViolation, "the result of tool %q breaks its output schema: %s", tool, violations)
			}
		}
		if _, ok := value.(map[string]any); !ok {
			value = map[string]any{"value": value}
		}
		return value, nil
	case text != "":
		return map[string]any{"text": text}, nil
	}
	blocks := []any{}
	for _, block := range result.Content {
		value, err := jsonvalue.Normalize(block)
		if err != nil {
			return nil, malformed(tool, err)
		}
		blocks = append(blocks, value)
	}
	return map[string]any{"content": blocks}, nil
}

func malformed(tool string, err error) error {
	failure := activities.Fail(problem.MCPClientError, "the result of tool %q cannot be read", tool)
	failure.Err = err
	return failure
}
