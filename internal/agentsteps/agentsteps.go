// Package agentsteps reads the recorded steps of an agent (package agentloop) as far as a retry has to know them: where the agent can go on,
// under whose keys its calls are made, and which of them have done something that a new beginning would do again.
package agentsteps

import (
	"slices"
	"strconv"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Step is a recorded step.
type Step struct {
	Key, Kind    string
	Body, Totals map[string]any
}

// Kinds of steps that only a retry writes.
const (
	// Continued stands where an agent goes on after a failure.
	Continued = "continued"
	// Reconfigured stands behind one that asks for today's configuration (SeamConfig), and says what the agent has of it.
	Reconfigured = "reconfigured"
	// Answered is the answer of a person, in an attempt that has taken it over from another one.
	Answered = "answered"
)

// Piece is the kind of steps that hold pieces of a large result, right before it, and PieceMember the member with their text
// (activities.StepPiece, activities.PieceMember).
const (
	Piece       = "piece"
	PieceMember = "pieceText"
)

// Continues is the member of the first step that says which attempt began the agent, if it was another one. Its members are Execution,
// Attempt and, in a retry, Seq: the run, the attempt in it, as in "node#1.1", and the seq of the last record that was taken over.
const (
	Continues = "continues"
	Execution = "execution"
	Attempt   = "attempt"
	Seq       = "seq"
)

// Of reports whether an agent has recorded the steps: it has begun.
func Of(steps []Step) bool {
	return len(steps) > 0 && IsBegun(&steps[0]) && steps[0].Key == "0"
}

// IsBegun reports whether a step is the first one of an agent. Other executors may use the same kind.
func IsBegun(s *Step) bool {
	_, config := s.Body["configHash"]
	_, tools := s.Body["tools"]
	_, task := s.Body["task"]
	return s.Kind == "begun" && tools && task && (config || strings.HasSuffix(s.Key, "/0"))
}

// KeyBase returns what the keys of an agent's calls begin with where the first step names another attempt; "" if it names none.
func KeyBase(first *Step) string {
	from, _ := first.Body[Continues].(map[string]any)
	execution, _ := from[Execution].(string)
	attempt, _ := from[Attempt].(string)
	if execution == "" || attempt == "" {
		return ""
	}
	return execution + ":" + attempt
}

// From returns the first step with the attempt that began the agent; one that names an attempt already stays as it is.
func From(first map[string]any, execution, attempt string, seq int64) map[string]any {
	if _, named := first[Continues].(map[string]any); named {
		return first
	}
	out := make(map[string]any, len(first)+1)
	for name, v := range first {
		out[name] = v
	}
	from := map[string]any{Execution: execution, Attempt: attempt}
	if seq > 0 {
		from[Seq] = float64(seq)
	}
	out[Continues] = from
	return out
}

// NobodyAnswered is the member of an answer that was taken over which says that nobody has given it: its time was over.
const NobodyAnswered = "nobody"

// Copies returns what an attempt takes over of the steps of one that has failed: those that it goes on after, and the step that says so. It is
// nil where the agent begins anew: it has called no tool that does more than read, or it cannot go on. execution and attempt are where the
// steps were recorded.
func Copies(steps []Step, code, message, execution, attempt string) []Step {
	if !Of(steps) || Ended(code) || Spent(code) || len(Effects(steps)) == 0 {
		return nil
	}
	kept := steps[:Kept(steps, code)]
	copies := make([]Step, 0, len(kept)+1)
	for i, s := range kept {
		switch s.Kind {
		case "question", "rest", "woken":
			continue // they are the engine's, and the agent is past them
		case "answer":
			body := map[string]any{Payload: s.Body[Payload]}
			if s.Body["expired"] == true {
				body[NobodyAnswered] = true
			}
			s.Kind, s.Body = Answered, body
		}
		if i == 0 {
			s.Body = From(s.Body, execution, attempt, 0)
		}
		copies = append(copies, s)
	}
	return append(copies, Step{Key: "0", Kind: Continued, Body: SeamBody(code, message, false)})
}

// Kept returns how many of the steps of an attempt that has failed an agent goes on after: those up to the last result, answer, decision or
// compaction, with the calls of the last reply if it has any that count. What follows is dropped: failed tries, an answer that could not be used.
func Kept(steps []Step, code string) int {
	n := solid(steps, code)
	if code != string(problem.AgentLoopDetected) {
		return n
	}
	// The reply that repeated a call once too often would do so again. None of its calls was made.
	for i := n - 1; i > 0; i-- {
		s := &steps[i]
		by, _ := s.Body["by"].(string)
		switch {
		case s.Kind == "reply" && !strings.Contains(s.Key, "/"):
			return solid(steps[:i], code)
		case s.Kind != "result" || by != "engine":
			return n
		}
	}
	return n
}

func solid(steps []Step, code string) int {
	n := len(steps)
	for n > 1 && !counts(steps[:n], code) {
		n--
	}
	return n
}

// counts reports whether an agent can go on after the last of the steps.
func counts(steps []Step, code string) bool {
	s := &steps[len(steps)-1]
	switch s.Kind {
	case "begun", "result", "answer", Answered, "compacted", Reconfigured:
		return true
	case Continued: // what was asked for and has not been taken yet is still asked for
		return s.Body[SeamConfig] == SeamCurrent
	case "decided":
		return s.Body["decision"] != "expired"
	case "woken": // what an answer has led to may have begun since
		return len(steps) > 1 && steps[len(steps)-2].Kind == "answer"
	case "reply":
		calls, _ := s.Body["calls"].([]any)
		return len(calls) > 0 && s.Body["finish"] != "length" && !ofAnswer(code)
	}
	return false
}

// ofAnswer reports whether a code says that the last reply could not be used.
func ofAnswer(code string) bool {
	switch problem.Code(code) {
	case problem.AgentOutputParse, problem.AgentOutputSchema, problem.AgentOutputCut, problem.LLMOutputInvalid:
		return true
	}
	return false
}

// Told reports whether an agent that goes on after a failure is told why its last answer did not count.
func Told(code string) bool {
	switch problem.Code(code) {
	case problem.AgentOutputParse, problem.AgentOutputSchema, problem.AgentOutputCut, problem.AgentLoopDetected, problem.AgentContextExceeded:
		return true
	}
	return false
}

// Spent reports whether a code says that a budget of an agent is used up.
func Spent(code string) bool {
	switch problem.Code(code) {
	case problem.AgentTurnsExceeded, problem.AgentToolCallsExceeded, problem.AgentTokensExceeded, problem.AgentCostExceeded, problem.AgentTimeExceeded:
		return true
	}
	return false
}

// Ended reports whether an agent with this failure can only begin anew: somebody has stopped it, or its steps cannot be followed.
func Ended(code string) bool {
	return code == string(problem.AgentStopped) || code == string(problem.AgentJournalInvalid)
}

// Call is a call that has been made, or may have been.
type Call struct {
	Key, Tool string
	Arguments map[string]any
	// Open says that its result is not known.
	Open bool
}

// Effects returns the calls of tools that do more than read which have been made, or may have been: a beginning from the start would make
// them again, under other keys.
func Effects(steps []Step) []Call { return made(steps, true) }

// Made returns how many calls of tools have a result.
func Made(steps []Step) int {
	n := 0
	for _, c := range made(steps, false) {
		if !c.Open {
			n++
		}
	}
	return n
}

func made(steps []Step, effects bool) []Call {
	tools := map[string]map[string]any{} // by the prefix of the agent and the name
	var calls []Call
	asked := map[string]bool{} // of the open question
	for i := range steps {
		s := &steps[i]
		prefix, own := split(s.Key)
		switch s.Kind {
		case "begun":
			list, _ := s.Body["tools"].([]any)
			for _, v := range list {
				if t, ok := v.(map[string]any); ok {
					name, _ := t["name"].(string)
					tools[prefix+name] = t
				}
			}
		case "reply":
			list, _ := s.Body["calls"].([]any)
			if s.Body["finish"] == "length" {
				continue
			}
			for j, v := range list {
				c, _ := v.(map[string]any)
				name, _ := c["name"].(string)
				t, known := tools[prefix+name]
				arguments, readable := c["arguments"].(map[string]any)
				if source, _ := t["source"].(string); !known || !readable || strings.HasPrefix(source, "engine:") || effects && t["readOnly"] == true {
					continue
				}
				calls = append(calls, Call{Key: prefix + own + ".c" + strconv.Itoa(j+1), Tool: name, Arguments: arguments, Open: true})
			}
		case "result":
			at := slices.IndexFunc(calls, func(c Call) bool { return c.Key == s.Key })
			if at < 0 {
				continue
			}
			failure, _ := s.Body["error"].(map[string]any)
			if by, _ := s.Body["by"].(string); by != "" && failure["code"] != "TOOL_OUTCOME_UNKNOWN" {
				calls = slices.Delete(calls, at, at+1) // nobody has called the tool
				continue
			}
			calls[at].Open = failure["code"] == "TOOL_OUTCOME_UNKNOWN"
			if edited, ok := s.Body["arguments"].(map[string]any); ok {
				calls[at].Arguments = edited
			}
		case "question":
			list, _ := s.Body["calls"].([]any)
			for _, v := range list {
				c, _ := v.(map[string]any)
				if key, _ := c["key"].(string); c["mayHaveHappened"] != true {
					asked[key] = true
				}
			}
		case "answer", Answered:
			if !stops(s.Body[Payload]) { // then none of them was made
				clear(asked)
			}
		}
	}
	return slices.DeleteFunc(calls, func(c Call) bool { return c.Open && asked[c.Key] })
}

// Payload is the member with what a person has answered.
const Payload = "payload"

// stops reports whether a person has stopped the agent with an answer.
func stops(answer any) bool {
	a, _ := answer.(map[string]any)
	if a["decision"] == "stop" {
		return true
	}
	calls, _ := a["calls"].(map[string]any)
	for _, v := range calls {
		if d, _ := v.(map[string]any); d["decision"] == "stop" {
			return true
		}
	}
	return false
}

// split parts a key into that of the agent, with its slash, and the rest.
func split(key string) (prefix, own string) {
	i := strings.LastIndexByte(key, '/') + 1
	return key[:i], key[i:]
}

// The members of the step that stands where an agent goes on after a failure. SeamConfig is SeamCurrent where it does so with today's
// configuration.
const (
	SeamCode, SeamMessage   = "code", "message"
	SeamConfig, SeamCurrent = "agentConfig", "current"
)

// Seam is the recorded form of the step, the n-th of its attempt. current asks for today's configuration.
func Seam(n int, code, message string, current bool) map[string]any {
	step := SeamBody(code, message, current)
	step["key"], step["kind"], step["n"] = "0", Continued, float64(n)
	return step
}

// SeamBody is the body of the step.
func SeamBody(code, message string, current bool) map[string]any {
	body := map[string]any{SeamCode: code, SeamMessage: problem.Excerpt(strings.ToValidUTF8(message, "\uFFFD"), problem.MaxText)}
	if current {
		body[SeamConfig] = SeamCurrent
	}
	return body
}
