// Package fleet describes the processes that share a database, and the lanes in which runs wait for a process with room: in words and as
// JSON, for commands, the page and calls.
package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/config/envname"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Reader lists processes and lanes; see graph.Runner.
type Reader interface {
	Processes(ctx context.Context) ([]history.Process, error)
	Lanes(ctx context.Context) ([]history.LaneUse, error)
}

// Of returns the Reader of a store; ok is false if the store lists no processes or lanes.
func Of(store history.Store) (r Reader, ok bool) {
	roster, listed := history.As[history.Roster](store)
	queue, queued := history.As[history.Queue](store)
	return ofStore{roster, queue}, listed && queued
}

type ofStore struct {
	roster history.Roster
	queue  history.Queue
}

func (s ofStore) Processes(ctx context.Context) ([]history.Process, error) {
	return s.roster.Processes(ctx)
}
func (s ofStore) Lanes(ctx context.Context) ([]history.LaneUse, error) { return s.queue.Lanes(ctx) }

// Fleet is the live processes of a database, and the lanes with runs that wait for one of them.
type Fleet struct {
	Processes []history.Process
	Lanes     []Lane
}

// Lane is a lane with waiting runs.
type Lane struct {
	history.LaneUse
	// Workers is the number of live processes that take runs of the lane.
	Workers int
}

// Read reads the fleet of a database.
func Read(ctx context.Context, r Reader) (f Fleet, err error) {
	if f.Processes, err = r.Processes(ctx); err != nil {
		return f, err
	}
	lanes, err := r.Lanes(ctx)
	for _, l := range lanes {
		f.Lanes = append(f.Lanes, Lane{LaneUse: l, Workers: f.serving(l.Lane)})
	}
	return f, err
}

func (f Fleet) serving(l history.Lane) (n int) {
	for _, p := range f.Processes {
		if p.Serves(l) {
			n++
		}
	}
	return n
}

// Unserved returns the lanes whose runs no live process takes.
func (f Fleet) Unserved() []Lane {
	return slices.DeleteFunc(slices.Clone(f.Lanes), func(l Lane) bool { return l.Workers > 0 })
}

// NameOf returns Name of the process with a name, the name itself without the process.
func (f Fleet) NameOf(name string) string {
	if i := slices.IndexFunc(f.Processes, func(p history.Process) bool { return p.Name == name }); i >= 0 {
		return Name(&f.Processes[i])
	}
	return name
}

// Name returns the host and the number of a process, or its name without a description.
func Name(p *history.Process) string {
	if p.PID == 0 {
		return p.Name
	}
	return fmt.Sprintf("%s:%d", p.Host, p.PID)
}

// Load returns the attempts in flight of a process and its capacity, as in "12/100".
func Load(p *history.Process) string {
	switch {
	case p.Work == "":
		return ""
	case p.Work == string(graph.WorkNone) || p.Capacity <= 0:
		return fmt.Sprint(p.InFlight)
	}
	return fmt.Sprintf("%d/%d", p.InFlight, p.Capacity)
}

// Queues returns the queues of a process: "all" for every queue, "" for a process that takes no runs from queues.
func Queues(p *history.Process) string {
	switch {
	case p.Work != string(graph.WorkAll):
		return ""
	case p.Queues == nil:
		return "all"
	}
	return strings.Join(p.Queues, ", ")
}

