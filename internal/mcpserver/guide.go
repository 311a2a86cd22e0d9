package mcpserver

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/guide"
)

func guideTool() *tool {
	topics := guide.Topics()
	return &tool{
		name:        "workflow_guide",
		title:       "Read how to write a workflow",
		description: "Before you write a definition: how, on one page, with an example. Then by topic.",
		annotations: mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: new(false), OpenWorldHint: new(false)},
		arguments:   []property{optional("topic", oneOf("Default definition.", topics...))},
		answer:      []property{required("topic", str("Topic.")), required("guide", str("The page, in Markdown.")), required("topics", describe("array", "All topics."))},
		invalid:     problem.ValidationError,
		call: func(_ context.Context, _ *server, a *arguments) (*answer, error) {
			topic := a.Get("topic").Choice(topics...)
			if err := a.problem(); err != nil {
				return nil, err
			}
			if topic == "" {
				topic = guide.Main
			}
			page, names := guide.Page(topic), make([]any, len(topics))
			for i, name := range topics {
				names[i] = name
			}
			return &answer{headline: "Guide, topic " + topic + ".", lines: []string{page}, content: members{{"topic", topic}, {"guide", page}, {"topics", names}}}, nil
		},
	}
}
