package mcpserver

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/authoring"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/runjson"
	"github.com/workflows-engine/workflows-engine/schemas"
)

// Definitions finds stored definitions by hash. The error for an unknown one is DEFINITION_REQUIRED.
type Definitions interface {
	Definition(ctx context.Context, hash string) (history.StoredDefinition, error)
}

// The addresses of the resources.
const (
	schemaURI   = "awp://schemas/workflow-definition"
	guideURI    = "awp://guide"
	agentsURI   = "awp://agents"
	runPrefix   = "awp://runs/"
	definitions = "/definition"
	histories   = "/history"
)

const (
	jsonType      = "application/json"
	jsonLinesType = "application/jsonl"
)

func (s *server) addResources(sdk *mcp.Server) {
	sdk.AddResource(&mcp.Resource{
		URI: guideURI, Name: "guide", Title: "How to write a workflow definition", MIMEType: "text/markdown",
		Description: "Node types, edges, state and jq on one page, with an example.", Size: int64(len(authoring.Page(authoring.MainTopic))),
	}, fixed(authoring.Page(authoring.MainTopic)))
	sdk.AddResource(&mcp.Resource{
		URI: schemaURI, Name: "workflow-definition", Title: "JSON Schema of workflow definitions", MIMEType: "application/schema+json",
		Description: "Every field of a definition.",
	}, readSchema)
	if s.opts.Agents != nil {
		sdk.AddResource(&mcp.Resource{
			URI: agentsURI, Name: "agents", Title: "Agents that run inside the engine", MIMEType: jsonType,
			Description: "Names, descriptions and the schemas of answers, for agent_id of agent_delegate nodes of protocol sdk.",
		}, fixed(string(s.agentList().Append(nil))))
	}
	if s.opts.Definitions != nil {
		sdk.AddResourceTemplate(&mcp.ResourceTemplate{
			URITemplate: runPrefix + "{execution_id}" + definitions, Name: "run-definition", Title: "Definition of a run",
			Description: "The definition that a run was started with.", MIMEType: jsonType,
		}, s.readDefinition)
	}
	for _, document := range []struct{ suffix, name, title, description string }{
		{stateSuffix, "run-state", "State of a run", "The state, or a part of it by a JSON pointer."},
		{resultSuffix, "run-result", "Result of a run", "The result of a completed run, or a part of it by a JSON pointer."},
		{recordSuffix + "{seq}", "run-record", "Record of a run", "The payload of a record, or a part of it by a JSON pointer; secrets are masked."},
		{waitSuffix + "{wait}", "run-pending", "What a run waits for", "An entry of pending in full, or a part of it by a JSON pointer."},
	} {
		sdk.AddResourceTemplate(&mcp.ResourceTemplate{
			URITemplate: runPrefix + "{execution_id}" + document.suffix + "{+pointer}", Name: document.name, Title: document.title,
			Description: document.description, MIMEType: jsonType,
		}, s.readValue)
	}
	sdk.AddResourceTemplate(&mcp.ResourceTemplate{
		URITemplate: runPrefix + "{execution_id}" + histories, Name: "run-history", Title: "History of a run",
		Description: "The records of a run, one JSON object a line, the newest 500 and 1 MiB at most; secrets are masked.", MIMEType: jsonLinesType,
	}, s.readHistory)
}

// agentList returns the content of the agents resource.
func (s *server) agentList() members {
	list := []members{}
	for _, a := range s.opts.Agents {
		entry := members{{"name", a.Name}, {"description", s.opts.Redaction.String(a.Description)}}
		if a.Output != nil {
			entry.Put("output_schema", a.Output)
		}
		list = append(list, entry)
	}
	return members{{"agents", list}, {"protocol", "sdk"}}
}

// agentNames returns the names of the agents, nil if unknown, and the skills of each.
func (s *server) agentNames() (names []string, skills map[string][]string) {
	skills = map[string][]string{}
	for _, a := range s.opts.Agents {
		names = append(names, a.Name)
		if a.Skills != nil {
			skills[a.Name] = a.Skills
		}
	}
	return names, skills
}

func fixed(text string) mcp.ResourceHandler {
	return func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return contents(req.Params.URI, text), nil
	}
}

func readSchema(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	return contents(req.Params.URI, string(schemas.WorkflowDefinition())), nil
}

func contents(uri, text string) *mcp.ReadResourceResult {
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, Text: text}}}
}

