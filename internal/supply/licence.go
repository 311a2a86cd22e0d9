package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// module is a dependency. For is its purpose.
type module struct{ Path, Version, For string }

// moduleFiles are the modules of this repository, by the purpose of their dependencies.
var moduleFiles = []struct{ file, purpose string }{
	{"go.mod", "the engine and its tests"}, {"internal/a2atest/go.mod", "tests against the A2A SDK"},
	{"internal/pagetest/go.mod", "tests in a browser"}, {"tools.mod", "development tools"},
}

// required returns all dependencies of this repository, each version once.
func required(root string) ([]module, error) {
	var all []module
	for _, f := range moduleFiles {
		out, err := exec.Command("go", "mod", "edit", "-json", filepath.Join(root, f.file)).Output()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.file, err)
		}
		var required struct{ Require []module }
		if err := json.Unmarshal(out, &required); err != nil {
			return nil, err
		}
		for _, m := range required.Require {
			known := slices.ContainsFunc(all, func(o module) bool { return o.Path == m.Path && o.Version == m.Version })
			if !known && m.Version != "v0.0.0" { // that is this repository itself
				m.For = f.purpose
				all = append(all, m)
			}
		}
	}
	slices.SortFunc(all, func(a, b module) int { return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Version, b.Version)) })
	return all, nil
}

// directory is where the source of a module is, if it was downloaded.
func (m module) directory() (string, error) {
	cache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	var escaped strings.Builder // as the module cache spells upper case
	for _, r := range m.Path + "@" + m.Version {
		if unicode.IsUpper(r) {
			escaped.WriteByte('!')
		}
		escaped.WriteRune(unicode.ToLower(r))
	}
	return filepath.Join(strings.TrimSpace(string(cache)), filepath.FromSlash(escaped.String())), err
}

// forms are the known licences, by a sentence of their texts without punctuation. All of them permit this use.
var forms = []struct {
	name string
	text *regexp.Regexp
}{
	{"Apache-2.0", regexp.MustCompile(`Apache License,? Version 2\.0`)},
	{"BSD-2-Clause", regexp.MustCompile(`Redistribution and use in source and binary forms`)},
	{"BSD-3-Clause", regexp.MustCompile(`Redistribution and use in source and binary forms.*Neither the name`)},
	{"ISC", regexp.MustCompile(`Permission to use, copy, modify, and(/or)? distribute this software`)},
	{"MIT", regexp.MustCompile(`Permission is hereby granted, free of charge`)},
	{"Unlicense", regexp.MustCompile(`This is free and unencumbered software`)},
}

var errNotDownloaded = errors.New("its source was not downloaded (go mod download)")

// licence reads the licence of a module. The name is an expression of SPDX.
func (m module) licence() (string, error) {
	folder, err := m.directory()
	if err != nil {
		return "", err
	}
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s@%s: %w", m.Path, m.Version, errNotDownloaded)
	}
	var names []string
	for _, entry := range entries {
		if !regexp.MustCompile(`(?i)^(licen[sc]e|copying)(\.\w+)?$`).MatchString(entry.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return "", err
		}
		names = append(names, licencesOf(text)...)
	}
	if len(names) == 0 {
		return "", fmt.Errorf("%s@%s: unknown licence; read it, and add its form to internal/supply if it permits what this engine does", m.Path, m.Version)
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), " AND "), nil
}

// licencesOf returns the names of the licences in a text.
func licencesOf(text []byte) (names []string) {
	plain := bytes.Join(bytes.Fields(text), []byte(" "))
	for _, form := range forms {
		if form.text.Match(plain) {
			names = append(names, form.name)
		}
	}
	if slices.Contains(names, "BSD-3-Clause") {
		names = slices.DeleteFunc(names, func(name string) bool { return name == "BSD-2-Clause" })
	}
	return names
}

const introduction = `# Licences of dependencies

Every module that this repository requires, with the licence in its source, in the notation of SPDX. The binaries hold only some of
them: their bills of materials list these (` + "`make sbom`" + `). ` + "`modernc.org/sqlite`" + ` holds SQLite, which is in the public domain. Written by
` + "`go run ./internal/supply licences`" + `; a test fails if a module is missing here or has an unknown licence.

| module | version | licence | for |
|---|---|---|---|
`

// list writes the page.
func list(modules []module) ([]byte, error) {
	page := []byte(introduction)
	for _, m := range modules {
		name, err := m.licence()
		if err != nil {
			return nil, err
		}
		page = fmt.Appendf(page, "| %s | %s | %s | %s |\n", m.Path, m.Version, name, m.For)
	}
	return page, nil
}

// listed returns the licences that a page lists, by module and version as in "example.org/x@v1.0.0".
func listed(page []byte) map[string]string {
	licences := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^\| (\S+) \| (v\d\S*) \| ([^|]+) \|`).FindAllSubmatch(page, -1) {
		licences[string(m[1])+"@"+string(m[2])] = string(m[3])
	}
	return licences
}
