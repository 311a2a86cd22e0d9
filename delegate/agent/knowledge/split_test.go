package knowledge

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzSplit: any text is cut into sections with names of their own; those of a text without markup are together the text.
func FuzzSplit(f *testing.F) {
	f.Add("md", "# A\ntext\n## A\n```\n# no\n```\n### \n#")
	f.Add("html", "<h1>A<h2>B</h1>&amp;<p a='<'>x<!--")
	f.Add("csv", "a,b\n\"1\n2\",3\n\"")
	f.Add("json", `{"a":[1],"b":{"a":2}}`)
	f.Add("txt", strings.Repeat("line\n\n", 900))
	f.Fuzz(func(t *testing.T, form, text string) {
		if !utf8.ValidString(text) || len(text) > 1<<16 {
			return
		}
		seen, all := map[string]bool{}, ""
		for _, s := range split(form, text) {
			if seen[s.slug] || s.slug == "" || strings.ContainsAny(s.slug, "#/ \n") || !utf8.ValidString(s.title) {
				t.Errorf("%s: section %q, %q", form, s.slug, s.title)
			}
			seen[s.slug] = true
			all += s.text
		}
		if form == "txt" && all != text || form == "md" && strings.TrimSpace(all) != strings.TrimSpace(text) {
			t.Errorf("%s: %q became %q", form, text, all)
		}
	})
}

// BenchmarkWords cuts a text into words, which is most of the time of indexing it.
func BenchmarkWords(b *testing.B) {
	text := strings.Repeat("The quick brown fox jumps over the lazy dogs. ", 2000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		wordsOf(text)
	}
}
