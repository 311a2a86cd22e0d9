package history

import (
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// AppendText appends the projection as the JSON text that stores keep. It holds everything but the run's id, which is the key,
// including what Apply needs to continue.
func (e *Execution) AppendText(dst []byte) []byte {
	f := &e.fold
	w := objectWriter{buf: append(dst, '{')}
	w.integer("seq", e.Seq)
	w.text("name", e.DefinitionName)
	w.text("version", e.DefinitionVersion)
	w.text("hash", e.DefinitionHash)
	w.text("inputHash", e.InputHash)
	w.text("mode", e.Mode)
	w.text("parent", e.Parent)
	w.integer("depth", int64(e.Depth))
	w.text("forkedId", e.ForkedFrom.ExecutionID)
	w.integer("forkedSeq", e.ForkedFrom.Seq)
	w.time("created", e.CreatedAt)
	w.time("updated", e.UpdatedAt)
	w.text("outcome", string(f.outcome))
	w.text("error", e.LastError)
	w.text("node", f.lastNode)
	w.integer("visits", e.NodeVisits)
	w.integer("stateSeq", e.StateSeq)
	w.text("correlation", e.DelegateCorrelationID)
	w.text("childId", e.ChildExecutionID)
	w.text("parentId", e.ParentExecutionID)
	w.flag("started", f.started)
	w.flag("bound", f.bound)
	w.flag("raised", f.raised)
	appendList(&w, "waits", f.waits, (*Wait).appendText)
	appendList(&w, "forks", f.forks, (*fork).appendText)
	return append(w.buf, '}')
}

func appendList[T any](w *objectWriter, name string, list []T, write func(*T, *objectWriter)) {
	if len(list) == 0 {
		return
	}
	w.name(name)
	w.buf = append(w.buf, '[')
	for i := range list {
		if i > 0 {
			w.buf = append(w.buf, ',')
		}
		w.buf = append(w.buf, '{')
		write(&list[i], w)
		w.buf = append(w.buf, '}')
	}
	w.buf = append(w.buf, ']')
}

func (x *Wait) appendText(w *objectWriter) {
	w.text("kind", string(x.Kind))
	w.text("node", x.NodeID)
	w.integer("visit", int64(x.Visit))
	w.span(x.Span)
	w.text("nodeType", x.NodeType)
	w.integer("attempt", int64(x.Attempt))
	w.text("mode", x.Mode)
	w.text("agent", x.AgentID)
	w.text("protocol", x.Protocol)
	w.text("correlation", x.Correlation)
	w.object("input", x.Input)
	w.text("task", x.ExternalTask)
	w.text("signal", x.SignalName)
	w.time("due", x.Due)
	w.text("child", x.ChildExecutionID)
}

func (x *fork) appendText(w *objectWriter) {
	w.text("node", x.node)
	w.text("join", x.join)
	w.texts("branches", x.branches)
}

// ParseExecution parses the result of AppendText. The error has code HISTORY_CORRUPT.
func ParseExecution(executionID string, raw []byte) (Execution, error) {
	v, err := jsonvalue.Decode(raw)
	m := object(v)
	if err != nil || m == nil {
		return Execution{}, problem.New(problem.HistoryCorrupt, "the stored projection of run %q cannot be read", executionID).
			WithPlace(problem.Place{ExecutionID: executionID}).WithCause(err)
	}
	e := Execution{
		ID: executionID, Seq: integer(m["seq"]),
		DefinitionName: text(m["name"]), DefinitionVersion: text(m["version"]), DefinitionHash: text(m["hash"]),
		InputHash: text(m["inputHash"]), Mode: text(m["mode"]), Parent: text(m["parent"]), Depth: int(integer(m["depth"])),
		ForkedFrom: ForkOrigin{ExecutionID: text(m["forkedId"]), Seq: integer(m["forkedSeq"])},
		CreatedAt:  timestamp(m["created"]), UpdatedAt: timestamp(m["updated"]), LastError: text(m["error"]),
		NodeVisits: integer(m["visits"]), StateSeq: integer(m["stateSeq"]), DelegateCorrelationID: text(m["correlation"]),
		ChildExecutionID: text(m["childId"]), ParentExecutionID: text(m["parentId"]),
		fold: fold{
			started: m["started"] == true, bound: m["bound"] == true, raised: m["raised"] == true,
			outcome: Phase(text(m["outcome"])), lastNode: text(m["node"]),
			waits: parseList(m["waits"], parseWait), forks: parseList(m["forks"], parseFork),
		},
	}
	e.settle()
	return e, nil
}

func parseList[T any](v any, parse func(map[string]any) T) []T {
	elements, _ := v.([]any)
	var out []T
	for _, e := range elements {
		out = append(out, parse(object(e)))
	}
	return out
}

func parseWait(m map[string]any) Wait {
	return Wait{
		Kind: WaitKind(text(m["kind"])), NodeID: text(m["node"]), Visit: int(integer(m["visit"])), Span: span(m["parallelSpan"]),
		NodeType: text(m["nodeType"]), Attempt: int(integer(m["attempt"])), Mode: text(m["mode"]),
		AgentID: text(m["agent"]), Protocol: text(m["protocol"]), Correlation: text(m["correlation"]), Input: object(m["input"]),
		ExternalTask: text(m["task"]),
		SignalName:   text(m["signal"]), Due: timestamp(m["due"]), ChildExecutionID: text(m["child"]),
	}
}

func parseFork(m map[string]any) fork {
	return fork{node: text(m["node"]), join: text(m["join"]), branches: texts(m["branches"])}
}
