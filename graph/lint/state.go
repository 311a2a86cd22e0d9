package lint

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// stateShapes are the shapes of the state before each node. The fields of the state_schema are sure: each change is validated
// against it. Of other members only the names are known that something in the document writes.
type stateShapes struct {
	// declared is the state_schema, whole with all names that are known, closed is the same where no node can have written others.
	declared, whole, closed *shape
	reducers                map[string]definition.Reducer
	// unnamed are the nodes that can follow a node that writes fields of any name; nil if the input of a run may have any.
	unnamed map[*definition.Node]bool
	// as are the members that the programs of maps and of compensations find in the state besides, by node.
	as map[*definition.Node]map[string]*shape
	// last is the state as a node of as sees it. Only one is kept: there may be thousands of nodes, each with thousands of members.
	last struct {
		node  *definition.Node
		state *shape
	}
}

// caughtError and failedItem are the values that a catch and a map add to the state; compensated is the value that a compensation finds.
var (
	compensated = fixed(map[string]*shape{"node": only(text), "output": anything, "item": anything})
	caughtError = fixed(map[string]*shape{
		"code": only(text | null), "message": only(text), "node": only(text), "attempts": only(number), "data": only(object | null),
	})
	failedItem = fixed(map[string]*shape{
		"index": only(number), "code": only(text | null), "message": only(text), "node": only(text), "attempts": only(number), "data": only(object | null),
	})
)

func (l *linter) newStateShapes() *stateShapes {
	schema := l.stateSchema()
	s := &stateShapes{declared: schemaShape(schema).limited(object), reducers: definition.Reducers(schema), as: map[*definition.Node]map[string]*shape{}}
	if s.declared.kinds == nothing {
		s.declared = only(object)
	}
	w := l.writers()
	s.whole = s.with(w.keys)
	first := budget(maxWork) // so that the second pass has its own
	// The values of assignments follow from the state before; one pass is enough to know their names.
	for _, source := range l.sources {
		if key := assignedKey(source); key != "" && s.declared.members[key] == nil {
			quiet := l.walker(source.Pointer, source.Node)
			quiet.quiet++
			quiet.budget = &first
			w.add(key, quiet.query(source.Program.Tree(), s.whole))
		}
	}
	s.whole = s.with(w.keys)
	s.whole.sorted = s.whole.names()
	s.closed = s.whole
	if s.whole.rest != nil {
		closed := *s.whole
		closed.rest = nil
		s.closed = &closed
	}
	if compensated := l.compensations(s); w.inputClosed && !compensated { // compensations write after rollbacks, to which no edges lead
		s.unnamed = map[*definition.Node]bool{}
		for n := range l.program.After(w.free) {
			s.unnamed[n] = true
		}
	}
	return s
}

// compensations notes the extra fields that compensations find in the state. It reports whether there are any.
func (l *linter) compensations(s *stateShapes) bool {
	found := false
	for _, n := range l.program.Nodes {
		if n.Compensation == nil {
			continue
		}
		found = true
		if n.Compensation.As != "" {
			found := compensated.doubted()
			if s.declared.members[n.Compensation.As] != nil {
				found = anything // the state's own, in the compensation of a node that shares it under another name
			}
			s.note(n.Compensation.Node, n.Compensation.As, found)
		}
	}
	return found
}

// with is the declared state with members that something writes as well. A declared object without declared members is
// known by those that are written.
func (s *stateShapes) with(written map[string]*shape) *shape {
	out := *s.declared
	out.unsure = false
	out.members = maps.Clone(s.declared.members)
	if out.members == nil {
		out.members = map[string]*shape{}
	}
	for key, w := range written {
		declared := out.members[key]
		switch {
		case declared == nil:
			out.members[key] = w.doubted()
		case declared.kinds&object != 0 && len(declared.members) == 0 && declared.rest != nil && w.kinds&object != 0:
			known := *declared
			known.fixed = w.fixed
			known.members = make(map[string]*shape, len(w.members))
			for name, member := range w.members {
				known.members[name] = member.doubted()
			}
			out.members[key] = &known
		}
	}
	return &out
}

// at is the state as the programs of a node see it.
func (s *stateShapes) at(n *definition.Node) *shape {
	before := s.whole
	if s.unnamed != nil && !s.unnamed[n] {
		before = s.closed
	}
	if len(s.as[n]) == 0 {
		return before
	}
	if s.last.node != n {
		in := *before
		in.members = maps.Clone(before.members)
		maps.Copy(in.members, s.as[n])
		s.last.node, s.last.state = n, &in
	}
	return s.last.state
}

