package history

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// AppendPayload appends the record's payload in its stored form: a compact JSON object that begins with executionId (spec: execution, 2.1)
// and nodeId, followed by the fields that are set. Depending on the record's name, some fields are written even if they are empty.
func (r *Record) AppendPayload(dst []byte, executionID string) []byte {
	return r.AppendPayloadFunc(dst, executionID, nil)
}

// AppendPayloadFunc is AppendPayload for stores that keep large values elsewhere: value appends a workflow value, or its replacement.
// DecodePayloadFunc is the inverse. If value is nil, the values are written unchanged.
func (r *Record) AppendPayloadFunc(dst []byte, executionID string, value func(dst []byte, member string, v any) []byte) []byte {
	w := objectWriter{buf: append(dst, '{'), value: value}
	w.text("executionId", executionID)
	writeObject(&w, payloadFields, &r.Payload, writtenEmpty[r.Name])
	return append(w.buf, '}')
}

// objectWriter appends fields to an open object.
type objectWriter struct {
	buf []byte
	// value, unless nil, writes the workflow values.
	value func(dst []byte, member string, v any) []byte
}

// writeObject writes the nonzero fields of x, and the field evenEmpty even if it is empty.
func writeObject[T any](w *objectWriter, members []jsonField[T], x *T, evenEmpty string) {
	for i := range members {
		m := &members[i]
		w.member(m.name, m.field(x), m.name == evenEmpty)
	}
}

// member writes a field unless it is zero.
func (w *objectWriter) member(name string, field any, evenEmpty bool) {
	switch v := field.(type) {
	case *string:
		if *v != "" || evenEmpty {
			w.text(name, *v)
		}
	case *int:
		w.integer(name, int64(*v))
	case *int64:
		w.integer(name, *v)
	case *bool:
		if *v {
			w.name(name)
			w.buf = append(w.buf, "true"...)
		}
	case *time.Time:
		if !v.IsZero() {
			w.name(name)
			w.buf = append(w.buf, '"')
			w.buf = append(AppendTimestamp(w.buf, *v), '"')
		}
	case *map[string]any:
		if *v != nil {
			w.name(name)
			w.appendValue(name, *v)
		}
	case *[]string:
		if len(*v) > 0 || evenEmpty {
			writeList(w, name, *v, func(s *string) { w.buf = jsonvalue.AppendString(w.buf, *s) })
		}
	case *Optional:
		if v.Set {
			w.name(name)
			w.appendValue(name, v.Value)
		}
	default:
		w.composite(name, field)
	}
}

// composite is member for fields that hold objects or arrays of objects of a fixed form.
func (w *objectWriter) composite(name string, field any) {
	switch v := field.(type) {
	case **ParallelSpan:
		if s := *v; s != nil {
			w.open(name)
			w.text("parallelNodeId", s.ParallelNodeID)
			w.text("joinTargetId", s.JoinTargetID)
			w.text("branchName", s.BranchName)
			w.text("branchEntryNodeId", s.BranchEntryNodeID)
			w.buf = append(w.buf, '}')
		}
	case *ForkOrigin:
		if v.ExecutionID != "" {
			w.open(name)
			w.text("executionId", v.ExecutionID)
			w.integer("seq", v.Seq)
			w.buf = append(w.buf, '}')
		}
	case *stateRef:
		if *v != nil {
			w.open(name)
			w.text("kind", "inline_state")
			w.name("state")
			w.appendValue(fieldStateRef, map[string]any(*v))
			w.buf = append(w.buf, '}')
		}
	case **MismatchContext: // of a replay (spec: execution, 10.3)
		if c := *v; c != nil {
			w.open(name)
			w.identity("expected", &c.Expected)
			w.identity("actual", &c.Actual)
			w.buf = append(w.buf, '}')
		}
	case **Actor:
		w.actor(name, *v)
	case *map[string]string:
		if len(*v) > 0 {
			w.open(name)
			for _, key := range slices.Sorted(maps.Keys(*v)) {
				if w.buf[len(w.buf)-1] != '{' {
					w.buf = append(w.buf, ',')
				}
				w.buf = append(jsonvalue.AppendString(w.buf, key), ':')
				w.buf = jsonvalue.AppendString(w.buf, (*v)[key])
			}
			w.buf = append(w.buf, '}')
		}
	case *map[string]int:
		if len(*v) > 0 {
			w.open(name)
			for _, key := range slices.Sorted(maps.Keys(*v)) {
				if w.buf[len(w.buf)-1] != '{' {
					w.buf = append(w.buf, ',')
				}
				w.buf = append(jsonvalue.AppendString(w.buf, key), ':')
				w.buf = strconv.AppendInt(w.buf, int64((*v)[key]), 10)
			}
			w.buf = append(w.buf, '}')
		}
	case *[]Wait:
		writeObjects(w, name, *v, waitMembers, "")
	case *[]fork:
		writeObjects(w, name, *v, forkMembers, "branches")
	}
}

