// Package workflowtest reads files with tests of definitions, runs the tests in virtual time, and reports the differences from the
// expected results.
package workflowtest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/graphtest"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/catalog"
	"github.com/workflows-engine/workflows-engine/internal/jsonobject"
	"github.com/workflows-engine/workflows-engine/internal/regularfile"
)

// File is a file with tests of a definition.
type File struct {
	// Path is as it was named.
	Path  string
	Tests []*Test
	// Definition is the path of the definition.
	Definition string

	document *definition.Document
	text     []byte
}

// Test is one test of a file.
type Test struct {
	Name string
	// Place is its place in the file.
	Place    problem.Place
	Snapshot bool

	pointer  string
	scenario graphtest.Scenario
	expect   *expectation
}

// expectation is the expected result of a run. Fields that are nil or not set are not compared.
type expectation struct {
	status                          string
	path, waiting                   []string
	visits                          map[string]int
	state                           map[string]any
	exactly                         bool
	result                          any
	hasResult                       bool
	failure                         *graphtest.Failure
	elapsed                         time.Duration
	hasPath, hasWaiting, hasElapsed bool
}

// Broken is the error for a file that cannot be used.
type Broken struct {
	// Path is the path of the test file or of its definition, Text its content, nil if it could not be read.
	Path string
	Text []byte
	Err  *problem.Error
}

func (b *Broken) Error() string { return filepath.ToSlash(b.Path) + ": " + b.Err.Error() }

// Unwrap returns the error of the file.
func (b *Broken) Unwrap() error { return b.Err }

// broken makes the error for a file.
func broken(path string, text []byte, err error) error {
	p, ok := problem.As(err)
	if !ok {
		p = problem.New(problem.UsageError, "the file cannot be used").WithCause(err)
	}
	return &Broken{path, text, p}
}

// suffixes of files with tests.
var suffixes = []string{".test.yaml", ".test.yml", ".test.json"}

// stem returns the path of a test file without its suffix; ok is false for other files.
func stem(path string) (stem string, ok bool) {
	for _, suffix := range suffixes {
		if stem, ok := strings.CutSuffix(path, suffix); ok {
			return stem, true
		}
	}
	return "", false
}

// Find lists the test files below folders, and those that are named themselves, in the order of the arguments and then of their paths.
// Folders whose names begin with a dot are left out, and so are node_modules. base is the folder of relative paths, which stay relative
// in the list.
func Find(base string, paths ...string) ([]string, error) {
	var found []string
	for _, named := range paths {
		absolute := within(base, named)
		err := filepath.WalkDir(absolute, func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			name := entry.Name()
			if entry.IsDir() {
				if skipped(path, absolute, entry) {
					return fs.SkipDir
				}
				return nil
			}
			_, isTest := stem(name)
			if path == absolute && !isTest {
				return problem.New(problem.UsageError, "%s is not a test file", named).WithHint("Test files are named NAME%s.", strings.Join(suffixes, ", NAME"))
			}
			if !isTest {
				return nil
			}
			below, err := filepath.Rel(absolute, path)
			if err == nil && !slices.Contains(found, filepath.Join(named, below)) {
				found = append(found, filepath.Join(named, below))
			}
			return err
		})
		if e, ok := errors.AsType[*fs.PathError](err); ok {
			return nil, problem.New(problem.UsageError, "cannot read %s", named).WithCause(e.Err)
		} else if err != nil {
			return nil, err
		}
	}
	return found, nil
}

func within(base, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(base, path)
}

