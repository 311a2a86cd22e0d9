package conformance_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/conformance"
	"github.com/workflows-engine/workflows-engine/graph/machine"
)

var update = flag.Bool("update", false, "rewrite golden files")

// protocolVectors holds the protocol's own vectors; it is no part of the repository.
const protocolVectors = "../../shared/awp-v1"

// needProtocolVectors skips a test where the protocol's vectors are absent.
func needProtocolVectors(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(protocolVectors, "vectors")); err != nil {
		t.Skipf("the protocol's vectors are not at %s beside the repository: %v", strings.TrimPrefix(protocolVectors, "../"), err)
	}
}

func surfaces() []conformance.SurfaceFactory { return []conformance.SurfaceFactory{mcpSurface} }

// All vectors of the protocol pass, unchanged and with default settings.
func TestProtocolVectors(t *testing.T) {
	t.Parallel()
	needProtocolVectors(t)
	report := run(t, protocolVectors, conformance.Options{Surfaces: surfaces()})
	if want := 60; report.Total != want {
		t.Errorf("%d vectors ran, the protocol has %d", report.Total, want)
	}
}

// They pass as well when branches are walked one after another.
func TestProtocolVectorsSequentially(t *testing.T) {
	t.Parallel()
	needProtocolVectors(t)
	run(t, protocolVectors, conformance.Options{Branches: machine.Sequential})
}

// The vectors of this repository pass, each says why it exists, and none is added or lost without notice.
func TestOwnVectors(t *testing.T) {
	t.Parallel()
	report := run(t, ".", conformance.Options{Surfaces: surfaces()})
	var ids []string
	for _, v := range report.Vectors {
		ids = append(ids, v.ID)
		if strings.TrimSpace(v.Description) == "" || strings.Contains(v.Description, "\n") {
			t.Errorf("%s: a description is one line that says why the vector exists", v.Path)
		}
	}
	slices.Sort(ids)
	golden := filepath.Join("testdata", "ids.golden")
	got := strings.Join(ids, "\n") + "\n"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the ids differ from %s (go test ./conformance -run Own -update rewrites it):\n%s", golden, got)
	}
}

// They pass as well when branches are walked one after another, but for those of the profile that needs more.
func TestOwnVectorsSequentially(t *testing.T) {
	t.Parallel()
	run(t, ".", conformance.Options{Branches: machine.Sequential, Profile: "sequential"})
}

// Every definition of the examples folder is used by a vector or by another definition.
func TestOwnExamplesAreUsed(t *testing.T) {
	t.Parallel()
	var used strings.Builder
	for _, dir := range []string{"vectors", "examples"} {
		err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			used.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob("examples/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, file := range files {
		if filepath.Base(file) != "r3-unit-tests-child.workflow.json" && !strings.Contains(used.String(), filepath.ToSlash(file)) {
			t.Errorf("%s is used by no vector", file)
		}
	}
}

// run runs the vectors of a folder and reports every problem.
func run(t *testing.T, dir string, o conformance.Options) conformance.Report {
	t.Helper()
	report, err := conformance.RunDir(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range report.Problems {
		t.Errorf("%s", p.Message)
	}
	for _, v := range report.Vectors {
		for _, p := range v.Problems {
			expected, _ := json.Marshal(p.Expected)
			got, _ := json.Marshal(p.Got)
			t.Errorf("%s (%s)\n  at %s: %s\n  expected %s\n  got      %s", v.ID, v.Path, p.At, p.Message, expected, got)
		}
	}
	if (report.Status == conformance.Pass) != (report.Failed == 0 && len(report.Problems) == 0) || report.Total != report.Passed+report.Failed {
		t.Errorf("the report contradicts itself: %+v", report)
	}
	return report
}
