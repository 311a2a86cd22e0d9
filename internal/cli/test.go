package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/graph/graphtest"
	"github.com/workflows-engine/workflows-engine/internal/wait"
	"github.com/workflows-engine/workflows-engine/internal/workflowtest"
)

type testOptions struct {
	update, cover, watch bool
	run, junit           string
}

func newTest(a *app) *cobra.Command {
	var o testOptions
	cmd := &cobra.Command{
		Use:   "test [PATH...]",
		Short: "Run the tests of definitions",
		Long: `Run test files: NAME.test.yaml, .yml or .json beside NAME.workflow.json or .yaml. A test is one run of the definition with stubs
for activities, agents and people, in virtual time; nothing is stored. PATH is a test file, or a directory that is searched with its
subdirectories; the default is the current directory.

docs/testing-workflows.md describes the files.`,
		Example: `  workflows-engine test
  workflows-engine test examples/lighthouse --cover
  workflows-engine test --run 'refund' --watch
  workflows-engine test --junit report.xml`,
		RunE: func(cmd *cobra.Command, paths []string) error { return a.test(cmd.Context(), paths, o) },
	}
	cmd.Flags().BoolVar(&o.update, "update", false, "update the expectations of tests with snapshot: true")
	cmd.Flags().BoolVar(&o.cover, "cover", false, "print the coverage of nodes and edges")
	cmd.Flags().BoolVar(&o.watch, "watch", false, "repeat the tests when a file changes, until interrupted")
	cmd.Flags().StringVar(&o.run, "run", "", "run only tests with names that match this `regexp`")
	cmd.Flags().StringVar(&o.junit, "junit", "", "also write a JUnit report to this `file`")
	return cmd
}

// watchInterval is how often test --watch checks the files.
const watchInterval = 500 * time.Millisecond

// test runs test files, with --watch after every change.
func (a *app) test(ctx context.Context, paths []string, o testOptions) error {
	accept, err := regexp.Compile(o.run)
	if err != nil {
		return usage("invalid regular expression %q for --run", o.run).WithCause(err)
	}
	if len(paths) == 0 {
		paths = []string{"."}
	}
	for {
		s := testSession{app: a, options: o, accept: accept}
		before := workflowtest.Watch(a.env.Directory, paths, nil)
		err := s.run(ctx, paths)
		if !o.watch {
			return err
		}
		if _, quiet := errors.AsType[silent](err); err != nil && !quiet {
			a.printError(err)
		}
		if before != workflowtest.Watch(a.env.Directory, paths, nil) && !o.update {
			continue // a file has changed while the tests ran
		}
		for seen := workflowtest.Watch(a.env.Directory, paths, s.files); ; {
			if err := wait.For(ctx, watchInterval); err != nil {
				return err
			}
			if workflowtest.Watch(a.env.Directory, paths, s.files) != seen {
				break
			}
		}
		fmt.Fprintln(a.human)
	}
}

// testSession is one pass over the tests.
type testSession struct {
	*app
	options  testOptions
	accept   *regexp.Regexp
	files    []*workflowtest.File
	results  []*workflowtest.Result
	coverage graphtest.Coverage
	// broken counts the invalid files.
	broken int
}

func (s *testSession) run(ctx context.Context, paths []string) error {
	found, err := workflowtest.Find(s.env.Directory, paths...)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return usage("no test files in %s", strings.Join(paths, ", ")).
			WithHint("Write NAME.test.yaml beside NAME.workflow.yaml; docs/testing-workflows.md describes it.")
	}
	for _, path := range found {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.file(path); err != nil {
			return err
		}
	}
	failed := 0
	for _, r := range s.results {
		if !r.Passed() {
			failed++
		}
	}
	if s.options.cover {
		writeCoverage(s.human, s.coverage)
	}
	if err := s.junit(); err != nil {
		return err
	}
	switch {
	case failed > 0:
		fmt.Fprintf(s.human, "FAIL: %d of %s failed\n", failed, count(len(s.results), "test"))
	case s.broken > 0:
		fmt.Fprintf(s.human, "FAIL: %s invalid\n", count(s.broken, "file"))
	case len(s.results) == 0:
		return usage("no test matches --run %s", s.options.run)
	default:
		fmt.Fprintf(s.human, "ok: %s passed\n", count(len(s.results), "test"))
	}
	switch {
	case s.broken > 0:
		return silent{exitUsage}
	case failed > 0:
		return silent{exitFailed}
	}
	return nil
}

