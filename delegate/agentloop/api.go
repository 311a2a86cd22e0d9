package agentloop

import (
	"time"

	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Step is one thing that has happened, as a journal records it (activities.Step).
type Step struct {
	Key, Kind    string
	Body, Totals map[string]any
	At           time.Time
}

// The kinds of steps. The last four are written by the engine that keeps the journal.
const (
	StepBegun     = "begun"
	StepReply     = "reply"
	StepTried     = "tried"
	StepResult    = "result"
	StepDecided   = "decided"
	StepCompacted = "compacted"
	StepQuestion  = "question"
	StepAnswer    = "answer"
	StepRest      = "rest"
	StepWoken     = "woken"
)

// Batch is the outcome of an input.
type Batch struct {
	// Steps are to be recorded, in order, before anything else is done.
	Steps []Step
	// Effects are those that have become outstanding since the last batch.
	Effects []Effect
	// Abandoned are effects of earlier batches whose outcome is not needed any more.
	Abandoned []Effect
	// Question is the open question to a person. It is set in every batch until it is answered.
	Question *Question
	// Rest is when the first pause ends if the agent does nothing but pause, else zero.
	Rest time.Time
	// Done is how the agent has ended, nil until then.
	Done *Done
}

// Effect is something that the driver performs: ListTools, AskModel, CallTool, FetchResult, Decide or Rest. Values are comparable by ID.
type Effect interface {
	// ID identifies the effect. A repetition after a crash has the same.
	ID() string
}

// ListTools asks for the tools of an agent.
type ListTools struct {
	Key   string
	Agent string
}

// AskModel asks a model. Try counts from 1 within a turn.
type AskModel struct {
	Key     string
	Agent   string
	Try     int
	Model   Model
	Request chat.Request
	// Compacts is true for a request for a summary of the conversation, whose reply is not an answer of the agent.
	Compacts bool
	// Timeout is how long it may take.
	Timeout time.Duration
}

// FetchResult reads a recorded result of the agent again, for its model: View.Of the body of the step "result" with the key Ref, or
// View.OfLarge of its pieces. Its outcome is ToolReturned.
type FetchResult struct {
	Key, Agent, Ref string
	View            View
}

// CallTool calls a tool. Arguments satisfy its schema.
type CallTool struct {
	Key, Agent, Tool, Source string
	Arguments                map[string]any
	// Listed is the tool as it was when the agent began.
	Listed Tool
	// Timeout is how long it may take.
	Timeout time.Duration
	// MaxBytes is how much of the result is kept (Split).
	MaxBytes int
}

// Decide asks a hook of the embedder whether a call may be made or, without Tool, whether the agent continues after a turn.
type Decide struct {
	Key, Agent, Tool string
	Arguments        map[string]any
	// Timeout is how long it may take.
	Timeout time.Duration
}

// Rest pauses before a model is asked again.
type Rest struct {
	Key, Agent string
	Until      time.Time
}

// ID implements Effect.
func (e ListTools) ID() string { return "list " + e.Key }

// ID implements Effect.
func (e AskModel) ID() string { return "ask " + e.Key + "#" + itoa(e.Try) }

// ID implements Effect.
func (e CallTool) ID() string { return "call " + e.Key }

// ID implements Effect. It is that of a call.
func (e FetchResult) ID() string { return "call " + e.Key }

// ID implements Effect.
func (e Decide) ID() string { return "decide " + e.Key }

// ID implements Effect.
func (e Rest) ID() string { return "rest " + e.Key + "@" + instant(e.Until) }

// Question is a question to a person (activities.Question).
type Question struct {
	Key, Prompt             string
	Body, Schema, Otherwise map[string]any
	Expires                 time.Time
}

// Done is how an agent has ended: with Output, or with Failure.
type Done struct {
	// Output is the answer: {"text": …}, or a value of the output schema.
	Output any
	// Partial is set if a budget was used up before the agent was done.
	Partial bool
	// PartialReason is the code of that budget.
	PartialReason problem.Code
	// Stop is why it ended: answer, turns, tool_calls, tokens, cost, time, loop, person, hook or error.
	Stop    string
	Failure *Failure
	Totals  Totals
	// LastText is the last text of the model where it is not the answer, at most 4 KiB.
	LastText string
	// Models are the names of the models that have answered, in the order of their first reply.
	Models []string
}

// Failure is an error with a stable code.
type Failure struct {
	Code    problem.Code
	Message string
	// Final is set if another attempt cannot help.
	Final bool
	// Class and Status are those of a failure of a model; "" and 0 for others.
	Class  chat.Class
	Status int
}

// Input is an event: ToolsListed, ModelReplied, ModelFailed, ToolReturned, Decided, Answered, Woken, Expired, Reconfigured or
// Cancelled.
type Input interface{ input() }

// ToolsListed is the outcome of ListTools.
type ToolsListed struct {
	Key   string
	Tools []Tool
	// System are texts of toolsets, which follow the instructions in the system text.
	System  []string
	Failure *Failure
}

// ModelReplied is the outcome of AskModel. Worked is how long it took.
type ModelReplied struct {
	Key    string
	Try    int
	Reply  chat.Reply
	Worked time.Duration
}

// ModelFailed is the other outcome of AskModel.
type ModelFailed struct {
	Key  string
	Try  int
	Code problem.Code
	// Message is for people.
	Message string
	// Final is set if the same request will fail again, Overloaded if another model may have room.
	Final, Overloaded bool
	// Class and Status describe the failure; if Class is "", it follows from the code and the fields above.
	Class  chat.Class
	Status int
	// After is how long the provider asks to wait.
	After  time.Duration
	Usage  chat.Usage
	Worked time.Duration
}

// ToolReturned is the outcome of CallTool and FetchResult.
type ToolReturned struct {
	Key     string
	Output  any
	Failure *Failure
	// Large replaces an Output whose pieces (Split, PieceStep) are recorded right before the steps that follow.
	Large *Large
	// Changed names fields of the tool, such as "parameters", that differ from those listed at the start of the agent. It is only recorded.
	Changed []string
	Worked  time.Duration
}

// Decided is the outcome of Decide.
type Decided struct {
	Key string
	// Decision is allow, ask, deny or replace for a call, allow or stop for a turn. Hooks only restrict calls that gates allow.
	Decision, Reason string
	// Arguments are those of replace.
	Arguments map[string]any
}

// Answered is the answer of a person. Expired is true if no person answered in time.
type Answered struct {
	Key     string
	Payload map[string]any
	Expired bool
}

// Woken is the end of a Rest.
type Woken struct{ Key string }

// Expired is the end of WorkLeft during an effect. Worked is the time that the effect has taken.
type Expired struct{ Worked time.Duration }

// Reconfigured is today's configuration, given if Machine.Reconfigures is true. The agent takes its models, prices, budgets, retries and
// fallback, and those of sub-agents that both have.
type Reconfigured struct{ Config Config }

// Cancelled ends the agent.
type Cancelled struct{ Reason string }

func (ToolsListed) input()  {}
func (ModelReplied) input() {}
func (ModelFailed) input()  {}
func (ToolReturned) input() {}
func (Decided) input()      {}
func (Answered) input()     {}
func (Woken) input()        {}
func (Expired) input()      {}
func (Reconfigured) input() {}
func (Cancelled) input()    {}