// item notes an item of a map, which the other programs of its node find in the state.
func (s *stateShapes) item(n *definition.Node, item *shape) { s.note(n, n.Map.As, item) }

// note notes a member that the programs of a node find in the state.
func (s *stateShapes) note(n *definition.Node, name string, value *shape) {
	if s.as[n] == nil {
		s.as[n] = map[string]*shape{}
	}
	s.as[n][name] = value
	s.last.node = nil
}

// having is a shape whose member has another shape.
func (s *shape) having(name string, value *shape) *shape {
	out := *s
	if out.members = maps.Clone(s.members); out.members == nil {
		out.members = map[string]*shape{}
	}
	out.members[name] = value
	return &out
}

// writers collects the keys of the state that nodes write, and their shapes.
type writers struct {
	keys map[string]*shape
	// free are the nodes that may write any key.
	free []*definition.Node
	// inputClosed is set if the input of a run can have no other members than its schema declares.
	inputClosed bool
	budget      *budget
}

func (w *writers) add(key string, s *shape) {
	if before := w.keys[key]; before != nil {
		s = union(before, s, w.budget, 0)
	}
	w.keys[key] = s
}

func (w *writers) addAll(s *shape) {
	for name, member := range s.members {
		w.add(name, member)
	}
}

func (l *linter) writers() *writers {
	w := &writers{keys: map[string]*shape{}, budget: &l.budget}
	for _, n := range l.program.Nodes {
		for _, c := range n.Catches {
			if c.As != "" {
				w.add(c.As, caughtError)
			}
		}
		if k := n.Compensation; k != nil && k.As != "" {
			w.add(k.As, compensated)
		}
		if n.Loop != nil && n.Loop.Counter != "" {
			w.add(n.Loop.Counter, only(number))
		}
		if demo, ok := n.Metadata["demo_output"].(map[string]any); ok && n.Map == nil {
			for key := range demo {
				w.add(key, anything)
			}
		}
		out := l.output(n, w)
		switch {
		case n.Map != nil:
			w.mapped(n.Map, out)
		case out != nil:
			w.addAll(out)
			if out.rest != nil || out.unsure {
				w.free = append(w.free, n)
			}
		}
	}
	return w
}

// output returns the shape of the fields that a node adds to the state, or nil. The fields of a start node and of assignments
// are noted in w.
func (l *linter) output(n *definition.Node, w *writers) *shape {
	t := n.Type.Info()
	switch t.Output {
	case definition.OutputNone:
		return nil
	case definition.OutputInput:
		s := schemaShape(n.Config[t.Schema])
		w.inputClosed = n.Start.InputSchema != nil && s.rest == nil && !s.unsure
		w.addAll(s)
		return nil
	case definition.OutputAssigned:
		for i := range n.SetState.Assignments {
			a := &n.SetState.Assignments[i]
			if a.JQ != nil {
				w.add(a.Key, anything)
			} else {
				w.add(a.Key, shapeOf(a.Literal, &l.budget, 0))
			}
		}
		return nil
	case definition.OutputDeclared:
		if n.Activity == nil || n.Activity.OutputSchema != nil {
			return schemaShape(n.Config[t.Schema])
		}
	case definition.OutputChild:
		switch c := l.child(n); {
		case c == nil:
		case n.Map != nil:
			return c.result
		default:
			return c.final
		}
	case definition.OutputSignal:
		if n.Wait.Kind != definition.WaitSignal {
			return nil
		}
	}
	return anything
}

// external reports whether the output of a node comes from outside the definition: an executor, a subworkflow or a signal.
func external(n *definition.Node) bool {
	switch n.Type.Info().Output {
	case definition.OutputNone, definition.OutputInput, definition.OutputAssigned:
		return false
	case definition.OutputSignal:
		return n.Wait.Kind == definition.WaitSignal
	}
	return n.Interrupt == nil // its answer has a schema
}

func (w *writers) mapped(m *definition.Map, out *shape) {
	w.add(m.As, anything)
	if m.FailedAs != "" {
		w.add(m.FailedAs, listOf(failedItem))
	}
	if m.Collect != "" {
		w.add(m.Collect, listOf(out.orNull()))
	}
}

func nodePointer(n *definition.Node) string { return "/nodes/" + strconv.Itoa(n.Index) }

// keyOfAssignment returns the state's key for the program at a pointer, "" if it is not an assignment.
func keyOfAssignment(node, pointer string) string {
	key, ok := strings.CutPrefix(pointer, node+"/config/assignments/")
	if !ok {
		return ""
	}
	key, ok = strings.CutSuffix(key, "/jq")
	if !ok || slices.Contains([]byte(key), '/') {
		return ""
	}
	return jsonvalue.UnescapePointer(key)
}