func (s *server) readDefinition(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	run, err := s.Status(ctx, graph.StatusRequest{ExecutionID: runOf(req.Params.URI, definitions)})
	if err != nil {
		return nil, resourceError(req.Params.URI, err)
	}
	stored, err := s.opts.Definitions.Definition(ctx, run.DefinitionHash)
	if err != nil {
		return nil, resourceError(req.Params.URI, err)
	}
	return contents(req.Params.URI, string(s.opts.Redaction.Text(stored.Text))), nil
}

// readValue returns the value of a reference, whatever its size.
func (s *server) readValue(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	a, ok := parseAddress(req.Params.URI)
	if !ok {
		return nil, mcp.ResourceNotFoundError(req.Params.URI)
	}
	a.pointer = unescaped(a.pointer)
	run, err := s.Status(ctx, graph.StatusRequest{ExecutionID: a.executionID})
	if err != nil {
		return nil, resourceError(req.Params.URI, err)
	}
	v, _, err := s.value(ctx, run, a)
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
	}
	return contents(req.Params.URI, string(s.opts.Redaction.Text(jsonvalue.Canonical(v)))), nil
}

// runOf returns the run's id in an address, where it is percent-encoded.
func runOf(uri, suffix string) string {
	id := strings.TrimSuffix(strings.TrimPrefix(uri, runPrefix), suffix)
	if plain, err := url.PathUnescape(id); err == nil {
		return plain
	}
	return id
}

// resourceError is the JSON-RPC error for a resource that cannot be read.
func resourceError(uri string, err error) error {
	if errors.Is(err, problem.ExecutionNotFound) || errors.Is(err, problem.DefinitionNotFound) {
		return mcp.ResourceNotFoundError(uri)
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
}

// The history resource shows the newest records of a run, until one of these bounds is met.
const (
	maxHistory      = 500     // records
	maxHistoryBytes = 1 << 20 // of the answer
	// maxHistoryRead is how many bytes of payloads are read for one answer.
	maxHistoryRead = 16 << 20
	// maxPayload is the longest payload shown; of a longer one payload_bytes is the length.
	maxPayload = 64 << 10
	// historyPage is how many records are in memory at once.
	historyPage = 8
)

// readHistory returns the newest records of a run, oldest first. A line before them counts the ones left out.
func (s *server) readHistory(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	id := runOf(req.Params.URI, histories)
	run, err := s.Status(ctx, graph.StatusRequest{ExecutionID: id})
	if err != nil {
		return nil, resourceError(req.Params.URI, err)
	}
	var lines historyLines
	for last := run.Seq; last > 0 && !lines.full; last -= historyPage {
		from := max(last-historyPage+1, 1)
		records, err := s.History(ctx, graph.HistoryRequest{ExecutionID: id, FromSeq: from, Limit: int(last - from + 1)})
		if err != nil {
			return nil, resourceError(req.Params.URI, err)
		}
		for i := len(records) - 1; i >= 0 && !lines.full; i-- {
			lines.add(&records[i])
		}
	}
	return contents(req.Params.URI, lines.text()), nil
}

// historyLines are the lines of records, the newest first.
type historyLines struct {
	list        [][]byte
	bytes, read int
	first       int64 // the oldest record that is shown
	cut         int   // payloads that are not shown
	full        bool
}

// add takes one more record, unless a bound is met.
func (l *historyLines) add(r *history.Record) {
	m := runjson.Record(r)
	long := len(r.Raw) > maxPayload
	if long {
		m.Number("payload_bytes", int64(len(r.Raw)))
	} else {
		m.Put("payload", jsonvalue.Raw(r.Raw))
	}
	line := append(m.Append(nil), '\n')
	l.read += len(r.Raw)
	if len(l.list) > 0 && (len(l.list) == maxHistory || l.bytes+len(line) > maxHistoryBytes || l.read > maxHistoryRead) {
		l.full = true
		return
	}
	if long {
		l.cut++
	}
	l.list, l.bytes, l.first = append(l.list, line), l.bytes+len(line), r.Seq
}

// text returns the lines in the order of the records.
func (l *historyLines) text() string {
	var text []byte
	if older := l.first - 1; older > 0 || l.cut > 0 {
		m := members{{"left_out", members{{"records", float64(max(older, 0))}, {"payloads", float64(l.cut)}}}}
		m.Put("note", "Only the newest records are here, and only the length of payloads above 64 KiB. On the command line "+
			"workflows-engine history ID --json --from SEQ --limit N prints them whole.")
		text = append(m.Append(text), '\n')
	}
	slices.Reverse(l.list)
	return string(append(text, slices.Concat(l.list...)...))
}
