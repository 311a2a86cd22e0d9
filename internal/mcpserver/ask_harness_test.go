package mcpserver_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver/elicit"
)

// The revisions in which hosts ask people: by a request of the server, and by an answer of the call.
const (
	firstAsking  = "2025-06-18"
	lastAsking   = "2025-11-25"
	askingTicket = "2026-07-28"
)

var askingRevisions = []string{firstAsking, lastAsking, askingTicket}

// person answers what the host asks them.
type person struct {
	mu    sync.Mutex
	asked []*mcp.ElicitParams
	// reply is called with the number of the question, from 1.
	reply func(ctx context.Context, n int) (*mcp.ElicitResult, error)
}

func (p *person) answer(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	p.mu.Lock()
	p.asked = append(p.asked, req.Params)
	n := len(p.asked)
	p.mu.Unlock()
	return p.reply(ctx, n)
}

// questions are the messages of what the person was asked.
func (p *person) questions() (list []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, q := range p.asked {
		list = append(list, q.Message)
	}
	return list
}

// says returns a person who answers with these, one after the other, and with the last one to everything after it.
func says(replies ...*mcp.ElicitResult) *person {
	return &person{reply: func(_ context.Context, n int) (*mcp.ElicitResult, error) { return replies[min(n, len(replies))-1], nil }}
}

func accepts(content object) *mcp.ElicitResult {
	return &mcp.ElicitResult{Action: "accept", Content: content}
}

var (
	declines = &mcp.ElicitResult{Action: "decline"}
	closes   = &mcp.ElicitResult{Action: "cancel"}
)

// office is an engine with a server that several hosts can connect to, one after the other, each with a person.
type office struct {
	t       *testing.T
	runner  *graph.Runner
	store   *historymem.Store
	options mcpserver.Options
}

func newOffice(t *testing.T, o graph.Options, m mcpserver.Options) *office {
	t.Helper()
	store := historymem.New()
	enginetest.Closing[history.Store](t, store)
	o.DefaultMode = machine.HostMediated
	runner := enginetest.Closing(t, enginetest.Must(graph.New(store, o)))
	m.Definitions, m.Key = store, store.Key
	return &office{t: t, runner: runner, store: store, options: m}
}

// host connects a host of a revision, with a person if there is one.
func (o *office) host(revision string, p *person) *host {
	o.t.Helper()
	return o.hostOver(o.runner, revision, p)
}

// hostOver is host over another engine.
func (o *office) hostOver(engine graph.Engine, revision string, p *person) *host {
	o.t.Helper()
	here, there := mcp.NewInMemoryTransports()
	served := make(chan error, 1)
	go func() { served <- mcpserver.Serve(context.Background(), mcpserver.New(engine, o.options), there) }()
	options := &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}}
	if p != nil {
		options.ElicitationHandler = p.answer
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "desk", Version: "3"}, options).
		Connect(context.Background(), here, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() {
		session.Close()
		if err := <-served; err != nil {
			o.t.Errorf("Serve: %v", err)
		}
	})
	h := hostWith(o.t, session)
	h.runner, h.store = o.runner, o.store
	return h
}

// oneHost is an office with one host.
func oneHost(t *testing.T, revision string, mode elicit.Mode, p *person) *host {
	t.Helper()
	return newOffice(t, graph.Options{}, mcpserver.Options{Elicit: mode}).host(revision, p)
}

// walk is a definition of these nodes in a row.
func walk(nodes ...object) object {
	all := append(append([]object{{"id": "begin", "type": "start"}}, nodes...), object{"id": "finish", "type": "end"})
	list, edges := []any{}, []any{object{"source": "__start__", "target": "begin"}}
	for i, n := range all {
		list = append(list, n)
		if i > 0 {
			edges = append(edges, object{"source": all[i-1]["id"], "target": n["id"]})
		}
	}
	return object{
		"document": object{"schema": "s", "name": "refunds", "version": "1"}, "state_schema": object{"type": "object"}, "nodes": list, "edges": edges,
	}
}

// formNode is an interrupt with a form.
func formNode(id, prompt string, properties object, required ...any) object {
	schema := object{"type": "object", "properties": properties}
	if len(required) > 0 {
		schema["required"] = required
	}
	return object{"id": id, "type": "interrupt", "config": object{"prompt": prompt, "resume_schema": schema}}
}

var (
	approval = formNode("ask", "Refund 10 €?", object{"approve": object{"type": "boolean"}}, "approve")
	work     = object{"id": "work", "type": "step", "config": object{"handler": "h"}}
	goes     = object{"id": "go", "type": "wait", "config": object{"kind": "signal", "signal": "go"}}
)

// resumed are the authors of the answers that a run has recorded.
func resumed(t *testing.T, h *host, id string) (by []string) {
	t.Helper()
	for _, r := range records(t, h, id) {
		if r.Name == history.ResumeInterrupt {
			by = append(by, fmt.Sprint(r.Payload.Actor))
		}
	}
	return by
}

// eachRevision runs a test in a bubble for each revision.
func eachRevision(t *testing.T, revisions []string, test func(t *testing.T, revision string)) {
	t.Helper()
	t.Parallel()
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { test(t, revision) })
		})
	}
}
