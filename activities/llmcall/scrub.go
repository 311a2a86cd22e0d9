package llmcall

import (
	"encoding/json"
	"net/url"
	"strings"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// minOutputSecret is the length from which a key is taken out of a model's answer too. A shorter one, like the "ollama"
// that is given to servers that want no key, is also a word that an answer may rightly have.
const minOutputSecret = 16

// scrubber takes a key out of what a provider says.
type scrubber struct {
	replacer *strings.Replacer // nil without a key
	long     bool
}

// newScrubber knows the key as it is, and as JSON texts and addresses spell it.
func newScrubber(key Secret) scrubber {
	if key.value == "" {
		return scrubber{}
	}
	encoded, _ := json.Marshal(key.value) // a string always has a JSON form
	var pairs []string
	for _, form := range []string{
		key.value, string(encoded[1 : len(encoded)-1]), strings.ReplaceAll(key.value, "/", `\/`),
		url.QueryEscape(key.value), url.PathEscape(key.value),
	} {
		pairs = append(pairs, form, mask)
	}
	return scrubber{replacer: strings.NewReplacer(pairs...), long: len(key.value) >= minOutputSecret}
}

// text scrubs a text for people.
func (s scrubber) text(text string) string {
	if s.replacer == nil {
		return text
	}
	return s.replacer.Replace(text)
}

// quote scrubs a body and cuts it to an excerpt, in this order, so that the cut cannot leave a part of the key. JSON has
// many ways to spell a character; where only the canonical one shows the key, that is what is quoted.
func (s scrubber) quote(body string) string {
	scrubbed := s.text(body)
	if v, err := jsonvalue.Decode([]byte(body)); err == nil && scrubbed == body {
		canonical := string(jsonvalue.Canonical(v))
		if text := s.text(canonical); text != canonical {
			scrubbed = text
		}
	}
	return excerpt(strings.TrimSpace(scrubbed))
}

// answer scrubs what a model says, where the key cannot stand there by chance.
func (s scrubber) answer(text string) string {
	if !s.long {
		return text
	}
	return s.text(text)
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
