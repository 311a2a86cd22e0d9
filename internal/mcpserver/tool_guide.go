package mcpserver

import (
	"context"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/authoring"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

const (
	agentsTopic = "agents"
	// maxGuideAgents and maxGuideSchema bound the agents of the guide's page; the resource has all.
	maxGuideAgents, maxGuideSchema = 50, 500
)

// agentsText lists the agents for models whose host shows them no resources.
func (s *server) agentsText() string {
	lines := []string{"Agents of this server:", ""}
	for i, a := range s.opts.Agents {
		if i == maxGuideAgents {
			lines = append(lines, fmt.Sprintf("- … and %d more: resource %s", len(s.opts.Agents)-i, agentsURI))
			break
		}
		line := "- `" + a.Name + "`"
		if a.Description != "" {
			line += ": " + problem.ClipRunes(s.opts.Redaction.String(a.Description), maxGuideSchema)
		}
		if a.Output != nil {
			schema := string(jsonvalue.Canonical(a.Output))
			if len(schema) > maxGuideSchema {
				schema = "the schema in the resource " + agentsURI
			}
			line += " Its answer satisfies " + schema
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n") + "\n"
}

func guideTool() *tool {
	return &tool{
		name:        "workflow_guide",
		title:       "Read how to write a workflow",
		description: "Before you write a definition: how, on one page, with an example. Then by topic.",
		annotations: mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: new(false), OpenWorldHint: new(false)},
		arguments:   []property{optional("topic", str("Default definition, which lists all."))},
		answer:      []property{required("topic", str("Topic.")), required("guide", str("The page, in Markdown.")), optional("topics", describe("array", "All topics."))},
		invalid:     problem.ValidationError,
		call: func(_ context.Context, s *server, a *arguments) (*answer, error) {
			topic := a.Get("topic").Text()
			if err := a.Problem(); err != nil {
				return nil, err
			}
			if topic == "" {
				topic = authoring.MainTopic
			}
			topics := authoring.Topics()
			page := authoring.Page(topic)
			if page == "" {
				return nil, problem.New(problem.ValidationError, "unknown topic %q", topic).WithHint("%s", authoring.TopicHint(topic))
			}
			if topic == agentsTopic && len(s.opts.Agents) > 0 {
				page += "\n" + s.agentsText()
			}
			ans := &answer{headline: "Guide, topic " + topic + ".", lines: []string{page}, content: members{{"topic", topic}, {"guide", page}}, page: true}
			if topic == authoring.MainTopic {
				names := make([]any, len(topics))
				for i, name := range topics {
					names[i] = name
				}
				ans.lines = append(ans.lines, "Topics: "+strings.Join(topics, ", ")+".")
				ans.content.Put("topics", names)
			}
			return ans, nil
		},
	}
}
