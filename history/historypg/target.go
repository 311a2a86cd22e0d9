package historypg

import (
	"crypto/tls"
	"net/netip"
	"slices"
	"strings"
)

// Target is where a URL leads, after the environment variables, password file and service file of libpq have filled in what it leaves out.
type Target struct {
	// Where has all hosts of the URL, separated by commas.
	Where
	// Unverified are the hosts, local ones excluded, to which the connection does not verify the server, as sslmode=verify-full does: it may
	// be intercepted.
	Unverified []string
	// Password is the password of the connection, "" without one. Hide it in all output.
	Password string
}

// Resolve returns where a URL leads without connecting. It returns USAGE_ERROR for invalid options or an invalid url. The error contains
// nothing of the url.
func Resolve(url string, o Options) (Target, error) {
	if err := o.fill(); err != nil {
		return Target{}, err
	}
	x, err := newSession(url, &o)
	if err != nil {
		return Target{}, err
	}
	c := &x.config.ConnConfig.Config
	t := Target{Where: x.where, Password: c.Password}
	visit := func(host string, port uint16, security *tls.Config) {
		verified := security != nil && !security.InsecureSkipVerify
		if at := hostPort(host, port); !verified && !isLocal(host) && !slices.Contains(t.Unverified, at) {
			t.Unverified = append(t.Unverified, at)
		}
	}
	visit(c.Host, c.Port, c.TLSConfig)
	for _, f := range c.Fallbacks {
		visit(f.Host, f.Port, f.TLSConfig)
	}
	return t, nil
}

// isLocal reports whether a host is this machine.
func isLocal(host string) bool {
	if strings.HasPrefix(host, "/") || strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