func (w *objectWriter) appendValue(member string, v any) {
	if w.value == nil || !isValue[member] {
		w.buf = jsonvalue.Append(w.buf, v)
		return
	}
	w.buf = w.value(w.buf, member, v)
}

func (w *objectWriter) name(name string) {
	if w.buf[len(w.buf)-1] != '{' {
		w.buf = append(w.buf, ',')
	}
	w.buf = append(w.buf, '"')
	w.buf = append(w.buf, name...)
	w.buf = append(w.buf, '"', ':')
}

// open begins a field that holds an object.
func (w *objectWriter) open(name string) {
	w.name(name)
	w.buf = append(w.buf, '{')
}

func (w *objectWriter) text(name, v string) {
	w.name(name)
	w.buf = jsonvalue.AppendString(w.buf, v)
}

// integer writes nothing for 0.
func (w *objectWriter) integer(name string, v int64) {
	if v != 0 {
		w.name(name)
		w.buf = strconv.AppendInt(w.buf, v, 10)
	}
}

func (w *objectWriter) identity(name string, c *CommandIdentity) {
	w.open(name)
	w.text("name", string(c.Name))
	w.integer("seq", c.Seq)
	if c.NodeID != "" {
		w.text("nodeId", c.NodeID)
	}
	w.buf = append(w.buf, '}')
}

func writeList[T any](w *objectWriter, name string, list []T, write func(*T)) {
	w.name(name)
	w.buf = append(w.buf, '[')
	for i := range list {
		if i > 0 {
			w.buf = append(w.buf, ',')
		}
		write(&list[i])
	}
	w.buf = append(w.buf, ']')
}

// writeObjects writes an array of objects unless it is empty.
func writeObjects[T any](w *objectWriter, name string, list []T, members []jsonField[T], evenEmpty string) {
	if len(list) > 0 {
		writeList(w, name, list, func(x *T) {
			w.buf = append(w.buf, '{')
			writeObject(w, members, x, evenEmpty)
			w.buf = append(w.buf, '}')
		})
	}
}

// fieldStateRef is the checkpoint field whose field "state" holds the state.
const fieldStateRef = "stateRef"

// MemberRequest is the field of the sent request, MemberAgentStep the field of a journal entry.
const (
	MemberRequest   = "request"
	MemberAgentStep = "agentStep"
)

// IsOwnValue reports whether only this engine uses a field. A store may keep large values of such a field elsewhere, even in records that
// other engines can read.
func IsOwnValue(member string) bool { return member == MemberRequest || member == MemberAgentStep }

// isValue lists the payload fields that hold workflow values, which may be large.
var isValue = map[string]bool{
	"input": true, "payload": true, "output": true, "state": true, "result": true, "delegateInput": true, "usage": true, "repair": true, "data": true,
	MemberRequest: true, MemberAgentStep: true, "childFinalState": true, "childResult": true, "mergedOutput": true, fieldStateRef: true,
}

// Weigh returns a lower bound for the size, in bytes, of the record's values when written in full. If limit is greater than 0, it stops at
// the limit and returns a number that is not below it. Fields that only this engine uses (IsOwnValue) do not count: they never cause a record
// to be written in short form.
func (r *Record) Weigh(limit int) int {
	p := &r.Payload
	n := 0
	for _, m := range [...]map[string]any{
		p.State, p.StateRef, p.Output, p.Input, p.SignalPayload, p.DelegateInput, p.Usage, p.Repair, p.Data, p.ChildFinalState, p.MergedOutput,
	} {
		if len(m) > 0 && (limit <= 0 || n < limit) {
			n += jsonvalue.Weigh(m, max(limit-n, 0))
		}
	}
	for _, o := range [...]*Optional{&p.Result, &p.ChildResult} {
		if o.Set && (limit <= 0 || n < limit) {
			n += jsonvalue.Weigh(o.Value, max(limit-n, 0))
		}
	}
	return n
}

// Text returns the complete payload as any engine of the protocol stores it: Raw or, if the store keeps the values elsewhere, the payload
// encoded again. Do not change the result.
func (r *Record) Text(executionID string) []byte {
	if r.Raw != nil {
		return r.Raw
	}
	return r.AppendPayload(make([]byte, 0, 512), executionID) // enough for most
}
