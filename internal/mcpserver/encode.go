package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// encodedResult is a tool result that writes its content itself. The SDK copies and checks the text of a result five
// times over on its way out, which for a state of hundreds of kilobytes takes longer than all the engine does.
type encodedResult struct {
	*mcp.CallToolResult
	text       string
	structured json.RawMessage // compact JSON; nil for none
}

// encodeAnswers replaces results of one text, with or without structured content, by such that encode themselves.
var encodeAnswers = onResult(func(_ context.Context, _ string, _ mcp.Request, res mcp.Result) mcp.Result {
	r, isTool := res.(*mcp.CallToolResult)
	if isTool && r.InputRequests != nil {
		return questionResult{r}
	}
	if !isTool || len(r.Content) != 1 || len(r.Meta) > 0 {
		return res
	}
	text, isText := r.Content[0].(*mcp.TextContent)
	structured, isRaw := r.StructuredContent.(json.RawMessage)
	if !isText || len(text.Meta) > 0 || text.Annotations != nil || !isRaw && r.StructuredContent != nil {
		return res
	}
	return &encodedResult{r, text.Text, structured}
})

// noContent stands for the content in what the SDK makes of the rest of a result.
var noContent = []byte(`"content":[]`)

// MarshalJSON is what the SDK's would be, save that it leaves <, > and & as they are. The line separators of Unicode are
// escaped: some readers of lines end a line there.
func (r *encodedResult) MarshalJSON() ([]byte, error) {
	rest := *r.CallToolResult
	rest.Content, rest.StructuredContent = []mcp.Content{}, nil
	frame, err := json.Marshal(&rest)
	if err != nil {
		return nil, err
	}
	before, after, found := bytes.Cut(frame, noContent)
	if !found {
		return json.Marshal(r.CallToolResult)
	}
	dst := make([]byte, 0, len(frame)+len(r.structured)+jsonvalue.StringSize(r.text)+64)
	dst = append(append(dst, before...), `"content":[{"type":"text","text":`...)
	dst = append(jsonvalue.AppendString(dst, r.text), "}]"...)
	if r.structured != nil {
		dst = append(append(dst, `,"structuredContent":`...), r.structured...)
	}
	dst = append(dst, after...)
	for _, separator := range []struct{ text, escaped string }{{"\u2028", `\u2028`}, {"\u2029", `\u2029`}} {
		if bytes.Contains(dst, []byte(separator.text)) {
			dst = bytes.ReplaceAll(dst, []byte(separator.text), []byte(separator.escaped))
		}
	}
	return dst, nil
}
