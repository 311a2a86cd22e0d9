package agentfile

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/delegate/agent"
	"github.com/workflows-engine/workflows-engine/delegate/agent/apicall"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/document"
)

var apiKind = kind{
	field: "api", tool: func() Tool { return &apiTool{} },
	list: "apis", settings: func() Settings { return &services{} },
}

// apiTool is the tool api_call over services.
type apiTool struct {
	Services []string `json:"api"`
	Options
}

func (t *apiTool) String() string { return "api_call (" + problem.AndList(t.Services) + ")" }

func (t *apiTool) names() []string { return []string{"api_call"} }

func (t *apiTool) check(p *parser, _, at string) {
	var known []string
	if all, ok := p.list.settings["apis"].(*services); ok {
		known = slices.Sorted(maps.Keys(*all))
	}
	for i, name := range t.Services {
		if !slices.Contains(known, name) && p.d.Intact(document.At("apis", name)) {
			p.unknown(at+document.At("api", i), fmt.Sprintf("apis has no service %q", name), name, known)
		}
	}
}

func (t *apiTool) add(to *agent.Agent, _ Runtime, settings any) error {
	set, err := settings.(*apicall.APIs).Tools(t.Services, t.list()...)
	if err == nil {
		to.Tools = append(to.Tools, set)
	}
	return err
}

// services are the services that agents may call, by their names.
type services map[string]*service

// service is a service that agents may call. The zero value of a field below AllowedPaths is its default.
type service struct {
	BaseURL string `json:"baseUrl"`
	Auth    auth   `json:"auth"`
	// AllowedPaths are regular expressions; there is at least one.
	AllowedPaths     []string `json:"allowedPaths"`
	AllowedMethods   []string `json:"allowedMethods,omitempty"`
	MaxBodyBytes     int      `json:"maxBodyBytes,omitempty"`
	MaxResponseBytes int      `json:"maxResponseBytes,omitempty"`
	TimeoutMs        int      `json:"timeoutMs,omitempty"`
	// PrivateNetworks are networks such as 10.0.0.0/8.
	PrivateNetworks []string `json:"privateNetworks,omitempty"`

	networks []netip.Prefix
}

// auth names the secrets that authorize calls.
type auth struct {
	// Type is "none", bearer (with TokenRef), header (Name, ValueRef) or basic (UserRef, PassRef).
	Type     string `json:"type"`
	TokenRef string `json:"tokenRef,omitempty"`
	Name     string `json:"name,omitempty"`
	ValueRef string `json:"valueRef,omitempty"`
	UserRef  string `json:"userRef,omitempty"`
	PassRef  string `json:"passRef,omitempty"`
}

func (all *services) check(p *parser, at string) {
	for name, s := range *all {
		if s == nil { // the schema reports null
			continue
		}
		s.check(p, at+document.At(name))
		if s.Auth.Type != "none" {
			p.secretsTo["service "+name] = s.BaseURL
		}
	}
}

func (s *service) check(p *parser, at string) {
	s.BaseURL = strings.TrimSpace(s.BaseURL)
	if s.Auth.Type == "" {
		s.Auth.Type = "none"
	}
	for field, reference := range map[string]*string{"tokenRef": &s.Auth.TokenRef, "valueRef": &s.Auth.ValueRef, "userRef": &s.Auth.UserRef, "passRef": &s.Auth.PassRef} {
		*reference = p.secret(at+"/auth/"+field, *reference)
	}
	for i, pattern := range s.AllowedPaths {
		if _, err := regexp.Compile(pattern); err != nil {
			p.d.Fail(at+document.At("allowedPaths", i), "format", "the pattern does not compile: %v", err)
		}
	}
	for i, text := range s.PrivateNetworks {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			p.d.Fail(at+document.At("privateNetworks", i), "format", "%q must be a network such as 10.0.0.0/8", text)
		}
		s.networks = append(s.networks, network)
	}
}

func (all *services) open(r Runtime) (any, error) {
	list := map[string]apicall.Service{}
	for name, s := range *all {
		list[name] = apicall.Service{
			BaseURL: s.BaseURL, Auth: s.Auth.with(r.Secret), AllowedPaths: s.AllowedPaths, AllowedMethods: s.AllowedMethods, MaxBodyBytes: s.MaxBodyBytes,
			MaxResponseBytes: s.MaxResponseBytes, Timeout: time.Duration(s.TimeoutMs) * time.Millisecond, PrivateNetworks: s.networks,
		}
	}
	return apicall.New(apicall.Config{Services: list})
}

// with returns the authorization by secrets that are resolved at each call.
func (a auth) with(resolve func(reference string) (string, error)) apicall.Auth {
	secret := func(reference string) apicall.Secret {
		return func(context.Context) (string, error) { return resolve(reference) }
	}
	switch a.Type {
	case "bearer":
		return apicall.Bearer(secret(a.TokenRef))
	case "header":
		return apicall.Header(a.Name, secret(a.ValueRef))
	case "basic":
		return apicall.Basic(secret(a.UserRef), secret(a.PassRef))
	}
	return nil
}
