package config

import (
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/config/envname"
	"github.com/workflows-engine/workflows-engine/internal/httpguard"
	"github.com/workflows-engine/workflows-engine/internal/regularfile"
)

// minToken is the least length of a token, in bytes: a shorter one can be guessed, and cannot be masked in answers.
const minToken = minAnswerSecret

// HTTPToken returns the bearer token of a server that listens: the trimmed content of a file, or without a file the value of
// WORKFLOW_ENGINE_HTTP_TOKEN; "" without both. The token is masked like other secrets, and loose permissions of the file become a warning.
func (c *Config) HTTPToken(file string) (string, error) {
	token, from, err := c.tokenText(file, maxSecretBytes)
	if err == nil && from != "" {
		err = c.checkToken(token, from)
	}
	if err != nil {
		return "", err
	}
	return token, nil
}

// HTTPTokens is HTTPToken for a server whose clients have tokens of their own: the file may also be a list of tokens with names
// (schemas/tokens.schema.json). The holder of a single token has the name "token".
func (c *Config) HTTPTokens(file string) (tokens httpguard.Tokens, err error) {
	text, from, err := c.tokenText(file, httpguard.MaxTokensBytes)
	switch {
	case err != nil || from == "":
		return tokens, err
	case file == "" || !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "["):
		if err := c.checkToken(text, from); err != nil {
			return tokens, err
		}
		return httpguard.OneToken(text, "token"), nil
	}
	tokens, findings := httpguard.ParseTokens([]byte(text), c.env.secrets.add)
	if len(findings) > 0 {
		e := problem.New(problem.UsageError, "%s: %s", from, findings[0].Message).WithHint("Write one token, or a list as in schemas/tokens.schema.json.")
		e.Findings = findings
		return httpguard.Tokens{}, e
	}
	return tokens, nil
}

// tokenText returns the trimmed text of a file, or without a file of the variable; from names it, "" without both.
func (c *Config) tokenText(file string, most int64) (text, from string, err error) {
	if file == "" {
		if text = c.env.lookup(envname.HTTPToken); text == "" {
			return "", "", nil
		}
		return text, envname.HTTPToken, nil
	}
	from = "--token-file " + file
	text, err = c.secretIn(from, file, most)
	return text, from, err
}

// secretIn returns the trimmed text of a file; from names it. Loose permissions become a warning.
func (c *Config) secretIn(from, file string, most int64) (text string, err error) {
	path := c.env.absolute(file)
	opened, info, err := regularfile.Open(path)
	if err == nil {
		text, err = readSecret(opened, most)
	}
	if err != nil {
		return "", problem.New(problem.UsageError, "cannot read %s", from).WithCause(err)
	}
	c.env.notePermissions(path, info, true)
	c.Warnings = append(c.Warnings, c.env.notes.take()...)
	return text, nil
}

// Key returns a key: the trimmed content of the file that a flag names, or without one the value of a variable; "" without both. It is masked
// like other secrets.
func (c *Config) Key(flag, file, variable string) (string, error) {
	key := c.env.lookup(variable)
	if file != "" {
		var err error
		if key, err = c.secretIn("--"+flag+" "+file, file, maxSecretBytes); err != nil {
			return "", err
		}
	}
	c.env.secrets.add(key)
	return key, nil
}

// checkToken rejects a token that can be guessed or cannot be sent, and masks any other.
func (c *Config) checkToken(token, from string) error {
	switch {
	case len(token) < minToken:
		return problem.New(problem.UsageError, "%s: the token must have at least %d bytes, found %d", from, minToken, len(token)).
			WithHint("Generate one: openssl rand -hex 32.")
	case strings.IndexFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) >= 0:
		return problem.New(problem.UsageError, "%s: the token must not contain white space or characters that are invalid in a header", from).
			WithHint("Generate one: openssl rand -hex 32.")
	}
	c.env.secrets.add(token)
	return nil
}
