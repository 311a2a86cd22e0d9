package authoring_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/internal/authoring"
)

// TestTopics: each node type, each extension and each recipe can be read by itself.
func TestTopics(t *testing.T) {
	t.Parallel()
	topics := authoring.Topics()
	if topics[0] != authoring.MainTopic {
		t.Errorf("the first topic is %q", topics[0])
	}
	want := append(definition.Extensions(), "jq-and-templates", "agents", "recipes", "catch-an-error")
	for _, typ := range definition.NodeTypes() {
		want = append(want, string(typ.Name))
	}
	for _, topic := range want {
		if !slices.Contains(topics, topic) {
			t.Errorf("there is no topic %q", topic)
		}
	}
	link := regexp.MustCompile(`\]\(`)
	for i, topic := range topics {
		page := authoring.Page(topic)
		if slices.Contains(topics[:i], topic) {
			t.Errorf("two pages have the topic %q", topic)
		}
		if !strings.HasPrefix(page, "# ") || strings.Count(page, "\n") < 3 {
			t.Errorf("the page on %q: %q", topic, page)
		}
		if link.MatchString(page) || strings.Contains(page, "yaml fragment") {
			t.Errorf("the page on %q has what only the whole page explains:\n%s", topic, page)
		}
	}
	if page := authoring.Page("cooking"); page != "" {
		t.Errorf("%q", page)
	}
	if page := authoring.Page("catch"); !strings.Contains(page, "x-workflows-engine: {uses: [catch]}") {
		t.Errorf("the page of an extension does not say how to name it:\n%s", page)
	}
}

// TestHint: the topic that was probably meant is that with a similar name, or that which says most about the word.
func TestHint(t *testing.T) {
	t.Parallel()
	for topic, want := range map[string]string{
		"compensat": `"compensate"`, "llm-call": `"llm_call"`, "rollbak": `"compensate"`, "rollback": `"compensate"`, "max_attempts": `"retries-and-timeouts"`,
		"resume_shema": `"interrupt"`, "qqqqqqqq": "The topics are definition",
	} {
		if got := authoring.TopicHint(topic); !strings.Contains(got, want) {
			t.Errorf("%s: %s", topic, got)
		}
	}
}
