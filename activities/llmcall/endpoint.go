package llmcall

import "context"

// Endpoint is an address of models, and how to authorize there: the members of Config of the same names.
type Endpoint struct {
	BaseURL string
	APIKey  func(ctx context.Context) (Secret, error)
	KeyFrom string
	NoAuth  bool
}

// At returns an executor of another endpoint, with the connections, limits and clock of e; for models that have an endpoint of their
// own. It is checked as by New. Knowledge about the provider is not shared with e.
func (e *Executor) At(endpoint Endpoint) (*Executor, error) {
	c := e.config
	c.BaseURL, c.APIKey, c.KeyFrom, c.NoAuth = endpoint.BaseURL, endpoint.APIKey, endpoint.KeyFrom, endpoint.NoAuth
	return New(c)
}
