package main

import (
	"crypto/sha256"
	"fmt"
)

// registryEntry is a server.json of the MCP registry.
type registryEntry struct {
	Schema      string            `json:"$schema"`
	Name        string            `json:"name"`
	Title       string            `json:"title"`
	Description string            `json:"description"`
	Version     string            `json:"version"`
	Repository  map[string]string `json:"repository"`
	Packages    []registryPackage `json:"packages"`
}

type registryPackage struct {
	RegistryType string             `json:"registryType"`
	Identifier   string             `json:"identifier"`
	Version      string             `json:"version,omitempty"`
	SHA256       string             `json:"fileSha256,omitempty"`
	RuntimeHint  string             `json:"runtimeHint,omitempty"`
	Transport    map[string]string  `json:"transport"`
	Variables    []registryVariable `json:"environmentVariables"`
}

type registryVariable struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Format      string `json:"format,omitempty"`
	Secret      bool   `json:"isSecret,omitempty"`
}

// registry makes the entry: the npm package that starts the server, and the bundle where it will be published.
func (s source) registry(bundle entry) (entry, error) {
	stdio := map[string]string{"type": "stdio"}
	variables := []registryVariable{
		{Name: "WORKFLOW_ENGINE_STORE_PATH", Description: "File of the database; in the user's data folder unless set", Format: "filepath"},
		{Name: "WORKFLOW_ENGINE_LLM_CONFIG", Description: `Model server, as in {"apiKeyEnv":"MODEL_API_KEY"}; the host's model performs unless set`},
		{Name: "MODEL_API_KEY", Description: "Key for the model server", Secret: true},
	}
	text, err := indented(registryEntry{
		Schema: "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
		Name:   registered, Title: "Workflows", Description: description, Version: s.version,
		Repository: map[string]string{"url": address, "source": "github"},
		Packages: []registryPackage{
			{RegistryType: "npm", Identifier: "workflows-engine-mcp", Version: s.version, RuntimeHint: "npx", Transport: stdio, Variables: variables},
			{
				RegistryType: "mcpb", Identifier: address + "/releases/download/v" + s.version + "/" + bundle.name,
				SHA256: fmt.Sprintf("%x", sha256.Sum256(bundle.data)), Transport: stdio, Variables: variables,
			},
		},
	})
	return entry{"server.json", plain, text}, err
}
