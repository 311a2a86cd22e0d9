package agentfile

import (
	"net/url"
	"strings"

	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonobject"
)

// The largest values: of tokens, of a price in US dollars, and of milliseconds, a day.
const (
	maxTokens = 1 << 30
	maxPrice  = 1e6
	maxMs     = 24 * 60 * 60 * 1000
	maxCount  = 1_000_000
)

func (r *reader) readModels(v jsonobject.Value) map[string]Model {
	if v.Map() == nil {
		return nil
	}
	models := map[string]Model{}
	for name := range named(v, "model") {
		models[name] = Model{}
	}
	for name, member := range v.Members() {
		models[name] = r.model(member.Object())
	}
	return models
}

func (r *reader) model(o *jsonobject.Object) (m Model) {
	if o == nil {
		return m
	}
	m.Model.Model = strings.TrimSpace(o.Require("model").NonBlank())
	m.ContextTokens = whole(o.Get("contextTokens"), maxTokens)
	m.MaxTokens = whole(o.Get("maxTokens"), maxTokens)
	ceiling := o.Get("maxTokensCeiling")
	m.MaxTokensCeiling = whole(ceiling, maxTokens)
	if least := orElse(m.MaxTokens, agentloop.DefaultMaxTokens); m.MaxTokensCeiling > 0 && m.MaxTokensCeiling < least {
		ceiling.Fail("range", "maxTokensCeiling is less than maxTokens, which is %d", least)
	}
	if t, ok := o.Get("temperature").Number(0, 2); ok {
		m.Temperature = &t
	}
	m.Price = price(o.Get("priceUsdPerMTok").Object())
	if endpoint := o.Get("endpoint"); endpoint.Present() {
		m.Endpoint = r.endpoint(endpoint.Object())
	} else if r.NoProvider != "" {
		o.Fail("profile", "%s", r.NoProvider).Hint = "Or give the model an endpoint."
	}
	o.Close()
	return m
}

func price(o *jsonobject.Object) *agentloop.Price {
	if o == nil {
		return nil
	}
	p := &agentloop.Price{}
	p.Input, _ = o.Require("input").Number(0, maxPrice)
	p.Output, _ = o.Require("output").Number(0, maxPrice)
	var given bool
	if p.CachedInput, given = o.Get("cachedInput").Number(0, maxPrice); !given {
		p.CachedInput = p.Input
	}
	o.Close()
	return p
}

func (r *reader) endpoint(o *jsonobject.Object) *Endpoint {
	if o == nil {
		return nil
	}
	e := &Endpoint{NoAuth: o.Get("noAuth").Bool()}
	address := o.Require("baseUrl")
	if e.BaseURL = strings.TrimSpace(address.Text()); e.BaseURL != "" || address.Plain == "" {
		u, err := url.Parse(e.BaseURL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			address.Fail("format", "baseUrl is not an absolute http or https address without user and query").Hint = "Write the address above /chat/completions, as in http://localhost:11434/v1."
		} else if base, ok := strings.CutSuffix(strings.TrimRight(e.BaseURL, "/"), "/chat/completions"); ok {
			address.Fail("format", "baseUrl ends with /chat/completions, which is put behind it").Hint = "Write " + base + "."
		}
	}
	name, reference := strings.TrimSpace(o.Get("apiKeyEnv").Text()), strings.TrimSpace(o.Get("apiKeySecretRef").Text())
	e.KeyReference = reference
	given := 0
	for _, there := range []bool{name != "", reference != "", e.NoAuth} {
		if there {
			given++
		}
	}
	if name != "" {
		e.KeyReference = "env:" + name
	}
	o.Close()
	if given != 1 {
		o.Fail("oneOf", "expected exactly one of apiKeyEnv, apiKeySecretRef and noAuth")
		return e
	}
	if e.KeyReference != "" && r.Secret != nil {
		if err := r.Secret(e.KeyReference); err != nil {
			f := o.Fail("profile", "%v", err)
			if p, ok := problem.As(err); ok {
				f.Hint = p.Hint
			}
		}
	}
	return e
}

// whole reads a whole number above 0, 0 if there is none.
func whole(v jsonobject.Value, most int64) int {
	n, _ := v.Whole(1, most)
	return int(n)
}

func blank(text string) bool { return strings.TrimSpace(text) == "" }

func orElse[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}
