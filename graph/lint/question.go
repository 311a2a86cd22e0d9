package lint

import (
	"fmt"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// blindQuestions warns of interrupts that show nothing of the run: whoever answers sees the same words whatever has happened.
func (l *linter) blindQuestions() {
	for _, n := range l.program.Nodes {
		q := n.Interrupt
		if q == nil || q.Show != nil || q.Prompt == "" || q.Template != nil && len(q.Template.Programs()) > 0 || !l.hasToShow(n) {
			continue
		}
		l.warn(problem.QuestionShowsNothing, nodePointer(n), n, fmt.Sprintf("the question of %q shows nothing of what it is about", clip(n.ID)),
			`write beside config what the person has to see, such as "show": ".draft", and add "templates" to the uses of x-workflows-engine`)
	}
}

// hasToShow reports whether a run has anything to show besides the answer to this question.
func (l *linter) hasToShow(asks *definition.Node) bool {
	answer := schemaShape(asks.Config["resume_schema"]).members
	for name := range l.state.declared.members {
		if answer[name] == nil {
			return true
		}
	}
	for _, n := range l.program.Nodes {
		switch {
		case n == asks:
		case external(n), len(l.writesOf(n)) > 0, len(schemaShape(n.Config["input_schema"]).members) > 0:
			return true
		}
	}
	return false
}
