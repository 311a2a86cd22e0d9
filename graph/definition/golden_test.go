package definition_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// golden compares a text with testdata/<name>, or writes it there with -update.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; go test ./graph/definition -update writes it", err)
	}
	if got == string(want) {
		return
	}
	gotLines, wantLines := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for i := range max(len(gotLines), len(wantLines)) {
		g, w := line(gotLines, i), line(wantLines, i)
		if g != w {
			t.Fatalf("%s, line %d (go test ./graph/definition -update rewrites it):\n got %s\nwant %s", path, i+1, g, w)
		}
	}
}

func line(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(end)"
}

// list writes findings, one a line, places first.
func list(findings problem.Findings) string {
	var b strings.Builder
	for _, f := range findings {
		place := f.At.Pointer
		if place == "" {
			place = "/"
		}
		if len(place) > 60 {
			place = place[:60] + "…"
		}
		fmt.Fprintf(&b, "  %s %s %s", f.Severity, f.Code, place)
		if f.At.Line > 0 {
			fmt.Fprintf(&b, " (%d:%d)", f.At.Line, f.At.Column)
		}
		if f.Keyword != "profile" && f.Keyword != "" {
			fmt.Fprintf(&b, " %s", f.Keyword)
		}
		b.WriteByte('\n')
		if f.Code == problem.ExpressionInvalid {
			continue // graph/expr words these
		}
		fmt.Fprintf(&b, "    %s", f.Message)
		if f.Hint != "" {
			fmt.Fprintf(&b, " -> %s", f.Hint)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// place writes line, column and pointer of a finding.
func place(f problem.Finding) string {
	return fmt.Sprintf("%d:%d %s", f.At.Line, f.At.Column, f.At.Pointer)
}

func mustRead(t testing.TB, path string) []byte {
	t.Helper()
	src, err := os.ReadFile(filepath.FromSlash(path))
	if err != nil {
		t.Fatal(err)
	}
	return src
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
