// Package agentsteps reads the journal of an agent, which package agentloop writes: the bodies of entries as types, the status of the agent,
// and for a retry where the agent can continue, the keys of its calls, and the calls with effects that a new start would repeat.
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
	// Continued marks the place where an agent continues after a failure.
	Continued = "continued"
	// Reconfigured follows an entry that asks for the current configuration (SeamConfig), and has the configuration.
	Reconfigured = "reconfigured"
	// Answered is the answer of a person, in an attempt that has taken it over from another one.
	Answered = "answered"
)

// Piece is the kind of the entries right before a large result that hold its pieces, and PieceMember the field with their text
// (activities.StepPiece, activities.PieceMember).
const (
	Piece       = "piece"
	PieceMember = "pieceText"
)

// Continues is the field of the first entry that names the attempt that started the agent, if it was another one. Its fields are Execution,
// Attempt and, in a retry, Seq: the run, the attempt in it, as in "node#1.1", and the seq of the last record that was taken over.
const (
	Continues = "continues"
	Execution = "execution"
	Attempt   = "attempt"
	Seq       = "seq"
)

// Of reports whether the journal is that of an agent that has started.
func Of(steps []Step) bool {
	return len(steps) > 0 && IsBegun(&steps[0]) && steps[0].Key == "0"
}

// IsBegun reports whether an entry is the first one of an agent. Other executors may use the same kind.
func IsBegun(s *Step) bool {
	_, config := s.Body["configHash"]
	_, tools := s.Body["tools"]
	_, task := s.Body["task"]
	return s.Kind == "begun" && tools && task && (config || strings.HasSuffix(s.Key, "/0"))
}

// KeyBase returns the prefix of the keys of an agent's calls if the first entry names another attempt, else "".
func KeyBase(first *Step) string {
	from, _ := first.Body[Continues].(map[string]any)
	execution, _ := from[Execution].(string)
	attempt, _ := from[Attempt].(string)
	if execution == "" || attempt == "" {
		return ""
	}
	return execution + ":" + attempt
}

// From returns the first entry with the attempt that started the agent. An entry that names one already stays as it is.
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

// NobodyAnswered is the field of a copied answer that is set if the deadline passed without an answer.
const NobodyAnswered = "nobody"

// Copies returns the entries of a failed attempt that the next one keeps, followed by an entry that marks the failure. It is nil if the agent
// starts again: it has called no tool with effects, or it cannot continue. execution and attempt name the place of the entries.
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

