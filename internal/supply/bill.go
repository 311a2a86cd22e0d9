package main

import (
	"fmt"
	"runtime/debug"
	"strings"
)

// bill is a software bill of materials in the form of CycloneDX. It holds no time and no random number: the same binary has the same.
type bill struct {
	Format     string      `json:"bomFormat"`
	Spec       string      `json:"specVersion"`
	Version    int         `json:"version"`
	Metadata   metadata    `json:"metadata"`
	Components []component `json:"components"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PURL       string     `json:"purl"`
	Licenses   []licence  `json:"licenses,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type licence struct {
	Expression string `json:"expression"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// ownLicence is the licence of this repository, goLicence the licence of Go's standard library.
const (
	ownLicence = "Apache-2.0"
	goLicence  = "BSD-3-Clause"
)

// describe writes the bill of a binary from the build information in it. Licences are by module and version.
func describe(binary string, info *debug.BuildInfo, licences map[string]string) (*bill, error) {
	self := part("application", info.Main.Path, info.Main.Version, ownLicence)
	self.Name = binary
	for _, s := range info.Settings {
		switch s.Key {
		case "GOOS", "GOARCH", "CGO_ENABLED", "vcs.revision", "vcs.modified":
			self.Properties = append(self.Properties, property{"go:" + s.Key, s.Value})
		}
	}
	b := &bill{Format: "CycloneDX", Spec: "1.6", Version: 1, Metadata: metadata{self}}
	b.Components = append(b.Components, part("library", "std", strings.TrimPrefix(info.GoVersion, "go"), goLicence))
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		name := licences[m.Path+"@"+m.Version]
		if name == "" {
			return nil, fmt.Errorf("%s@%s: %s does not list its licence", m.Path, m.Version, page)
		}
		c := part("library", m.Path, m.Version, name)
		c.Properties = []property{{"go:sum", m.Sum}}
		b.Components = append(b.Components, c)
	}
	return b, nil
}

func part(kind, path, version, name string) component {
	return component{Type: kind, Name: path, Version: version, PURL: "pkg:golang/" + path + "@" + version, Licenses: []licence{{name}}}
}
