package agentfile

import (
	"net/netip"
	"net/url"
	"regexp"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonobject"
)

// API is a service that agents may call.
type API struct {
	BaseURL string
	Auth    Auth
	// AllowedPaths are regular expressions, of which there is at least one.
	AllowedPaths []string
	// AllowedMethods are nil for the default.
	AllowedMethods []string `json:",omitempty"`
	// The rest is 0 or nil for the defaults.
	MaxBodyBytes, MaxResponseBytes, TimeoutMs int            `json:",omitempty"`
	PrivateNetworks                           []netip.Prefix `json:",omitempty"`
}

// Auth says by which references to secrets calls are authorized.
type Auth struct {
	// Type is none, bearer (with TokenRef), header (Name, ValueRef) or basic (UserRef, PassRef).
	Type                                       string
	TokenRef, Name, ValueRef, UserRef, PassRef string `json:",omitempty"`
}

// Knowledge is the folder of the knowledge bases.
type Knowledge struct {
	Path                           string
	MaxSearchResults, MaxReadBytes int `json:",omitempty"`
}

// Skills is the folder of the skills.
type Skills struct{ Path string }

func (k *Knowledge) folder() string {
	if k == nil {
		return ""
	}
	return k.Path
}

func (s *Skills) folder() string {
	if s == nil {
		return ""
	}
	return s.Path
}

// folder reads the member path of an object.
func (r *reader) folder(o *jsonobject.Object) string {
	path := strings.TrimSpace(o.Require("path").NonBlank())
	if path == "" || r.Absolute == nil {
		return path
	}
	return r.Absolute(path)
}

func (r *reader) readKnowledge(o *jsonobject.Object) *Knowledge {
	if o == nil {
		return nil
	}
	k := &Knowledge{Path: r.folder(o)}
	k.MaxSearchResults = whole(o.Get("maxSearchResults"), 100)
	k.MaxReadBytes = whole(o.Get("maxReadBytes"), 1<<20)
	o.Close()
	return k
}

func (r *reader) readSkills(o *jsonobject.Object) *Skills {
	if o == nil {
		return nil
	}
	s := &Skills{Path: r.folder(o)}
	o.Close()
	return s
}

func (r *reader) readAPIs(v jsonobject.Value) map[string]API {
	if v.Map() == nil {
		return nil
	}
	apis := map[string]API{}
	for name, member := range named(v, "service") {
		apis[name] = r.api(member.Object())
	}
	return apis
}

// methods are those that may be allowed.
var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

const (
	maxAPIBytes         = 16 << 20
	maxAPIResponseBytes = 64 << 20
)

func (r *reader) api(o *jsonobject.Object) (a API) {
	if o == nil {
		return a
	}
	address := o.Require("baseUrl")
	if a.BaseURL = strings.TrimSpace(address.Text()); a.BaseURL != "" || address.Plain == "" {
		u, err := url.Parse(a.BaseURL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			address.Fail("format", "baseUrl is not an absolute http or https address without user and query")
		}
	}
	a.Auth = r.auth(o.Get("auth").Object())
	paths := o.Require("allowedPaths")
	elements := paths.Elements()
	if elements != nil && len(elements) == 0 {
		paths.Fail("minItems", "the list allows no path")
	}
	for _, e := range elements {
		pattern := e.NonBlank()
		if _, err := regexp.Compile(pattern); err != nil {
			e.Fail("format", "the pattern does not compile: %v", err)
		} else if pattern != "" && !strings.HasPrefix(pattern, "^/") {
			e.Fail("pattern", "the pattern does not begin with \"^/\": it would be unclear what stands before").Hint = "Write ^/widgets/[0-9]+$ for one path, ^/widgets/ for all below it."
		}
		a.AllowedPaths = append(a.AllowedPaths, pattern)
	}
	for _, e := range o.Get("allowedMethods").Elements() {
		a.AllowedMethods = append(a.AllowedMethods, e.Choice(methods...))
	}
	if v := o.Get("allowedMethods"); v.Present() && len(a.AllowedMethods) == 0 {
		v.Fail("minItems", "the list allows no method")
	}
	a.MaxBodyBytes = whole(o.Get("maxBodyBytes"), maxAPIBytes)
	a.MaxResponseBytes = whole(o.Get("maxResponseBytes"), maxAPIResponseBytes)
	a.TimeoutMs = whole(o.Get("timeoutMs"), maxMs)
	for _, e := range o.Get("privateNetworks").Elements() {
		network, err := netip.ParsePrefix(e.Text())
		if err != nil {
			e.Fail("format", "%q is not a network such as 10.0.0.0/8", e.Text())
		}
		a.PrivateNetworks = append(a.PrivateNetworks, network)
	}
	o.Close()
	return a
}

// auth reads how calls are authorized: not at all where the list does not say.
func (r *reader) auth(o *jsonobject.Object) (a Auth) {
	if o == nil {
		return Auth{Type: "none"}
	}
	a.Type = o.Require("type").Choice("none", "bearer", "header", "basic")
	secret := func(name string) string {
		v := o.Require(name)
		reference := strings.TrimSpace(v.NonBlank())
		if reference == "" || r.Secret == nil {
			return reference
		}
		if err := r.Secret(reference); err != nil {
			f := v.Fail("profile", "%v", err)
			if p, ok := problem.As(err); ok {
				f.Hint = p.Hint
			}
		}
		return reference
	}
	switch a.Type {
	case "bearer":
		a.TokenRef = secret("tokenRef")
	case "header":
		name := o.Require("name")
		if a.Name = name.NonBlank(); strings.ContainsFunc(a.Name, func(r rune) bool { return noToolName(r) }) {
			name.Fail("pattern", "%q is not the name of a header such as X-Api-Key", a.Name)
		}
		a.ValueRef = secret("valueRef")
	case "basic":
		a.UserRef, a.PassRef = secret("userRef"), secret("passRef")
	case "": // which was refused
		o.Known("tokenRef", "name", "valueRef", "userRef", "passRef")
	}
	o.Close()
	return a
}
