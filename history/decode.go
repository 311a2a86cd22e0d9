package history

import (
	"math"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// DecodePayload parses a stored payload, written by any engine. Like the reference engine it ignores unknown fields and fields of an
// unexpected type; the stored text keeps them. If raw is not a JSON object, the error has code HISTORY_CORRUPT.
//
// The error contains the record's name. The protocol's current fields do not depend on the name.
func DecodePayload(name Name, raw []byte) (Payload, error) {
	return DecodePayloadFunc(name, raw, nil)
}

// DecodePayloadFunc parses the output of AppendPayloadFunc: value receives the replacement of a workflow value and returns the original
// value. Its error is returned unchanged.
func DecodePayloadFunc(name Name, raw []byte, value func(member string, v any) (any, error)) (Payload, error) {
	v, err := jsonvalue.Decode(raw)
	if err != nil {
		return Payload{}, problem.New(problem.HistoryCorrupt, "the payload of a stored %s is not JSON", name).WithCause(err)
	}
	members, ok := v.(map[string]any)
	if !ok {
		return Payload{}, problem.New(problem.HistoryCorrupt, "the payload of a stored %s is not a JSON object", name)
	}
	var p Payload
	numbers := payloadNumbers()
	for member, v := range members {
		if value != nil {
			if v, err = expand(member, v, value); err != nil {
				return Payload{}, err
			}
		}
		if i, known := numbers[member]; known {
			field := payloadTable[i].field(&p)
			setField(field, v)
			if !isWhole(field, v) && (p.over == nil || i < p.over.member) {
				p.over = &passedOver{i, v}
			}
		}
	}
	return p, nil
}

// expand returns the original value of a field that may hold a replacement.
func expand(member string, v any, value func(member string, v any) (any, error)) (any, error) {
	if member == fieldStateRef {
		ref := object(v)
		state, ok := ref["state"]
		if !ok {
			return v, nil
		}
		state, err := value(member, state)
		return map[string]any{"kind": ref["kind"], "state": state}, err
	}
	if !isValue[member] {
		return v, nil
	}
	return value(member, v)
}

// setField sets a Go field to the value of its JSON field. Each JSON field has a separate Go field, so their order does not matter.
func setField(field, v any) {
	switch f := field.(type) {
	case *string:
		*f = text(v)
	case *int:
		*f = int(integer(v))
	case *int64:
		*f = integer(v)
	case *bool:
		*f = v == true
	case *time.Time:
		*f = timestamp(v)
	case *map[string]any:
		*f = object(v)
	case *[]string:
		*f = texts(v)
	case *Optional:
		*f = Some(v)
	case **ParallelSpan:
		*f = span(v)
	case *ForkOrigin:
		m := object(v)
		*f = ForkOrigin{ExecutionID: text(m["executionId"]), Seq: integer(m["seq"])}
	case *stateRef:
		if ref := object(v); text(ref["kind"]) == "inline_state" {
			*f = object(ref["state"])
		}
	case **MismatchContext:
		*f = mismatch(v)
	case **Actor:
		*f = readActor(v)
	case *map[string]string:
		*f = textMap(v)
	case *map[string]int:
		for name, v := range object(v) {
			if n := integer(v); n > 0 {
				if *f == nil {
					*f = map[string]int{}
				}
				(*f)[name] = int(n)
			}
		}
	case *[]Wait:
		*f = readList(v, waitMembers)
	case *[]fork:
		*f = readList(v, forkMembers)
	}
}

// readObject sets the fields of x that are present in an object.
func readObject[T any](object map[string]any, members []jsonField[T], x *T) {
	for i := range members {
		if v, ok := object[members[i].name]; ok {
			setField(members[i].field(x), v)
		}
	}
}

func readList[T any](v any, members []jsonField[T]) []T {
	elements, _ := v.([]any)
	var out []T
	for _, e := range elements {
		var x T
		readObject(object(e), members, &x)
		out = append(out, x)
	}
	return out
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

func object(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// integer returns 0 for a value that is not an integer, or that a double cannot hold exactly.
func integer(v any) int64 {
	f, _ := v.(float64)
	if f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0
	}
	return int64(f)
}

// texts returns nil unless all elements are strings. For an empty array it returns an empty slice.
func texts(v any) []string {
	elements, ok := v.([]any)
	if !ok {
		return nil
	}
	out := make([]string, len(elements))
	for i, e := range elements {
		if out[i], ok = e.(string); !ok {
			return nil
		}
	}
	return out
}

// textMap returns the string fields of an object, nil if it has no such fields.
func textMap(v any) map[string]string {
	var out map[string]string
	for name, v := range object(v) {
		if s, ok := v.(string); ok {
			if out == nil {
				out = map[string]string{}
			}
			out[name] = s
		}
	}
	return out
}

func timestamp(v any) time.Time {
	t, err := ParseTimestamp(text(v))
	if err != nil {
		return time.Time{}
	}
	return t
}

// span returns nil unless all four fields are strings (spec: execution, 6.3).
func span(v any) *ParallelSpan {
	m := object(v)
	var s ParallelSpan
	for name, field := range map[string]*string{
		"parallelNodeId": &s.ParallelNodeID, "joinTargetId": &s.JoinTargetID,
		"branchName": &s.BranchName, "branchEntryNodeId": &s.BranchEntryNodeID,
	} {
		var ok bool
		if *field, ok = m[name].(string); !ok {
			return nil
		}
	}
	return &s
}

func mismatch(v any) *MismatchContext {
	m := object(v)
	if m == nil {
		return nil
	}
	return &MismatchContext{Expected: identity(m["expected"]), Actual: identity(m["actual"])}
}

func identity(v any) CommandIdentity {
	m := object(v)
	return CommandIdentity{Name: Name(text(m["name"])), Seq: integer(m["seq"]), NodeID: text(m["nodeId"])}
}
