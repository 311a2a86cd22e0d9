// Package port holds what the ports of activities and delegates have in common: the table that finds the executor of a
// request, and the questions that an executor may answer about itself.
//
// The kind of a request is its node type or delegate protocol. E is a port's executor interface, R its request.
package port

import "net/url"

// Route names the executor of a kind; nil if none is configured.
type Route[E comparable] struct {
	Kind     string
	Executor E
}

// Routes are the executors of a port.
type Routes[E comparable] []Route[E]

// Find returns the executor of a kind, or the fallback if it has none. known is false for a kind that has no route.
func (r Routes[E]) Find(kind string, fallback E) (executor E, known bool) {
	for _, route := range r {
		if route.Kind == kind {
			if route.Executor == executor { // nil
				return fallback, true
			}
			return route.Executor, true
		}
	}
	return executor, false
}

// Immediate reports whether an executor answers the request at once, which one that does not say so does not.
func Immediate[R any](executor any, req R) bool {
	i, ok := executor.(interface{ Immediate(R) bool })
	return ok && i.Immediate(req)
}

// Describe returns what an executor says that it sends for a request, nil if it does not say.
func Describe[R any](executor any, req R) map[string]any {
	if d, ok := executor.(interface{ Describe(R) map[string]any }); ok {
		return d.Describe(req)
	}
	return nil
}

// Performs reports whether an executor performs requests of a kind, as one does that names no kinds.
func Performs(executor any, kind string) bool {
	s, ok := executor.(interface{ Performs(kind string) bool })
	return !ok || s.Performs(kind)
}

// Setting names what is set so that an executor performs requests of a kind, "" if it cannot be set; otherwise if the executor
// does not say.
func Setting(executor any, kind, otherwise string) string {
	if s, ok := executor.(interface{ SettingOf(kind string) string }); ok {
		return s.SettingOf(kind)
	}
	return otherwise
}

// Endpoint returns an address as it may be recorded: its scheme and host. User information, path and query may authorize. It is "" for
// what is no address.
func Endpoint(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()
}
