// Package guide holds the pages on writing definitions, which models read by a tool and people by a command.
package guide

import (
	"embed"
	"slices"
)

//go:embed pages/*.md
var files embed.FS

// Main is the topic of the page to read first.
const Main = "definition"

var topics = []string{Main, "node_types", "expressions", "waiting", "parallel", "errors"}

// Topics returns all topics, in the order in which to read them.
func Topics() []string { return slices.Clone(topics) }

// Page returns the page on a topic, in Markdown; "" if there is none.
func Page(topic string) string {
	if !slices.Contains(topics, topic) {
		return ""
	}
	text, err := files.ReadFile("pages/" + topic + ".md")
	if err != nil {
		panic(err) // a topic without its file
	}
	return string(text)
}
