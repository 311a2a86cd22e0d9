// Package runjson is the JSON form of a run, which MCP tools, commands and webhooks have in common. It has the protocol's fields in the
// protocol's order, then those that this engine adds. Hints name options as a Glossary does.
package runjson

import (
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Driven is the answer of a call that drove a run (spec: mcp-tools, 4), without its waits.
func Driven(run *view.Run) jsonvalue.Ordered {
	m := jsonvalue.Ordered{{"execution_id", run.ExecutionID}, {"status", string(run.Status)}}
	putEnd(&m, run)
	if !run.Status.Terminal() {
		first := First(run)
		m.Text("node_id", nodeOf(run, first))
		m.Object("state", run.State)
		if first != nil {
			putSpan(&m, first.Span)
			putDelegate(&m, first)
			m.Text("delegate_correlation_id", first.CorrelationID)
			m.Text("signal_name", first.SignalName)
		}
	}
	m.Text("reason", run.Reason)
	m.Text("activity_execution_mode", string(run.Mode))
	m.Number("seq", run.Seq)
	putMaps(&m, run)
	putKeptSignals(&m, run)
	putRollbacks(&m, run)
	m.Instant("deadline_at", run.DeadlineAt)
	if slices.ContainsFunc(run.Pending, isTimed) {
		m.Instant("now", run.Now)
	}
	if run.Repeated {
		m.Put("repeated", true)
	}
	return m
}

// Status is the state of a run (spec: mcp-tools, 6) without its waits. It has all that Driven has, so that a caller that has lost that answer
// can continue. parent_execution_id is the run's own parent; see ProtocolStatus.
func Status(run *view.Run, names problem.Glossary) jsonvalue.Ordered {
	m := jsonvalue.Ordered{{"execution_id", run.ExecutionID}, {"phase", string(Phase(run.Status))}}
	first := First(run)
	if run.Status != machine.Completed {
		m.Text("current_node_id", nodeOf(run, first))
	}
	switch run.Status {
	case machine.Failed:
		m.Text("last_error", run.Error)
	case machine.Cancelled:
		m.Text("last_error", run.Reason)
	}
	m.Text("delegate_correlation_id", run.DelegateCorrelationID)
	m.Text("child_execution_id", run.ChildExecutionID)
	m.Text("parent_execution_id", run.ParentExecutionID)
	if f := run.ForkedFrom; f.ExecutionID != "" {
		m.Put("forked_from", jsonvalue.Ordered{{"execution_id", f.ExecutionID}, {"seq", float64(f.Seq)}})
	}
	putLineage(&m, &run.Lineage)
	if first != nil {
		putDelegate(&m, first)
		m.Text("signal_name", first.SignalName)
	}
	if run.Status.Terminal() {
		putEnd(&m, run)
	} else {
		m.Object("state", run.State)
		if first != nil {
			putSpan(&m, first.Span)
		}
	}
	putMaps(&m, run)
	putKeptSignals(&m, run)
	putRollbacks(&m, run)
	m.Instant("deadline_at", run.DeadlineAt)
	if run.Status == machine.Failed {
		m.Text("code", run.ErrorCode)
		m.Text("failed_node_id", run.ErrorNodeID)
		if data := run.ErrorData; data != nil && jsonvalue.Size(data, maxErrorData) <= maxErrorData {
			m.Put("error_data", data)
		}
	}
	m.Text("reason", run.Reason)
	m.Text("activity_execution_mode", string(run.Mode))
	putCaption(&m, run.Title, run.Labels)
	m.Text("definition_name", run.DefinitionName)
	m.Text("definition_version", run.DefinitionVersion)
	m.Text("definition_hash", run.DefinitionHash)
	m.Instant("created_at", run.CreatedAt)
	m.Instant("updated_at", run.UpdatedAt)
	m.Instant("now", run.Now)
	m.Number("seq", run.Seq)
	putWarnings(&m, run.Warnings, names)
	return m
}

// maxErrorData is the largest data of a failure, in bytes, in the form of a run. The history has all of it.
const maxErrorData = 4 << 10

// putMaps puts how far the maps of a run have come.
func putMaps(m *jsonvalue.Ordered, run *view.Run) {
	if len(run.Maps) == 0 {
		return
	}
	maps := make([]jsonvalue.Ordered, len(run.Maps))
	for i, p := range run.Maps {
		maps[i] = jsonvalue.Ordered{
			{"node_id", p.NodeID}, {"items", float64(p.Items)}, {"succeeded", float64(p.Succeeded)}, {"failed", float64(p.Failed)},
			{"running", float64(p.Running)},
		}
	}
	m.Put("maps", maps)
}

// putKeptSignals puts how many signals of each name came before a wait for them.
func putKeptSignals(m *jsonvalue.Ordered, run *view.Run) {
	var kept jsonvalue.Ordered
	for _, k := range run.KeptSignals {
		kept.Put(k.Name, float64(k.Count))
	}
	if len(kept) > 0 {
		m.Put("kept_signals", kept)
	}
}

// putRollbacks puts why a run, or a branch of it, is rolled back, and how far that has come.
func putRollbacks(m *jsonvalue.Ordered, run *view.Run) {
	if len(run.Rollbacks) == 0 {
		return
	}
	list := make([]jsonvalue.Ordered, len(run.Rollbacks))
	for i, p := range run.Rollbacks {
		list[i] = jsonvalue.Ordered{
			{"reason", string(p.Reason)}, {"undone", float64(p.Undone)}, {"total", float64(p.Total)}, {"undoing", p.Undoing},
		}
		list[i].Text("code", p.Code)
		list[i].Text("failed_node_id", p.NodeID)
	}
	m.Put("rollbacks", list)
}

// Exact is Status with the exact status, the number of visits and the place among the runs that wait for a worker.
func Exact(run *view.Run, names problem.Glossary) jsonvalue.Ordered {
	status := Status(run, names)
	m := append(jsonvalue.Ordered{status[0], {"status", string(run.Status)}}, status[1:]...)
	m.Put("node_visits", float64(run.NodeVisits))
	if r := run.Ready; r != nil {
		ready := jsonvalue.Ordered{{"lane", r.Lane.String()}, {"ahead", float64(r.Ahead)}}
		ready.Instant("since", r.Since)
		ready.Put("workers", float64(r.Workers))
		m.Put("ready", ready)
	}
	return m
}

// Full is Exact with all waits, and the executor that this process lacks. Commands and webhooks have this form.
func Full(run *view.Run, names problem.Glossary) jsonvalue.Ordered {
	m := Exact(run, names)
	if len(run.Pending) > 0 {
		entries, first := make([]jsonvalue.Ordered, len(run.Pending)), First(run)
		for i := range run.Pending {
			entries[i] = Pending(run, &run.Pending[i], first)
		}
		m.Put("pending", entries)
	}
	if run.Lacks != nil {
		m.Put("lacks", Lack(run.Lacks, names))
	}
	return m
}

// Lack is the executor that a process lacks to continue a run: for the current wait (awaited), or for a node that may follow it.
func Lack(l *view.Lack, names problem.Glossary) jsonvalue.Ordered {
	m := jsonvalue.Ordered{{"execution_id", l.ExecutionID}, {"node_id", l.NodeID}, {"missing", l.Missing}}
	m.Text("setting", names.Translate(l.Setting))
	m.Put("awaited", !l.Host)
	return m
}

// ProtocolStatus is Status as the protocol has it: there parent_execution_id belongs to child_execution_id, and is the run itself once it has
// started a subworkflow.
func ProtocolStatus(run *view.Run, names problem.Glossary) jsonvalue.Ordered {
	of := *run
	of.ParentExecutionID = run.ChildParentID()
	return Status(&of, names)
}

// Row is a run of a list (spec: mcp-tools, 10.2).
func Row(x *history.Execution) jsonvalue.Ordered {
	m := jsonvalue.Ordered{{"execution_id", x.ID}, {"phase", string(x.Phase)}}
	putCaption(&m, x.Title, x.Labels)
	m.Text("definition_name", x.DefinitionName)
	m.Text("waits_for", WaitsFor(x))
	m.Instant("updated_at", x.UpdatedAt)
	m.Text("current_node_id", x.CurrentNodeID)
	m.Text("last_error", x.LastError)
	m.Text("parent_execution_id", x.ParentID())
	putLineage(&m, &x.Lineage)
	return m
}

// putLineage puts the run that this one is a retry of, its own retries, and why it is handled.
func putLineage(m *jsonvalue.Ordered, l *history.Lineage) {
	m.Text("retry_of", l.RetryOf)
	if len(l.Retries) > 0 {
		retries := make([]jsonvalue.Ordered, len(l.Retries))
		for i, r := range l.Retries {
			retries[i] = jsonvalue.Ordered{{"execution_id", r.To}, {"phase", string(r.Phase)}}
		}
		m.Put("retried_by", retries)
	}
	if h := l.Handled; h != nil {
		handled := jsonvalue.Ordered{}
		handled.Text("note", h.Note)
		handled.Text("retry", h.Retry)
		handled.Text("actor", h.Actor)
		handled.Instant("at", h.At)
		m.Put("handled", handled)
	}
}

// FullRow is Row with the other fields that commands print.
func FullRow(x *history.Execution) jsonvalue.Ordered {
	m := Row(x)
	m.Text("definition_version", x.DefinitionVersion)
	m.Text("signal_name", x.SignalName)
	m.Instant("created_at", x.CreatedAt)
	return m
}

func putCaption(m *jsonvalue.Ordered, title string, labels map[string]string) {
	m.Text("title", title)
	if len(labels) > 0 {
		values := map[string]any{}
		for name, value := range labels {
			values[name] = value
		}
		m.Put("labels", values)
	}
}

// Record is a record of a history, without its payload.
func Record(r *history.Record) jsonvalue.Ordered {
	m := jsonvalue.Ordered{{"seq", float64(r.Seq)}, {"kind", string(r.Kind)}, {"name", string(r.Name)}}
	m.Instant("created_at", r.CreatedAt)
	return m
}

func putWarnings(m *jsonvalue.Ordered, warnings []view.Warning, names problem.Glossary) {
	var list []jsonvalue.Ordered
	for _, w := range warnings {
		list = append(list, Warning(w, names))
	}
	if list != nil {
		m.Put("warnings", list)
	}
}

// Warning is a warning about a limit that a run nears, or about the effect of a call.
func Warning(w view.Warning, names problem.Glossary) jsonvalue.Ordered {
	m := jsonvalue.Ordered{{"code", string(w.Code)}}
	m.Text("node_id", w.NodeID)
	m.Put("message", w.Message)
	if w.Limit > 0 {
		m.Put("used", w.Used)
		m.Put("limit", w.Limit)
	}
	m.Put("hint", names.Translate(w.Hint))
	return m
}

// putEnd puts the final state and the result of a run that has ended.
func putEnd(m *jsonvalue.Ordered, run *view.Run) {
	switch run.Status {
	case machine.Completed:
		final := run.FinalState
		if final == nil {
			final = map[string]any{}
		}
		m.Put("final_state", final)
		m.Put("result", run.Result)
	case machine.Failed, machine.Cancelled:
		m.Object("final_state", run.FinalState)
	}
}

// Phase returns the protocol's phase of a status. The phase of a run that waits for a timer or a subworkflow is running.
func Phase(s machine.Status) history.Phase {
	switch s {
	case machine.AwaitingTimer, machine.AwaitingChild:
		return history.PhaseRunning
	default:
		return history.Phase(s)
	}
}

// First returns the entry for the protocol's single fields: the first, in branch order, of the kind of the status; nil without waits.
func First(run *view.Run) *view.Pending {
	for i := range run.Pending {
		if statusOf(run.Pending[i].Kind) == run.Status {
			return &run.Pending[i]
		}
	}
	if len(run.Pending) > 0 {
		return &run.Pending[0]
	}
	return nil
}

func statusOf(kind machine.WaitKind) machine.Status {
	switch kind {
	case machine.WaitActivity, machine.WaitDelegate:
		return machine.AwaitingActivity
	case machine.WaitInterrupt:
		return machine.Interrupted
	case machine.WaitSignal:
		return machine.AwaitingSignal
	case machine.WaitTimer, machine.WaitBackoff:
		return machine.AwaitingTimer
	default:
		return machine.AwaitingChild
	}
}

func nodeOf(run *view.Run, first *view.Pending) string {
	if first != nil {
		return first.NodeID
	}
	return run.CurrentNodeID
}
