package toolcall

import (
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// contentMember is the field of an output with the blocks. It gets the prefix "_" if structured content has a field of this name.
const contentMember = "content"

// output turns a tool's result into an activity's output (spec: activities, 6.5): structured content if there is any, else the text blocks,
// else the blocks unchanged. Structured content that is not an object becomes {"value": …}, as in every output. Blocks with more content
// are added to it. It is checked against the tool's contract, which may be nil.
func output(tool string, result *mcp.CallToolResult, agreed *contract) (any, error) {
	blocks, err := blocksOf(result)
	if err != nil {
		return nil, malformed(tool, err)
	}
	var texts []string
	others := []any{}
	for _, block := range blocks {
		if text, ok := textOf(block); ok {
			texts = append(texts, text)
		} else {
			others = append(others, block)
		}
	}
	text := strings.TrimSpace(strings.Join(texts, "\n"))
	switch {
	case result.IsError:
		return nil, reported(tool, text, result, others)
	case result.StructuredContent != nil:
		return structured(tool, result.StructuredContent, agreed, blocks)
	case agreed != nil && agreed.tool.OutputSchema != nil:
		return nil, activities.Fail(problem.OutputSchemaViolation, "tool %q declares an output schema, and its result has no structured content", tool)
	case text != "":
		return beside(map[string]any{"text": text}, others), nil
	}
	return map[string]any{contentMember: append([]any{}, blocks...)}, nil
}

// reported is the failure that a tool reports, with its advice about another attempt.
func reported(tool, text string, result *mcp.CallToolResult, others []any) error {
	plain, _ := jsonvalue.Normalize(result.StructuredContent) // nil without any
	if text == "" && (plain != nil || len(others) > 0) {
		// It has described the error in another way.
		said := beside(map[string]any{}, others)
		if plain != nil {
			said["structuredContent"] = plain
		}
		text = problem.Clip(string(jsonvalue.Canonical(said)), maxViolations)
	}
	failure := activities.Fail(problem.MCPToolExecutionError, "%s", text)
	if text == "" {
		failure.Message = fmt.Sprintf("tool %q reported an error without a text", tool)
	}
	meta, _ := jsonvalue.Normalize(map[string]any(result.Meta))
	failure.RetryAfter = later(text, meta, plain)
	return failure
}

// structured is the output of a result with structured content.
func structured(tool string, content any, agreed *contract, blocks []any) (any, error) {
	value, err := jsonvalue.Normalize(content)
	if err != nil {
		return nil, malformed(tool, err)
	}
	if agreed != nil {
		if violations := agreed.output().check(value); violations != "" {
			return nil, activities.Fail(problem.OutputSchemaViolation, "the result of tool %q breaks its output schema: %s", tool, violations)
		}
	}
	var more []any
	for _, block := range blocks {
		if text, ok := textOf(block); !ok || !repeats(text, value) {
			more = append(more, block)
		}
	}
	object, ok := value.(map[string]any)
	if !ok {
		object = map[string]any{"value": value}
	}
	return beside(object, more), nil
}

// beside adds blocks to an output.
func beside(output map[string]any, blocks []any) map[string]any {
	if len(blocks) == 0 {
		return output
	}
	name := contentMember
	for _, taken := output[name]; taken; _, taken = output[name] {
		name = "_" + name
	}
	output[name] = blocks
	return output
}

// repeats reports whether a text only repeats the structured content: servers send both, for clients that know one of them. The text is the
// JSON of the whole, of one of its fields or of an item of such a field, or equal to one of these that is a string.
func repeats(text string, value any) bool {
	text = strings.TrimSpace(text)
	decoded, err := jsonvalue.Decode([]byte(text))
	same := func(v any) bool {
		plain, isText := v.(string)
		return isText && strings.TrimSpace(plain) == text || err == nil && jsonvalue.Equal(decoded, v)
	}
	if text == "" || same(value) {
		return true
	}
	parts, _ := value.([]any)
	members, _ := value.(map[string]any)
	for _, name := range jsonvalue.Keys(members) {
		if same(members[name]) {
			return true
		}
		if items, ok := members[name].([]any); ok {
			parts = append(parts[:len(parts):len(parts)], items...)
		}
	}
	for _, part := range parts {
		if same(part) {
			return true
		}
	}
	return false
}

// textOf returns the text of a text block without further fields.
func textOf(block any) (text string, ok bool) {
	members, _ := block.(map[string]any)
	if members["type"] != "text" {
		return "", false
	}
	text, ok = members["text"].(string)
	return text, ok
}

// blocksOf returns the blocks of a result unchanged.
func blocksOf(result *mcp.CallToolResult) ([]any, error) {
	if blocks, ok := result.Meta[blocksMeta]; ok {
		plain, err := jsonvalue.Normalize(blocks)
		list, _ := plain.([]any)
		return list, err
	}
	var blocks []any
	for _, block := range result.Content {
		value, err := jsonvalue.Normalize(block)
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, value)
	}
	return blocks, nil
}

func malformed(tool string, err error) error {
	failure := activities.Fail(problem.MCPClientError, "the result of tool %q cannot be read", tool)
	failure.Err = err
	return failure
}
