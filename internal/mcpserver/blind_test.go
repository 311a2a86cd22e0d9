package mcpserver_test

import (
	"regexp"
	"strings"
	"testing"
)

// TestABlindModelFinishesAResearch is the first conversation of a model that knows what a host shows it at the start: the names, descriptions
// and arguments of the tools. It wants a research in parallel, guesses a definition, and from then on does only what the answers say.
func TestABlindModelFinishesAResearch(t *testing.T) {
	t.Parallel()
	h := boundedHost(t)
	list, err := h.session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	tools := map[string]object{}
	for _, tool := range list.Tools {
		tools[tool.Name] = properties(tool.InputSchema)
	}
	first := "" // the tool that starts a workflow, by its description
	for _, tool := range list.Tools {
		if contains(tool.Description, "Starts a run of a workflow definition") {
			first = tool.Name
		}
	}
	refusal := h.raw(first, object{"definition": object{"name": "research", "parallel": []any{"web", "papers"}}})
	if refusal.code == "" {
		t.Fatal("the guess was taken")
	}
	guide := regexp.MustCompile(`How to write one: (\w+)`).FindStringSubmatch(refusal.text)
	if guide == nil || tools[guide[1]] == nil {
		t.Fatalf("no guide is named: %s", refusal.text)
	}
	topic := ""
	for _, name := range h.ok(guide[1], nil)["topics"].([]any) {
		if contains(name.(string), "fan-out") {
			topic = name.(string)
		}
	}
	page := h.raw(guide[1], object{"topic": topic}).text
	_, shown, _ := strings.Cut(page, "```yaml\n")
	shown, _, _ = strings.Cut(shown, "```")

	content := h.ok(first, object{"definition": shown, "input": object{"topic": "durable execution"}}) // its second try
	did := map[string]int{}
	for calls := 0; content["status"] != "completed"; calls++ {
		if calls > 10 {
			t.Fatalf("no end: %v", content)
		}
		next := content["next"].(map[string]any)
		args := next["arguments"].(map[string]any)
		for name := range args {
			if tools[next["tool"].(string)][name] == nil {
				t.Errorf("next has an argument %q that %s does not describe", name, next["tool"])
			}
		}
		node, _ := args["node_id"].(string)
		result := object{"findings": []any{"what the tool of " + node + " has found"}}
		if pendingOf(t, content, node)["node_type"] == "llm_call" {
			prompt, _ := pendingOf(t, content, node)["config"].(map[string]any)["system_prompt"].(string)
			answer := regexp.MustCompile(`Answer \{"(\w+)": text`).FindStringSubmatch(prompt)
			if answer == nil {
				t.Fatalf("node %s does not say what to answer: %q", node, prompt)
			}
			result = object{answer[1]: "a report on " + node}
		}
		args["outcome"].(map[string]any)["result"] = result
		did[node]++
		content = h.ok(next["tool"].(string), args)
	}
	if len(did) != 3 || did["search_web"] != 1 || did["search_papers"] != 1 || did["write"] != 1 {
		t.Errorf("what was done: %v", did)
	}
	want(t, content, object{"result": object{"report": "a report on write", "findings": []any{
		"what the tool of search_web has found", "what the tool of search_papers has found"}}})
}

// pendingOf is the entry of pending for a node.
func pendingOf(t *testing.T, content object, node string) object {
	t.Helper()
	for _, p := range content["pending"].([]any) {
		if p := p.(map[string]any); p["node_id"] == node {
			return p
		}
	}
	t.Fatalf("node %q of next is not pending: %v", node, content["pending"])
	return nil
}
