package definition

import "github.com/workflows-engine/workflows-engine/graph/problem"

// Refusal returns one error for the findings about a definition: VALIDATION_ERROR, or the code of a rule of the protocol. Its message is that
// of the first error, and it holds all findings.
func Refusal(findings problem.Findings) error {
	e := problem.New(problem.ValidationError, "the definition is not valid")
	e.Findings = findings
	errs := 0
	for _, f := range findings {
		if f.Severity != problem.SeverityError {
			continue
		}
		if errs++; errs > 1 {
			continue
		}
		if f.Code == problem.InterruptInParallelBranch {
			e.Code = f.Code
		}
		e.Message += ": " + f.Message
		e.At, e.Hint = f.At, f.Hint
	}
	if errs > 1 {
		e.Message += problem.MoreErrors(errs - 1)
	}
	return e
}
