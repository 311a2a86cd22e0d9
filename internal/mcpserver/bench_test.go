package mcpserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
)

// still is an engine whose run never changes.
type still struct {
	graph.Engine
	run *view.Run
}

func (s still) Status(context.Context, graph.StatusRequest) (*view.Run, error) { return s.run, nil }

// BenchmarkAnswer measures a call through client, server and encoding, with a state of the given size and ten branches.
func BenchmarkAnswer(b *testing.B) {
	for _, bytes := range []int{100, 100_000} {
		b.Run(fmt.Sprint(bytes), func(b *testing.B) {
			state := map[string]any{"text": strings.Repeat("x", bytes)}
			run := &view.Run{ExecutionID: "r", Status: machine.AwaitingActivity, State: state}
			for i := range 10 {
				run.Pending = append(run.Pending, view.Pending{
					ExecutionID: "r", ID: fmt.Sprintf("r:%d#1.1", i), NodeType: "step",
					WaitInfo: machine.WaitInfo{Kind: machine.WaitActivity, NodeID: fmt.Sprint(i), Host: true, State: state},
				})
			}
			here, there := mcp.NewInMemoryTransports()
			go mcpserver.Serve(context.Background(), mcpserver.New(still{run: run}, mcpserver.Options{}), there)
			session, err := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "0"}, nil).Connect(context.Background(), here, nil)
			if err != nil {
				b.Fatal(err)
			}
			defer session.Close()
			params := &mcp.CallToolParams{Name: "workflow_status", Arguments: json.RawMessage(`{"execution_id":"r"}`)}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := session.CallTool(context.Background(), params); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkArguments measures reading the arguments of a start with a definition of 100 nodes.
func BenchmarkArguments(b *testing.B) {
	var nodes, edges []any
	for i := range 100 {
		nodes = append(nodes, map[string]any{"id": fmt.Sprint("n", i), "type": "step", "config": map[string]any{"handler": "h"}})
		edges = append(edges, map[string]any{"source": fmt.Sprint("n", i), "target": fmt.Sprint("n", i+1)})
	}
	raw, err := json.Marshal(map[string]any{"definition": map[string]any{"nodes": nodes, "edges": edges}})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if err := mcpserver.ReadArguments("workflow_start", raw); err != nil {
			b.Fatal(err)
		}
	}
}
