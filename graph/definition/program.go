package definition

import (
	"time"

	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
)

// Type is a node type of the protocol.
type Type string

// The twelve node types (spec: definition, 3).
const (
	Start         Type = "start"
	End           Type = "end"
	Step          Type = "step"
	LLMCall       Type = "llm_call"
	ToolCall      Type = "tool_call"
	Switch        Type = "switch"
	Interrupt     Type = "interrupt"
	Parallel      Type = "parallel"
	Wait          Type = "wait"
	SetState      Type = "set_state"
	Subworkflow   Type = "subworkflow"
	AgentDelegate Type = "agent_delegate"
)

// IsActivity reports whether the type goes through the activity port: step, llm_call, tool_call.
func (t Type) IsActivity() bool { return t == Step || t == LLMCall || t == ToolCall }

// Program is a definition compiled for walking. It is immutable and safe for concurrent use.
//
// A definition may hold parts that are wrong but that a run need not reach, for instance a jq program of a later
// switch case. Such a part is a warning, and the Program keeps its problem where the part would be (an *expr.Program
// that always fails, or an Err member), so that reaching it fails the node with that problem.
type Program struct {
	// Document is the source.
	Document *Document
	Hash     string
	Name     string
	Version  string
	// Entry is the target of the __start__ edge; usually, but not necessarily, the start node.
	Entry *Node
	// Nodes in document order.
	Nodes []*Node
	// State are the reducers and the compiled state_schema.
	State      *StateRules
	Checkpoint CheckpointPolicy
	// Rollback says at which ends a run is rolled back.
	Rollback Rollback
	// Warnings are the findings of Compile.
	Warnings problem.Findings
	// Sources are the jq programs of the document that compile, those in templates too. Shared: do not change them.
	Sources []Source

	byID map[string]*Node
	// keeps are the names of signals that are kept until a wait takes them.
	keeps map[string]bool
}

// Node returns a node by id, nil if there is none.
func (p *Program) Node(id string) *Node { return p.byID[id] }

// Node is one node of a Program. Of the members from Start to Delegate exactly the one of its Type is set; the three
// activity types share Activity.
type Node struct {
	ID    string
	Type  Type
	Index int // position in the document's nodes array
	// Config and Metadata as written (plain JSON, shared: do not change). Config is never nil.
	Config   map[string]any
	Metadata map[string]any
	// Next is the single static successor; nil for end and switch.
	Next *Node
	// NextErr is set, and Next nil, when the node's edge leads to an id that no node has: the run fails once the node
	// has completed.
	NextErr error
	// Catches say where the run goes on when the node has failed; see CaughtBy.
	Catches []Catch
	// Compensation is nil unless the node is undone by another one in a rollback.
	Compensation *Compensation
	// Map is nil unless the node is repeated for each item of a list.
	Map *Map
	// Loop is nil unless the node is a switch that repeats a body.
	Loop *Loop
	// Retry is nil without a retry policy.
	Retry *Retry
	// Timeout is 0 without one. TimeoutErr is set when the text is an invalid duration: the node then fails when reached.
	Timeout    time.Duration
	TimeoutErr error

	Start       *StartConfig
	End         *EndConfig
	Activity    *ActivityConfig
	Switch      *SwitchConfig
	Interrupt   *InterruptConfig
	Parallel    *ParallelConfig
	Wait        *WaitConfig
	SetState    *SetStateConfig
	Subworkflow *SubworkflowConfig
	Delegate    *DelegateConfig
}

// StartConfig is the config of a start node.
type StartConfig struct {
	// InputSchema is nil if absent. The reference engine never checks it.
	InputSchema *jsonschema.Schema
}

// EndConfig is the config of an end node.
type EndConfig struct {
	// OutputMapping is the identity program if absent or blank.
	OutputMapping *expr.Program
	// OutputSchema is nil if absent. The reference engine never checks it.
	OutputSchema *jsonschema.Schema
}

// ActivityConfig is what the walker itself needs of a step, llm_call or tool_call.
type ActivityConfig struct {
	// OutputSchema is set for an llm_call whose output_schema is checked at the boundary (spec: execution, 8.2:
	// model a non-blank string; prompts strings if present; output_schema an object).
	OutputSchema *jsonschema.Schema
	// OutputSchemaErr is set when that schema does not compile: the node fails when an output is to be checked.
	OutputSchemaErr error
}

