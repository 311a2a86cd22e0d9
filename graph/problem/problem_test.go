package problem_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

func TestErrorsAreMatchedByCode(t *testing.T) {
	t.Parallel()
	cause := errors.New("disk full")
	err := fmt.Errorf("append: %w", problem.New(problem.Internal, "cannot write %d rows", 3).WithCause(cause).WithHint("free some space"))
	if !errors.Is(err, problem.Internal) || errors.Is(err, problem.Timeout) {
		t.Error("the code is not matched")
	}
	if !errors.Is(err, cause) {
		t.Error("the cause is lost")
	}
	p, ok := problem.As(err)
	if !ok || p.Hint != "free some space" {
		t.Errorf("as: %+v, %t", p, ok)
	}
	if got, want := err.Error(), "append: cannot write 3 rows: disk full"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := (&problem.Error{Code: problem.Timeout}).Error(); got != "TIMEOUT" {
		t.Errorf("an error without a message reads %q", got)
	}
}

// TestSays: who lists the findings says none of them twice, and leaves out none that the message tells by half.
func TestSays(t *testing.T) {
	t.Parallel()
	e := problem.New(problem.ValidationError, "the input is wrong: /order must be integer (and 1 more error)")
	order := problem.Finding{Severity: problem.SeverityError, At: problem.Place{Pointer: "/order"}, Message: "must be integer"}
	if !e.Says(order) {
		t.Error("the message says all of it")
	}
	elsewhere, atRoot, onLine, hinted := order, order, order, order
	elsewhere.At.Pointer, atRoot.At.Pointer, onLine.At.Line, hinted.Hint = "/lines/0/order", "", 3, "write a number"
	for _, f := range []problem.Finding{elsewhere, atRoot, onLine, hinted} {
		if e.Says(f) {
			t.Errorf("the message does not say all of %+v", f)
		}
	}
}

func TestFindingsAreSortedByPlace(t *testing.T) {
	t.Parallel()
	fs := problem.Findings{
		{Code: "B", Severity: problem.SeverityWarning, At: problem.Place{Line: 2, Column: 1}},
		{Code: "A", Severity: problem.SeverityWarning, At: problem.Place{Line: 2, Column: 1}},
		{Code: "C", Severity: problem.SeverityWarning, At: problem.Place{Line: 1, Column: 9}},
	}
	if fs.HasErrors() {
		t.Error("warnings are no errors")
	}
	fs.Sort()
	if fs[0].Code != "C" || fs[1].Code != "A" || fs[2].Code != "B" {
		t.Errorf("%v", fs)
	}
	if !append(fs, problem.Finding{Severity: problem.SeverityError}).HasErrors() {
		t.Error("an error is not seen")
	}
}
