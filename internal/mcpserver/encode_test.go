package mcpserver_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
)

func marshalled(t *testing.T, r mcp.Result) (text string, value any) {
	t.Helper()
	b, err := json.Marshal(r)
	if err == nil {
		err = json.Unmarshal(b, &value)
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(b), value
}

// TestEncodedAnswers: a result that encodes itself equals the SDK's encoding, and has no character that a reader may take for
// the end of a line.
func TestEncodedAnswers(t *testing.T) {
	t.Parallel()
	texts := []string{"", "done", "a\n{\"b\":\"<c>&\\\"\"}", "\u2028\u2029 \x00\x1f\x7f \xff\ud7ff \U0001F600", `"content":[]`}
	for _, text := range texts {
		quoted, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, structured := range []any{nil, json.RawMessage(`{}`), json.RawMessage(`{"content":[],"t":` + string(quoted) + `,"u":"` + "\u2028" + `"}`)} {
			for _, rest := range []string{`{"content":[]}`, `{"content":[],"isError":true}`, `{"content":[],"resultType":"complete"}`} {
				var r mcp.CallToolResult
				if err := json.Unmarshal([]byte(rest), &r); err != nil {
					t.Fatal(err)
				}
				r.Content, r.StructuredContent = []mcp.Content{&mcp.TextContent{Text: text}}, structured
				encoded, err := mcpserver.EncodeAnswer(&r)
				if err != nil || encoded == mcp.Result(&r) {
					t.Fatalf("%T, %v", encoded, err)
				}
				_, want := marshalled(t, &r)
				got, value := marshalled(t, encoded)
				if !reflect.DeepEqual(value, want) {
					t.Errorf("%s\nsays %v\nwant %v", got, value, want)
				}
				if strings.ContainsAny(got, "\n\r\u2028\u2029") {
					t.Errorf("more than one line: %q", got)
				}
			}
		}
	}
}

// TestAnswersLeftToTheSDK: the SDK encodes results with more than one text and structured content.
func TestAnswersLeftToTheSDK(t *testing.T) {
	t.Parallel()
	text := &mcp.TextContent{Text: "a"}
	for name, r := range map[string]*mcp.CallToolResult{
		"two texts":        {Content: []mcp.Content{text, text}},
		"no text":          {Content: []mcp.Content{}},
		"an image":         {Content: []mcp.Content{&mcp.ImageContent{MIMEType: "image/png"}}},
		"annotated":        {Content: []mcp.Content{&mcp.TextContent{Annotations: &mcp.Annotations{Priority: 1}}}},
		"meta of the text": {Content: []mcp.Content{&mcp.TextContent{Meta: mcp.Meta{"a": 1}}}},
		"meta":             {Meta: mcp.Meta{"a": `"content":[]`}, Content: []mcp.Content{text}},
		"a value":          {Content: []mcp.Content{text}, StructuredContent: map[string]any{"a": 1}},
	} {
		if got, err := mcpserver.EncodeAnswer(r); err != nil || got != mcp.Result(r) {
			t.Errorf("%s: %T, %v", name, got, err)
		}
	}
}
