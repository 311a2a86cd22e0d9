package workflowtest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/graphtest"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Result is how a test went.
type Result struct {
	File *File
	Test *Test
	// Outcome is the course of the run, nil if it did not start.
	Outcome *graphtest.Outcome
	// Differences are the deviations from the expected result; empty if the test has passed.
	Differences []Difference
	// unfit is set if the test does not fit the run; the outcome is then incomplete.
	unfit bool
	// Took is how long it took on the clock of the machine.
	Took time.Duration
}

// Difference is one thing that is not as expected.
type Difference struct {
	// What names the difference. Expected and Got are "" for a difference without values.
	What, Expected, Got string
}

// Passed reports whether everything is as expected.
func (r *Result) Passed() bool { return len(r.Differences) == 0 }

// Run runs the tests of a file whose names a function accepts.
func (f *File) Run(accept func(name string) bool) []*Result {
	var results []*Result
	for _, t := range f.Tests {
		if accept(t.Name) {
			results = append(results, f.run(t))
		}
	}
	return results
}

func (f *File) run(t *Test) *Result {
	began := time.Now()
	out, err := graphtest.Simulate(f.document, t.scenario)
	r := &Result{File: f, Test: t, Outcome: out, Took: time.Since(began)}
	switch {
	case err != nil:
		r.unfit = true
		r.Differences = []Difference{{What: explain(err)}}
	case t.expect == nil && t.Snapshot:
		r.Differences = []Difference{{What: "there is no snapshot yet: write it with --update"}}
	default:
		expect := t.expect
		if expect == nil {
			expect = &expectation{status: "completed"}
		}
		r.Differences = expect.compare(out)
	}
	return r
}

// explain is the reason for the end of a simulation, with the stub to add if one is missing.
func explain(err error) string {
	e, ok := problem.As(err)
	if !ok {
		return err.Error()
	}
	text := e.Error()
	if e.Hint != "" {
		text += "\nhint: " + e.Hint
	}
	if e.Code != problem.TestStubMissing {
		return text
	}
	output := "{}"
	if required, _ := e.Details["required"].([]any); len(required) > 0 {
		output = "{ " + strings.Join(strings.Fields(strings.Trim(fmt.Sprint(required), "[]")), ": …, ") + ": … }"
	}
	return fmt.Sprintf("%s. Add it to the test:\n  stubs:\n    %s:\n      output: %s", text, e.At.NodeID, output)
}

// compare returns the differences of a run from the expected result.
func (x *expectation) compare(out *graphtest.Outcome) (list []Difference) {
	differ := func(what, expected, got string) { list = append(list, Difference{what, expected, got}) }
	if got := string(out.Status); got != x.status {
		differ("status", x.status, got+because(out))
	}
	if x.hasPath && !slices.Equal(x.path, out.Path) {
		differ("path", arrows(x.path), arrows(out.Path))
	}
	if x.hasWaiting && !slices.Equal(x.waiting, out.Waiting) {
		differ("waiting", arrows(x.waiting), arrows(out.Waiting))
	}
	for _, id := range sorted(x.visits) {
		if got := out.Visits[id]; got != x.visits[id] {
			differ("visits of "+id, fmt.Sprint(x.visits[id]), fmt.Sprint(got))
		}
	}
	if x.state != nil || x.exactly {
		list = append(list, differences("state", x.state, out.State, x.exactly)...)
	}
	if x.hasResult {
		list = append(list, differences("result", x.result, out.Result, true)...)
	}
	if f := x.failure; f != nil {
		got := out.Error
		if got == nil {
			got = &graphtest.Failure{}
		}
		if f.Code != "" && f.Code != got.Code {
			differ("error code", f.Code, orNone(got.Code)+because(out))
		}
		if !strings.Contains(got.Message, f.Message) {
			differ("error message", "… "+f.Message+" …", orNone(got.Message))
		}
		if f.NodeID != "" && f.NodeID != got.NodeID {
			differ("failed node", f.NodeID, orNone(got.NodeID))
		}
	}
	if x.hasElapsed && x.elapsed != out.Elapsed {
		differ("elapsed", durationText(x.elapsed), durationText(out.Elapsed))
	}
	return list
}

// maxRaised bounds the shown part of a value that a program raised.
const maxRaised = 300

// because explains the status of a run.
func because(out *graphtest.Outcome) string {
	switch {
	case out.Error != nil:
		text := strings.TrimRight(fmt.Sprintf(": %s %s", out.Error.Code, out.Error.Message), " ")
		if raised, ok := out.Error.Data["raised"]; ok {
			text += "; it raised " + problem.Clip(string(jsonvalue.Canonical(raised)), maxRaised)
		}
		return text
	case len(out.Waiting) > 0:
		return " at " + strings.Join(out.Waiting, ", ")
	case out.Reason != "":
		return ": " + out.Reason
	}
	return ""
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

func arrows(nodes []string) string { return orNone(strings.Join(nodes, " → ")) }
