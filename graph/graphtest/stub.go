package graphtest

import (
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
)

// Call is an attempt that a stub performs. Its maps are the stub's own.
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

// Result is what a stub answers.
type Result struct {
	// Output is plain JSON. That of a subworkflow is its final state, in a map its result.
	Output any
	// Err, unless nil, fails the attempt, with the code of an *activities.Failure.
	Err error
	// Delay is how long the attempt takes.
	Delay time.Duration
}

// Stub performs the attempts of a node.
type Stub func(Call) Result

// Output answers each call with the same output.
func Output(output any) Stub {
	return func(Call) Result { return Result{Output: output} }
}

// Fail fails each call. Whether another attempt follows is up to the node's retry policy.
func Fail(code, message string) Stub {
	return func(Call) Result { return Result{Err: &activities.Failure{Code: code, Message: message}} }
}

// FailFinally fails each call, and rules out another attempt.
func FailFinally(code, message string) Stub {
	return func(Call) Result {
		return Result{Err: &activities.Failure{Code: code, Message: message, Retryable: activities.RetryPointless}}
	}
}

// After makes a stub take its time.
func After(delay time.Duration, stub Stub) Stub {
	return func(c Call) Result {
		r := stub(c)
		r.Delay += delay
		return r
	}
}

// Visits has a stub for each visit of the node; the last one stands for all that follow.
func Visits(stubs ...Stub) Stub {
	return func(c Call) Result { return nth(stubs, c.Visit)(c) }
}

// Attempts has a stub for each attempt of a visit; the last one stands for all that follow.
func Attempts(stubs ...Stub) Stub {
	return func(c Call) Result { return nth(stubs, c.Attempt)(c) }
}

func nth(stubs []Stub, n int) Stub {
	if len(stubs) == 0 {
		return Output(map[string]any{})
	}
	return stubs[min(n, len(stubs))-1]
}

// Question is an interrupt that waits for an answer.
type Question struct {
	// Node is the id of the node, in a subworkflow "PARENT/NODE".
	Node   string
	Visit  int
	Prompt string
	State  map[string]any
	Now    time.Time
}

// Answer answers an interrupt with a payload, so much time after it was asked. With answered false it stays open.
type Answer func(Question) (payload map[string]any, after time.Duration, answered bool)

// Reply answers each visit of an interrupt with the payload of its number, at once. Visits beyond the last payload stay open.
func Reply(payloads ...map[string]any) Answer {
	return func(q Question) (map[string]any, time.Duration, bool) {
		if q.Visit > len(payloads) {
			return nil, 0, false
		}
		return payloads[q.Visit-1], 0, true
	}
}

// ReplyAfter answers each visit of an interrupt with the same payload, so much later.
func ReplyAfter(delay time.Duration, payload map[string]any) Answer {
	return func(Question) (map[string]any, time.Duration, bool) { return payload, delay, true }
}