// Kept returns the number of entries of a failed attempt after which an agent continues: those up to the last result, answer, decision or
// compaction, with the calls of the last reply if it has any that count. Failed tries and an unusable answer behind them are dropped.
func Kept(steps []Step, code string) int {
	n := solid(steps, code)
	if code != string(problem.AgentLoopDetected) {
		return n
	}
	// The reply that repeated a call once too often would do so again. Its calls were not made.
	for i := n - 1; i > 0; i-- {
		s := &steps[i]
		switch b := s.body().(type) {
		case *Reply:
			if !strings.Contains(s.Key, "/") {
				return solid(steps[:i], code)
			}
			return n
		case *Result:
			if b.By == "engine" {
				continue
			}
		}
		return n
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

// counts reports whether an agent can continue after the last of the entries.
func counts(steps []Step, code string) bool {
	switch b := steps[len(steps)-1].body().(type) {
	case *Begun, *Result, *Answer, *Compacted, *Changed:
		return true
	case *Resumed: // the configuration that it asks for still has to be recorded
		return b.Current
	case *Decided:
		return b.Decision != "expired"
	case *Woken: // calls that an answer allowed may have started
		return len(steps) > 1 && steps[len(steps)-2].Kind == "answer"
	case *Reply:
		return len(b.Calls) > 0 && b.Finish != "length" && !ofAnswer(code)
	}
	return false
}

// ofAnswer reports whether a code means that the last reply could not be used.
func ofAnswer(code string) bool {
	switch problem.Code(code) {
	case problem.AgentOutputParse, problem.AgentOutputSchema, problem.AgentOutputCut, problem.LLMOutputInvalid:
		return true
	}
	return false
}

// Told reports whether an agent that continues after a failure is told why its last answer did not count.
func Told(code string) bool {
	switch problem.Code(code) {
	case problem.AgentOutputParse, problem.AgentOutputSchema, problem.AgentOutputCut, problem.AgentLoopDetected, problem.AgentContextExceeded:
		return true
	}
	return false
}

// Spent reports whether a code means that a budget of an agent is used up.
func Spent(code string) bool {
	switch problem.Code(code) {
	case problem.AgentTurnsExceeded, problem.AgentToolCallsExceeded, problem.AgentTokensExceeded, problem.AgentCostExceeded, problem.AgentTimeExceeded:
		return true
	}
	return false
}

// Ended reports whether an agent with this failure can only start again: a person stopped it, or its journal cannot be replayed.
func Ended(code string) bool {
	return code == string(problem.AgentStopped) || code == string(problem.AgentJournalInvalid)
}

// Call is a call that has been made, or may have been.
type Call struct {
	Key, Tool string
	Arguments map[string]any
	// Open is set if the result is not known.
	Open bool
}

// Effects returns the calls of tools with effects that were made, or may have been. A new start would repeat them under other keys.
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
	tools := map[string]Tool{} // by the prefix of the agent and the name
	var calls []Call
	asked := map[string]bool{} // of the open question
	for i := range steps {
		s := &steps[i]
		prefix, own := split(s.Key)
		switch b := s.body().(type) {
		case *Begun:
			for _, t := range b.Tools {
				tools[prefix+t.Name] = t
			}
		case *Reply:
			if b.Finish == "length" {
				continue
			}
			for j, c := range b.Calls {
				t, known := tools[prefix+c.Name]
				if !known || c.Arguments == nil || strings.HasPrefix(t.Source, "engine:") || effects && t.ReadOnly {
					continue
				}
				calls = append(calls, Call{Key: prefix + own + ".c" + strconv.Itoa(j+1), Tool: c.Name, Arguments: c.Arguments, Open: true})
			}
		case *Result:
			at := slices.IndexFunc(calls, func(c Call) bool { return c.Key == s.Key })
			if at < 0 {
				continue
			}
			unknown := b.Error != nil && b.Error.Code == "TOOL_OUTCOME_UNKNOWN"
			if b.By != "" && !unknown {
				calls = slices.Delete(calls, at, at+1) // the tool was not called
				continue
			}
			if calls[at].Open = unknown; b.Arguments != nil {
				calls[at].Arguments = b.Arguments
			}
		case *Question:
			for _, c := range b.Calls {
				if !c.MayHaveHappened {
					asked[c.Key] = true
				}
			}
		case *Answer:
			if !stops(b.Payload) { // then its calls were not made
				clear(asked)
			}
		}
	}
	return slices.DeleteFunc(calls, func(c Call) bool { return c.Open && asked[c.Key] })
}

// body returns the body of an entry as a type.
func (s *Step) body() any {
	return bodyOf(s.Kind, s.Key, s.Body, body(s.Body).object(Payload))
}

// Payload is the field with the answer of a person.
const Payload = "payload"

// stops reports whether a person has stopped the agent with an answer.
func stops(answer body) bool {
	if answer.text("decision") == "stop" {
		return true
	}
	for _, v := range answer.object("calls") {
		if body(object(v)).text("decision") == "stop" {
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

// The fields of the entry that marks a failure. SeamConfig is SeamCurrent if it continues with the current
// configuration.
const (
	SeamCode, SeamMessage   = "code", "message"
	SeamConfig, SeamCurrent = "agentConfig", "current"
)

// Seam returns the recorded form of that entry, the n-th of its attempt. current asks for the current configuration.
func Seam(n int, code, message string, current bool) map[string]any {
	step := SeamBody(code, message, current)
	step["key"], step["kind"], step["n"] = "0", Continued, float64(n)
	return step
}

// SeamBody returns the body of that entry.
func SeamBody(code, message string, current bool) map[string]any {
	body := map[string]any{SeamCode: code, SeamMessage: problem.Excerpt(strings.ToValidUTF8(message, "\uFFFD"), problem.MaxText)}
	if current {
		body[SeamConfig] = SeamCurrent
	}
	return body
}
