package childprocess

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

const mask = "[REDACTED]"

var (
	// inlineReference is a variable within a value, as hosts write it.
	inlineReference = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\{env:([^}]*)\}`) })
	// secretName matches usual names of variables and headers with a secret.
	secretName = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)key|token|secret|passw|credential|authorization|cookie`)
	})
)

// Resolve replaces the references in values: one that begins with "env:" or "file:" is a reference as a whole, and
// "${env:NAME}" within one is replaced; "literal:" before a value keeps the rest as it is. secret resolves a reference;
// nil rejects them. It also returns which of the results are secret: values of references, and values whose
// name is a secret's. Errors name the field and the reference, never a value.
func Resolve(values map[string]string, secret func(string) (string, error)) (map[string]string, []string, error) {
	resolved := make(map[string]string, len(values))
	var secrets []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		text, found, err := expand(values[name], secret)
		if err != nil {
			return nil, nil, problem.New(problem.UsageError, "the value of %q", name).WithCause(err).
				WithHint(`Write "literal:" before a value that is no reference.`)
		}
		if len(found) == 0 && secretName().MatchString(name) {
			found = []string{text}
		}
		resolved[name] = text
		secrets = append(secrets, found...)
	}
	return resolved, secrets, nil
}

// expand returns a value with its references replaced, and their values.
func expand(value string, secret func(string) (string, error)) (text string, found []string, err error) {
	if rest, ok := strings.CutPrefix(value, "literal:"); ok {
		return rest, nil, nil
	}
	lookup := func(reference string) string {
		if err != nil {
			return ""
		}
		var v string
		if secret == nil {
			err = fmt.Errorf("secret reference %q cannot be resolved here", reference)
		} else if v, err = secret(reference); err == nil {
			found = append(found, v)
		}
		return v
	}
	if trimmed := strings.TrimSpace(value); strings.HasPrefix(trimmed, "env:") || strings.HasPrefix(trimmed, "file:") {
		text = lookup(trimmed)
		return text, found, err
	}
	text = inlineReference().ReplaceAllStringFunc(value, func(match string) string {
		return lookup("env:" + inlineReference().FindStringSubmatch(match)[1])
	})
	return text, found, err
}

// Scrubber masks secrets in texts that are logged or recorded. A nil one masks nothing.
type Scrubber []string

// NewScrubber knows each secret as it is, in the spellings of JSON texts, and by its lines if it has several, such as
// a private key. It leaves out secrets too short to be distinguished from ordinary text. Longer secrets come first,
// so that a secret that contains another is masked as a whole.
func NewScrubber(secrets []string) Scrubber {
	var forms Scrubber
	for _, secret := range secrets {
		if len(secret) < 4 {
			continue
		}
		forms = append(forms, secret, strings.ReplaceAll(secret, "/", `\/`))
		if encoded, err := json.Marshal(secret); err == nil {
			forms = append(forms, string(encoded[1:len(encoded)-1]))
		}
		if strings.ContainsAny(secret, "\r\n") {
			for line := range strings.FieldsFuncSeq(secret, func(r rune) bool { return r == '\r' || r == '\n' }) {
				if len(line) >= minOutputSecret {
					forms = append(forms, line)
				}
			}
		}
	}
	slices.SortFunc(forms, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	return slices.Compact(forms)
}

// whole returns the length of a beginning of text that cuts no secret short, as far as the text shows. Only a text
// longer than all secrets is sure to have one.
func (s Scrubber) whole(text string) int {
	if len(s) == 0 {
		return len(text)
	}
	cut := max(0, len(text)-len(s[0])+1) // a secret that begins before is in the text as a whole
	for moved := true; moved; {
		moved = false
		for _, secret := range s {
			from := max(0, cut-len(secret)+1)
			if at := strings.Index(text[from:], secret); at >= 0 && from+at < cut {
				cut, moved = from+at+len(secret), true
			}
		}
	}
	return cut
}

// Scrub returns the text with the secrets masked.
func (s Scrubber) Scrub(text string) string {
	for _, secret := range s {
		text = strings.ReplaceAll(text, secret, mask)
	}
	return text
}

// minOutputSecret is the length from which a secret is masked in an output, too. A shorter one may be an ordinary word
// of the output.
const minOutputSecret = 16

// ScrubOutput is Scrub for the strings and field names in an output, for secrets too long to occur by chance. The
// value is plain JSON; a value without secrets is returned unchanged.
func (s Scrubber) ScrubOutput(v any) any {
	long := slices.DeleteFunc(slices.Clone(s), func(secret string) bool { return len(secret) < minOutputSecret })
	if len(long) == 0 {
		return v
	}
	return long.output(v)
}

func (s Scrubber) output(v any) any {
	switch v := v.(type) {
	case string:
		return s.Scrub(v)
	case []any:
		clean := make([]any, len(v))
		for i, e := range v {
			clean[i] = s.output(e)
		}
		return clean
	case map[string]any:
		if v == nil {
			return v
		}
		clean := make(map[string]any, len(v))
		for name, e := range v {
			clean[s.Scrub(name)] = s.output(e)
		}
		return clean
	}
	return v
}