// SwitchConfig is the config of a switch.
type SwitchConfig struct {
	// Cases in order, those with a blank when or an empty target left out.
	Cases []SwitchCase
	// Default is "" if absent.
	Default string
}

// SwitchCase routes to Target if When is truthy. The target may not exist: the node then fails when it is chosen.
type SwitchCase struct {
	When   *expr.Program
	Target string
}

// InterruptConfig is the config of an interrupt.
type InterruptConfig struct {
	// Prompt in full, "" when only prompt_ref is given.
	Prompt       string
	PromptRef    string
	ResumeSchema *jsonschema.Schema
	// ResumeSchemaRaw is the schema as written, to be shown to the person who answers.
	ResumeSchemaRaw map[string]any
	// ResumeSchemaErr is set when the schema does not compile: every resume is then refused.
	ResumeSchemaErr error
	// Template fills the prompt in, nil where it stands as written. Show gives what the person sees beside the question, nil for
	// nothing.
	Template *expr.Template
	Show     *expr.Program
	// Timeout is how long an answer may take, 0 without a limit. The reference engine never reads it.
	Timeout time.Duration
}

// Join is a parallel node's join policy.
type Join string

// The three join policies (spec: execution, 6.2).
const (
	JoinAll  Join = "all"
	JoinAny  Join = "any"
	JoinNofM Join = "n_of_m"
)

// ParallelConfig is the config of a parallel node. Its join target is the node's Next.
type ParallelConfig struct {
	Join Join
	// N is the number of branches that must succeed: the configured n for n_of_m, 1 for any, all for all.
	N        int
	Branches []Branch
	// Timeout is how long the branches may take to satisfy the join, 0 without a limit. The reference engine never
	// reads it.
	Timeout time.Duration
}

// Branch is one branch of a parallel node.
type Branch struct {
	Name  string
	Entry *Node // equal to the join target for an empty branch
}

// WaitKind is one of the three kinds of wait.
type WaitKind string

// The kinds of wait (spec: definition, 4.9).
const (
	WaitDuration WaitKind = "duration"
	WaitUntil    WaitKind = "until"
	WaitSignal   WaitKind = "signal"
)

// WaitConfig is the config of a wait.
type WaitConfig struct {
	Kind WaitKind
	// DurationMS as written in duration_ms (which wins), or parsed from duration.
	DurationMS float64
	// Until as written, and parsed.
	Until   string
	UntilAt time.Time
	// Signal is trimmed.
	Signal string
	// Template gives the duration or the instant from the state, nil where the config has it; see TemplateTime.
	Template *expr.Template
	// Timeout is how long a signal may take, 0 without a limit (the extension on_timeout).
	Timeout time.Duration
	// Keep: the wait takes a signal that came before it, the oldest first (the extension early_signals).
	Keep bool
	// Err is set when the wait cannot begin: an unparsable duration or instant, a blank signal.
	Err error
}

// Duration is the time to wait, rounded down to nanoseconds and bounded to 290 years.
func (w *WaitConfig) Duration() time.Duration { return boundedMilliseconds(w.DurationMS) }

// SetStateConfig is the config of a set_state.
type SetStateConfig struct {
	// Assignments in the protocol's member order.
	Assignments []Assignment
}

// Assignment sets one top-level key, by a program or to a literal.
type Assignment struct {
	Key     string
	JQ      *expr.Program // nil for a literal
	Literal any
}

// SubworkflowConfig is the config of a subworkflow.
type SubworkflowConfig struct {
	// WorkflowRef and VersionPin are trimmed; a blank WorkflowRef fails the node.
	WorkflowRef  string
	VersionPin   string
	InputMapping *expr.Mapping
}

// DelegateConfig is the config of an agent_delegate.
type DelegateConfig struct {
	AgentID      string // trimmed; blank fails the node
	Protocol     string
	InputMapping *expr.Mapping
}

// CheckpointPolicy says when CheckpointWritten records are due (spec: execution, 9.1).
type CheckpointPolicy struct {
	// Enabled is false for disabled, off and none.
	Enabled bool
	// Every is 1 for after_each_node, else the interval.
	Every int
	// Interval reports whether the policy's name is every_n_nodes.
	Interval bool
}
