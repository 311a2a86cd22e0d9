package config

import (
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/childprocess"
	"github.com/workflows-engine/workflows-engine/internal/config/envname"
)

const (
	// minSecret is the least length, in bytes, of a secret that is masked in shown records.
	minSecret = 8
	// minAnswerSecret is the least length in answers: hosts act on them, and a shorter secret may be an ordinary word.
	minAnswerSecret = 16
)

// secrets collects the values of the secrets that the settings name, as they are read.
type secrets struct {
	mu     sync.RWMutex
	values []string
	// shown and answered mask them, in records and in answers.
	shown, answered childprocess.Scrubber
}

// add notes a secret.
func (s *secrets) add(value string) {
	if s == nil || len(value) < minSecret {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(s.values, value) {
		return
	}
	s.values = append(s.values, value)
	s.shown = childprocess.NewScrubber(s.values)
	s.answered = childprocess.NewScrubber(slices.DeleteFunc(slices.Clone(s.values), func(v string) bool { return len(v) < minAnswerSecret }))
}

// addNamed notes the values of variables or headers with names of secrets.
func (s *secrets) addNamed(values map[string]string) {
	for name, value := range values {
		if history.DefaultRedaction().Value(map[string]any{name: ""}).(map[string]any)[name] != "" {
			s.add(strings.TrimPrefix(value, "literal:"))
		}
	}
}

// mask hides them where records are shown, maskAnswer in answers.
func (s *secrets) mask(text string) string       { return s.scrubber(false).Scrub(text) }
func (s *secrets) maskAnswer(text string) string { return s.scrubber(true).Scrub(text) }

func (s *secrets) scrubber(answers bool) childprocess.Scrubber {
	if s == nil {
		return nil
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if answers {
		return s.answered
	}
	return s.shown
}

// Redaction masks shown records: values with secret names, including the names in WORKFLOW_ENGINE_REDACT, and the secrets of the settings.
func (c *Config) Redaction() *history.Redaction {
	r := history.DefaultRedaction().WithNames(strings.Split(c.env.lookup(envname.Redact), ",")...).WithMask(c.env.secrets.mask)
	return &r
}

// AnswerRedaction masks the secrets of the settings in answers, if they are too long to occur by chance. Names mask nothing there: hosts
// and callers act on the values.
func (c *Config) AnswerRedaction() history.Redaction {
	return history.Redaction{}.WithMask(c.env.secrets.maskAnswer)
}

// Masked writes to w without the secrets of the settings. Each write is masked as a whole.
func (c *Config) Masked(w io.Writer) io.Writer { return masked{w, c.env.secrets} }

type masked struct {
	io.Writer
	secrets *secrets
}

func (m masked) Write(text []byte) (int, error) {
	if _, err := io.WriteString(m.Writer, m.secrets.mask(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}
