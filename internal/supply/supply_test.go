package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"strings"
	"testing"
)

const root = "../.."

// TestLicencesAreListed: the page lists every dependency of this repository in its version and no other, with the licence that its source
// has, as far as that was downloaded.
func TestLicencesAreListed(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	modules, err := required(root)
	if err != nil || len(modules) < 30 {
		t.Fatalf("%d modules, %v", len(modules), err)
	}
	known, compared := listed(text), 0
	for _, m := range modules {
		key := m.Path + "@" + m.Version
		if known[key] == "" {
			t.Errorf("%s does not list %s: go run ./internal/supply licences >%s", page, key, page)
		}
		name, err := m.licence()
		switch {
		case errors.Is(err, errNotDownloaded):
			t.Log(err)
		case err != nil:
			t.Error(err)
		case name != known[key]:
			t.Errorf("%s lists %s as %q, its source says %q", page, key, known[key], name)
		default:
			compared++
		}
		delete(known, key)
	}
	for key := range known {
		t.Errorf("%s lists %s, which nothing requires: go run ./internal/supply licences >%s", page, key, page)
	}
	if compared < 15 {
		t.Errorf("only %d licences compared", compared)
	}
	if !bytes.HasPrefix(text, []byte(introduction)) {
		t.Errorf("%s begins otherwise than internal/supply writes it", page)
	}
}

func TestLicenceForms(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Permission is hereby granted,\n  free of charge, to any":                                  "MIT",
		"Redistribution and use in source and binary forms, with":                                  "BSD-2-Clause",
		"Redistribution and use in source and binary forms\n* Neither the name of":                 "BSD-3-Clause",
		"   Apache License\n  Version 2.0, January\n Permission is hereby granted, free of charge": "Apache-2.0 MIT",
		"GNU AFFERO GENERAL PUBLIC LICENSE Version 3":                                              "",
	} {
		if got := strings.Join(licencesOf([]byte(text)), " "); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if _, err := (module{Path: "example.org/None", Version: "v1.0.0"}).licence(); !errors.Is(err, errNotDownloaded) {
		t.Errorf("got %v", err)
	}
}

// TestBillOfMaterials: every module in a binary is in its bill, with its licence; one whose licence is not listed is refused.
func TestBillOfMaterials(t *testing.T) {
	t.Parallel()
	info := &debug.BuildInfo{
		GoVersion: "go1.26.8", Main: debug.Module{Path: "example.org/engine", Version: "(devel)"},
		Deps:     []*debug.Module{{Path: "example.org/x", Version: "v1.0.0", Sum: "h1:abc="}},
		Settings: []debug.BuildSetting{{Key: "GOOS", Value: "linux"}, {Key: "-ldflags", Value: "-s"}},
	}
	b, err := describe("engine", info, map[string]string{"example.org/x@v1.0.0": "Apache-2.0 AND MIT"})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	var got, want any
	const expected = `{"bomFormat":"CycloneDX","specVersion":"1.6","version":1,
		"metadata":{"component":{"type":"application","name":"engine","version":"(devel)","purl":"pkg:golang/example.org/engine@(devel)",
			"licenses":[{"expression":"Apache-2.0"}],"properties":[{"name":"go:GOOS","value":"linux"}]}},
		"components":[
			{"type":"library","name":"std","version":"1.26.8","purl":"pkg:golang/std@1.26.8","licenses":[{"expression":"BSD-3-Clause"}]},
			{"type":"library","name":"example.org/x","version":"v1.0.0","purl":"pkg:golang/example.org/x@v1.0.0",
			"licenses":[{"expression":"Apache-2.0 AND MIT"}],"properties":[{"name":"go:sum","value":"h1:abc="}]}]}`
	if err := errors.Join(json.Unmarshal(text, &got), json.Unmarshal([]byte(expected), &want)); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v: %s", err, text)
	}
	if _, err := describe("engine", info, nil); err == nil || !strings.Contains(err.Error(), "example.org/x@v1.0.0") {
		t.Errorf("got %v", err)
	}
}
