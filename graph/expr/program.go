package expr

// Program is a compiled jq program, safe for concurrent use.
type Program struct{ impl any }

// Limits bound one evaluation. Zero values mean the defaults in DefaultLimits. They are counted, not timed, so that
// the same program over the same state always has the same outcome.
type Limits struct {
	// Steps is the number of interpreter steps.
	Steps int
	// Outputs is the number of values a program may put out.
	Outputs int
	// ResultBytes bounds the size of the result as JSON text.
	ResultBytes int
}

// Compile compiles a program. The error is *problem.Error with code EXPRESSION_INVALID; its Details hold "offset"
// (bytes into src) when the parser knows it.
func Compile(src string) (*Program, error) { panic("not written yet") }

// Failing gives a program that fails with err whenever it is evaluated.
func Failing(src string, err error) *Program { panic("not written yet") }

// Identity gives the program ".".
func Identity() *Program { panic("not written yet") }

// Source is the program's text.
func (p *Program) Source() string { panic("not written yet") }

// Eval runs the program over state with the default limits: no output is nil, one is that value, several are a []any
// of them, an error discards everything (spec: execution, 4.2). The result shares no changed parts with state but may
// alias it: treat both as immutable. Errors are *problem.Error: EXPRESSION_FAILED, EXPRESSION_LIMIT_EXCEEDED.
func (p *Program) Eval(state map[string]any) (any, error) { panic("not written yet") }

// EvalLimits is Eval with limits.
func (p *Program) EvalLimits(state map[string]any, l Limits) (any, error) { panic("not written yet") }

// Truthy is jq's truth: all but nil and false (spec: execution, 4.3).
func Truthy(v any) bool { return v != nil && v != false }

// Mapping is a compiled input_mapping (spec: execution, 4.4).
type Mapping struct{ impl any }

// CompileMapping compiles the members of an input_mapping. It never fails as a whole: a member that is wrong makes
// Eval fail. Problems lists what is wrong, keyed by member name, for validation.
func CompileMapping(raw map[string]any) (m *Mapping, problems map[string]error) {
	panic("not written yet")
}

// Eval evaluates the mapping over state, members in the protocol's member order.
func (m *Mapping) Eval(state map[string]any) (map[string]any, error) { panic("not written yet") }
