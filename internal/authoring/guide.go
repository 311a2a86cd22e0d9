// Package authoring holds texts for authors of definitions: the pages of the guide by topic, the explanation of each code, and templates of
// definitions with their tests.
package authoring

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/workflows-engine/workflows-engine/docs"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// MainTopic is the topic of the page to read first.
const MainTopic = "definition"

// recipes is the topic of the page that lists the recipes.
const recipes = "recipes"

// agents is the topic of agents that run inside the engine, agentsSection the section of their page that is for authors.
const (
	agents        = "agents"
	agentsSection = "in-a-definition"
)

// entry is a page on a topic.
type entry struct{ topic, text string }

// Topics returns all topics, in reading order.
func Topics() []string {
	var topics []string
	for _, e := range entries() {
		topics = append(topics, e.topic)
	}
	return topics
}

// Page returns the page on a topic, in Markdown; "" for an unknown topic.
func Page(topic string) string {
	i := slices.IndexFunc(entries(), func(e entry) bool { return e.topic == topic })
	if i < 0 {
		return ""
	}
	return entries()[i].text
}

// TopicHint suggests topics in place of an unknown one.
func TopicHint(topic string) string {
	topics := Topics()
	if near := suggest.DidYouMean(topic, topics); near != "" {
		return near
	}
	if near := suggest.Hint(about(topic)); near != "" {
		return near
	}
	return "The topics are " + problem.AndList(topics) + "."
}

// code matches a part of a definition on a page, word any word.
var (
	code = regexp.MustCompile("`([a-z_]{3,})|([a-z_]{3,}):")
	word = regexp.MustCompile(`[a-z_]{3,}`)
)

// about returns the topic of the page that names a part of a definition, or the part nearest to it, most often; "" without one.
func about(part string) string {
	known, most, topic := map[string]bool{}, map[string]int{}, map[string]string{}
	for _, e := range entries()[1:] { // the first has something of all, and so do the recipes
		if e.topic == recipes {
			break
		}
		for _, m := range code.FindAllStringSubmatch(e.text, -1) {
			known[m[1]+m[2]] = true
		}
		count := map[string]int{}
		for _, w := range word.FindAllString(e.text, -1) {
			if count[w]++; count[w] > most[w] {
				most[w], topic[w] = count[w], e.topic
			}
		}
	}
	if known[part] {
		return topic[part]
	}
	return topic[suggest.Nearest(part, slices.Sorted(maps.Keys(known)))]
}

// entries are the sections of the pages.
var entries = sync.OnceValue(func() []entry {
	all := sections(docs.Workflows)
	all[0].topic = MainTopic
	for _, e := range sections(docs.Language) { // the fields first, then what else there is to know
		i := slices.IndexFunc(all, func(of entry) bool { return of.topic == e.topic })
		if i < 0 {
			all = append(all, e)
			continue
		}
		_, more, _ := strings.Cut(all[i].text, "\n")
		all[i].text = e.text + more
	}
	for _, e := range sections(docs.Agents) {
		if e.topic == agentsSection {
			_, body, _ := strings.Cut(e.text, "\n")
			all = append(all, entry{agents, "# Agents that run in the engine\n" + body})
		}
	}
	whole, recipe := sections(docs.Recipes), &strings.Builder{}
	recipe.WriteString("# Recipes\n\nWhole definitions for common tasks, each a separate topic:\n\n")
	for _, e := range whole {
		title, _, _ := strings.Cut(e.text, "\n")
		fmt.Fprintf(recipe, "- `%s`: %s\n", e.topic, strings.TrimPrefix(title, "# "))
	}
	return append(append(all, entry{recipes, recipe.String()}), whole...)
})

var (
	heading = regexp.MustCompile(`(?m)^###? (.+)\n`)
	link    = regexp.MustCompile(`\[([^][]+)\]\([^)\s]+\)`)
)

// sections splits a page at its headings. The topics are the anchors of the headings; links, which lead nowhere without the page, become
// their texts.
func sections(page string) []entry {
	var all []entry
	found := heading.FindAllStringSubmatchIndex(page, -1)
	for i, at := range found {
		end := len(page)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		title, body := page[at[2]:at[3]], strings.TrimSpace(page[at[1]:end])
		body = strings.ReplaceAll(link.ReplaceAllString(body, "$1"), "```yaml fragment", "```yaml")
		all = append(all, entry{anchor(title), "# " + title + "\n\n" + body + "\n"})
	}
	return all
}

// anchor is the name of a heading in links.
func anchor(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-', r == '_', 'a' <= r && r <= 'z', '0' <= r && r <= '9':
			return r
		}
		return -1
	}, strings.ToLower(title))
}