// Load reads a test file and its definition. The error is a *Broken.
func Load(base, path string) (*File, error) {
	f := &File{Path: path}
	text, doc, err := read(within(base, path))
	if err != nil {
		return nil, broken(path, text, err)
	}
	f.text = text
	report := jsonobject.Report{Code: problem.TestFileInvalid}
	root := report.Value(doc.Value()).Object()
	r := reader{report: &report}
	given, tests := root.Get("definition"), root.Require("tests")
	f.Definition = given.NonEmpty()
	var prog *definition.Program
	if !given.Present() || f.Definition != "" {
		if f.Definition, err = f.definition(base, f.Definition); err != nil {
			at := given
			if !at.Present() {
				at = root.Value
			}
			p, _ := problem.As(err)
			at.Fail("definition", "%s", p.Error()).Hint = p.Hint
		} else if prog, err = f.compile(base); err != nil {
			return nil, err
		}
	}
	r.prog, r.workflows = prog, catalog.New(filepath.Dir(within(base, f.Definition)), catalog.Options{})
	f.Tests = r.tests(tests)
	root.Close()
	if _, isJSON := strings.CutSuffix(path, ".json"); isJSON {
		for _, t := range f.Tests {
			if t.Snapshot {
				report.Value(doc.Value()).Fail("snapshot", "test %q: snapshots need a test file in YAML", t.Name).Hint = "rename the file to .test.yaml: JSON is YAML too"
			}
		}
	}
	for i := range report.Findings {
		at := doc.Place(report.Findings[i].At.Pointer)
		at.NodeID = report.Findings[i].At.NodeID
		report.Findings[i].At = at
	}
	for _, t := range f.Tests {
		t.Place = doc.Place(t.pointer)
	}
	if len(report.Findings) == 0 {
		return f, nil
	}
	report.Findings.Sort()
	e := problem.New(problem.TestFileInvalid, "the test file is not valid")
	e.Findings, e.At = report.Findings, report.Findings[0].At
	return nil, broken(path, text, e)
}

// compile reads the definition.
func (f *File) compile(base string) (prog *definition.Program, err error) {
	text, doc, err := read(within(base, f.Definition))
	if err == nil {
		f.document = doc
		var findings problem.Findings
		if prog, findings = definition.Compile(doc, definition.Options{Runnable: true}); prog == nil || findings.HasErrors() {
			err = definition.Refusal(findings)
		}
	}
	if err != nil {
		return nil, broken(f.Definition, text, err)
	}
	return prog, nil
}

// Watch describes the files that decide how tests go, so that a change in one of them changes the description: the test files and
// definitions below the folders of paths, and the definitions of files.
func Watch(base string, paths []string, files []*File) string {
	var text strings.Builder
	note := func(path string, info fs.FileInfo) {
		fmt.Fprintln(&text, path, info.Size(), info.ModTime().UnixNano())
	}
	for _, path := range paths {
		folder := within(base, path)
		if info, err := os.Stat(folder); err == nil && !info.IsDir() {
			folder = filepath.Dir(folder)
		}
		_ = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return nil // it has gone meanwhile, or is not for this user: the next look may differ
			case entry.IsDir() && skipped(path, folder, entry):
				return fs.SkipDir
			case strings.Contains(entry.Name(), ".test.") || strings.Contains(entry.Name(), ".workflow."):
				if info, err := entry.Info(); err == nil {
					note(path, info)
				}
			}
			return nil
		})
	}
	for _, f := range files {
		if info, err := os.Stat(within(base, f.Definition)); err == nil {
			note(f.Definition, info)
		}
	}
	return text.String()
}

// skipped reports whether a folder below another one is not searched.
func skipped(path, below string, entry fs.DirEntry) bool {
	return path != below && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "node_modules")
}

// definition returns the path of the definition that a file tests: the one that it names or, for "", the one with the file's own name.
func (f *File) definition(base, given string) (string, error) {
	if given != "" {
		path := given
		if !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(f.Path), filepath.FromSlash(given))
		}
		if info, err := os.Stat(within(base, path)); err != nil || info.IsDir() {
			return "", problem.New(problem.TestFileInvalid, "there is no definition %s", filepath.ToSlash(path)).WithHint("the path begins in the folder of the test file")
		}
		return path, nil
	}
	name, _ := stem(f.Path)
	for _, suffix := range []string{".workflow.json", ".workflow.yaml", ".workflow.yml"} {
		if _, err := os.Stat(within(base, name+suffix)); err == nil {
			return name + suffix, nil
		}
	}
	return "", problem.New(problem.TestFileInvalid, "there is no definition %s.workflow.json, .yaml or .yml", filepath.ToSlash(name)).
		WithHint("name the definition in the field definition")
}

// read reads a file in JSON or YAML.
func read(path string) ([]byte, *definition.Document, error) {
	text, err := regularfile.Read(path, 0)
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, nil, problem.New(problem.UsageError, "cannot read the file").WithCause(e.Err)
	} else if err != nil {
		return nil, nil, err
	}
	parse := definition.ParseYAML
	if strings.HasSuffix(path, ".json") {
		parse = definition.Parse
	}
	doc, err := parse(text)
	return text, doc, err
}
