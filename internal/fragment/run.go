package fragment

import (
	"html/template"
	"time"

	"github.com/workflows-engine/workflows-engine/internal/picture"
)

// Run is the page of a run.
type Run struct {
	ID, Title                       string
	Workflow, Version, WorkflowPath string
	Labels                          []Pair
	State                           State
	Began, Changed                  time.Time
	// Took is the time since the beginning, until the end.
	Took time.Duration
	// By is who began the run, "" if it is not recorded.
	By string
	// Origins link to the runs that this one comes from, Successors to its retries; each with its relation.
	Origins, Successors []Relation
	// Handled describes why nothing is left to do about a failed run.
	Handled string
	// Notices are warnings and executors that are missing.
	Notices   []Notice
	Questions []QuestionLink
	// Failure is the failure of a failed run, Reason the reason of a cancelled one.
	Failure *RunFailure
	Reason  string
	Graph   *Graph
	Visits  *Visits
	Waits   []Wait
	// Result and State may be nil.
	Result, StateValue *Value
	// Final is set if the state is that of the end.
	Final    bool
	Records  int64
	NodeRuns string
	Actions  *Actions
	// Refused is why a call was refused; nil without a call.
	Refused *Failure
	// Damage is the error of a run that cannot be read, which then has no actions.
	Damage *Failure
}

func (*Run) template() string { return "run" }

// Waiting returns the waits of a run that has not ended.
func (r *Run) Waiting() []Wait {
	if r.Final {
		return nil
	}
	return r.Waits
}

// Pair is a name with a value.
type Pair struct{ Name, Value string }

// Relation links a run to another one.
type Relation struct {
	Word string
	Link
}

// Notice is a warning with the next step.
type Notice struct{ Message, Hint string }

// QuestionLink is an open question.
type QuestionLink struct {
	Prompt, Path, Node string
	Since, Deadline    time.Time
}

// RunFailure is the failure of a run.
type RunFailure struct {
	Error, Code, Node string
	// NodePath is the address of the failed visit, "" if it is not known.
	NodePath string
	Data     *Value
	// Hint is the next step, "" without one.
	Hint string
}

// Graph is a picture of a definition or a run.
type Graph struct {
	// SVG is the engine's own picture. It is empty for a large definition, which has only the list.
	SVG template.HTML
	// Path is the address of the picture alone, "" if it is shown as a part of another system.
	Path string
	// Folds lead to the page with the branches of a block folded or not.
	Folds []Link
	// List has the nodes, for readers that cannot use the picture.
	List []picture.Entry
}

// Visits is a sequence of visits with those inside of them.
type Visits struct {
	// Name is that of a branch, "" for the main sequence. State is that of a branch.
	Name  string
	State State
	// Before counts the visits that are left out before the first one.
	Before int
	List   []Visit
	// After counts the visits that are left out after the last one.
	After int
	// History is the address of the records, which have the visits left out.
	History string
}

// Visit is a row of the tree of visits.
type Visit struct {
	Name, Kind, Path string
	State            State
	Number           int
	// Took is "" for a node that takes no time. Running is set while it grows.
	Took string
	// Details are short facts, Error is the failure.
	Details []string
	Error   string
	// Inner are branches and items; Child is the subworkflow.
	Inner []*Visits
	Child *Link
}

// Wait is a wait of a run, other than a question.
type Wait struct {
	Text, Node, NodePath string
	Since, Deadline      time.Time
	// Due is the end of a timer or a back-off.
	Due       time.Time
	LastError string
	Child     *Link
}

// Post is the form of a call: where it is sent to, and its token (hidden field "form").
type Post struct {
	Action string
	Token  FormToken
}

// Actions are the forms that change a run; nil for a call that is not possible.
type Actions struct {
	Cancel, Handle, Unhandle, Signal, Fork *Post
	Retry                                  *Retry
	// Signals are the names of the signals that the run waits for.
	Signals []string
	// Last is the last record of the run, the newest point for a fork.
	Last int64
}

// Retry is the form that retries a run.
type Retry struct {
	Post
	// Options are those that are on or off; the value of each is the name of its control.
	Options []Choice
	// Definition offers the registered definition in place of the run's own, and its value is the hash; nil if there is no other one.
	Definition *Choice
	// Correction and ID are the typed text of a refused form, and Sent is set for one.
	Correction, ID string
	Sent           bool
}

// Any reports whether there is a form.
func (a *Actions) Any() bool {
	return a.Cancel != nil || a.Retry != nil || a.Handle != nil || a.Unhandle != nil || a.Signal != nil || a.Fork != nil
}
