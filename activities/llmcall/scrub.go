package llmcall

import (
	"encoding/json"
	"net/url"
	"strings"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// minOutputSecret is the shortest key that is removed from a model's answer too. A shorter one, like the "ollama"
// that is given to servers that want no key, is also a word that an answer may rightly have.
const minOutputSecret = 16

// scrubber removes a key from a provider's texts.
type scrubber struct {
	replacer *strings.Replacer // nil without a key
	forms    []string
	long     bool
}

// newScrubber knows the keys as they are, and as JSON texts and addresses spell them.
func newScrubber(keys ...Secret) scrubber {
	s := scrubber{long: true}
	for _, key := range keys {
		if key.value == "" {
			continue
		}
		encoded, _ := json.Marshal(key.value) // a string always has a JSON form
		s.forms = append(s.forms,
			key.value, string(encoded[1:len(encoded)-1]), strings.ReplaceAll(key.value, "/", `\/`), url.QueryEscape(key.value), url.PathEscape(key.value))
		s.long = s.long && len(key.value) >= minOutputSecret
	}
	if s.forms == nil {
		return scrubber{}
	}
	var pairs []string
	for _, form := range s.forms {
		pairs = append(pairs, form, mask)
	}
	s.replacer = strings.NewReplacer(pairs...)
	return s
}

// text scrubs a text for people.
func (s scrubber) text(text string) string {
	if s.replacer == nil {
		return text
	}
	return s.replacer.Replace(text)
}

// quote scrubs a body and cuts it to an excerpt, in this order, so that the cut cannot leave a part of the key.
func (s scrubber) quote(body string) string { return excerpt(strings.TrimSpace(s.spelt(body))) }

// spelt scrubs a text that may be JSON, which has many ways to spell a character; where only the canonical one shows the key, that is
// what is returned.
func (s scrubber) spelt(text string) string {
	scrubbed := s.text(text)
	if scrubbed != text || !strings.Contains(text, `\`) {
		return scrubbed
	}
	if v, err := jsonvalue.Decode([]byte(text)); err == nil {
		canonical := string(jsonvalue.Canonical(v))
		if clean := s.text(canonical); clean != canonical {
			return clean
		}
	}
	return text
}

// answer scrubs a model's text if the key is too long to occur in it by chance.
func (s scrubber) answer(text string) string {
	if !s.long {
		return text
	}
	return s.text(text)
}

// json is answer for a text that may be JSON.
func (s scrubber) json(text string) string {
	if !s.long {
		return text
	}
	return s.spelt(text)
}

// begun returns the length of the end of a text that may be the beginning of the key.
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

// scrubbedPieces is answer for a text that comes in pieces. It holds back a possible beginning of the key.
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

// end returns the text that was held back.
func (p *scrubbedPieces) end() {
	if p.held != "" {
		p.out(p.held)
	}
}

// output is answer for the texts in a value.
func (s scrubber) output(v any) any {
	if !s.long {
		return v
	}
	switch v := v.(type) {
	case string:
		return s.text(v)
	case []any:
		for i, e := range v {
			v[i] = s.output(e)
		}
	case map[string]any:
		clean := make(map[string]any, len(v))
		for _, name := range jsonvalue.Keys(v) {
			clean[s.text(name)] = s.output(v[name])
		}
		return clean
	}
	return v
}
