package mcpserver_test

import (
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
)

// TestToolsThatAreLeftOutAreNotNamed: with fewer tools, neither the lists nor an answer names one that the model does not have.
func TestToolsThatAreLeftOutAreNotNamed(t *testing.T) {
	t.Parallel()
	for set, count := range map[string]int{
		"all": 11, "core": 7, "workflow_status,workflow_list, workflow_history": 3,
		"workflow_start,workflow_status,workflow_submit_activity": 3,
	} {
		t.Run(set, func(t *testing.T) {
			t.Parallel()
			store := enginetest.Closing(t, historymem.New())
			runner := enginetest.Closing(t, enginetest.Must(graph.New(store, hostMediated)))
			h := connectHost(t, runner, mcpserver.Options{Definitions: store, Tools: enginetest.Must(mcpserver.ParseTools(set))})
			h.runner, h.store = runner, store
			list, err := h.session.ListTools(t.Context(), nil)
			if err != nil || len(list.Tools) != count {
				t.Fatalf("%d tools, %v", len(list.Tools), err)
			}
			var offered []string
			for _, tool := range list.Tools {
				offered = append(offered, tool.Name)
			}
			said := []string{h.session.InitializeResult().Instructions}
			text := func(v any) string { return string(enginetest.Must(json.Marshal(v))) }
			said = append(said, text(list.Tools))
			call := func(tool string, args object) {
				if slices.Contains(offered, tool) {
					r := h.raw(tool, args)
					said = append(said, r.text, text(r.content))
				}
			}
			before := connectHost(t, runner, mcpserver.Options{Definitions: store})
			before.ok("workflow_start", object{"definition": definitionFile(t, "approval"), "execution_id": "waits", "input": object{}})
			call("workflow_start", object{"definition": object{}})
			call("workflow_start", object{"definition": definitionFile(t, "tickets"), "execution_id": "r", "input": object{"ticket": "x"}})
			for range 3 {
				call("workflow_submit_activity", object{"execution_id": "r", "node_id": "classify", "outcome": object{"ok": false, "error": "no"}})
			}
			call("workflow_status", object{"execution_id": "r"})
			call("workflow_status", object{"execution_id": "waits"})
			call("workflow_status", object{"execution_id": "none"})
			call("workflow_list", object{})
			for _, text := range said {
				for _, name := range regexp.MustCompile(`\bworkflow_(start|status|resume|submit_activity|signal|cancel|list|guide|validate|history|fork)\b`).FindAllString(text, -1) {
					if !slices.Contains(offered, name) && !strings.Contains(text, name+", which this server does not offer") {
						t.Errorf("%s is named, but not offered: %s", name, text)
					}
				}
			}
		})
	}
}

func TestToolsAreChecked(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": `tool ""`, "none": `tool "none"`, "workflow_status,workflow_go": `tool "workflow_go"`, "workflow_list": "include workflow_status",
	} {
		if _, err := mcpserver.ParseTools(text); !errors.Is(err, problem.UsageError) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
