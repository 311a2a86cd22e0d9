// Package dialguard keeps requests that documents and models cause away from addresses that the operator has not allowed: it checks
// the dialled address, after names were resolved, and rejects paths that servers can read in more than one way.
package dialguard

import (
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"strings"
	"syscall"
)

// Refusal is the error of an address that is not dialled.
type Refusal struct{ Address string }

func (r *Refusal) Error() string { return fmt.Sprintf("%s is not a public address", r.Address) }

// Control is the Control of a net.Dialer that rejects loopback, private, link-local and other special addresses, unless one of the
// networks has it. Errors are *Refusal.
func Control(private []netip.Prefix) func(network, address string, _ syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return &Refusal{address}
		}
		ip := at.Addr().Unmap().WithZone("")
		if !special(ip) {
			return nil
		}
		for _, network := range private {
			if network.Contains(ip) {
				return nil
			}
		}
		return &Refusal{ip.String()}
	}
}

// PlainPath reports whether servers can read the path of an address in one way only: no "..", no "//", no slash in disguise, nothing that
// is escaped twice. Some servers take "..;" for "..", and a segment that is nothing but ";x" for none.
func PlainPath(u *url.URL) bool {
	if strings.Contains(strings.ToLower(u.EscapedPath()), "%2f") || strings.ContainsAny(u.Path, `\%`) || strings.Contains(u.Path, "/..;") ||
		strings.Contains(u.Path, "/.;") || strings.Contains(u.Path, "/;") {
		return false
	}
	return u.Path == "" || path.Clean(u.Path) == u.Path || path.Clean(u.Path)+"/" == u.Path
}

// reserved lists special networks that netip has no function for, and global networks whose addresses map to others.
var reserved = func() (networks []netip.Prefix) {
	for _, text := range []string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24",
		"203.0.113.0/24", "240.0.0.0/4", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
	} {
		networks = append(networks, netip.MustParsePrefix(text))
	}
	return networks
}()

// global is all of IPv6 that public addresses are given from. Outside of it are the forms that hold an IPv4 address
// (RFC 4291, 6052, 7915), among others.
var global = netip.MustParsePrefix("2000::/3")

// special reports whether an address is anything but a public one.
func special(ip netip.Addr) bool {
	if ip.Is6() && !global.Contains(ip) {
		return true
	}
	if ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.IsUnspecified() {
		return true
	}
	for _, network := range reserved {
		if network.Contains(ip) {
			return true
		}
	}
	return false
}

// Network reads a network, as in 10.0.0.0/8, or a single address.
func Network(text string) (netip.Prefix, error) {
	if ip, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(ip, ip.BitLen()), nil
	}
	return netip.ParsePrefix(text)
}
