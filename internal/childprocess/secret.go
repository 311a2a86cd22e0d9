package childprocess

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

const mask = "[REDACTED]"

var (
	// inlineReference is a variable within a value, as hosts write it.
	inlineReference = regexp.MustCompile(`\$\{env:([^}]*)\}`)
	// secretName is what a variable or header with a secret is usually called.
	secretName = regexp.MustCompile(`(?i)key|token|secret|passw|credential|authorization|cookie`)
)

// Resolve replaces the references in values: one that begins with "env:" or "file:" is a reference as a whole, and
// "${env:NAME}" within one is replaced; "literal:" before a value keeps the rest as it is. secret resolves a reference;
// nil refuses them. It also tells which of the results are secret: those that came from a reference, and those whose
// name says so. Errors name the member and the reference, never a value.
func Resolve(values map[string]string, secret func(string) (string, error)) (map[string]string, []string, error) {
	resolved := make(map[string]string, len(values))
	var secrets []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		text, found, err := expand(values[name], secret)
		if err != nil {
			return nil, nil, problem.New(problem.UsageError, "the value of %q", name).WithCause(err).
				WithHint(`Write "literal:" before a value that is no reference.`)
		}
		if len(found) == 0 && secretName.MatchString(name) {
			found = []string{text}
		}
		resolved[name] = text
		secrets = append(secrets, found...)
	}
	return resolved, secrets, nil
}

// expand gives a value with its references replaced, and what they stood for.
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
	text = inlineReference.ReplaceAllStringFunc(value, func(match string) string {
		return lookup("env:" + inlineReference.FindStringSubmatch(match)[1])
	})
	return text, found, err
}

// Scrubber masks secrets in texts that are logged or recorded. A nil one masks nothing.
type Scrubber []string

// NewScrubber leaves out what is too short to be told from ordinary text. Longer secrets come first, so that one that
// contains another is masked as a whole.
func NewScrubber(secrets []string) Scrubber {
	secrets = slices.DeleteFunc(slices.Clone(secrets), func(s string) bool { return len(s) < 4 })
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	return slices.Compact(secrets)
}

// Scrub gives the text with the secrets masked.
func (s Scrubber) Scrub(text string) string {
	for _, secret := range s {
		text = strings.ReplaceAll(text, secret, mask)
	}
	return text
}

// minOutputSecret is the length from which a secret is taken out of an output too. A shorter one may be a word that an
// output rightly has.
const minOutputSecret = 16

// ScrubOutput is Scrub for the texts and member names in an output, of secrets that cannot stand there by chance. The
// value is plain JSON; what holds no secret is given back as it is.
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
