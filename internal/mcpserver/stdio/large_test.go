package stdio_test

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/workflows-engine/workflows-engine/internal/mcpserver/frame"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver/stdio"
)

var large = strings.Repeat("x", 200_000)

// TestLargeArgumentsAreNotDecodedByTheReader: what the next message waits for is finding the end of the arguments. They may be anything;
// whoever handles the call decodes them.
func TestLargeArgumentsAreNotDecodedByTheReader(t *testing.T) {
	t.Parallel()
	for _, arguments := range []string{
		`{"a":"` + large + `"}`, "{\"a\":\"" + large + "\xff\"}", `{"a":"` + large + `\"}","b":[{}]}`, `{"arguments":{},"a":"` + large + `" no JSON}`, `"{\"a\":\"` + large + `\"}"`, `[` + large + `]`,
	} {
		for _, line := range []string{
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":` + arguments + `}}`,
			`{"id":1,"params":{"name":"t" , "\u0061rguments" : ` + arguments + ` },"arguments":{},"method":"tools/call","jsonrpc":"2.0"}`,
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{}},"params":{"arguments":1,"name":"t","arguments":` + arguments + `}}`,
		} {
			var out output
			c := connect(t, &stdio.Transport{In: strings.NewReader(line), Out: &out})
			m, err := c.Read(t.Context())
			if err != nil {
				t.Fatalf("%v, answered %s", err, out.String())
			}
			req := m.(*jsonrpc.Request)
			if got, _ := req.Extra.(frame.Arguments); req.ID != number(t, 1) || req.Method != "tools/call" || string(got) != arguments {
				t.Errorf("%.40s…: read %.200v", line, req)
			}
			if len(req.Params) > 100 || !strings.Contains(string(req.Params), `"t"`) {
				t.Errorf("%.40s…: params %.200s", line, req.Params)
			}
		}
	}
}

// TestLargeMessagesThatAreRefused: besides the arguments of a tool call a message is short. What is refused has its id and the place
// in the line.
func TestLargeMessagesThatAreRefused(t *testing.T) {
	t.Parallel()
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"a":"` + large + `"}`
	for name, tt := range map[string]struct {
		line, message string
		code          int
	}{
		"arguments of another method":   {`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"arguments":"` + large + `"}}`, `the parameters of \"ping\" have 200002 bytes`, -32602},
		"more than arguments":           {`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"` + strings.Repeat(large, 6) + `"}}`, "besides the arguments of a tool call", -32600},
		"the id at the end":             {`{"method":"ping","params":{"a":"` + strings.Repeat(large, 6) + `"},"jsonrpc":"2.0","id":1}`, "besides the arguments of a tool call", -32600},
		"broken behind the arguments":   {call + `]`, fmt.Sprintf("byte %d:", len(call)+1), -32700},
		"not closed":                    {call, "unexpected end", -32700},
		"arguments that are not closed": {call[:len(call)-2], "unexpected end", -32700},
		"not UTF-8":                     {call + ",\"_meta\":\"\xff\"}}", fmt.Sprintf("(byte %d)", len(call)+11), -32700},
		"nested too deep":               {call[:len(call)-1] + `,"b":` + strings.Repeat("[", 10_000), "nested more than 10000 levels", -32700},
		"nested too deep, closed":       {call[:len(call)-1] + `,"b":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + `}}}`, "nested more than 10000 levels", -32700},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out output
			c := connect(t, &stdio.Transport{In: strings.NewReader(tt.line + "\n" + `{"jsonrpc":"2.0","method":"after"}`), Out: &out})
			if m, err := c.Read(t.Context()); err != nil || m.(*jsonrpc.Request).Method != "after" {
				t.Fatalf("read %.200s, %v", fmt.Sprint(m), err)
			}
			if got := out.String(); !strings.Contains(got, `"id":1`) || !strings.Contains(got, fmt.Sprintf(`"code":%d`, tt.code)) || !strings.Contains(got, tt.message) {
				t.Errorf("answered %s", got)
			}
		})
	}
	for batch, want := range map[string]string{
		`[` + call + `}}]`: "", `[{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat(large, 6) + `"}]`: "send the messages one by one",
	} {
		var out output
		c := connect(t, &stdio.Transport{In: strings.NewReader(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}` + "\n" + batch + "\n" + `{"jsonrpc":"2.0","method":"after"}`), Out: &out})
		initialize(t, c, "2025-03-26")
		m, err := c.Read(t.Context())
		if err != nil || !strings.Contains(out.String(), want) {
			t.Fatalf("read %.200v, %v, answered %s", m, err, out.String())
		}
		if got := m.(*jsonrpc.Request); want == "" && got.Extra == nil {
			t.Errorf("in a batch: read %.200v", got)
		}
	}
}

// TestLargeLinesAreKeptOnce: while a large line arrives the reader keeps its parts, and joins them once. Nothing is kept of a line that is
// refused.
func TestLargeLinesAreKeptOnce(t *testing.T) { // not parallel: it counts what the process allocates
	const size = 15 << 20
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":`
	for name, tt := range map[string]struct {
		line    string
		percent uint64 // of its size
	}{
		"arguments":               {call + `{"a":"` + strings.Repeat("x", size) + `"}}}`, 210},
		"encoded twice":           {call + `"{\"a\":\"` + strings.Repeat(`\\`, size/2) + `\"}"}}`, 210},
		"nested too deep":         {call + strings.Repeat("[", size), 10},
		"no call":                 {`{"jsonrpc":"2.0","id":1,"method":"m","params":{` + strings.Repeat(`"a":1,`, size/6), 20},
		"a batch":                 {strings.Repeat("[7,", size/3), 20},
		"longer than the longest": {call + `"` + strings.Repeat("x", 2*size), 60},
	} {
		in := strings.NewReader(tt.line + "\n" + `{"jsonrpc":"2.0","method":"after"}`)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		c := connect(t, &stdio.Transport{In: in, Out: io.Discard})
		for read := ""; read != "after"; {
			m, err := c.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			read = m.(*jsonrpc.Request).Method
		}
		runtime.ReadMemStats(&after)
		if got := (after.TotalAlloc - before.TotalAlloc) * 100 / uint64(len(tt.line)); got > tt.percent {
			t.Errorf("%s: allocated %d %% of the size of the line, want %d %% at most", name, got, tt.percent)
		}
	}
}