// Performs lists the executors of a process, the first most of them.
func Performs(p *history.Process, most int) string {
	var names []string
	for _, name := range p.Performs {
		if name = strings.TrimSuffix(name, ":"); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if more := len(names) - most; more > 0 {
		names = append(names[:most:most], fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// JSON is the fleet as JSON.
func (f Fleet) JSON() jsonvalue.Ordered {
	processes := make([]jsonvalue.Ordered, len(f.Processes))
	for i := range f.Processes {
		processes[i] = processJSON(&f.Processes[i])
	}
	return jsonvalue.Ordered{{"processes", processes}, {"lanes", f.lanesJSON()}}
}

// LanesJSON is the lanes of a fleet as JSON.
func (f Fleet) LanesJSON() jsonvalue.Ordered { return jsonvalue.Ordered{{"lanes", f.lanesJSON()}} }

func (f Fleet) lanesJSON() []jsonvalue.Ordered {
	lanes := make([]jsonvalue.Ordered, len(f.Lanes))
	for i, l := range f.Lanes {
		lanes[i] = jsonvalue.Ordered{{"lane", LaneName(l.Lane)}, {"queue", l.Queue}}
		lanes[i].Text("needs", l.Needs)
		lanes[i].Put("runs", float64(l.Runs))
		lanes[i].Instant("since", l.Since)
		lanes[i].Put("workers", float64(l.Workers))
	}
	return lanes
}

func processJSON(p *history.Process) jsonvalue.Ordered {
	m := jsonvalue.Ordered{{"process", p.Name}}
	m.Text("host", p.Host)
	m.Number("pid", int64(p.PID))
	m.Text("version", p.Version)
	m.Text("work", p.Work)
	m.Instant("started_at", p.Started)
	m.Put("lease_ms", float64(p.Left.Milliseconds()))
	m.Put("runs", float64(p.Runs))
	if p.Work == "" {
		return m // without a description
	}
	m.Number("capacity", int64(p.Capacity))
	m.Put("in_flight", float64(p.InFlight))
	m.Put("waiting", float64(p.Waiting))
	if p.Full {
		m.Put("full", true)
	}
	if p.Work == string(graph.WorkAll) && p.Queues != nil {
		m.Put("queues", p.Queues)
	}
	if len(p.Performs) > 0 {
		m.Put("performs", p.Performs)
	}
	return m
}

// LaneName returns the name of a lane for people: the queue, "/" and the executor.
func LaneName(l history.Lane) string { return strings.TrimSuffix(l.String(), "/") }

// ReadyText describes what a ready run waits for, as in "a worker: lane default/step:charge, 12 ahead, since 2026-11-29 12:00:00Z; 2 workers
// serve it".
func ReadyText(r *view.Ready) string {
	ahead := "next"
	if r.Ahead > 0 {
		ahead = fmt.Sprintf("%d ahead", r.Ahead)
	}
	return fmt.Sprintf("a worker: lane %s, %s, since %s; %s", LaneName(r.Lane), ahead, timeText(r.Since), ServedText(r.Lane, r.Workers))
}

// PlaceText is ReadyText in a few words.
func (f Fleet) PlaceText(p history.Place) string {
	if f.serving(p.Lane) == 0 {
		return "a worker: none serves " + LaneName(p.Lane)
	}
	return fmt.Sprintf("a worker, %d ahead", p.Ahead)
}

// ServedText tells how many workers serve a lane; without one, what a worker needs for it.
func ServedText(l history.Lane, workers int) string {
	switch workers {
	case 0:
		return "no worker serves it: start one with " + Needed(l)
	case 1:
		return "1 worker serves it"
	}
	return fmt.Sprintf("%d workers serve it", workers)
}

// Needed names the setting with which a worker serves a lane.
func Needed(l history.Lane) string {
	kind, name, named := strings.Cut(l.Needs, ":")
	thing := map[string]string{"step": "handler", "tool_call": "server"}[kind]
	setting := envname.OfExecutor(kind)
	if thing == "" {
		thing = "agent"
		if kind == "llm_call" && named {
			setting = envname.OfExecutor("sdk")
		}
	}
	text := setting
	switch {
	case setting == "":
		text = "workflows-engine worker"
	case named:
		text = fmt.Sprintf("%s %q in %s", thing, name, setting)
	}
	if l.Queue != history.DefaultQueue {
		text += fmt.Sprintf(", for queue %s (--queues)", l.Queue)
	}
	return text
}

// UnservedText describes a lane that no worker serves, and how to serve it.
func (l Lane) UnservedText() string {
	return l.Unserved() + ": start one with " + Needed(l.Lane)
}

// Unserved describes a lane that no worker serves.
func (l Lane) Unserved() string {
	runs := "1 run waits"
	if l.Runs != 1 {
		runs = l.Count() + " runs wait"
	}
	return fmt.Sprintf("no worker serves %s, where %s since %s", LaneName(l.Lane), runs, timeText(l.Since))
}

// Count returns the number of runs, as in "12" or "10000+".
func (l Lane) Count() string {
	if l.Runs >= history.MaxCounted {
		return fmt.Sprintf("%d+", history.MaxCounted)
	}
	return fmt.Sprint(l.Runs)
}

func timeText(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }
