package graphtest

import (
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
)

// Call is an attempt for a stub. Its maps are copies.
type Call struct {
	// Node is the id of the node, in a subworkflow "PARENT/NODE"; Type is its type.
	Node, Type string
	// Visit and Attempt count from 1.
	Visit, Attempt int
	// Config is that of an activity, Input that of a delegate or a subworkflow.
	Config map[string]any
	Input  map[string]any
	// State is the state as the node sees it.
	State map[string]any
	Now   time.Time
}

// Result is the result of a stub.
type Result struct {
	// Output is plain JSON: of an activity or delegation its output, of a subworkflow its final state, or its result in a map.
	Output any
	// Err, if not nil, fails the attempt with the code of an *activities.Failure.
	Err error
	// Delay is the duration of the attempt, in which it gives no sign of life.
	Delay time.Duration
}

// Stub performs the attempts of a node.
type Stub func(Call) Result

// Output returns a stub with a constant output.
func Output(output any) Stub {
	return func(Call) Result { return Result{Output: output} }
}

// Fail returns a stub that fails each call. The node's retry policy decides on another attempt.
func Fail(code, message string) Stub {
	return func(Call) Result { return Result{Err: &activities.Failure{Code: code, Message: message}} }
}

// FailFinally returns a stub that fails each call and prevents another attempt.
func FailFinally(code, message string) Stub {
	return func(Call) Result {
		return Result{Err: &activities.Failure{Code: code, Message: message, Retryable: activities.RetryPointless}}
	}
}

// After delays a stub.
func After(delay time.Duration, stub Stub) Stub {
	return func(c Call) Result {
		r := stub(c)
		r.Delay += delay
		return r
	}
}

// Visits uses a stub for each visit of the node; the last one is used for later visits, too.
func Visits(stubs ...Stub) Stub {
	return func(c Call) Result { return nth(stubs, c.Visit)(c) }
}

// Attempts uses a stub for each attempt of a visit; the last one is used for later attempts, too.
func Attempts(stubs ...Stub) Stub {
	return func(c Call) Result { return nth(stubs, c.Attempt)(c) }
}

func nth(stubs []Stub, n int) Stub {
	if len(stubs) == 0 {
		return Output(map[string]any{})
	}
	return stubs[min(n, len(stubs))-1]
}

// Question is an open interrupt.
type Question struct {
	// Node is the id of the node, in a subworkflow "PARENT/NODE".
	Node   string
	Visit  int
	Prompt string
	State  map[string]any
	Now    time.Time
}

// Answer returns the payload for an interrupt and the delay of the answer. With answered false the interrupt stays open.
type Answer func(Question) (payload map[string]any, after time.Duration, answered bool)

// Reply answers the n-th visit of an interrupt with the n-th payload, at once. Later visits stay open.
func Reply(payloads ...map[string]any) Answer {
	return func(q Question) (map[string]any, time.Duration, bool) {
		if q.Visit > len(payloads) {
			return nil, 0, false
		}
		return payloads[q.Visit-1], 0, true
	}
}

// ReplyAfter answers each visit of an interrupt with the same payload, after a delay.
func ReplyAfter(delay time.Duration, payload map[string]any) Answer {
	return func(Question) (map[string]any, time.Duration, bool) { return payload, delay, true }
}
