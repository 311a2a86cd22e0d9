// Package agentfile reads the operator's list of agents that run inside the engine: their models, instructions, tools and bounds.
//
//	file, findings := agentfile.Parse(text, agentfile.Surroundings{…})
//	if findings.HasErrors() { … } // file is nil then
//
// The published schema of the list (package schemas) checks each field; this package checks how they fit together and their surroundings.
package agentfile

import (
	"net/netip"

	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
)

// MaxBytes bounds the text of a list, and that of a file with instructions.
const MaxBytes = 1 << 20

// File is a valid list.
type File struct {
	// Models are the models by the names that agents use; there is at least one.
	Models map[string]Model
	// Agents are the agents by their ids; there is at least one.
	Agents map[string]Agent
	// APIs are the services that agents may call, by their names.
	APIs map[string]API
	// Knowledge and Skills are the directories of knowledge bases and skills; nil without.
	Knowledge *Knowledge
	Skills    *Skills
}

// Model is a model that agents ask.
type Model struct {
	// Model has no Name.
	agentloop.Model
	// Endpoint is the address of the model; nil for that of llm_call nodes.
	Endpoint *Endpoint `json:"endpoint"`
}

// Endpoint is an address of models.
type Endpoint struct {
	BaseURL string `json:"baseUrl"`
	// KeyReference is the reference to the key, as in env:NAME, "" with NoAuth. KeyEnv is the name in it, if the list has that alone.
	KeyReference string `json:"apiKeySecretRef"`
	KeyEnv       string `json:"apiKeyEnv"`
	NoAuth       bool   `json:"noAuth"`
}

// Agent is one agent.
type Agent struct {
	// Config has no Name, Models, Agents, AskPerson and Compaction.Model. Instructions are those of the file, if the agent names one.
	agentloop.Config
	// Models are the names of its models, in order of preference; there is at least one.
	Models []string
	// SummaryModel is the name of the model that sums up long conversations, "" for the one that is asked.
	SummaryModel string `json:",omitempty"`
	Tools        []Tool
}

// Tool is what an agent may call. One of Server, Step, APIs, Knowledge, Skills, Agent and Builtin is set.
type Tool struct {
	Server string `json:"server,omitempty"`
	// Allow are the globs of the server's tools, nil for all.
	Allow []string `json:"allow,omitempty"`
	// Step is the handler of a step, which the model knows by Name.
	Step        string         `json:"step,omitempty"`
	Name        string         `json:"name,omitempty"`
	Description string         `json:"description,omitempty"`
	InputSchema map[string]any `json:"inputSchema,omitempty"`
	APIs        []string       `json:"api,omitempty"`
	// Knowledge are directories of knowledge bases, or directories within them.
	Knowledge []string `json:"knowledge,omitempty"`
	Skills    []string `json:"skills,omitempty"`
	Agent     string   `json:"agent,omitempty"`
	// Builtin is ask_person.
	Builtin string `json:"builtin,omitempty"`
	// Parallel, OnCrash and Gate are nil or "" for the defaults.
	Parallel *bool  `json:"parallel,omitempty"`
	OnCrash  string `json:"onCrash,omitempty"`
	Gate     string `json:"gate,omitempty"`
}

// API is a service that agents may call. The zero value of a field below AllowedPaths is its default.
type API struct {
	BaseURL string `json:"baseUrl"`
	Auth    Auth   `json:"auth"`
	// AllowedPaths are regular expressions; there is at least one.
	AllowedPaths     []string `json:"allowedPaths"`
	AllowedMethods   []string `json:"allowedMethods,omitempty"`
	MaxBodyBytes     int      `json:"maxBodyBytes,omitempty"`
	MaxResponseBytes int      `json:"maxResponseBytes,omitempty"`
	TimeoutMs        int      `json:"timeoutMs,omitempty"`
	// PrivateNetworks are Networks, which are as written.
	PrivateNetworks []netip.Prefix `json:"-"`
	Networks        []string       `json:"privateNetworks,omitempty"`
}

// Auth names the secrets that authorize calls.
type Auth struct {
	// Type is "none", bearer (with TokenRef), header (Name, ValueRef) or basic (UserRef, PassRef).
	Type     string `json:"type"`
	TokenRef string `json:"tokenRef,omitempty"`
	Name     string `json:"name,omitempty"`
	ValueRef string `json:"valueRef,omitempty"`
	UserRef  string `json:"userRef,omitempty"`
	PassRef  string `json:"passRef,omitempty"`
}

// Knowledge is the directory of the knowledge bases.
type Knowledge struct {
	Path             string `json:"path"`
	MaxSearchResults int    `json:"maxSearchResults,omitempty"`
	MaxReadBytes     int    `json:"maxReadBytes,omitempty"`
}

// Skills is the directory of the skills.
type Skills struct {
	Path string `json:"path"`
}

// Surroundings are the environment of a list. A nil function checks nothing.
type Surroundings struct {
	// ReadFile reads a file with instructions.
	ReadFile func(path string) ([]byte, error)
	// Secret returns why a reference to a secret cannot be resolved.
	Secret func(reference string) error
	// Servers are the names of the MCP servers. NoServers explains their absence, "" if it is not known.
	Servers   []string
	NoServers string
	// Steps are the handlers of steps. NoSteps explains their absence, "" if it is not known.
	Steps   []string
	NoSteps string
	// Absolute resolves the path of a directory.
	Absolute func(path string) string
	// KnowledgeBase and Skill return why a directory has no knowledge base or skill of a name.
	KnowledgeBase, Skill func(directory, name string) error
	// NoProvider explains why a model needs an endpoint of its own, "" if it does not.
	NoProvider string
}
