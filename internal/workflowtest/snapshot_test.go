package workflowtest_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/internal/workflowtest"
)

func decimal(n int) string { return strconv.Itoa(n) }

// value is what a text in YAML says.
func value(t *testing.T, text string) any {
	t.Helper()
	doc, err := definition.ParseYAML([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return doc.Value()
}

// Snapshots replace the lines of expect, and leave every other byte of the file as it is.
func TestUpdate(t *testing.T) {
	t.Parallel()
	const written = `expect:
      status: completed
      path: [b, think, e]
      result:
        "n": "12:30"
        x: 1
        "y": 2.5
      state:
        "n": "12:30"
        x: 1
        "y": 2.5
      exactly: true
      elapsed: 1500ms
`
	const body = `stubs: {think: {output: {x: 1, y: 2.5, n: "12:30"}, delay: 1500ms}}
`
	for _, c := range []struct{ name, before, after string }{
		{"at the end", "tests:\n  - name: x\n    snapshot: true\n    " + body, "tests:\n  - name: x\n    snapshot: true\n    " + body + "    " + written},
		{"without a line end", strings.TrimSuffix("tests:\n  - name: x\n    snapshot: true\n    "+body, "\n"), "tests:\n  - name: x\n    snapshot: true\n    " + body + "    " + written},
		{
			"replaced, with comments around it",
			"# head\ntests:\n  # of x\n  - name: x # here\n    snapshot: true\n    expect:\n      # gone\n      path:\n      - b\n\n    # of the stubs\n    " + body + "\n  # of y\n  - name: y\n    " + body,
			"# head\ntests:\n  # of x\n  - name: x # here\n    snapshot: true\n    " + written + "\n    # of the stubs\n    " + body + "\n  # of y\n  - name: y\n    " + body,
		},
		{"first in its test", "tests:\n- expect: {status: failed}\n  name: x\n  snapshot: true\n  " + body, "tests:\n- " + strings.ReplaceAll(written, "\n    ", "\n  ") + "  name: x\n  snapshot: true\n  " + body},
		{"not a snapshot", "tests:\n  - name: x\n    expect: {status: failed}\n    " + body, ""},
		{"passes", "tests:\n  - name: x\n    snapshot: true\n    expect: {status: completed}\n    " + body, ""},
	} {
		dir := folder(t, map[string]string{"part.workflow.yaml": part, "part.test.yaml": c.before})
		f, err := workflowtest.Load(dir, "part.test.yaml")
		if err != nil {
			t.Fatal(err)
		}
		changed, err := f.Update(dir, f.Run(all))
		if err != nil || changed != (c.after != "") {
			t.Errorf("%s: changed %t, %v", c.name, changed, err)
		}
		text, _ := os.ReadFile(filepath.Join(dir, "part.test.yaml"))
		if want := c.after; changed && string(text) != want || !changed && string(text) != c.before {
			t.Errorf("%s\n got %s\nwant %s", c.name, text, want)
		}
		if !changed {
			continue
		}
		if f, err = workflowtest.Load(dir, "part.test.yaml"); err != nil {
			t.Fatalf("%s: %v\n%s", c.name, err, text)
		}
		if r := f.Run(all)[0]; !r.Passed() {
			t.Errorf("%s: %+v", c.name, r.Differences)
		}
	}
}

// A failing run, and one that waits, make snapshots that hold.
func TestUpdateOfEveryEnding(t *testing.T) {
	t.Parallel()
	tests := "tests:\n" + `  - name: fails
    snapshot: true
    stubs: {build: {fail: {code: "1e5", message: "no: # {"}}}
  - name: waits
    snapshot: true
    stubs: {build: {output: {image: null, list: [[], {}, "", " x ", "true", "~", -0.5, 1e300]}}}
  - name: refused
    snapshot: true
    input: {}
`
	dir := folder(t, map[string]string{"gate.workflow.yaml": strings.Replace(gate, "{type: object}", "{type: object, properties: {m: {type: object}}}", 1), "gate.test.yaml": strings.Replace(tests, "input: {}", "input: {m: 1}", 1)})
	for range 2 {
		f, err := workflowtest.Load(dir, "gate.test.yaml")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Update(dir, f.Run(all)); err != nil {
			t.Fatal(err)
		}
	}
	f, err := workflowtest.Load(dir, "gate.test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range f.Run(all) {
		if !r.Passed() {
			t.Errorf("%s: %+v", r.Test.Name, r.Differences)
		}
	}
}

// A snapshot cannot be written into a test in braces, nor into JSON.
func TestSnapshotsThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"part.workflow.yaml": part, "part.test.yaml": "tests: [{name: x, snapshot: true, stubs: {think: {output: {x: 1, y: 1}}}}]",
		"j.workflow.yaml": part, "j.test.json": `{"tests":[{"name":"x","snapshot":true}]}`,
	})
	f, err := workflowtest.Load(dir, "part.test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Update(dir, f.Run(all)); err == nil || !strings.Contains(err.Error(), "block style") {
		t.Error(err)
	}
	if _, err := workflowtest.Load(dir, "j.test.json"); err == nil || !strings.Contains(err.Error(), "not valid") {
		t.Error(err)
	}
}

// Find searches folders, and takes named files only if they are test files.
func TestFind(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"b.test.yaml": "", "a/c.test.json": "", "a/d.test.yml": "", "a/e.yaml": "", ".git/f.test.yaml": "", "node_modules/g.test.yaml": "",
	})
	for _, c := range []struct {
		paths []string
		want  string
	}{
		{[]string{"."}, "a/c.test.json a/d.test.yml b.test.yaml"},
		{[]string{"b.test.yaml", "."}, "b.test.yaml a/c.test.json a/d.test.yml"},
		{[]string{"a"}, "a/c.test.json a/d.test.yml"},
		{[]string{"a/e.yaml"}, "a/e.yaml is not a test file"},
		{[]string{"x"}, "cannot read x"},
	} {
		found, err := workflowtest.Find(dir, c.paths...)
		got := filepath.ToSlash(strings.Join(found, " "))
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%v: %s", c.paths, got)
		}
	}
}
