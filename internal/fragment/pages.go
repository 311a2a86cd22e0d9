package fragment

import (
	"net/url"
	"time"
)

// Home is the start page.
type Home struct {
	Asking, Failed, Orphans ShortList
	// Unserved describes lanes with waiting runs that no worker serves.
	Unserved []string
	// Open is the number of runs that have not ended, "" if it is not known.
	Open string
}

func (*Home) template() string { return "home" }

// ShortList is the beginning of a list of runs.
type ShortList struct {
	Rows []Row
	// Count is the number of runs, as text.
	Count string
	// All is the address of the whole list, "" if this is all of it.
	All string
	// Claimable is set if a worker can continue runs of the list, Lacking if this process lacks an executor for others.
	Claimable, Lacking bool
}

// Workflows is the page of all workflows.
type Workflows struct {
	Registered, Stored []Workflow
	// Broken are files that are not usable definitions.
	Broken []Notice
	Older  string
}

func (*Workflows) template() string { return "workflows" }

// Workflow is a workflow in a list. Source is its file or its hash.
type Workflow struct {
	Name, Version, Path, Description, Source string
	At                                       time.Time
}

// WorkflowPage is the page of one workflow.
type WorkflowPage struct {
	Name, Version, Hash, Description string
	Graph                            *Graph
	Runs                             []Row
	AllRuns                          string
	// Form starts a run; nil in a page that only reads.
	Form    *Form
	Refused *Failure
}

func (*WorkflowPage) template() string { return "workflow" }

// System is the page of the process.
type System struct {
	Version  string
	ReadOnly bool
	Settings []Pair
	// Fleet is the processes of the database and the lanes of waiting runs; nil if they are not known.
	Fleet      *Fleet
	Orphans    ShortList
	Deliveries []Delivery
	Older      string
	// Redeliver is the form that sends a delivery again, nil in a page that only reads.
	Redeliver *Post
	Refused   *Failure
}

func (*System) template() string { return "system" }

// Fleet is the processes that use a database, and the lanes in which runs wait for a worker.
type Fleet struct {
	Processes []Process
	Lanes     []Lane
}

// Process is a live process.
type Process struct {
	Name, Role, Version, Load, Queues, Performs string
	Waiting, Runs                               int
	Started                                     time.Time
}

// Lane is a lane with waiting runs. Advice is how to serve it, "" if a worker does.
type Lane struct {
	Name, Runs, Advice string
	Workers            int
	Since              time.Time
}

// Delivery is an event that is sent to a webhook.
type Delivery struct {
	ID, Run, RunPath, Event, Target, State, Result string
	Attempts                                       int
	Created, Due                                   time.Time
	Again                                          bool
}

// VisitPage is the page of a visit.
type VisitPage struct {
	Run, RunTitle, Node, Kind string
	Number                    int
	State                     State
	Began, Ended              time.Time
	Took                      string
	Details                   []string
	Error                     string
	// Config is the configuration of the node, Input the state when the visit began, Output the node's output.
	Config, Input, Output *Value
	InputPath, AfterPath  string
	Attempts              []Attempt
	Waits                 []Waited
	// Questions are the open questions of the visit.
	Questions []Link
	// Changes are the differences of the state after the visit to the one before it; nil before the visit has changed it.
	Changes                 *Changes
	History, Earlier, Later string
}

func (*VisitPage) template() string { return "visit" }

// Attempt is an attempt of a visit.
type Attempt struct {
	Number           int
	State            State
	Began, Ended     time.Time
	Took             string
	Facts            []string
	Error            string
	Request, Outcome *Value
	// Entries are the journal entries; Before counts those that are left out.
	Entries []Entry
	Before  int
}

// Entry is a journal entry.
type Entry struct {
	Key, Kind, By, Text, Answer, Raw string
	Facts                            []string
	Failed                           bool
	Depth                            int
	At                               time.Time
}

// Waited is a wait of a visit.
type Waited struct {
	Text, By, Answer  string
	Began, Ended, Due time.Time
}

// PagePath returns the address of a further page of a list.
func PagePath(path, cursor string) string {
	return path + "?" + url.Values{"cursor": {cursor}}.Encode()
}
