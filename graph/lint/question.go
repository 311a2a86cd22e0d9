package lint

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// blindQuestions warns of interrupts that select nothing of the state: the person sees the same words whatever has happened, beside the whole
// state so far.
func (l *linter) blindQuestions() {
	for _, n := range l.program.Nodes {
		q := n.Interrupt
		if q == nil || q.Show != nil || q.Prompt == "" || q.Template != nil && len(q.Template.Programs()) > 0 {
			continue
		}
		show, found := l.toShow(n)
		if !found {
			continue
		}
		l.warn(problem.QuestionShowsNothing, nodePointer(n), n, fmt.Sprintf("the question of %q shows the whole state, not its subject", clip(n.ID)),
			fmt.Sprintf(`beside config, add the values that the person must see, such as "show": %q, and "templates" to the uses of x-workflows-engine`, show))
	}
}

// plainKey matches the names of state properties that jq reads as .NAME.
var plainKey = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// toShow returns a jq program for what a run can show besides the answer to this question: a declared property of the state, else the whole
// state. It reports false if there is nothing to show.
func (l *linter) toShow(asks *definition.Node) (string, bool) {
	answer := schemaShape(asks.Config["resume_schema"]).members
	declared := false
	for _, name := range slices.Sorted(maps.Keys(l.state.declared.members)) {
		if answer[name] != nil {
			continue
		}
		if declared = true; plainKey.MatchString(name) {
			return "." + name, true
		}
	}
	if declared {
		return ".", true
	}
	for _, n := range l.program.Nodes {
		switch {
		case n == asks:
		case external(n), len(l.writesOf(n)) > 0, len(schemaShape(n.Config["input_schema"]).members) > 0:
			return ".", true
		}
	}
	return "", false
}
