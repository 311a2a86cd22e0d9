package mcpserver

import (
	"context"
	"runtime"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/internal/mcpserver/frame"
)

// TestTurnsBehindALargeCall: calls wait until it is known what run a call before them is about, and then for their own run alone.
func TestTurnsBehindALargeCall(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		known func(*turns, *turn)
		want  string // who is ready once known has been called
	}{
		"about the run":                  {func(q *turns, large *turn) { q.named(large, "r") }, "0 1 3"},
		"about another run":              {func(q *turns, large *turn) { q.named(large, "x") }, "0 1 2 3"},
		"about no run":                   {func(q *turns, large *turn) { q.named(large, "") }, "0 1 2 3"},
		"refused before a handler":       {func(q *turns, large *turn) { q.end(large) }, "0 2 3"},
		"refused, and another behind it": {func(q *turns, large *turn) { q.end(q.byText["3"]); q.end(large) }, "0 3"},
	} {
		q := newTurns()
		var all []*turn
		for _, run := range []string{"before", "", "r", "s"} {
			var arguments []byte
			if run == "" {
				arguments = []byte(`{"execution_id":"r"}`)
			}
			all = append(all, q.byText[q.take(jsonrpc.ID{}, run, arguments)])
		}
		ready := func() string {
			var list []string
			for i, turn := range all {
				select {
				case <-turn.ready:
					list = append(list, string(rune('0'+i)))
				default:
				}
			}
			return strings.Join(list, " ")
		}
		if got := ready(); got != "0" {
			t.Errorf("%s: at first %s are ready", name, got)
		}
		tt.known(q, all[1])
		if got := ready(); got != tt.want {
			t.Errorf("%s: %s are ready, want %s", name, got, tt.want)
		}
		for _, turn := range all {
			q.end(turn)
		}
		if got := ready(); strings.Contains(tt.want, "1") && got != "0 1 2 3" {
			t.Errorf("%s: at the end %s are ready", name, got)
		}
		if len(q.byRun)+len(q.byText)+len(q.byID)+len(q.held) > 0 {
			t.Errorf("%s: left %+v", name, q)
		}
	}
}

// oneMessage is a connection that brings one message over and over.
type oneMessage struct {
	mcp.Connection
	m jsonrpc.Request
}

func (c *oneMessage) Read(context.Context) (jsonrpc.Message, error) { m := c.m; return &m, nil }

// TestTheReaderLeavesLargeArgumentsAlone: what the next message waits for does not grow with the arguments of a call.
func TestTheReaderLeavesLargeArgumentsAlone(t *testing.T) { // not parallel: it counts what the process allocates
	id, _ := jsonrpc.MakeID("a")
	c := orderedConnection{turns: newTurns(), Connection: &oneMessage{m: jsonrpc.Request{
		ID: id, Method: "tools/call", Params: []byte(`{"name":"workflow_status","arguments":{}}`),
		Extra: frame.Arguments(`"{\"a\":\"` + strings.Repeat(`\\`, 1<<20) + `\",\"execution_id\":\"r\"}"`),
	}}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	m, err := c.Read(t.Context())
	runtime.ReadMemStats(&after)
	if err != nil || m.(*jsonrpc.Request).Extra.(*mcp.RequestExtra).Header.Get(turnHeader) != "1" {
		t.Fatalf("%v, %v", m, err)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 64<<10 {
		t.Errorf("allocated %d bytes", n)
	}
}
