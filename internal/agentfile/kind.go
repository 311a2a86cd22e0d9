package agentfile

import (
	"embed"
	"encoding/json"
	"maps"
	"slices"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/toolcall"
	"github.com/workflows-engine/workflows-engine/delegate/agent"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/schemas"
)

// kinds are the kinds of tools that an agent may have, in the order of the published schema. Each has a file of this package, its schemas in
// the directory kinds, and its toolset in a package of delegate/agent.
var kinds = []kind{serverKind, stepKind, apiKind, knowledgeKind, skillsKind, agentKind, personKind}

// kind is a kind of tools.
type kind struct {
	// field is the field that only entries of the kind have. kinds/<field>.json has the JSON Schema of an entry in "tool", and that of the
	// settings in "settings".
	field string
	// tool returns an entry to decode into.
	tool func() Tool
	// list is the field of the list with settings that all tools of the kind share, "" without; settings returns the value to decode into.
	list     string
	settings func() Settings
	// rank orders the toolsets of an agent. Toolsets with a text in the system text have a rank below 0, so that this text is independent of the
	// order in the file.
	rank int
}

// Tool is an entry of the tools of an agent. Its type is that of its kind.
type Tool interface {
	// String describes the tool for a list of agents.
	String() string
	// names returns the names and patterns of names by which the model knows the tools.
	names() []string
	// check reports mistakes that the schema does not find. agent has the entry, at is its pointer.
	check(p *parser, agent, at string)
	// add gives the tool to an agent. settings is what Settings.open has returned, nil for a kind without settings.
	add(to *agent.Agent, r Runtime, settings any) error
}

// Settings are settings that all tools of a kind share.
type Settings interface {
	// check reports mistakes that the schema does not find, and completes the settings. at is their pointer.
	check(p *parser, at string)
	// open returns the shared part of the tools.
	open(r Runtime) (any, error)
}

// Options are fields that entries of most kinds have. nil and "" are the defaults, which depend on the kind.
type Options struct {
	Parallel *bool  `json:"parallel,omitempty"`
	OnCrash  string `json:"onCrash,omitempty"`
	Gate     string `json:"gate,omitempty"`
}

func (o Options) list() []agent.Option {
	var list []agent.Option
	if o.Parallel != nil {
		list = append(list, agent.WithParallel(*o.Parallel))
	}
	if o.OnCrash != "" {
		list = append(list, agent.WithOnCrash(o.OnCrash))
	}
	if o.Gate != "" {
		list = append(list, agent.WithGate(o.Gate))
	}
	return list
}

// Runtime is what tools need to be called.
type Runtime struct {
	// Servers calls the tools of MCP servers; nil without servers.
	Servers *toolcall.Executor
	// Steps performs step nodes; nil without handlers.
	Steps activities.Executor
	// Secret resolves a reference to a secret. It is called at each call that needs one.
	Secret func(reference string) (string, error)
}

// Build returns the agents of the list with their tools. Errors have the code AGENT_CONFIG_INVALID and name the agent.
func (f *File) Build(r Runtime) (map[string]agent.Agent, error) {
	open := map[string]any{}
	for _, field := range slices.Sorted(maps.Keys(f.Settings)) {
		settings, err := f.Settings[field].open(r)
		if err != nil {
			return nil, err
		}
		open[field] = settings
	}
	agents := map[string]agent.Agent{}
	for name, a := range f.Agents {
		built := agent.Agent{Config: a.Config, Models: a.Models, SummaryModel: a.SummaryModel}
		tools := slices.Clone(a.Tools)
		slices.SortStableFunc(tools, func(a, b Entry) int { return a.kind.rank - b.kind.rank })
		for _, t := range tools {
			if err := t.add(&built, r, open[t.kind.list]); err != nil {
				return nil, problem.New(problem.AgentConfigInvalid, "agent %q", name).WithCause(err)
			}
		}
		agents[name] = built
	}
	return agents, nil
}

// Entry is an entry of the tools of an agent, with its kind.
type Entry struct {
	Tool
	kind *kind
}

// UnmarshalJSON decodes an object by the field that names its kind. Tool is nil without such a field, which the schema reports.
func (e *Entry) UnmarshalJSON(text []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return err
	}
	for i := range kinds {
		if _, ok := fields[kinds[i].field]; ok {
			e.kind, e.Tool = &kinds[i], kinds[i].tool()
			return json.Unmarshal(text, e.Tool)
		}
	}
	return nil
}

// MarshalJSON encodes the tool.
func (e Entry) MarshalJSON() ([]byte, error) { return json.Marshal(e.Tool) }

// settingsOf decodes the settings of all kinds in a list, by their fields.
func settingsOf(text []byte) (map[string]Settings, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, err
	}
	all := map[string]Settings{}
	for _, k := range kinds {
		if text, ok := fields[k.list]; ok {
			settings := k.settings()
			if err := json.Unmarshal(text, settings); err != nil {
				return nil, err
			}
			all[k.list] = settings
		}
	}
	return all, nil
}

//go:embed kinds/*.json
var kindSchemas embed.FS

// JSONSchema returns the JSON Schema of lists of agents: the published one, with the schemas of the kinds of tools in their places. The two
// are the same once the published one has been written anew (package schemas).
func JSONSchema() []byte {
	var tools []*jsonvalue.Node
	var settings []jsonvalue.Member
	var fields []string
	for _, k := range kinds {
		text, err := kindSchemas.ReadFile("kinds/" + k.field + ".json")
		if err != nil {
			panic(err)
		}
		own := parsed(text)
		tools, fields = append(tools, own.Get("tool")), append(fields, k.field)
		if k.list != "" {
			settings = append(settings, jsonvalue.Member{Name: k.list, Value: own.Get("settings")})
		}
	}
	root := parsed(schemas.Agents())
	properties := root.Get("properties")
	properties.Members = append(slices.DeleteFunc(properties.Members, func(m jsonvalue.Member) bool {
		return !slices.Contains([]string{"$schema", "models", "agents"}, m.Name)
	}), settings...)
	items := root.Lookup("/properties/agents/additionalProperties/properties/tools/items")
	items.Get("errorMessage").Str = "must have exactly one of " + problem.AndList(fields)
	items.Get("anyOf").Elements = tools
	return appendNode(nil, root)
}

func parsed(text []byte) *jsonvalue.Node {
	node, faults := jsonvalue.Parse(text, 0, 0)
	if len(faults) > 0 {
		panic(faults[0])
	}
	return node
}

// appendNode appends a value as JSON, its fields in their own order.
func appendNode(to []byte, n *jsonvalue.Node) []byte {
	separate := func(i int) {
		if i > 0 {
			to = append(to, ',')
		}
	}
	switch n.Kind {
	case jsonvalue.Object:
		to = append(to, '{')
		for i, m := range n.Members {
			separate(i)
			to = appendNode(append(jsonvalue.AppendString(to, m.Name), ':'), m.Value)
		}
		return append(to, '}')
	case jsonvalue.Array:
		to = append(to, '[')
		for i, e := range n.Elements {
			separate(i)
			to = appendNode(to, e)
		}
		return append(to, ']')
	case jsonvalue.Number:
		return append(to, n.Text...)
	}
	return jsonvalue.Append(to, n.Value())
}
