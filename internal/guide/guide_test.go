package guide_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/guide"
)

// TestTopics: each file is a topic, and each topic has a page with a title.
func TestTopics(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir("pages")
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, e := range entries {
		files = append(files, strings.TrimSuffix(e.Name(), ".md"))
	}
	topics := guide.Topics()
	for _, topic := range topics {
		if !strings.HasPrefix(guide.Page(topic), "# ") {
			t.Errorf("the page on %s has no title", topic)
		}
	}
	if slices.Sort(topics); !slices.Equal(topics, files) {
		t.Errorf("topics %q, files %q", topics, files)
	}
	if page := guide.Page("cooking"); page != "" {
		t.Errorf("a page on cooking: %.40q", page)
	}
}
