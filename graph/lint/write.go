package lint

import (
	"fmt"
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/state"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// assigned holds what a program gives against the key of the state that it is assigned to.
func (l *linter) assigned(s definition.Source, key string, out *shape) {
	declared := l.state.declared.members[key]
	if declared == nil {
		declared = l.state.declared.rest
		if declared == nil {
			l.warn(problem.StateAssignment, s.Pointer, s.Node, fmt.Sprintf("state_schema has no property %q", clip(key)),
				suggest.DidYouMean(key, l.state.declared.names()))
			return
		}
	}
	switch l.state.reducers[key] {
	case "", state.Overwrite:
	case state.Append:
		// A list is added element by element, any other value as one.
		if declared.kinds&array == 0 || out.unsure {
			return
		}
		declared = declared.items
		if out.kinds == array {
			out = out.items
		} else if out.kinds&array != 0 {
			return
		}
	default:
		return
	}
	l.fits(problem.StateAssignment, s, fmt.Sprintf("%q", clip(key)), "state_schema", out, declared)
}

// fits reports a value that breaks its schema whatever the state holds.
func (l *linter) fits(code problem.Code, s definition.Source, what, schema string, out, declared *shape) {
	if objection, hint := misfit(out, declared, 0); objection != "" {
		l.warn(code, s.Pointer, s.Node, fmt.Sprintf("%s gets a value that does not fit: %s, where %s allows %s", what, objection, schema, hint.allowed), hint.text)
	}
}

// allowance says what a schema allows, and what was probably meant.
type allowance struct{ allowed, text string }

// misfit says what of a value cannot fit into a declared shape, "" if it may.
func misfit(out, declared *shape, depth int) (string, allowance) {
	switch {
	case out.unsure || declared.unsure || out.kinds == nothing || depth > maxDepth:
	case out.kinds&declared.kinds == nothing:
		return "it is " + out.kinds.String(), allowance{allowed: declared.kinds.String()}
	case out.kinds == text && len(out.texts) == 1 && declared.texts != nil:
		if value := out.texts[0]; !slices.Contains(declared.texts, value) {
			return fmt.Sprintf("it is %q", clip(value)), allowance{quoted(declared.texts), suggest.DidYouMean(value, declared.texts)}
		}
	case out.kinds == object && out.rest == nil:
		for _, name := range out.names() {
			inner := declared.members[name]
			if inner == nil && declared.rest == nil && declared.kinds == object {
				return fmt.Sprintf("it has the member %q", clip(name)),
					allowance{"only " + quoted(declared.names()), suggest.DidYouMean(name, declared.names())}
			}
			if inner == nil {
				continue
			}
			if objection, hint := misfit(out.members[name], inner, depth+1); objection != "" {
				return fmt.Sprintf("at %s %s", clip(name), objection), hint
			}
		}
	}
	return "", allowance{}
}

// assignedKeys warns of keys that a set_state node writes, nothing reads, and that are like one that is declared.
func (l *linter) assignedKeys() {
	if l.state.declared.rest == nil {
		return // what is not declared has been reported
	}
	names := l.state.declared.names()
	mentioned := l.mentioned()
	for _, n := range l.program.Nodes {
		if n.SetState == nil {
			continue
		}
		for i := range n.SetState.Assignments {
			key := n.SetState.Assignments[i].Key
			if l.state.declared.members[key] != nil || mentioned.mention(key) {
				continue
			}
			if near := suggest.Nearest(key, names); near != "" && misspelt(key, near) {
				pointer := nodePointer(n) + "/config/assignments/" + jsonvalue.EscapePointer(key)
				l.warn(problem.StateAssignment, pointer, n, fmt.Sprintf("state_schema has no property %q, and nothing reads it", clip(key)), suggest.Hint(near))
			}
		}
	}
}