// file runs the tests of a file. An invalid file is reported, and the other files still run.
func (s *testSession) file(path string) error {
	f, err := s.load(path)
	if f == nil {
		return err
	}
	results := f.Run(s.accept.MatchString)
	if s.options.update {
		changed, err := f.Update(s.env.Directory, results)
		if err != nil {
			s.writeBrokenTest(err)
			return nil
		}
		if changed {
			fmt.Fprintf(s.human, "updated %s\n", path)
			if f, err = s.load(path); f == nil {
				return err
			}
			results = f.Run(s.accept.MatchString)
		}
	}
	s.files = append(s.files, f)
	for _, r := range results {
		writeResult(s.human, r)
		if r.Outcome != nil {
			s.coverage.Add(r.Outcome.Coverage)
		}
	}
	s.results = append(s.results, results...)
	return nil
}

func (s *testSession) load(path string) (*workflowtest.File, error) {
	f, err := workflowtest.Load(s.env.Directory, path)
	if err != nil {
		s.writeBrokenTest(err)
		return nil, nil
	}
	return f, nil
}

// writeBrokenTest prints the findings of a test file or its definition, as validate does.
func (s *testSession) writeBrokenTest(err error) {
	s.broken++
	b, ok := errors.AsType[*workflowtest.Broken](err)
	if !ok || len(b.Err.Findings) == 0 {
		s.printError(err)
		return
	}
	writeFindings(s.stderr, s.paint, checked{source: source{file: b.Path, text: b.Text}, findings: b.Err.Findings})
}

// writeResult prints one line for a test and, if it has failed, the differences.
func writeResult(w io.Writer, r *workflowtest.Result) {
	path := filepath.ToSlash(r.File.Path)
	if r.Passed() {
		fmt.Fprintf(w, "ok    %s: %s\n", path, r.Test.Name)
		return
	}
	fmt.Fprintf(w, "FAIL  %s:%d: %s\n%s", path, r.Test.Place.Line, r.Test.Name, resultText(r))
}

// resultText lists the differences, each in one indented line or in three.
func resultText(r *workflowtest.Result) string {
	var b strings.Builder
	showsPath := false
	for _, d := range r.Differences {
		showsPath = showsPath || d.What == "path"
		where := strings.ReplaceAll(d.What, "\n", "\n  ")
		switch {
		case d.Expected == "" && d.Got == "":
			fmt.Fprintf(&b, "  %s\n", where)
		case len(d.Expected)+len(d.Got) > 80:
			fmt.Fprintf(&b, "  %s\n    expected %s\n    got      %s\n", where, d.Expected, d.Got)
		default:
			fmt.Fprintf(&b, "  %s: expected %s, got %s\n", where, d.Expected, d.Got)
		}
	}
	if r.Outcome != nil && !showsPath && len(r.Outcome.Path) > 0 {
		fmt.Fprintf(&b, "  the run went %s\n", strings.Join(r.Outcome.Path, " → "))
	}
	return b.String()
}

func writeCoverage(w io.Writer, coverage graphtest.Coverage) {
	for _, d := range coverage {
		unvisited, untaken := d.Unvisited(), d.Untaken()
		fmt.Fprintf(w, "%s %s: %d of %s, %d of %s\n", d.Name, d.Version, len(d.Nodes)-len(unvisited), count(len(d.Nodes), "node"),
			len(d.Edges)-len(untaken), count(len(d.Edges), "edge"))
		if len(unvisited) > 0 {
			fmt.Fprintf(w, "  not visited: %s\n", strings.Join(unvisited, ", "))
		}
		edges := make([]string, len(untaken))
		for i, e := range untaken {
			edges[i] = e.From + " → " + e.To
		}
		if len(edges) > 0 {
			fmt.Fprintf(w, "  not taken: %s\n", strings.Join(edges, ", "))
		}
	}
}

// junit writes the report that --junit asks for.
func (s *testSession) junit() error {
	if s.options.junit == "" {
		return nil
	}
	text, err := workflowtest.JUnit(s.results, resultText)
	if err == nil {
		err = os.WriteFile(s.path(s.options.junit), text, 0o644)
	}
	if err != nil {
		return usage("--junit: cannot write the report").WithCause(err)
	}
	return nil
}
