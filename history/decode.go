package history

import (
	"math"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// DecodePayload reads a stored payload, whichever engine wrote it. Like the reference engine it ignores unknown members and
// members of an unexpected type; the stored text keeps them. If raw is not a JSON object, the error has code HISTORY_CORRUPT.
//
// The name is that of the record, for the error: the members that the protocol has today do not depend on it.
func DecodePayload(name Name, raw []byte) (Payload, error) {
	return DecodePayloadFunc(name, raw, nil)
}

// DecodePayloadFunc reads what AppendPayloadFunc wrote: value takes what was written instead of a value of the workflow, and
// returns the value. Its error is returned unchanged.
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
	for member, v := range members {
		if value != nil {
			if v, err = expand(member, v, value); err != nil {
				return Payload{}, err
			}
		}
		p.set(member, v)
	}
	return p, nil
}

// expand returns the value of a member that may have been replaced.
func expand(member string, v any, value func(member string, v any) (any, error)) (any, error) {
	if member == memberStateRef {
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

// set sets one member. Each member has its own field, so their order does not matter.
func (p *Payload) set(member string, v any) {
	switch member {
	case "nodeId":
		p.NodeID = text(v)
	case "visit":
		p.Visit = int(integer(v))
	case "output":
		p.Output = object(v)
	case "state":
		p.State = object(v)
	case "result":
		p.Result = Some(v)
	case "reason":
		p.Reason = text(v)
	case "message":
		p.Message = text(v)
	case "code":
		p.Code = text(v)
	case "failedNodeId":
		p.FailedNodeID = text(v)
	case "join":
		p.Join = text(v)
	case "branchNames":
		p.BranchNames = texts(v)
	case "n":
		p.N = int(integer(v))
	case "branchName":
		p.BranchName = text(v)
	case "winners":
		p.Winners = texts(v)
	case "kind":
		p.TimerKind = text(v)
	case "wait_ms":
		p.WaitMS = Some(v)
	case "until":
		p.Until = text(v)
	case "dueAt":
		p.DueAt = timestamp(v)
	case "retryAt":
		p.RetryAt = timestamp(v)
	case "signalName":
		p.SignalName = text(v)
	case "payload":
		p.SignalPayload = object(v)
	case "prompt":
		p.Prompt = text(v)
	case "nodeType":
		p.NodeType = text(v)
	case "timeoutMs":
		p.TimeoutMS = integer(v)
	case "attempt":
		p.Attempt = int(integer(v))
	case "parallelSpan":
		p.Span = span(v)
	case "willRetry":
		p.WillRetry = v == true
	case "error":
		p.Error = text(v)
	case "agentId":
		p.AgentID = text(v)
	case "protocol":
		p.Protocol = text(v)
	case "delegateCorrelationId":
		p.Correlation = text(v)
	case "externalTaskId":
		p.ExternalTask = text(v)
	case "externalContextId":
		p.ExternalContext = text(v)
	case "delegateInput":
		p.DelegateInput = object(v)
	case "activityExecutionMode":
		p.Mode = text(v)
	case "idempotencyKey":
		p.IdempotencyKey = text(v)
	case "usage":
		p.Usage = object(v)
	case "repair":
		p.Repair = object(v)
	case "keepTasks":
		p.KeepTasks = v == true
	case "workflowRef":
		p.WorkflowRef = text(v)
	case "parentExecutionId":
		p.ParentExecutionID = text(v)
	case "childExecutionId":
		p.ChildExecutionID = text(v)
	case "childFinalState":
		p.ChildFinalState = object(v)
	case "childResult":
		p.ChildResult = Some(v)
	case "mergedOutput":
		p.MergedOutput = object(v)
	case "failed":
		p.Failed = v == true
	case "replayed":
		p.Replayed = v == true
	case "childDefinitionHash":
		p.ChildDefinitionHash = text(v)
	case "workflowName":
		p.WorkflowName = text(v)
	case "workflowVersion":
		p.WorkflowVersion = text(v)
	case "inputKeys":
		p.InputKeys = texts(v)
	case "definitionHash":
		p.DefinitionHash = text(v)
	case "inputHash":
		p.InputHash = text(v)
	case "input":
		p.Input = object(v)
	case "branches":
		p.Branches = text(v)
	case "depth":
		p.Depth = int(integer(v))
	case "forkedFrom":
		m := object(v)
		p.ForkedFrom = ForkOrigin{ExecutionID: text(m["executionId"]), Seq: integer(m["seq"])}
	case "policy":
		p.Policy = text(v)
	case "intervalNodes":
		p.IntervalNodes = int(integer(v))
	case "lastAppliedEventSeq":
		p.LastAppliedEventSeq = integer(v)
	case "stateRef":
		if ref := object(v); text(ref["kind"]) == "inline_state" {
			p.StateRef = object(ref["state"])
		}
	case "context":
		p.Context = mismatch(v)
	}
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

// texts returns nil unless all elements are strings. An empty array is an empty slice.
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

func timestamp(v any) time.Time {
	t, err := ParseTimestamp(text(v))
	if err != nil {
		return time.Time{}
	}
	return t
}

// span returns nil unless all four members are strings (spec: execution, 6.3).
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
