// Package agentfile reads the operator's list of agents that run inside the engine: the models that they ask, what they are told, the
// tools that they call, and their bounds.
//
//	file, findings := agentfile.Parse(text, agentfile.Surroundings{…})
//	if findings.HasErrors() { … } // file is nil then
//
// The list is strict: a member that is not known refuses it.
package agentfile

import (
	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonobject"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// MaxBytes bounds the text of a list, and that of a file with instructions.
const MaxBytes = 1 << 20

// File is a valid list.
type File struct {
	// Models are what agents ask, by the names that agents use; there is at least one.
	Models map[string]Model
	// Agents are the agents by their ids; there is at least one.
	Agents map[string]Agent
	// APIs are the services that agents may call, by their names.
	APIs map[string]API
	// Knowledge and Skills are the folders of knowledge bases and skills; nil without.
	Knowledge *Knowledge
	Skills    *Skills
}

// Model is a model that agents ask.
type Model struct {
	// Model says what to ask for and what it costs. Its Name is not set.
	agentloop.Model
	// Endpoint is where it is asked; nil where llm_call nodes ask.
	Endpoint *Endpoint
}

// Endpoint is an address of models.
type Endpoint struct {
	BaseURL string
	// KeyReference is the reference to the key, as in env:NAME, "" with NoAuth.
	KeyReference string
	NoAuth       bool
}

// Agent is one agent.
type Agent struct {
	// Config says what the agent does. Its Name, Models, Agents, AskPerson and Compaction.Model are not set; Instructions are those of the file, if the agent
	// names one.
	agentloop.Config
	// Models are the names of its models, in the order in which they are asked; there is at least one.
	Models []string
	// SummaryModel is the name of the model that sums up long conversations, "" for the one that is asked.
	SummaryModel string `json:",omitempty"`
	Tools        []Tool
}

// Tool is what an agent may call: tools of a server, a step, services, knowledge bases, skills, another agent, or a person. One of Server, Step,
// APIs, Knowledge, Skills, Agent and AskPerson is set.
type Tool struct {
	Server string `json:",omitempty"`
	// Allow are the globs of the server's tools, nil for all.
	Allow []string `json:",omitempty"`
	// Step is the handler of a step, which the model knows by Name.
	Step              string         `json:",omitempty"`
	Name, Description string         `json:",omitempty"`
	InputSchema       map[string]any `json:",omitempty"`
	APIs              []string       `json:",omitempty"`
	// Knowledge are folders of knowledge bases, or folders within them.
	Knowledge []string `json:",omitempty"`
	Skills    []string `json:",omitempty"`
	Agent     string   `json:",omitempty"`
	AskPerson bool     `json:",omitempty"`
	// Parallel, OnCrash and Gate are nil or "" where the list does not say.
	Parallel      *bool  `json:",omitempty"`
	OnCrash, Gate string `json:",omitempty"`
}

// Surroundings are what a list is checked against.
type Surroundings struct {
	// ReadFile reads a file with instructions.
	ReadFile func(path string) ([]byte, error)
	// Secret says why a reference to a secret cannot be resolved.
	Secret func(reference string) error
	// Servers are the names of the MCP servers that there are. NoServers says why there is none of those that a list names, "" if that is
	// not known.
	Servers   []string
	NoServers string
	// Steps are the handlers of steps that there are. NoSteps says why there is none of those that a list names, "" if that is not known.
	Steps   []string
	NoSteps string
	// Absolute is what a path of a folder means; nil leaves it as it is.
	Absolute func(path string) string
	// KnowledgeBase says why there is no base in a folder of knowledge bases, Skill why there is no skill in a folder of them.
	KnowledgeBase, Skill func(folder, name string) error
	// NoProvider says why a model needs an endpoint of its own, "" if it needs none.
	NoProvider string
}

// Parse reads and checks a list. The file is nil if one of the findings is an error; all problems are listed, each with its line, in the
// order of the text.
func Parse(text []byte, s Surroundings) (*File, problem.Findings) {
	r := &reader{Surroundings: s, report: jsonobject.Report{Code: problem.AgentConfigInvalid}}
	node, faults := jsonvalue.Parse(text, 0, MaxBytes)
	for _, fault := range faults {
		r.report.Findings = append(r.report.Findings, problem.Finding{
			Code: problem.AgentConfigInvalid, Severity: problem.SeverityError, Message: fault.Message, Keyword: "parse",
			At: problem.Place{Pointer: fault.Pointer, Line: fault.Line, Column: fault.Column},
		})
	}
	var file *File
	if node != nil {
		if root := r.report.Node(node); root != nil {
			file = r.file(root)
		}
	}
	r.report.Findings.Sort()
	if r.report.Findings.HasErrors() {
		return nil, r.report.Findings
	}
	return file, r.report.Findings
}

// reader reads one list.
type reader struct {
	Surroundings
	report jsonobject.Report
	models map[string]Model
	agents map[string]jsonobject.Value
	apis   map[string]API
	// knowledge and skills are the folders, nil without.
	knowledge *Knowledge
	skills    *Skills
	// calls are the agents that an agent calls.
	calls map[string][]called
	// costs are the members costUsd of the agents that have one.
	costs map[string]jsonobject.Value
}

type called struct {
	name string
	at   jsonobject.Value
}

func (r *reader) file(root *jsonobject.Object) *File {
	root.Known("$schema")
	f := &File{Agents: map[string]Agent{}}
	r.models = r.readModels(root.Require("models"))
	f.Models = r.models
	list := root.Require("agents")
	r.apis = r.readAPIs(root.Get("apis"))
	r.knowledge = r.readKnowledge(root.Get("knowledge").Object())
	r.skills = r.readSkills(root.Get("skills").Object())
	f.APIs, f.Knowledge, f.Skills = r.apis, r.knowledge, r.skills
	root.Close()
	r.agents, r.calls, r.costs = map[string]jsonobject.Value{}, map[string][]called{}, map[string]jsonobject.Value{}
	if list.Map() == nil {
		return f
	}
	for name, v := range named(list, "agent") {
		r.agents[name] = v
	}
	for name, v := range list.Members() {
		f.Agents[name] = r.agent(name, v.Object())
	}
	if !r.circles() {
		r.crowds()
		r.unpriced(f.Agents)
	}
	return f
}

// named returns the members of an object with at least one, none with a blank name.
func named(v jsonobject.Value, what string) map[string]jsonobject.Value {
	if len(v.Map()) == 0 {
		v.Fail("minProperties", "there is no %s", what).Hint = "Name at least one " + what + "."
	}
	members := map[string]jsonobject.Value{}
	for name, member := range v.Members() {
		if blank(name) {
			member.AtName().Fail("minLength", "the name of the %s is blank", what)
		}
		members[name] = member
	}
	return members
}
