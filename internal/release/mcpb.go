package main

import (
	"fmt"
	"slices"
	"strings"
)

// manifest is the manifest.json of an MCPB bundle (github.com/modelcontextprotocol/mcpb, MANIFEST.md).
type manifest struct {
	ManifestVersion string                `json:"manifest_version"`
	Name            string                `json:"name"`
	DisplayName     string                `json:"display_name"`
	Version         string                `json:"version"`
	Description     string                `json:"description"`
	LongDescription string                `json:"long_description"`
	Author          map[string]string     `json:"author"`
	Repository      map[string]string     `json:"repository"`
	Homepage        string                `json:"homepage"`
	Documentation   string                `json:"documentation"`
	Support         string                `json:"support"`
	Server          bundleServer          `json:"server"`
	ToolsGenerated  bool                  `json:"tools_generated"`
	Keywords        []string              `json:"keywords"`
	License         string                `json:"license"`
	Compatibility   map[string][]string   `json:"compatibility"`
	UserConfig      map[string]userOption `json:"user_config"`
}

type bundleServer struct {
	Type       string       `json:"type"`
	EntryPoint string       `json:"entry_point"`
	Config     serverConfig `json:"mcp_config"`
}

type serverConfig struct {
	Command   string                  `json:"command"`
	Args      []string                `json:"args,omitempty"`
	Env       map[string]string       `json:"env,omitempty"`
	Overrides map[string]serverConfig `json:"platform_overrides,omitempty"`
}

// userOption is a setting that the host asks its user for. All have a default: a host leaves ${user_config.…} as it is where there is
// neither a value nor a default, and the engine takes an empty value as not set.
type userOption struct {
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Required    bool   `json:"required"`
	Sensitive   bool   `json:"sensitive,omitempty"`
	Default     string `json:"default"`
}

// chooser starts the program for the processor. The specification tells platforms apart, but not processors.
const chooser = `#!/bin/sh
case "$(uname -m)" in
x86_64 | amd64) processor=amd64 ;;
aarch64 | arm64) processor=arm64 ;;
*) processor="$(uname -m)" ;;
esac
program="$(dirname -- "$0")/$processor/workflows-engine-mcp"
if [ ! -e "$program" ]; then
	echo "workflows-engine-mcp: PLATFORM_UNSUPPORTED: this bundle has no program for $processor" >&2
	exit 1
fi
exec "$program" "$@"
`

// serverFiles are the server's files for a platform. Hosts start the first: on macOS one file for all processors, on
// Windows that for amd64, which all processors run, on Linux a script that chooses.
func serverFiles(system string, binaries map[string][]byte) ([]entry, error) {
	folder := "server/" + npmNames[system] + "/"
	switch system {
	case "darwin":
		var parts [][]byte
		for _, arch := range []string{"amd64", "arm64"} {
			if binaries[arch] != nil {
				parts = append(parts, binaries[arch])
			}
		}
		data, err := universal(parts)
		return []entry{{folder + "workflows-engine-mcp", program, data}}, err
	case "windows":
		data := binaries["amd64"]
		if data == nil {
			data = binaries["arm64"]
		}
		return []entry{{folder + "workflows-engine-mcp.exe", program, data}}, nil
	}
	files := []entry{{folder + "workflows-engine-mcp", program, []byte(chooser)}}
	for arch, data := range binaries {
		files = append(files, entry{folder + arch + "/workflows-engine-mcp", program, data})
	}
	return files, nil
}

// bundle makes the MCPB bundle: one file with the server for all platforms.
func (s source) bundle(chosen []target, built map[target][]entry, common []entry) (entry, error) {
	binaries := map[string]map[string][]byte{}
	var systems []string
	for _, t := range chosen {
		if binaries[t.os] == nil {
			binaries[t.os] = map[string][]byte{}
			systems = append(systems, t.os)
		}
		i := slices.IndexFunc(built[t], func(e entry) bool { return e.name == t.file("workflows-engine-mcp") })
		if i < 0 {
			return entry{}, fmt.Errorf("no workflows-engine-mcp for %v", t)
		}
		binaries[t.os][t.arch] = built[t][i].data
	}
	contents, starts := slices.Clone(common), map[string]string{}
	for _, system := range systems {
		files, err := serverFiles(system, binaries[system])
		if err != nil {
			return entry{}, err
		}
		contents, starts[npmNames[system]] = append(contents, files...), files[0].name
	}
	text, err := indented(s.manifest(npmNames[systems[0]], starts))
	if err != nil {
		return entry{}, err
	}
	data, err := zipped(s.date, append(contents, entry{"manifest.json", plain, text}))
	return entry{"workflows-engine_" + s.version + ".mcpb", plain, data}, err
}

// manifest describes a bundle. Starts lists the files that hosts start, by platform; the first platform has no override.
func (s source) manifest(first string, starts map[string]string) manifest {
	config := serverConfig{
		Command: "${__dirname}/" + starts[first],
		Args:    []string{"--workflow-dir=${user_config.workflow_dir}"},
		Env: map[string]string{
			"WORKFLOW_ENGINE_STORE_PATH": "${user_config.database}",
			"WORKFLOW_ENGINE_LLM_CONFIG": "${user_config.model_server}",
			"MODEL_API_KEY":              "${user_config.model_key}",
		},
		Overrides: map[string]serverConfig{},
	}
	var platforms []string
	for platform, file := range starts {
		if platforms = append(platforms, platform); platform != first {
			config.Overrides[platform] = serverConfig{Command: "${__dirname}/" + file}
		}
	}
	slices.Sort(platforms)
	return manifest{
		ManifestVersion: "0.3", Name: "workflows-engine", DisplayName: "Workflows", Version: s.version, Description: description,
		LongDescription: strings.Join([]string{
			"Starts and continues workflows: model calls, tool calls, decisions, questions to people, waits.",
			"Every step is committed to a database on this machine, so a run survives restarts of the host.",
		}, " "),
		Author:     map[string]string{"name": "workflows-engine", "url": address},
		Repository: map[string]string{"type": "git", "url": address},
		Homepage:   address, Documentation: address + "/blob/main/docs/mcp-hosts.md", Support: address + "/issues",
		Server:         bundleServer{Type: "binary", EntryPoint: starts[first], Config: config},
		ToolsGenerated: true, Keywords: []string{"workflow", "agents", "durable", "awp"}, License: license,
		Compatibility: map[string][]string{"platforms": platforms},
		UserConfig: map[string]userOption{
			"database": {Type: "string", Title: "Database", Description: "File with the runs. Empty: the file that the command line uses."},
			"workflow_dir": {Type: "directory", Title: "Workflow folder",
				Description: "Folder with workflow definitions that are started by name. Empty: none."},
			"model_server": {Type: "string", Title: "Model server", Description: "Empty: this app's model performs model calls. " +
				`To have the engine ask a server with the key below: {"apiKeyEnv":"MODEL_API_KEY"}, with "baseUrl" unless it is OpenAI's.`},
			"model_key": {Type: "string", Title: "Model key", Description: "Key for the model server. It is kept by this app and not recorded in runs.", Sensitive: true},
		},
	}
}
