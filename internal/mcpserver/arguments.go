package mcpserver

import (
	"cmp"
	"math"
	"slices"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/internal/agentsteps"
	"github.com/workflows-engine/workflows-engine/internal/calls"
)

// arguments reads the arguments of one call of a tool.
type arguments struct {
	*calls.Arguments
	// progress reports events while the call waits; nil if the client sent no token.
	progress func(graph.Progress)
	hangup   hangup
	// client is the session of the call, tool its tool, raw its arguments as they came.
	client any
	tool   string
	raw    []byte
	// asking holds the call's part in asking the person; reporter sends its progress. Both may be nil.
	asking   *asking
	reporter *reporter
	// usual is the default size of answers; room is answer_bytes, 0 if absent.
	usual, room int
	// since is since_seq, 0 if absent.
	since int64
	// turn ends the call's turn, enough lets another call be at work; may be nil.
	turn, enough func()
}

// applied is called when the call's change is made and only the wait for the run, or for a person, is left.
func (a *arguments) applied() {
	for _, over := range []func(){a.enough, a.turn} {
		if over != nil {
			over()
		}
	}
}

// readArguments takes the raw arguments of a call, which may be absent. A definition is left to arguments.definition.
func readArguments(raw []byte, t *tool) *arguments {
	names := t.names()
	a := &arguments{Arguments: calls.Read(raw, names, t.inner, nil)}
	if len(raw) == 0 || a.Broken != nil {
		return a
	}
	// Options of the answer are checked here as well: a rejected argument must not follow a change that was made.
	if slices.Contains(names, answerBytesArgument.Name) {
		room, _ := a.Get(answerBytesArgument.Name).Whole(MinAnswerBytes, math.MaxInt32)
		a.room = int(room)
	}
	if slices.Contains(names, calls.SinceArgument.Name) {
		a.since, _ = a.Get(calls.SinceArgument.Name).Whole(1, math.MaxInt32)
	}
	return a
}

// Placeholders that are the same for every run.
const (
	blankDefinition = "<object: the definition of this run>"
	blankPayload    = "<object: what the signal brings, {} if nothing; it is merged into the state>"
)

// blankResult is the placeholder for the result of an activity or delegate.
func blankResult(p *view.Pending) string {
	if p.OutputSchema != nil {
		return "<object that fits output_schema>"
	}
	return "<object: " + cmp.Or(definition.Type(p.NodeType).Info().Performer.Result, "the result, {} if there is none") + ">"
}

func blankAnswer(p *view.Pending) string {
	switch {
	case agentsteps.Approval(p.Show) != nil:
		return "<object: the person's decision>"
	case p.ResumeSchema == nil:
		return "<object: the person's answer>"
	}
	return "<object that fits resume_schema>"
}

// definition reads the argument that is a definition; see calls.Arguments.
func (s *server) definition(a *arguments, invalid problem.Code) *definition.Document {
	return a.Definition(s.ReadDefinition, invalid)
}
