package authoring

import (
	"path"
	"regexp"
	"strings"
	"sync"

	"github.com/workflows-engine/workflows-engine/docs"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// CodeGroup is the codes of a section of the page, in its order.
type CodeGroup struct {
	Title string
	Codes []Code
}

// Code is the explanation of a code on the page, as plain text.
type Code struct {
	Name string
	// When describes when the code occurs, Do how to fix it.
	When, Do string
	// Wrong and Right are examples of parts of definitions, "" without examples.
	Wrong, Right string
}

var (
	row     = regexp.MustCompile("^\\| `([A-Z0-9_]+)` \\| (.*) \\| (.*) \\|$")
	example = regexp.MustCompile("(?s)^### ([A-Z0-9_]+)\n\n```yaml wrong\n(.*?)```\n\n```yaml right\n(.*?)```\n")
)

// CodeGroups returns all codes.
var CodeGroups = sync.OnceValue(func() []CodeGroup {
	var groups []CodeGroup
	at := map[string]*Code{}
	for section := range strings.SplitSeq(docs.Codes, "\n## ") {
		title, body, _ := strings.Cut(section, "\n")
		g := CodeGroup{Title: title}
		for line := range strings.Lines(body) {
			if m := row.FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil {
				g.Codes = append(g.Codes, Code{Name: m[1], When: linkless(m[2]), Do: linkless(m[3])})
			}
		}
		if len(g.Codes) > 0 {
			groups = append(groups, g)
			for i := range g.Codes {
				at[g.Codes[i].Name] = &g.Codes[i]
			}
		}
		for i, part := range strings.Split(body, "\n### ") {
			if m := example.FindStringSubmatch("### " + part); i > 0 && m != nil && at[m[1]] != nil {
				at[m[1]].Wrong, at[m[1]].Right = m[2], m[3]
			}
		}
	}
	return groups
})

var pageLink = regexp.MustCompile(`\[([^\]]*)\]\(([^)#]*)[^)]*\)`)

// linkless replaces the links of a text of the page by their text and the name of their page.
func linkless(text string) string {
	return pageLink.ReplaceAllStringFunc(text, func(whole string) string {
		m := pageLink.FindStringSubmatch(whole)
		switch {
		case m[2] == "":
			return m[1]
		case !strings.Contains(m[2], "://"):
			m[2] = path.Join("docs/reference", m[2])
		}
		return m[1] + " (" + m[2] + ")"
	})
}

// FindCode returns a code, ignoring case. near is the nearest known code to an unknown one, "" if they all differ much.
func FindCode(name string) (code Code, near string, ok bool) {
	name = strings.ToUpper(strings.TrimSpace(name))
	var names []string
	for _, g := range CodeGroups() {
		for _, c := range g.Codes {
			if c.Name == name {
				return c, "", true
			}
			names = append(names, c.Name)
		}
	}
	return Code{}, suggest.Nearest(name, names), false
}
