package historypg

import (
	"cmp"
	"crypto/tls"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/workflows-engine/workflows-engine/graph/problem"
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

// Resolve returns where a URL leads without connecting. It returns USAGE_ERROR for an invalid url or schema. The error contains nothing of the
// url.
func Resolve(url string, o Options) (Target, error) {
	if err := o.fill(); err != nil {
		return Target{}, err
	}
	parsed, err := pgxpool.ParseConfig(url)
	if err != nil { // its text has parts of the url
		return Target{}, problem.New(problem.UsageError, "invalid address of a PostgreSQL server").
			WithHint("Write a URL, as in postgres://me@db.example.com/runs?sslmode=verify-full, or keys and values, as in host=db.example.com dbname=runs.")
	}
	c := parsed.ConnConfig
	t := Target{Password: c.Password}
	t.Database, t.Schema = cmp.Or(c.Database, c.User), o.Schema
	var hosts []string
	visit := func(host string, port uint16, security *tls.Config) {
		at := host
		if !isSocket(host) {
			at = net.JoinHostPort(host, strconv.Itoa(int(port)))
		}
		if !slices.Contains(hosts, at) {
			hosts = append(hosts, at)
		}
		verified := security != nil && !security.InsecureSkipVerify
		if !verified && !isLocal(host) && !slices.Contains(t.Unverified, at) {
			t.Unverified = append(t.Unverified, at)
		}
	}
	visit(c.Host, c.Port, c.TLSConfig)
	for _, f := range c.Fallbacks {
		visit(f.Host, f.Port, f.TLSConfig)
	}
	t.Host = strings.Join(hosts, ",")
	return t, nil
}

// isSocket reports whether a host is the directory of a Unix socket.
func isSocket(host string) bool { return strings.HasPrefix(host, "/") || strings.HasPrefix(host, "@") }

// isLocal reports whether a host is this machine.
func isLocal(host string) bool {
	if isSocket(host) || strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
