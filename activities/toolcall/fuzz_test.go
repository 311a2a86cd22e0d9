package toolcall

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/internal/childprocess"
)

// FuzzMessages reads what a server prints, as an answer's body too: only messages pass, within the limit, a line each, and no value
// of a secret is logged.
func FuzzMessages(f *testing.F) {
	const secret = "sentinel-4711"
	for _, text := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"x"}]}}` + "\n", "Listening on " + secret + "\n\n[1]\n{\n",
		`{"jsonrpc":"2.0","id":1234567890123456789,"result":{"structuredContent":{"n":1234567890123456789}}}`,
		"event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":{\"content\":[1e999]}}\n\ndata:\n", `[{"jsonrpc":"2.0"},`, `{"jsonrpc":"2.0","jsonrpc":""}`,
	} {
		f.Add([]byte(text), uint16(100))
	}
	f.Fuzz(func(t *testing.T, text []byte, limit uint16) {
		out, err := os.CreateTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		if _, err := out.Write(text); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Seek(0, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		m := newMessages(out, int(limit)-envelope, slog.New(slog.NewTextHandler(&log, nil)), childprocess.NewScrubber([]string{secret}))
		got, err := io.ReadAll(m)
		if large := m.large.Load(); large != (err != nil) || large && len(text) <= int(limit) {
			t.Fatalf("%d bytes with a limit of %d: %v", len(text), limit, err)
		}
		for line := range bytes.Lines(got) {
			if len(line) > int(limit)+1+envelope || !json.Valid(line) {
				t.Fatalf("passed on: %q", line)
			}
		}
		if strings.Contains(log.String()+m.strayLine(), secret) {
			t.Fatalf("logged: %s", log.String())
		}
		for _, kind := range []string{"application/json", "text/event-stream", "text/plain"} {
			body, err := io.ReadAll(exactAnswer(io.NopCloser(bytes.NewReader(text)), kind))
			if err != nil || kind == "text/plain" && !bytes.Equal(body, text) {
				t.Fatalf("%s: %q, %v", kind, body, err)
			}
		}
	})
}

// FuzzOutput turns any result of any tool into an output: a value that is plain JSON, or a failure with a code.
func FuzzOutput(f *testing.F) {
	f.Add([]byte(`{"content":[{"type":"text","text":"x"}],"structuredContent":{"n":1},"isError":false}`), []byte(`{"type":"object","required":["n"]}`))
	f.Add([]byte(`{"content":[{"type":"image","data":"AA==","mimeType":"image/png"}]}`), []byte(`{"$ref":"#/x"}`))
	f.Add([]byte(`{"content":[{"type":"resource","resource":{"uri":"x","text":"y"}}],"isError":true}`), []byte(`true`))
	f.Add([]byte(`{"structuredContent":[1e308,null]}`), []byte(`{"items":{"type":"number"}}`))
	f.Fuzz(func(t *testing.T, answer, schema []byte) {
		var result mcp.CallToolResult
		if json.Unmarshal(answer, &result) != nil {
			t.Skip("answers are JSON: the SDK refuses others before")
		}
		var agreed *contract
		var tool mcp.Tool
		if json.Unmarshal(schema, &tool.OutputSchema) == nil && tool.OutputSchema != nil {
			agreed = &contract{tool: &tool, log: slog.New(slog.DiscardHandler)}
		}
		value, err := output("t", &result, agreed)
		if failure, ok := err.(*activities.Failure); err != nil && (!ok || failure.Code == "" || value != nil) {
			t.Fatalf("%v, %v", value, err)
		}
		if _, ok := value.(map[string]any); err == nil && !ok {
			t.Fatalf("an output of type %T", value)
		}
		if _, bad := json.Marshal(value); bad != nil {
			t.Fatalf("an output that is not JSON: %v", bad)
		}
	})
}
