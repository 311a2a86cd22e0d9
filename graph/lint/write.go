package lint

import (
	"fmt"
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// assigned compares the output of a program with the state's key that it is assigned to.
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
	case "", definition.ReducerOverwrite:
	case definition.ReducerAppend:
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

// fits reports whether a value may fit its schema, or nil, and warns of one that breaks it whatever the state holds.
func (l *linter) fits(code problem.Code, s definition.Source, what, schema string, out, declared *shape) bool {
	if declared == nil {
		return true
	}
	m := misfitOf(out, declared, 0)
	if m != nil {
		message := fmt.Sprintf("%s gets a value that does not fit: %s, where %s allows %s", what, m.found, schema, m.allowed)
		l.warn(code, s.Pointer, s.Node, message, m.hint)
	}
	return m == nil
}

// answers warns of members of answers that fit either resume_schema or state_schema, but never both. An answer replaces members whatever
// their reducers.
func (l *linter) answers() {
	for _, n := range l.program.Nodes {
		if n.Type != definition.Interrupt {
			continue
		}
		answer := schemaShape(n.Config["resume_schema"])
		for _, name := range answer.names() {
			declared := l.state.declared.members[name]
			if declared == nil {
				continue
			}
			if m := misfitOf(answer.members[name], declared, 0); m != nil {
				pointer := nodePointer(n) + "/config/resume_schema/properties/" + jsonvalue.EscapePointer(name)
				message := fmt.Sprintf("no answer can give %q: %s, where state_schema allows %s", clip(name), m.found, m.allowed)
				l.warn(problem.StateInvalid, pointer, n, message, m.hint)
			}
		}
	}
}

// misfit is the part of a value that cannot fit a declared shape: its kind, the allowed kinds, and a suggestion.
type misfit struct{ found, allowed, hint string }

// misfitOf returns nil for a value that may fit.
func misfitOf(out, declared *shape, depth int) *misfit {
	switch {
	case out.unsure || declared.unsure || out.kinds == nothing || depth > maxDepth:
	case out.kinds&declared.kinds == nothing:
		return &misfit{found: "it is " + out.kinds.String(), allowed: declared.kinds.String()}
	case out.kinds == text && len(out.texts) == 1 && declared.texts != nil:
		if value := out.texts[0]; !slices.Contains(declared.texts, value) {
			return &misfit{fmt.Sprintf("it is %q", clip(value)), quoted(declared.texts), suggest.DidYouMean(value, declared.texts)}
		}
	case out.kinds == object && out.rest == nil:
		for _, name := range out.names() {
			inner := declared.members[name]
			if inner == nil && declared.rest == nil && declared.kinds == object {
				names := declared.names()
				return &misfit{fmt.Sprintf("it has the field %q", clip(name)), "only " + quoted(names), suggest.DidYouMean(name, names)}
			}
			if inner == nil {
				continue
			}
			if m := misfitOf(out.members[name], inner, depth+1); m != nil {
				m.found = fmt.Sprintf("at %s %s", clip(name), m.found)
				return m
			}
		}
	}
	return nil
}

// written is a key of the state that a node names for its output.
type written struct{ pointer, key string }

// writtenKeys are the keys that a node writes by name.
func writtenKeys(n *definition.Node) []written {
	var keys []written
	at := nodePointer(n)
	if n.SetState != nil {
		for i := range n.SetState.Assignments {
			key := n.SetState.Assignments[i].Key
			keys = append(keys, written{at + "/config/assignments/" + jsonvalue.EscapePointer(key), key})
		}
	}
	for i, k := range n.Catches {
		switch {
		case k.As == "":
		case n.Parallel != nil: // whose on_timeout is the first of them
			keys = append(keys, written{at + "/catch", k.As})
		default:
			keys = append(keys, written{fmt.Sprintf("%s/catch/%d/as", at, i), k.As})
		}
	}
	if n.Map != nil && n.Map.Collect != "" {
		keys = append(keys, written{at + "/map/collect", n.Map.Collect})
	}
	if n.Map != nil && n.Map.FailedAs != "" {
		keys = append(keys, written{at + "/map/tolerate/as", n.Map.FailedAs})
	}
	if n.Loop != nil && n.Loop.Counter != "" {
		keys = append(keys, written{at + "/loop/counter", n.Loop.Counter})
	}
	return keys
}

// assignedKeys warns of keys that a node writes, nothing reads, and that are like one that is declared.
func (l *linter) assignedKeys() {
	if l.state.declared.rest == nil {
		return // what is not declared has been reported
	}
	names := l.state.declared.names()
	for _, n := range l.program.Nodes {
		for _, w := range writtenKeys(n) {
			if l.state.declared.members[w.key] != nil || l.mentioned.mention(w.key) || !l.compared.take(len(names)) {
				continue
			}
			if near := suggest.Nearest(w.key, names); near != "" && misspelt(w.key, near) {
				message := fmt.Sprintf("state_schema has no property %q, and nothing reads it", clip(w.key))
				l.warn(problem.StateAssignment, w.pointer, n, message, suggest.Hint(near))
			}
		}
	}
}
