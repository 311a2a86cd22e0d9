package apicall

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strings"

	"github.com/workflows-engine/workflows-engine/internal/childprocess"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Auth returns the credentials of a call. It is called for each call, so that a key that was changed counts at once. An error means that the call is
// not made; its text is recorded, so it names a secret and does not hold one.
type Auth func(ctx context.Context, t Target) (Credentials, error)

// Target is the call that is to be authorized.
type Target struct {
	Service, Method string
	// Path is that of the call, without the query.
	Path string
}

// Credentials are headers that authorize a call.
type Credentials struct {
	Header http.Header
	// Secrets are masked in responses of the service, as are the values of Header.
	Secrets []string
}

// Secret reads a secret.
type Secret func(ctx context.Context) (string, error)

// Bearer sends "Authorization: Bearer" with a token.
func Bearer(token Secret) Auth {
	return func(ctx context.Context, _ Target) (Credentials, error) {
		value, err := token(ctx)
		if err != nil {
			return Credentials{}, err
		}
		return Credentials{Header: http.Header{"Authorization": {"Bearer " + value}}, Secrets: []string{value}}, nonBlank("token", value)
	}
}

// Header sends a header of the given name, such as X-Api-Key.
func Header(name string, secret Secret) Auth {
	return func(ctx context.Context, _ Target) (Credentials, error) {
		value, err := secret(ctx)
		if err != nil {
			return Credentials{}, err
		}
		return Credentials{Header: http.Header{http.CanonicalHeaderKey(name): {value}}}, nonBlank("value", value)
	}
}

// Basic sends "Authorization: Basic" with a user and a password.
func Basic(user, password Secret) Auth {
	return func(ctx context.Context, _ Target) (Credentials, error) {
		name, err := user(ctx)
		if err != nil {
			return Credentials{}, err
		}
		pass, err := password(ctx)
		if err != nil {
			return Credentials{}, err
		}
		if strings.Contains(name, ":") {
			return Credentials{}, errors.New("the user name must not contain a colon")
		}
		encoded := base64.StdEncoding.EncodeToString([]byte(name + ":" + pass))
		return Credentials{Header: http.Header{"Authorization": {"Basic " + encoded}}, Secrets: []string{pass, name + ":" + pass}}, nonBlank("user", name)
	}
}

func nonBlank(what, value string) error {
	if strings.TrimSpace(value) == "" {
		return fmt.Errorf("the %s is blank", what)
	}
	return nil
}

// check returns why the headers cannot be sent. The error does not contain their values.
func (c *Credentials) check() error {
	for name, values := range c.Header {
		for _, v := range values {
			if !headerName(name) || !headerValue(v) {
				return fmt.Errorf("the header %q holds what cannot be sent in one", name)
			}
		}
	}
	return nil
}

func headerName(name string) bool {
	return name != "" && len(name) <= 200 && !strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r))
	})
}

func headerValue(v string) bool {
	return !strings.ContainsFunc(v, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

// mask knows the forms of the credentials: plain, after a scheme, and as escaped in addresses and pages.
func (c *Credentials) mask() masker {
	var secrets []string
	add := func(s string) {
		if s = strings.TrimSpace(s); s != "" {
			secrets = append(secrets, s, url.QueryEscape(s), url.PathEscape(s), html.EscapeString(s))
		}
	}
	for _, values := range c.Header {
		for _, v := range values {
			add(v)
			if _, rest, ok := strings.Cut(v, " "); ok {
				add(rest)
			}
		}
	}
	for _, s := range c.Secrets {
		add(s)
		if s != "" {
			add(base64.StdEncoding.EncodeToString([]byte(s)))
		}
	}
	return masker{childprocess.NewScrubber(secrets)}
}

// masker removes secrets from responses of a service.
type masker struct{ childprocess.Scrubber }

// Scrub masks the credentials of a call, also where a text spells some of its characters as percent escapes: which ones, and with which letters,
// differs from writer to writer.
func (m masker) Scrub(text string) string {
	text = m.Scrubber.Scrub(text)
	plain, at := unescaped(text)
	if at == nil {
		return text
	}
	var clean strings.Builder
	from := 0
	for i := 0; i < len(plain); {
		n := 0
		for _, secret := range m.Scrubber { // the longest first
			if n == 0 && strings.HasPrefix(plain[i:], secret) {
				n = len(secret)
			}
		}
		if n == 0 {
			i++
			continue
		}
		clean.WriteString(text[from:at[i]])
		clean.WriteString(m.Scrubber.Scrub(plain[i : i+n]))
		i += n
		from = at[i]
	}
	clean.WriteString(text[from:])
	return clean.String()
}

// unescaped undoes the percent escapes of a text. at is where each byte, and the end, stands in the text; nil if there is no escape.
func unescaped(text string) (plain string, at []int) {
	if !strings.Contains(text, "%") {
		return text, nil
	}
	b := make([]byte, 0, len(text))
	at = make([]int, 0, len(text)+1)
	for i := 0; i < len(text); i++ {
		at = append(at, i)
		c := text[i]
		if c == '%' && i+2 < len(text) {
			if escaped, err := hex.DecodeString(text[i+1 : i+3]); err == nil {
				c = escaped[0]
				i += 2
			}
		}
		b = append(b, c)
	}
	return string(b), append(at, len(text))
}

// value masks the texts, names and numbers of a value.
func (m masker) value(v any) any {
	switch v := v.(type) {
	case string:
		return m.Scrub(v)
	case float64:
		if text := string(jsonvalue.Canonical(v)); m.Scrub(text) != text {
			return m.Scrub(text)
		}
	case []any:
		for i, e := range v {
			v[i] = m.value(e)
		}
	case map[string]any:
		clean := make(map[string]any, len(v))
		for _, name := range jsonvalue.Keys(v) {
			clean[m.Scrub(name)] = m.value(v[name])
		}
		return clean
	}
	return v
}
