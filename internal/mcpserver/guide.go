package mcpserver

import (
	"context"
	"embed"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

//go:embed guide/*.md
var guideFiles embed.FS

// mainTopic is the page on writing definitions, topics the others.
const mainTopic = "definition"

var topics = []string{mainTopic, "node_types", "expressions", "waiting", "parallel", "errors"}

// guidePage is the page on a topic.
func guidePage(topic string) string {
	text, err := guideFiles.ReadFile("guide/" + topic + ".md")
	if err != nil {
		panic(err) // a topic without its file
	}
	return string(text)
}

func guideTool() *tool {
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
				topic = mainTopic
			}
			page, names := guidePage(topic), make([]any, len(topics))
			for i, name := range topics {
				names[i] = name
			}
			return &answer{headline: "Guide, topic " + topic + ".", lines: []string{page}, content: members{{"topic", topic}, {"guide", page}, {"topics", names}}}, nil
		},
	}
}
