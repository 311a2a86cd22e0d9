package main

import (
	"bytes"
	_ "embed" // launch.js
	"encoding/json"
	"slices"
	"strings"
)

//go:embed npm/launch.js
var launch []byte

// Metadata of all packages.
const (
	address     = "https://github.com/workflows-engine/workflows-engine"
	registered  = "io.github.workflows-engine/workflows-engine" // the name in the MCP registry
	description = "Durable workflows that AI agents drive over MCP (Agent Workflow Protocol)"
	license     = "Apache-2.0"
)

// npmNames are the platforms in the words of Node.js.
var npmNames = map[string]string{"darwin": "darwin", "linux": "linux", "windows": "win32", "amd64": "x64", "arm64": "arm64"}

// packageFile is a package.json. Its fields are in npm's order.
type packageFile struct {
	Name                 string            `json:"name"`
	Version              string            `json:"version"`
	Description          string            `json:"description"`
	License              string            `json:"license"`
	Homepage             string            `json:"homepage"`
	Repository           map[string]string `json:"repository"`
	MCPName              string            `json:"mcpName,omitempty"`
	Bin                  map[string]string `json:"bin,omitempty"`
	Files                []string          `json:"files"`
	OS                   []string          `json:"os,omitempty"`
	CPU                  []string          `json:"cpu,omitempty"`
	Engines              map[string]string `json:"engines,omitempty"`
	Dependencies         map[string]string `json:"dependencies,omitempty"`
	OptionalDependencies map[string]string `json:"optionalDependencies,omitempty"`
	PreferUnplugged      bool              `json:"preferUnplugged,omitempty"` // yarn: a program cannot be started inside a zip
	PublishConfig        map[string]string `json:"publishConfig"`
}

// npmName is the package of a platform.
func (t target) npmName() string {
	return "@workflows-engine/" + npmNames[t.os] + "-" + npmNames[t.arch]
}

// packages makes the npm packages: the launcher, one that starts the MCP server only, and one for each platform.
func (s source) packages(chosen []target, built map[target][]entry, common, examples []entry) (files []entry, err error) {
	platforms := map[string]string{}
	for _, t := range targets { // also those that were not chosen: the launcher is the same for all
		platforms[t.npmName()] = s.version
	}
	engines := map[string]string{"node": ">=18"}
	main := s.packageFile("workflows-engine", description)
	main.Bin = map[string]string{}
	for _, name := range programs {
		main.Bin[name] = "bin/" + name + ".js"
	}
	main.Files, main.Engines, main.OptionalDependencies = []string{"bin", "examples", "launch.js"}, engines, platforms
	contents := append(slices.Concat(common, examples), entry{"launch.js", plain, launch})
	for _, name := range programs {
		contents = append(contents, entry{"bin/" + name + ".js", program, script(`require("../launch.js")("` + name + `");`)})
	}
	files, err = s.pack(files, main, contents)
	if err != nil {
		return nil, err
	}

	server := s.packageFile("workflows-engine-mcp", "The MCP server of workflows-engine, for npx -y workflows-engine-mcp")
	server.MCPName, server.Engines = registered, engines
	server.Bin, server.Files = map[string]string{"workflows-engine-mcp": "server.js"}, []string{"server.js"}
	server.Dependencies = map[string]string{main.Name: s.version}
	contents = append(slices.Clone(common), entry{"server.js", program, script(`require("workflows-engine/launch.js")("workflows-engine-mcp");`)})
	files, err = s.pack(files, server, contents)
	if err != nil {
		return nil, err
	}

	licences := slices.DeleteFunc(slices.Clone(common), func(e entry) bool { return e.name == "README.md" })
	for _, t := range chosen {
		p := s.packageFile(t.npmName(), "The programs of workflows-engine for "+npmNames[t.os]+" on "+npmNames[t.arch]+"; install workflows-engine")
		p.OS, p.CPU, p.Files, p.PreferUnplugged = []string{npmNames[t.os]}, []string{npmNames[t.arch]}, []string{"bin"}, true
		note := entry{"README.md", plain, []byte("# " + p.Name + "\n\n" + p.Description + ".\n\n" + address + "\n")}
		if files, err = s.pack(files, p, slices.Concat(licences, []entry{note}, below("bin", built[t]))); err != nil {
			return nil, err
		}
	}
	return files, nil
}

func (s source) packageFile(name, text string) packageFile {
	return packageFile{
		Name: name, Version: s.version, Description: text, License: license, Homepage: address,
		Repository: map[string]string{"type": "git", "url": "git+" + address + ".git"}, PublishConfig: map[string]string{"access": "public"},
	}
}

// script is a program for Node.js of one line.
func script(line string) []byte { return []byte("#!/usr/bin/env node\n" + line + "\n") }

// pack adds a package to files, in the form and under the name that npm pack gives it.
func (s source) pack(files []entry, p packageFile, contents []entry) ([]entry, error) {
	text, err := indented(p)
	if err != nil {
		return nil, err
	}
	data, err := tarball(s.date, below("package", append(contents, entry{"package.json", plain, text})))
	name := strings.ReplaceAll(strings.TrimPrefix(p.Name, "@"), "/", "-")
	return append(files, entry{"npm/" + name + "-" + p.Version + ".tgz", plain, data}), err
}

// indented is a value as JSON for readers.
func indented(value any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(value)
	return out.Bytes(), err
}
