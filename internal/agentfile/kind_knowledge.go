package agentfile

import (
	"github.com/workflows-engine/workflows-engine/delegate/agent"
	"github.com/workflows-engine/workflows-engine/delegate/agent/knowledge"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

var knowledgeKind = kind{
	field: "knowledge", tool: func() Tool { return &knowledgeTool{} }, rank: -1,
	list: "knowledge", settings: func() Settings { return &knowledgeBases{} },
}

// knowledgeTool are the tools search_knowledge and read_knowledge.
type knowledgeTool struct {
	// Bases are directories of knowledge bases, or directories within them.
	Bases []string `json:"knowledge"`
	Options
}

func (t *knowledgeTool) String() string { return "knowledge (" + problem.AndList(t.Bases) + ")" }

func (t *knowledgeTool) names() []string { return []string{"search_knowledge"} }

func (t *knowledgeTool) check(p *parser, _, at string) {
	at += "/knowledge"
	bases, ok := p.list.settings["knowledge"].(*knowledgeBases)
	switch {
	case !p.d.Intact("/knowledge"):
		return
	case !ok:
		p.d.FailName(at, "profile", "there are no knowledge bases").Hint = "Name their directory in the field knowledge of the list."
		return
	}
	p.inDirectory(at, t.Bases, func(name string) error {
		library, err := knowledge.New(knowledge.Config{Path: bases.Path})
		if err != nil {
			return err
		}
		return library.Check(name)
	})
}

func (t *knowledgeTool) add(to *agent.Agent, _ Runtime, settings any) error {
	set, err := settings.(*knowledge.Library).Tools(t.Bases, t.list()...)
	if err == nil {
		to.Tools = append(to.Tools, set)
	}
	return err
}

// knowledgeBases is the directory of the knowledge bases. 0 is the default of a number.
type knowledgeBases struct {
	Path             string `json:"path"`
	MaxSearchResults int    `json:"maxSearchResults,omitempty"`
	MaxReadBytes     int    `json:"maxReadBytes,omitempty"`
}

func (k *knowledgeBases) check(p *parser, _ string) { k.Path = p.directory(k.Path) }

func (k *knowledgeBases) open(Runtime) (any, error) {
	return knowledge.New(knowledge.Config{Path: k.Path, MaxSearchResults: k.MaxSearchResults, MaxReadBytes: k.MaxReadBytes})
}
