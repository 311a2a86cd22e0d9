package lint

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/itchyny/gojq"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// programs warns of programs that compile and are probably mistaken (spec: definition, 11.1 and 14.1), whatever the state is. It looks at
// the parsed program and is silent in doubtful cases.
func (l *linter) programs() {
	stateKey := l.hasStateKey()
	for _, s := range l.sources {
		w := jqWalk{}
		w.query(s.Program.Tree(), true)
		if w.stateRoot && !stateKey {
			l.warn(problem.ExpressionStateRoot, s.Pointer, s.Node,
				"the program reads .state, but the state itself is the root", `write ".name" instead of ".state.name"`)
		}
		for _, regex := range w.regexes {
			if message, hint := regexDifference(regex); message != "" {
				l.warn(problem.ExpressionRegex, s.Pointer, s.Node, message, hint)
			}
		}
		if isCondition(s) {
			l.condition(s, w.clock)
		}
		for _, condition := range w.conditions {
			l.alwaysTrue(s, condition)
		}
	}
}

// isCondition reports whether a program is a condition of a switch or of its loop.
func isCondition(s definition.Source) bool {
	at, inside := strings.CutPrefix(s.Pointer, nodePointer(s.Node))
	return inside && s.Node.Switch != nil &&
		(strings.HasPrefix(at, "/config/cases/") && strings.HasSuffix(at, "/when") || at == "/loop/while" || at == "/loop/until")
}

// condition warns of a condition that is always true, of one that may put out several values, and of one that reads the clock: a replay sees the recorded
// time, but a fork moves the times of its past, and is rejected if that leads elsewhere.
func (l *linter) condition(s definition.Source, clock bool) {
	l.alwaysTrue(s, s.Program.Tree())
	if clock {
		l.warn(problem.ExpressionClock, s.Pointer, s.Node,
			"the condition reads the clock with now: a fork evaluates it at its own time, and is rejected if that leads elsewhere",
			"pass the time in with the input of the run, or take it from an activity")
	}
	if several(s.Program.Tree()) {
		l.warn(problem.ExpressionOutputs, s.Pointer, s.Node,
			"the condition may put out several values; together they are an array, which is always true",
			`write a program with one value, for example any(.tags[]; . == "x")`)
	}
}

// hasStateKey reports whether the state may well have a key named state.
func (l *linter) hasStateKey() bool {
	properties, _ := l.stateSchema()["properties"].(map[string]any)
	if _, declared := properties["state"]; declared {
		return true
	}
	return slices.ContainsFunc(l.program.Nodes, func(n *definition.Node) bool {
		return n.SetState != nil && slices.ContainsFunc(n.SetState.Assignments, func(a definition.Assignment) bool { return a.Key == "state" })
	})
}

// regexDifference returns the fault of a regular expression in a jq program, or a difference between engines (spec: definition, 14.3);
// both texts are empty where they agree.
func regexDifference(regex string) (message, hint string) {
	switch {
	case !expr.ValidRegexp(regex):
		return fmt.Sprintf("invalid regular expression %q", clip(regex)), "check brackets, repeats and escapes"
	case strings.HasPrefix(regex, "(?i)") && !isASCII(regex):
		return fmt.Sprintf("in the regular expression %q, engines differ over letter case beyond ASCII", clip(regex)), ""
	default:
		return "", ""
	}
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r > unicode.MaxASCII }) < 0
}

// jqWalk looks through a program.
type jqWalk struct {
	// stateRoot: some path begins with .state.<name>; clock: now is called.
	stateRoot, clock bool
	// regexes are the regular expressions that are written out.
	regexes []string
	// conditions are those of if, select, any and all.
	conditions []*gojq.Query
}

// query checks a query; atRoot is set while its input is the state.
func (w *jqWalk) query(q *gojq.Query, atRoot bool) {
	if q == nil {
		return
	}
	for _, f := range q.FuncDefs {
		w.query(f.Body, false)
	}
	w.term(q.Term, atRoot)
	w.query(q.Left, atRoot)
	// Behind a pipe the input is another one, unless the pipe belongs to a binding.
	w.query(q.Right, atRoot && (q.Op != gojq.OpPipe || q.Patterns != nil))
}

func (w *jqWalk) term(t *gojq.Term, atRoot bool) {
	if t == nil {
		return
	}
	if atRoot && t.Type == gojq.TermTypeIndex && t.Index.Name == "state" && len(t.SuffixList) > 0 && t.SuffixList[0].Index != nil {
		w.stateRoot = true
	}
	w.function(t.Func)
	if t.Type == gojq.TermTypeIf {
		w.conditions = append(w.conditions, t.If.Cond)
		for _, e := range t.If.Elif {
			w.conditions = append(w.conditions, e.Cond)
		}
	}
	for _, part := range expr.Parts(t) {
		w.query(part.Query, atRoot && part.SameInput)
	}
}

// function checks a call.
func (w *jqWalk) function(f *gojq.Func) {
	if f == nil {
		return
	}
	if f.Name == "now" && len(f.Args) == 0 {
		w.clock = true
	}
	switch f.Name {
	case "select", "any", "all":
		if n := len(f.Args); n > 0 {
			w.conditions = append(w.conditions, f.Args[n-1])
		}
	}
	if !takesRegex(f) {
		return
	}
	if regex, ok := literalText(f.Args[0]); ok {
		flags := ""
		if last := f.Args[len(f.Args)-1]; len(f.Args) > 1 {
			flags, _ = literalText(last)
		}
		if strings.Contains(flags, "i") && f.Name != "split" {
			regex = "(?i)" + regex
		}
		w.regexes = append(w.regexes, regex)
	}
}

func takesRegex(f *gojq.Func) bool {
	switch f.Name {
	case "test", "match", "capture", "scan", "splits", "sub", "gsub":
		return len(f.Args) > 0
	case "split":
		return len(f.Args) == 2
	}
	return false
}

// literalText returns the text of a query that is just a string without interpolation.
func literalText(q *gojq.Query) (string, bool) {
	if q.Term == nil || q.Term.Type != gojq.TermTypeString || q.Term.Str.Queries != nil || q.Term.SuffixList != nil {
		return "", false
	}
	return q.Term.Str.Str, true
}

// generators are functions that usually put out several values.
var generators = map[string]bool{
	"recurse": true, "range": true, "splits": true, "scan": true, "paths": true, "leaf_paths": true,
	"combinations": true, "while": true, "repeat": true, "tostream": true,
}

// several reports whether a query obviously may put out more than one value.
func several(q *gojq.Query) bool {
	if q == nil || q.FuncDefs != nil {
		return false
	}
	switch q.Op {
	case gojq.OpComma:
		return true
	case gojq.OpModify, gojq.OpUpdateAdd, gojq.OpUpdateSub, gojq.OpUpdateMul, gojq.OpUpdateDiv, gojq.OpUpdateMod,
		gojq.OpUpdateAlt, gojq.OpAssign:
		return several(q.Right)
	}
	return several(q.Left) || several(q.Right) || severalTerm(q.Term)
}

func severalTerm(t *gojq.Term) bool {
	if t == nil {
		return false
	}
	if slices.ContainsFunc(t.SuffixList, func(s *gojq.Suffix) bool { return s.Iter }) {
		return true
	}
	switch t.Type {
	case gojq.TermTypeRecurse, gojq.TermTypeForeach:
		return true
	case gojq.TermTypeFunc:
		return generators[t.Func.Name]
	}
	return slices.ContainsFunc(expr.Parts(t), func(part expr.Part) bool { return part.Multiplies && several(part.Query) })
}
