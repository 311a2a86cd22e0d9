package lint_test

import (
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/lint"
)

// TestAgents: a delegation of protocol sdk to an agent that is not there is a warning, where it is known which there are.
func TestAgents(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		protocol, agent string
		known           []string
		want            string
	}{
		{"sdk", "clerk", []string{"clerk", "writer"}, ""},
		{"sdk", "clerc", []string{"clerk", "writer"}, `there is no agent "clerc"; did you mean "clerk"?`},
		{"sdk", "somebody", []string{"clerk", "writer"}, `there is no agent "somebody"; there is clerk and writer`},
		{"sdk", "clerc", []string{}, `there is no agent "clerc"; there is none`},
		{"sdk", "clerc", nil, ""},
		{"a2a", "clerc", []string{"clerk"}, ""},
	} {
		doc, err := definition.Parse([]byte(`{"document":{"schema":"s","name":"w","version":"1"},"state_schema":{"type":"object"},"nodes":[{"id":"start","type":"start"},
			{"id":"n","type":"agent_delegate","config":{"agent_id":"` + c.agent + `","protocol":"` + c.protocol + `","input_mapping":{"task":"t"}}},{"id":"end","type":"end"}],
			"edges":[{"source":"__start__","target":"start"},{"source":"start","target":"n"},{"source":"n","target":"end"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		program, findings := lint.Compile(doc, lint.Options{Agents: c.known})
		got := ""
		for _, f := range findings {
			got += f.Message + "; " + f.Hint
			if f.At.Pointer != "/nodes/1/config/agent_id" || f.At.NodeID != "n" || f.Code != "DELEGATE_AGENT_NOT_FOUND" {
				t.Errorf("%+v", f)
			}
		}
		if program == nil || got != c.want {
			t.Errorf("%s %s of %v: %q, want %q", c.protocol, c.agent, c.known, got, c.want)
		}
	}
}

// TestSkillsOfAgents: a node that leaves its agent a skill which that does not have, or no list of names, fails when it runs; it is a warning before, where the
// skills are known.
func TestSkillsOfAgents(t *testing.T) {
	t.Parallel()
	for metadata, want := range map[string]string{
		`{"skills":["refunds","memo-stile"]}`: `/nodes/1/metadata/skills/1: agent "clerk" does not have the skill "memo-stile"; did you mean "memo-style"?`,
		`{"skills":["x"]}`:                    `/nodes/1/metadata/skills/0: agent "clerk" does not have the skill "x"; there is memo-style and refunds`,
		`{"skills":["memo-style"]}`:           "",
		`{"skills":[]}`:                       "",
		`{"skills":"memo-style"}`:             `/nodes/1/metadata/skills: the skills are not a list of names; there is memo-style and refunds`,
		`{"skills":null}`:                     `/nodes/1/metadata/skills: the skills are not a list of names; there is memo-style and refunds`,
		`{"skills":["refunds",1,{}]}`:         `/nodes/1/metadata/skills: the skills are not a list of names; there is memo-style and refunds`,
	} {
		doc, err := definition.Parse([]byte(`{"document":{"schema":"s","name":"w","version":"1"},"state_schema":{"type":"object"},"nodes":[{"id":"start","type":"start"},
			{"id":"n","type":"agent_delegate","metadata":` + metadata + `,"config":{"agent_id":"clerk","protocol":"sdk","input_mapping":{"task":"t"}}},{"id":"end","type":"end"}],
			"edges":[{"source":"__start__","target":"start"},{"source":"start","target":"n"},{"source":"n","target":"end"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		for agent, skills := range map[string][]string{"clerk": {"memo-style", "refunds"}, "writer": {"prose"}} {
			_, findings := lint.Compile(doc, lint.Options{Agents: []string{"clerk", "writer"}, Skills: map[string][]string{agent: skills}})
			got := ""
			for _, f := range findings {
				got += f.At.Pointer + ": " + f.Message + "; " + f.Hint
			}
			if agent == "clerk" && got != want || agent == "writer" && got != "" {
				t.Errorf("%s, skills of %s: %q, want %q", metadata, agent, got, want)
			}
		}
	}
}
