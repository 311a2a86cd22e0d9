package mcpserver_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver/stdio"
)

// BenchmarkRepeatedDefinition measures submits of a run whose definition has 100 kB, without the definition and with it, and reports how
// many times as long the latter take.
func BenchmarkRepeatedDefinition(b *testing.B) {
	var nodes, edges strings.Builder
	const loop = 500
	next := func(i int) string {
		if i == loop {
			return "again"
		}
		return fmt.Sprint("n", i)
	}
	for i := range loop {
		fmt.Fprintf(&nodes, `,{"id":"n%d","type":"step","config":{"handler":"h","payload":{"text":%q}}}`, i, strings.Repeat("x", 100))
		fmt.Fprintf(&edges, `,{"source":"n%d","target":"%s"}`, i, next(i+1))
	}
	definition := `{"document":{"schema":"https://agent-workflow.dev/schemas/workflow-definition.json","name":"long","version":"1.0.0"},"state_schema":{"type":"object"},` +
		`"nodes":[{"id":"s","type":"start"}` + nodes.String() + `,{"id":"again","type":"switch","config":{"cases":[{"when":"false","target":"e"}],"default":"n0"}},{"id":"e","type":"end"}],"edges":[{"source":"__start__","target":"s"},{"source":"s","target":"n0"}` + edges.String() + `]}`
	b.Logf("%d bytes", len(definition))
	engine := enginetest.Must(graph.New(enginetest.Must(historysql.Open(context.Background(), filepath.Join(b.TempDir(), "runs.db"), historysql.Options{})), graph.Options{DefaultMode: machine.HostMediated, MaxVisits: 1 << 30, WaitLimit: -1}))
	defer engine.Close()
	in, out := io.Pipe()
	answers, answered := io.Pipe()
	go mcpserver.Serve(context.Background(), mcpserver.New(engine, mcpserver.Options{}), &stdio.Transport{In: in, Out: answered})
	defer out.Close()
	lines := bufio.NewReaderSize(answers, 1<<20)
	id := 0
	send := func(method string, params ...string) string {
		id++
		line := slices.Concat([]string{fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":`, id, method)}, params, []string{"}\n"})
		if _, err := io.WriteString(out, strings.Join(line, "")); err != nil {
			b.Fatal(err)
		}
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				b.Fatal(err)
			}
			if strings.Contains(line, fmt.Sprintf(`"id":%d,`, id)) || strings.Contains(line, fmt.Sprintf(`"id":%d}`, id)) {
				return line
			}
		}
	}
	call := func(tool string, arguments ...string) {
		if line := send("tools/call", slices.Concat([]string{fmt.Sprintf(`{"name":%q,"arguments":{`, tool)}, arguments, []string{"}}"})...); strings.Contains(line, `"isError":true`) || strings.Contains(line, `"error":`) {
			b.Fatal(line)
		}
	}
	send("initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"0"}}`)
	call("workflow_start", `"execution_id":"r","definition":`, definition)
	node := 0
	submit := func(more ...string) time.Duration {
		began := time.Now()
		first := fmt.Sprintf(`"execution_id":"r","node_id":"n%d","idempotency_key":"r:n%d#%d.1","outcome":{"ok":true,"result":{}}`, node%loop, node%loop, node/loop+1)
		call("workflow_submit_activity", slices.Concat([]string{first}, more)...)
		node++
		return time.Since(began)
	}
	var without, with time.Duration
	for b.Loop() {
		without += submit()
		with += submit(`,"definition":`, definition)
	}
	b.ReportMetric(float64(with)/float64(without), "times")
	b.ReportMetric(float64(without.Microseconds())/float64(b.N), "µs/without")
	b.ReportMetric(float64(with.Microseconds())/float64(b.N), "µs/with")
}
