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
	for _, name := range tools[guide[1]]["topic"].(map[string]any)["enum"].([]any) {
		if contains(name.(string), "parallel") {
			topic = name.(string)
		}
	}
	page := h.raw(guide[1], object{"topic": topic}).text
	_, shown, _ := strings.Cut(page, "```json\n")
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
		prompt := promptOf(t, content, node)
		answer := regexp.MustCompile(`Answer \{"(\w+)": (\[?)text`).FindStringSubmatch(prompt)
		if answer == nil {
			t.Fatalf("node %s does not say what to answer: %q", node, prompt)
		}
		var result any = "a report on " + node
		if answer[2] == "[" {
			result = []any{"a finding of " + node}
		}
		args["outcome"].(map[string]any)["result"] = object{answer[1]: result}
		did[node]++
		content = h.ok(next["tool"].(string), args)
	}
	if len(did) != 3 || did["search_web"] != 1 || did["search_papers"] != 1 || did["write"] != 1 {
		t.Errorf("what was done: %v", did)
	}
	want(t, content, object{"result": object{"report": "a report on write"}})
	if findings := at(t, h.ok("workflow_status", object{"execution_id": content["execution_id"], "read": []any{"/findings"}}), "values", 0, "value").([]any); len(findings) != 2 {
		t.Errorf("findings: %v", findings)
	}
}

// promptOf is what the entry of pending for a node asks.
func promptOf(t *testing.T, content object, node string) string {
	t.Helper()
	for _, p := range content["pending"].([]any) {
		if p := p.(map[string]any); p["node_id"] == node {
			prompt, _ := p["config"].(map[string]any)["system_prompt"].(string)
			return prompt
		}
	}
	t.Fatalf("node %q of next is not pending: %v", node, content["pending"])
	return ""
}
