// Package agentfile reads the operator's list of agents that run inside the engine: their models, instructions, tools and limits.
//
//	file, findings := agentfile.Parse(text, agentfile.Surroundings{…})
//	if findings.HasErrors() { … } // file is nil then
//	agents, err := file.Build(agentfile.Runtime{…})
//
// A kind of tools is a line of kinds, a file kind_*.go with the type of its entries, and a file in the directory kinds with their JSON Schema.
// The published schema of the list (package schemas) checks each field; this package checks how they fit together and their surroundings.
package agentfile

import (
	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
)

// MaxBytes bounds the text of a list, and the text of a file with instructions.
const MaxBytes = 1 << 20

// File is a valid list.
type File struct {
	// Models are the models by the names that agents use; there is at least one.
	Models map[string]Model
	// Agents are the agents by their ids; there is at least one.
	Agents map[string]Agent
	// Settings are the settings of kinds of tools, by their fields in the list.
	Settings map[string]Settings
	// SecretsTo are the addresses that secrets are sent to, by the names of the models and services behind them.
	SecretsTo map[string]string `json:"-"`
}

// Model is a model that agents ask.
type Model struct {
	// Model has no Name.
	agentloop.Model
	// Endpoint is the address of the model; nil for the endpoint of llm_call nodes.
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
	// Config has no Name, Models, Agents, AskPerson and Compaction.Model. Instructions come from the file, if the agent names one.
	agentloop.Config
	// Models are the names of its models, in order of preference; there is at least one.
	Models []string
	// SummaryModel is the name of the model that sums up long conversations, "" for the one that is asked.
	SummaryModel string `json:",omitempty"`
	Tools        []Entry
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
	// Directories reports whether directories, such as those of knowledge bases, are searched for the names in the list.
	Directories bool
	// NoProvider explains why a model needs an endpoint of its own, "" if it does not.
	NoProvider string
}
