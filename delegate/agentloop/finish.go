package agentloop

import (
	"fmt"
	"maps"
	"strings"

	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
)

// finished handles an early answer. Its text counts, calls in it do not; one that is cut is continued once.
func (a *agent) finished(text string, cut, filtered bool) {
	if filtered {
		text = ""
	}
	a.part += text
	if cut && a.cuts == 0 {
		a.cuts++
		a.raised = true
		if text != "" {
			a.talk.say(chat.Assistant, text)
		}
		a.talk.say(chat.User, goOnText)
		a.counted = a.talk.bytes
		return
	}
	a.answerPart()
}

// answerPart ends a finishing agent with the text that it has, or with the code of the budget that is used up.
func (a *agent) answerPart() {
	if isBlank(a.part) {
		a.failBudget("the model gave no final answer")
		return
	}
	if a.cfg.Output == nil {
		a.endWith(map[string]any{"text": a.part})
		return
	}
	v, _, wrong := a.read(a.part)
	if wrong != "" {
		a.failBudget("the final answer cannot be used: " + wrong)
		return
	}
	a.endWith(v)
}

// noRoom ends a finishing agent whose budgets have no room for another request.
func (a *agent) noRoom() {
	if !isBlank(a.part) {
		a.answerPart()
		return
	}
	a.failBudget("there is no room for a final answer")
}

// failBudget ends a finishing agent with the code of the budget that is used up.
func (a *agent) failBudget(why string) {
	a.req, a.phase = nil, ready
	a.failWith(a.finishing, budgetCodes[a.finishing], true, fmt.Sprintf("the budget of %s is used up after %d turns and %d tool calls; %s",
		strings.ReplaceAll(a.finishing, "_", " "), a.spent.Turns, a.spent.ToolCalls, problem.Excerpt(why, problem.MaxText)))
}

// marked is an answer that says that it is partial, as far as its schema allows.
func (a *agent) marked(output any) any {
	answer, ok := output.(map[string]any)
	if !ok {
		return output
	}
	answer = maps.Clone(answer)
	if a.cfg.Output == nil {
		answer["partial"], answer["partial_reason"] = true, string(budgetCodes[a.finishing])
		return answer
	}
	if a.cfg.Output.PartialAs == "" {
		return output
	}
	answer[a.cfg.Output.PartialAs] = true
	if schema, err := jsonschema.Compile(a.cfg.Output.Schema); err != nil || len(schema.Validate(answer)) > 0 {
		return output
	}
	return answer
}

// CheckPartial validates the field that marks a partial answer; "" means valid.
func (o *Output) CheckPartial() string {
	if o == nil || o.PartialAs == "" {
		return ""
	}
	properties, _ := o.Schema["properties"].(map[string]any)
	member, declared := properties[o.PartialAs]
	switch {
	case !declared && o.Schema["additionalProperties"] == false:
		return fmt.Sprintf("the schema has no member %q; declare it in properties, of type boolean", o.PartialAs)
	case declared:
		schema, isSchema := member.(map[string]any)
		if compiled, err := jsonschema.Compile(schema); member == false || isSchema && err == nil && len(compiled.Validate(true)) > 0 {
			return fmt.Sprintf("the schema does not allow true as its member %q", o.PartialAs)
		}
	}
	return ""
}
