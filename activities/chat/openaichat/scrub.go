package openaichat

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"github.com/workflows-engine/workflows-engine/activities/chat"
)

// minOutputSecret is the length of the shortest key that is removed from a model's answer too. A shorter one, such as the "ollama" for servers
// without authentication, is also a word that an answer may contain.
const minOutputSecret = 16

// scrubber removes keys from a provider's texts.
type scrubber struct {
	replacer *strings.Replacer // nil without a key
	forms    []string
	// escaped matches the keys in JSON texts, which may escape any character.
	escaped func() *regexp.Regexp
	long    bool
}

// newScrubber returns a scrubber for keys, as they are and as JSON texts and addresses encode them.
func newScrubber(keys ...chat.Secret) scrubber {
	s := scrubber{long: true}
	var patterns []string
	for _, key := range keys {
		key := key.Reveal()
		if key == "" {
			continue
		}
		encoded, _ := json.Marshal(key) // a string always has a JSON form
		s.forms = append(s.forms,
			key, string(encoded[1:len(encoded)-1]), strings.ReplaceAll(key, "/", `\/`), url.QueryEscape(key), url.PathEscape(key))
		s.long = s.long && len(key) >= minOutputSecret
		var pattern strings.Builder
		for _, r := range key {
			fmt.Fprintf(&pattern, `(?:\\?%s|\\u(?i:%04x))`, regexp.QuoteMeta(string(r)), r)
		}
		patterns = append(patterns, pattern.String())
	}
	if s.forms == nil {
		return scrubber{}
	}
	var pairs []string
	for _, form := range s.forms {
		pairs = append(pairs, form, chat.Mask)
	}
	s.replacer = strings.NewReplacer(pairs...)
	s.escaped = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(strings.Join(patterns, "|")) })
	return s
}

// text scrubs a text for people.
func (s scrubber) text(text string) string {
	if s.replacer == nil {
		return text
	}
	if text = s.replacer.Replace(text); strings.Contains(text, `\`) {
		text = s.escaped().ReplaceAllLiteralString(text, chat.Mask)
	}
	return text
}

// quote scrubs a body before it cuts it to an excerpt: a cut key would not be found.
func (s scrubber) quote(body string) string { return excerpt(strings.TrimSpace(s.text(body))) }

// answer scrubs a model's text if the key is too long to occur in it by chance.
func (s scrubber) answer(text string) string {
	if !s.long {
		return text
	}
	return s.text(text)
}

// begun returns the length of the longest end of a text that may be the beginning of a key.
func (s scrubber) begun(text string) int {
	longest := 0
	for _, form := range s.forms {
		for n := min(len(form)-1, len(text)); n > longest && s.long; n-- {
			if strings.HasSuffix(text, form[:n]) {
				longest = n
			}
		}
	}
	return longest
}

// scrubbedPieces scrubs a model's text that comes in pieces. It holds back a possible beginning of a key.
type scrubbedPieces struct {
	scrub *scrubber
	held  string
	out   func(text string)
}

func (p *scrubbedPieces) add(piece string) {
	text := p.scrub.answer(p.held + piece)
	ready := len(text) - p.scrub.begun(text)
	p.held = text[ready:]
	if ready > 0 {
		p.out(text[:ready])
	}
}

// end reports the text that was held back.
func (p *scrubbedPieces) end() {
	if p.held != "" {
		p.out(p.held)
	}
}
