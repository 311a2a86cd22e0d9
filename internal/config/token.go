package config

import (
	"io/fs"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/config/envname"
	"github.com/workflows-engine/workflows-engine/internal/regularfile"
)

// minToken is the least length of a token, in bytes: a shorter one can be guessed, and cannot be masked in answers.
const minToken = minAnswerSecret

// HTTPToken returns the bearer token of a server that listens: the trimmed content of a file, or without a file the value of
// WORKFLOW_ENGINE_HTTP_TOKEN; "" without both. The token is masked like other secrets, and loose permissions of the file become a warning.
func (c *Config) HTTPToken(file string) (string, error) {
	token, from := c.env.lookup(envname.HTTPToken), envname.HTTPToken
	if file != "" {
		path := c.env.absolute(file)
		from = "--token-file " + file
		var info fs.FileInfo
		var err error
		if token, info, err = readSecret(regularfile.Open(path)); err != nil {
			return "", problem.New(problem.UsageError, "cannot read %s", from).WithCause(err)
		}
		c.env.notePermissions(path, info, true)
		c.Warnings = append(c.Warnings, c.env.notes.take()...)
	} else if token == "" {
		return "", nil
	}
	switch {
	case len(token) < minToken:
		return "", problem.New(problem.UsageError, "%s: the token must have at least %d bytes, found %d", from, minToken, len(token)).
			WithHint("Generate one: openssl rand -hex 32.")
	case strings.IndexFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) >= 0:
		return "", problem.New(problem.UsageError, "%s: the token must not contain white space or characters that are invalid in a header", from).
			WithHint("Generate one: openssl rand -hex 32.")
	}
	c.env.secrets.add(token)
	return token, nil
}
