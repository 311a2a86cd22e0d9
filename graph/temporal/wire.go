package temporal

import (
	"encoding/json"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
)

// The names that the engine and its workers share. They are part of event histories: never rename them.
const (
	// WorkflowType is the type of the workflow that performs a run.
	WorkflowType = "awp.run"

	activityPerform  = "awp.perform"
	activityDelegate = "awp.delegate"
	activityPoll     = "awp.poll"
	activityResolve  = "awp.resolve"
	activityRelease  = "awp.release"
	activityArchive  = "awp.archive"
	activityWrite    = "awp.write"
	activityDeliver  = "awp.deliver"

	updateCall   = "awp.call"
	updateTurn   = "awp.turn"
	signalSignal = "awp.signal"
	signalLeave  = "awp.leave"

	queryView       = "awp.view"
	queryRecords    = "awp.records"
	queryDefinition = "awp.definition"
	queryLibrary    = "awp.library"
)

// runInput is the argument of a workflow: a new run, or the continuation of one.
type runInput struct {
	// Walk is the machine.WalkVersion of the engine that started the run.
	Walk int `json:"walk"`
	// Definition is the hash of the run's definition, Library the definitions that the run is bound to, by hash.
	Definition string            `json:"definition"`
	Library    map[string]source `json:"library"`
	Config     machine.Config    `json:"config"`
	// Title, Labels, Notify, Queue and Deadline are those of the start. machine.Config does not encode them.
	Title  string            `json:"title,omitempty"`
	Notify []string          `json:"notify,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	Queue  string            `json:"queue,omitempty"`
	Input  map[string]any    `json:"input,omitempty"`
	// Signal, unless nil, is applied as the run starts.
	Signal *machine.Signal `json:"signal,omitempty"`
	// Deadline is the longest time that the run may take, 0 for no bound of the start.
	Deadline time.Duration `json:"deadline,omitempty"`
	// Actor is the caller of the start, nil if unknown.
	Actor  *history.Actor `json:"actor,omitempty"`
	Limits limits         `json:"limits"`
	Layout layout         `json:"layout"`
	// Continued is set for the continuation of a run, Ended for an imported run whose end its database, or its parent, has not recorded.
	Continued *continued   `json:"continued,omitempty"`
	Ended     *view.Ending `json:"ended,omitempty"`
}

// source is a definition that a run is bound to.
type source struct {
	Name    string          `json:"name"`
	Version string          `json:"version,omitempty"`
	Text    json.RawMessage `json:"text"`
	// Signatures are the signature blocks of the definition.
	Signatures []json.RawMessage `json:"signatures,omitempty"`
	// Subworkflows are the hashes of its subworkflows, by workflow_ref.
	Subworkflows map[string]string `json:"subworkflows,omitempty"`
}

// stored returns the definition as stores keep it.
func (s *source) stored(hash string) history.StoredDefinition {
	d := history.StoredDefinition{Hash: hash, Name: s.Name, Version: s.Version, Text: s.Text}
	for _, signature := range s.Signatures {
		d.Signatures = append(d.Signatures, signature)
	}
	return d
}

// sourceOf is the inverse of stored.
func sourceOf(d *history.StoredDefinition) source {
	s := source{Name: d.Name, Version: d.Version, Text: d.Text}
	for _, signature := range d.Signatures {
		s.Signatures = append(s.Signatures, signature)
	}
	return s
}

// limits are those of a run. They belong to its input, since the walk depends on them.
type limits struct {
	Records        int64         `json:"records"`
	Bytes          int64         `json:"bytes"`
	Pending        int           `json:"pending"`
	Depth          int           `json:"depth"`
	Document       int           `json:"document"`
	Value          int           `json:"value"`
	MinHostTimeout time.Duration `json:"minHostTimeout,omitempty"`
	StretchUnits   int           `json:"stretchUnits,omitempty"`
	// Events is the number of events after which the run continues as new, 0 for the server's suggestion.
	Events int `json:"events,omitempty"`
}

// layout tells where the work of a run goes.
type layout struct {
	// TaskQueue is the prefix of the names of task queues, Lanes the executors with a task queue of their own.
	TaskQueue string   `json:"taskQueue"`
	Lanes     []string `json:"lanes,omitempty"`
	// Lost is the time without a sign of life after which a worker counts as lost.
	Lost time.Duration `json:"lost"`
	// Archive is set if records are archived before the run continues as new.
	Archive bool `json:"archive,omitempty"`
}

// continued is the part of a run that goes on when it continues as new.
type continued struct {
	Position   json.RawMessage `json:"position"`
	Projection json.RawMessage `json:"projection"`
	Bytes      int64           `json:"bytes"`
	// State is the state at record StateSeq, if the position refers to it.
	State    map[string]any `json:"state,omitempty"`
	StateSeq int64          `json:"stateSeq,omitempty"`
	// Rest are the records after the projection that an imported run has yet to record.
	Rest []history.Row `json:"rest,omitempty"`
	// Imported identifies the file with which the run was moved here, "" for another run. Children are its subworkflows that the run has yet to
	// start again, by id.
	Imported string               `json:"imported,omitempty"`
	Children map[string]*runInput `json:"children,omitempty"`
}

// call is the argument of the update: one input, or no input for a call that waits.
type call struct {
	Outcome *machine.Outcome `json:"outcome,omitempty"`
	Resume  *machine.Resume  `json:"resume,omitempty"`
	Signal  *machine.Signal  `json:"signal,omitempty"`
	Cancel  *machine.Cancel  `json:"cancel,omitempty"`
	// Mode is the run's mode from this input on, "" for no change.
	Mode  machine.Mode   `json:"mode,omitempty"`
	Actor *history.Actor `json:"actor,omitempty"`
	// Wait is how long the update waits afterwards for the run to wait or end.
	Wait time.Duration `json:"wait,omitempty"`
}

// input returns the input of the machine, nil for a call that only waits.
func (c *call) input() machine.Input {
	switch {
	case c.Outcome != nil:
		return *c.Outcome
	case c.Resume != nil:
		return *c.Resume
	case c.Signal != nil:
		return *c.Signal
	case c.Cancel != nil:
		return *c.Cancel
	}
	return nil
}

// snapshot is a run at one record: the answer of the update and of the view query, and the result of the workflow.
type snapshot struct {
	Walk       int             `json:"walk"`
	Projection json.RawMessage `json:"projection"`
	Bytes      int64           `json:"bytes"`
	Limits     limits          `json:"limits"`
	// Position is nil for a run that has ended, and for one that cannot be stored at the moment.
	Position json.RawMessage `json:"position,omitempty"`
	State    map[string]any  `json:"state,omitempty"`
	// MaxVisits and Mode are those of the run.
	MaxVisits int          `json:"maxVisits"`
	Mode      machine.Mode `json:"mode"`
	Ending    *view.Ending `json:"ending,omitempty"`
	// Beginning are the subworkflows that are about to start.
	Beginning []string `json:"beginning,omitempty"`
	// First is the seq of the first record that the workflow holds; earlier ones are in the archive.
	First int64 `json:"first"`
}

// recordsQuery is the argument of the records query.
type recordsQuery struct {
	From  int64 `json:"from"`
	Limit int   `json:"limit"`
}

// recordsPage is its answer. The page may be shorter than the limit; Last is the run's last seq.
type recordsPage struct {
	Records []history.Row `json:"records"`
	First   int64         `json:"first"`
	Last    int64         `json:"last"`
	// Archived reports that earlier records are in an archive.
	Archived bool `json:"archived,omitempty"`
}

// attempt is the argument of the activities that perform an effect.
type attempt struct {
	// Turn is the key of a turn for which the attempt waits; its worker gets the rest with the update awp.turn.
	Turn        string                  `json:"turn,omitempty"`
	ExecutionID string                  `json:"executionId"`
	TraceParent string                  `json:"traceParent,omitempty"`
	Activity    *machine.ActivityEffect `json:"activity,omitempty"`
	Delegate    *machine.DelegateEffect `json:"delegate,omitempty"`
}

// performed is their result: a failure is a result, too, since retries are the machine's.
type performed struct {
	Outcome *machine.Outcome       `json:"outcome,omitempty"`
	Task    *machine.TaskUpdate    `json:"task,omitempty"`
	Steps   *machine.StepsRecorded `json:"steps,omitempty"`
	// Asked is the body of the question in Steps, whose JSON omits it.
	Asked map[string]any `json:"asked,omitempty"`
}

func performedOf(in machine.Input) performed {
	switch in := in.(type) {
	case machine.Outcome:
		return performed{Outcome: &in}
	case machine.TaskUpdate:
		return performed{Task: &in}
	case machine.StepsRecorded:
		p := performed{Steps: &in}
		if in.Question != nil {
			p.Asked = in.Question.Body
		}
		return p
	}
	return performed{}
}

// input returns the input of the machine, nil without one.
func (p *performed) input() machine.Input {
	switch {
	case p.Outcome != nil:
		return *p.Outcome
	case p.Task != nil:
		return *p.Task
	case p.Steps != nil:
		in := *p.Steps
		if in.Question != nil {
			asked := *in.Question
			asked.Body, in.Question = p.Asked, &asked
		}
		return in
	}
	return nil
}

// reference is the argument of the activity that finds the definition of a subworkflow.
type reference struct {
	ExecutionID string            `json:"executionId"`
	Ref         string            `json:"ref"`
	Pin         string            `json:"pin,omitempty"`
	Version     string            `json:"version,omitempty"`
	Inherited   map[string]string `json:"inherited,omitempty"`
}

// resolved is its result.
type resolved struct {
	Definition string            `json:"definition,omitempty"`
	Library    map[string]source `json:"library,omitempty"`
	Refused    *wireProblem      `json:"refused,omitempty"`
}

// archived is the argument of the activity that archives records.
type archived struct {
	ExecutionID string          `json:"executionId"`
	Definition  string          `json:"definition"`
	Text        source          `json:"text"`
	Records     []history.Row   `json:"records"`
	Projection  json.RawMessage `json:"projection"`
}
