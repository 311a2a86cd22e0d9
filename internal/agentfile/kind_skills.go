package agentfile

import (
	"github.com/workflows-engine/workflows-engine/delegate/agent"
	"github.com/workflows-engine/workflows-engine/delegate/agent/skills"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

var skillsKind = kind{
	field: "skills", tool: func() Tool { return &skillsTool{} }, rank: -2,
	list: "skills", settings: func() Settings { return &skillLibrary{} },
}

// skillsTool is the tool read_skill.
type skillsTool struct {
	Skills []string `json:"skills"`
	Options
}

func (t *skillsTool) String() string { return "skills (" + problem.AndList(t.Skills) + ")" }

func (t *skillsTool) names() []string { return []string{"read_skill"} }

func (t *skillsTool) check(p *parser, _, at string) {
	at += "/skills"
	directory, ok := p.list.settings["skills"].(*skillLibrary)
	switch {
	case !p.d.Intact("/skills"):
		return
	case !ok:
		p.d.FailName(at, "profile", "there are no skills").Hint = "Name their directory in the field skills of the list."
		return
	}
	p.inDirectory(at, t.Skills, func(name string) error {
		library, err := skills.New(directory.Path)
		if err != nil {
			return err
		}
		return library.Check(name)
	})
}

func (t *skillsTool) add(to *agent.Agent, _ Runtime, settings any) error {
	set, err := settings.(*skills.Library).Tools(t.Skills, t.list()...)
	if err == nil {
		to.Tools = append(to.Tools, set)
	}
	return err
}

// skillLibrary is the directory of the skills.
type skillLibrary struct {
	Path string `json:"path"`
}

func (l *skillLibrary) check(p *parser, _ string) { l.Path = p.directory(l.Path) }

func (l *skillLibrary) open(Runtime) (any, error) { return skills.New(l.Path) }

// Skills returns the names of the agent's skills, nil without any.
func (a *Agent) Skills() []string {
	for _, t := range a.Tools {
		if t, ok := t.Tool.(*skillsTool); ok {
			return t.Skills
		}
	}
	return nil
}
