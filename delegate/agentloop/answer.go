package agentloop

import (
	"fmt"
	"strings"

	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// maxCuts is how often a model is told to go on with a cut answer.
const maxCuts = 3

const goOnText = "[engine] Your message was cut because it is too long. Go on exactly where it ends, without repeating anything. If you meant to call tools, call them now."

// wasCut takes an answer that maxTokens has cut. Calls in it are not made: the last one may be half. The first time the same is asked with
// the ceiling; after that the model is told to go on.
func (a *agent) wasCut(text string) {
	model := &a.cfg.Models[a.model]
	switch {
	case !a.raised && model.MaxTokensCeiling > model.MaxTokens:
		a.raised = true
	case a.cuts < maxCuts:
		a.cuts++
		a.part += text
		if text != "" {
			a.talk.say(chat.Assistant, text)
		}
		a.talk.say(chat.User, goOnText)
		a.counted = a.talk.bytes
	default:
		a.giveUp(chat.ClassAnswer, problem.AgentOutputCut, fmt.Sprintf("the answer was cut at maxTokens %d times; raise maxTokensCeiling or ask for less", maxCuts+1))
	}
}

// wasEmpty takes a reply without a text and without calls. It is asked for once more.
func (a *agent) wasEmpty() {
	if a.empties++; a.empties > 1 {
		a.giveUp(chat.ClassAnswer, problem.LLMOutputInvalid, "the model gave an empty answer twice")
		return
	}
	a.talk.say(chat.User, "[engine] Your message was empty. Answer, or call a tool.")
}

// withheld takes a reply that a filter of the provider has kept back.
func (a *agent) withheld() {
	code := problem.LLMOutputInvalid
	if a.m.form >= formClasses {
		code = problem.LLMProviderError
	}
	a.giveUp(chat.ClassRefused, code, "the provider withheld the answer")
}

// answer takes a text without calls.
func (a *agent) answer(text string) {
	if a.cfg.Output == nil {
		a.endWith(map[string]any{"text": text})
		return
	}
	v, code, wrong := a.read(text)
	if wrong == "" {
		a.endWith(v)
		return
	}
	if a.repairs < a.cfg.Output.Repairs && a.finishing == "" {
		a.repairs++
		a.answering, a.part = true, ""
		a.talk.say(chat.Assistant, text)
		a.talk.say(chat.User, "[engine] Your answer cannot be used: "+wrong+". Answer again, with nothing but JSON that satisfies the schema.")
		a.counted = a.talk.bytes
		return
	}
	a.giveUp(chat.ClassAnswer, code, "the answer cannot be used: "+wrong)
}

// endWith ends an agent with an answer.
func (a *agent) endWith(output any) {
	if jsonvalue.Size(output, maxResultBytes) > maxResultBytes {
		a.failWith(stopError, problem.AgentOutputCut, false, fmt.Sprintf("the answer is larger than %d bytes", maxResultBytes))
		return
	}
	a.result = &output
}

// read returns the JSON in an answer, or the code and the text of an error.
func (a *agent) read(text string) (any, problem.Code, string) {
	var value any
	found, why := false, ""
	if a.m.form >= formClasses {
		return a.readAny(text)
	}
	for _, candidate := range jsonIn(text) {
		v, losses, err := jsonvalue.DecodeUnique([]byte(candidate))
		switch {
		case jsonvalue.TooDeep([]byte(candidate), jsonvalue.MaxDepth):
			why = "it is nested too deeply"
		case err != nil:
			why = orElse(why, "it is not JSON: "+err.Error())
		case len(losses) > 0:
			why = "it cannot be kept: " + losses[0].Error()
		default:
			value, found = v, true
		}
		if found {
			break
		}
	}
	if !found {
		return nil, problem.AgentOutputParse, problem.Excerpt(why, problem.MaxText)
	}
	schema, err := jsonschema.Compile(a.cfg.Output.Schema)
	if err != nil {
		return nil, problem.AgentOutputSchema, "the output schema does not compile: " + problem.Excerpt(err.Error(), problem.MaxText)
	}
	if violations := schema.Validate(value); len(violations) > 0 {
		return nil, problem.AgentOutputSchema, "it breaks the output schema: " + jsonschema.Text(violations)
	}
	return value, "", ""
}

// readAny returns the JSON in an answer that satisfies the schema, or the code and the text of the error in the likeliest part.
func (a *agent) readAny(text string) (any, problem.Code, string) {
	schema, err := jsonschema.Compile(a.cfg.Output.Schema)
	if err != nil {
		return nil, problem.AgentOutputSchema, "the output schema does not compile: " + problem.Excerpt(err.Error(), problem.MaxText)
	}
	code := problem.AgentOutputParse
	v, wrong := chat.ReadJSON(text, func(part string) (any, string, bool) {
		if jsonvalue.TooDeep([]byte(part), jsonvalue.MaxDepth) {
			return nil, "it is nested too deeply", true
		}
		v, losses, err := jsonvalue.DecodeUnique([]byte(part))
		switch {
		case err != nil:
			return nil, "it is not JSON: " + err.Error(), false
		case len(losses) > 0:
			return nil, "it cannot be kept: " + losses[0].Error(), true
		}
		if violations := schema.Validate(v); len(violations) > 0 {
			return v, brokenSchema + jsonschema.Text(violations), true
		}
		return v, "", true
	}, jsonvalue.Equal)
	switch {
	case wrong == "":
		return v, "", ""
	case strings.HasPrefix(wrong, brokenSchema):
		code = problem.AgentOutputSchema
	default:
		wrong = problem.Excerpt(wrong, problem.MaxText)
	}
	return nil, code, wrong
}

const brokenSchema = "it breaks the output schema: "

// jsonIn returns the parts of an answer that may be JSON: all of it, its only code block, and the text from the first to the last bracket.
func jsonIn(text string) []string {
	text = strings.TrimSpace(text)
	out := []string{text}
	if parts := strings.Split(text, "```"); len(parts) == 3 {
		if _, block, ok := strings.Cut(parts[1], "\n"); ok { // the first line may name the language
			out = append(out, strings.TrimSpace(block))
		}
	}
	if first := strings.IndexAny(text, "{["); first >= 0 {
		end := "}"
		if text[first] == '[' {
			end = "]"
		}
		if last := strings.LastIndex(text, end); last > first {
			out = append(out, text[first:last+1])
		}
	}
	return out
}
