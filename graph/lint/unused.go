package lint

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/itchyny/gojq"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// unusedKeys warns of properties of the state_schema that nothing reads or writes. It is silent if something may read or write
// any: an activity, whose host sees the state; a signal, an agent or a subworkflow, whose result becomes part of it; a program that takes
// the state as a whole; a run whose result is the state. Fields of the input's schema are for people who view the run.
func (l *linter) unusedKeys() {
	schema := l.stateSchema()
	properties, _ := schema["properties"].(map[string]any)
	used := map[string]bool{}
	required, _ := schema["required"].([]any)
	for _, name := range required {
		if name, ok := name.(string); ok {
			used[name] = true
		}
	}
	for _, n := range l.program.Nodes {
		switch {
		case external(n):
			return
		case n.End != nil && n.End.OutputMapping.Source() == ".":
			return
		}
		for _, c := range n.Catches {
			used[c.As] = true
		}
		if n.Loop != nil {
			used[n.Loop.Counter] = true
		}
		for _, schema := range []string{"input_schema", "resume_schema"} {
			for name := range schemaShape(n.Config[schema]).members {
				used[name] = true
			}
		}
		if n.SetState != nil {
			for i := range n.SetState.Assignments {
				used[n.SetState.Assignments[i].Key] = true
			}
		}
	}
	for _, s := range l.sources {
		if takesWhole(s.Program.Tree(), 0) {
			return
		}
	}
	for _, name := range jsonvalue.Keys(properties) {
		if !used[name] && !l.mentioned.mention(name) {
			l.warn(problem.StateKeyUnused, "/state_schema/properties/"+jsonvalue.EscapePointer(name), nil,
				fmt.Sprintf("nothing reads or writes %q", clip(name)), "remove it, or name it in the input_schema of the start node")
		}
	}
}

// words are the words of the programs of a definition: those of names and those in texts.
type words map[string]bool

func wordsOf(sources []definition.Source) words {
	set := words{}
	for _, s := range sources {
		for _, word := range split(s.Program.Tree().String()) {
			set[word] = true
		}
	}
	return set
}

// mention reports whether a program may name a key.
func (w words) mention(key string) bool {
	for _, word := range split(key) {
		if !w[word] {
			return false
		}
	}
	return true
}

func split(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r < utf8.RuneSelf && r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// takesWhole reports whether a program, whose input is the state, may take more of it than the members that it names.
func takesWhole(q *gojq.Query, depth int) bool {
	switch {
	case q == nil:
		return false
	case depth > maxTermDepth || len(q.FuncDefs) > 0:
		return true
	case q.Term != nil:
		return takesWholeTerm(q.Term, depth+1)
	case q.Op == gojq.OpPipe && q.Patterns == nil:
		return takesWhole(q.Left, depth+1) // what stands behind has another input
	}
	return takesWhole(q.Left, depth+1) || takesWhole(q.Right, depth+1)
}

func takesWholeTerm(t *gojq.Term, depth int) bool {
	whole := func(q *gojq.Query) bool { return takesWhole(q, depth) }
	switch t.Type {
	case gojq.TermTypeIdentity:
		if len(t.SuffixList) == 0 || t.SuffixList[0].Index == nil || !named(t.SuffixList[0].Index) {
			return true
		}
	case gojq.TermTypeIndex:
		if !named(t.Index) {
			return true
		}
	case gojq.TermTypeFunc:
		switch t.Func.Name {
		case "now", "empty":
		case "range", "limit", "isempty":
			if slices.ContainsFunc(t.Func.Args, whole) {
				return true
			}
		default:
			if t.Func.Name[0] != '$' {
				return true
			}
		}
	case gojq.TermTypeIf:
		if t.If.Else == nil {
			return true
		}
	case gojq.TermTypeRecurse, gojq.TermTypeFormat, gojq.TermTypeForeach, gojq.TermTypeLabel:
		return true
	}
	return slices.ContainsFunc(expr.Parts(t), func(part expr.Part) bool { return part.SameInput && whole(part.Query) })
}

// named reports whether a path leads to a member whose name is written out.
func named(i *gojq.Index) bool {
	_, literally := literal(i.Start)
	return i.Name != "" || i.Str != nil && i.Str.Queries == nil || literally && !i.IsSlice
}
